//! An operation set up on a device: random inputs, outputs, and the copy that it is compared with.

use cutlet::{
    Buffer, DeviceTensor, F8E4M3, Norm, Quantize, Reduction, Rope, RopeTable, RouterWeights,
    Sampling, Stream, Tensor, TensorMut, Unary, add, argmax, cast, layout, reduce, reduce_modes,
    softmax, top_k, unary,
};
use cutlet_host::measure::Contestants;
use half::bf16;

use super::Shape;
use super::expected::{Expected, TOP_K};
use super::operation::{HEAD, Operation};
use crate::measure::error::{Error, Result};
use crate::measure::random::random;
use crate::measure::setting::Setting;

/// The contestant that is the operation.
pub const OWN: usize = 0;
/// The contestant that copies as many bytes.
pub const COPY: usize = 1;

/// What is added to a mean of squares, or to a variance.
pub const EPSILON: f32 = 1e-6;

/// Rows that are compared.
const COMPARED: usize = 12;

/// An operation, and a copy of as many bytes.
pub struct Case {
    operation: Operation,
    shape: Shape,
    shared: Shared,
    sets: Vec<Set>,
}

/// What all sets read.
struct Shared {
    weights: DeviceTensor<bf16>,
    positions: Buffer<i32>,
    angles: RopeTable,
    counters: DeviceTensor<u64>,
}

/// Inputs and outputs of a run. What an operation does not use has one element.
struct Set {
    x: DeviceTensor<bf16>,
    /// The second term of a sum, or the residual.
    other: DeviceTensor<bf16>,
    outputs: Outputs,
    copied: [Buffer<u8>; 2],
}

struct Outputs {
    elements: DeviceTensor<bf16>,
    of_rows: DeviceTensor<bf16>,
    floats: DeviceTensor<f32>,
    codes: DeviceTensor<F8E4M3>,
    scales: DeviceTensor<f32>,
    places: DeviceTensor<i32>,
}

impl Case {
    /// The operation with random inputs.
    ///
    /// # Errors
    /// If the device is out of memory, or fails.
    pub fn new(operation: Operation, shape: Shape, setting: &Setting) -> Result<Case> {
        let Shape { rows, columns } = shape;
        let stream = &setting.stream;
        let positions: Vec<i32> = (0..rows as i32).collect();
        let shared = Shared {
            weights: elements(setting, [1, columns], u64::MAX)?,
            positions: stream.upload(&positions)?,
            angles: RopeTable::new(stream, rows, HEAD, 10_000.0)?,
            counters: DeviceTensor::upload(stream, &vec![7; rows], [rows])?,
        };
        let sets = 0..setting.sets(operation.bytes(shape)) as u64;
        let sets = sets.map(|nth| Set::new(operation, shape, setting, nth));
        Ok(Case {
            operation,
            shape,
            shared,
            sets: sets.collect::<Result<_>>()?,
        })
    }

    /// Runs the operation into outputs of NaN, and compares some rows.
    ///
    /// # Errors
    /// If the device fails.
    pub fn check(&mut self, stream: &Stream) -> Result<bool> {
        let set = &mut self.sets[0];
        let before = set.other.download(stream)?;
        set.outputs.poison(stream)?;
        self.enqueue(stream, OWN, 0)?;
        let set = &self.sets[0];
        let Shape { rows, columns } = self.shape;
        let (x, weights) = (
            set.x.download(stream)?,
            self.shared.weights.download(stream)?,
        );
        let expected = Expected {
            operation: self.operation,
            weights: &weights,
        };
        let found = set
            .outputs
            .download(stream, self.operation, self.shape, &set.other)?;
        // The results of this operation are those of columns.
        let by_columns = self.operation == Operation::ReduceColumns;
        let count = if by_columns { columns } else { rows };
        let every = (count / COMPARED).max(1) | 1;
        let is_right = |nth: usize| {
            let part = |all: &[bf16]| match (all.len(), by_columns) {
                (1, _) => Vec::new(),
                (_, false) => all[nth * columns..][..columns].to_vec(),
                (_, true) => {
                    // There may be more elements than the tensor's.
                    let of_column = all.iter().skip(nth).step_by(columns);
                    of_column.take(rows).copied().collect()
                }
            };
            expected.is_right(nth, &part(&x), &part(&before), &found.of_row(nth))
        };
        Ok((0..count).step_by(every).all(is_right))
    }
}

/// Random elements of a shape.
fn elements(setting: &Setting, shape: [usize; 2], nth: u64) -> Result<DeviceTensor<bf16>> {
    let seed = setting.seed.wrapping_add(nth);
    let numbers = random(&setting.stream, shape.iter().product(), seed)?;
    Ok(DeviceTensor::new(numbers, shape)?)
}

impl Set {
    fn new(operation: Operation, shape: Shape, setting: &Setting, nth: u64) -> Result<Set> {
        let Shape { rows, columns } = shape;
        let all = [rows, columns];
        let has_other = matches!(operation, Operation::Add | Operation::RmsNormResidual);
        let half = operation.bytes(shape) / 2;
        let stream = &setting.stream;
        Ok(Set {
            x: elements(setting, all, 2 * nth)?,
            other: match has_other {
                true => elements(setting, all, 2 * nth + 1)?,
                false => DeviceTensor::zeroed(stream, [1, 1])?,
            },
            outputs: Outputs::new(operation, shape, stream)?,
            copied: [stream.zeroed(half)?, stream.zeroed(half)?],
        })
    }
}

impl Outputs {
    fn new(operation: Operation, Shape { rows, columns }: Shape, stream: &Stream) -> Result<Self> {
        let all = [rows, columns];
        let (mut elements, mut of_rows, mut floats) = ([1, 1], [1], [1, 1]);
        let (mut codes, mut scales, mut places) = ([1, 1], [1, 1], [1]);
        match operation {
            Operation::Cast => floats = all,
            Operation::Quantize => (codes, scales) = (all, [rows, columns.div_ceil(128)]),
            Operation::Argmax | Operation::Sampling => places = [rows],
            Operation::Reduce => of_rows = [rows],
            Operation::ReduceColumns => of_rows = [columns],
            Operation::TopK => (floats, places) = ([rows, TOP_K], [rows * TOP_K]),
            _ => elements = all,
        }
        Ok(Outputs {
            elements: DeviceTensor::zeroed(stream, elements)?,
            of_rows: DeviceTensor::zeroed(stream, of_rows)?,
            floats: DeviceTensor::zeroed(stream, floats)?,
            codes: DeviceTensor::zeroed(stream, codes)?,
            scales: DeviceTensor::zeroed(stream, scales)?,
            places: DeviceTensor::zeroed(stream, places)?,
        })
    }

    /// Fills what is written with bytes of 0xff: NaN, or −1.
    fn poison(&mut self, stream: &Stream) -> Result<()> {
        stream.fill_bytes(self.elements.view_mut(), 0xff)?;
        stream.fill_bytes(self.of_rows.view_mut(), 0xff)?;
        stream.fill_bytes(self.floats.view_mut(), 0xff)?;
        stream.fill_bytes(self.codes.view_mut(), 0xff)?;
        stream.fill_bytes(self.scales.view_mut(), 0xff)?;
        Ok(stream.fill_bytes(self.places.view_mut(), 0xff)?)
    }

    /// What was written, and the residual after it.
    fn download(
        &self,
        stream: &Stream,
        operation: Operation,
        shape: Shape,
        residual: &DeviceTensor<bf16>,
    ) -> Result<Found> {
        let wide = |numbers: Vec<bf16>| numbers.iter().map(|it| it.to_f64()).collect::<Vec<_>>();
        let (mut numbers, mut residuals) = (Vec::new(), Vec::new());
        match operation {
            Operation::Cast => {
                let floats = self.floats.download(stream)?;
                numbers.extend(floats.into_iter().map(f64::from));
            }
            Operation::Quantize => {
                let (codes, scales) = (self.codes.download(stream)?, self.scales.download(stream)?);
                let per_row = shape.columns.div_ceil(128);
                for (at, code) in codes.iter().enumerate() {
                    let (row, column) = (at / shape.columns, at % shape.columns);
                    let scale = f64::from(scales[row * per_row + column / 128]);
                    numbers.push(f64::from(code.to_f32()) * scale);
                }
            }
            Operation::Argmax | Operation::TopK | Operation::Sampling => {
                numbers.extend(self.places.download(stream)?.into_iter().map(f64::from));
            }
            Operation::Reduce | Operation::ReduceColumns => {
                numbers = wide(self.of_rows.download(stream)?);
            }
            Operation::RmsNormResidual => {
                numbers = wide(self.elements.download(stream)?);
                residuals = wide(residual.download(stream)?);
            }
            _ => numbers = wide(self.elements.download(stream)?),
        }
        Ok(Found {
            of_a_row: match operation {
                Operation::ReduceColumns => 1,
                _ => numbers.len() / shape.rows,
            },
            numbers,
            residuals,
        })
    }
}

/// What an operation wrote.
struct Found {
    numbers: Vec<f64>,
    of_a_row: usize,
    residuals: Vec<f64>,
}

impl Found {
    /// The numbers of a row, and behind them those of its residual.
    fn of_row(&self, row: usize) -> Vec<f64> {
        let mut all = self.numbers[row * self.of_a_row..][..self.of_a_row].to_vec();
        if !self.residuals.is_empty() {
            all.extend(&self.residuals[row * self.of_a_row..][..self.of_a_row]);
        }
        all
    }
}

impl Contestants for Case {
    type Error = Error;

    fn sets(&self) -> usize {
        self.sets.len()
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        let set = &mut self.sets[set];
        if contestant == COPY {
            let [from, to] = &mut set.copied;
            return Ok(stream.copy(&*from, to)?);
        }
        self.shared.enqueue(self.operation, self.shape, stream, set)
    }
}

impl Shared {
    fn enqueue(
        &self,
        operation: Operation,
        Shape { rows, columns }: Shape,
        stream: &Stream,
        set: &mut Set,
    ) -> Result<()> {
        let Set {
            x, other, outputs, ..
        } = set;
        let (x, y) = (&*x, &mut outputs.elements);
        let row = Tensor::new(self.weights.view().slice(..columns)?, [columns])?;
        match operation {
            Operation::RmsNorm => Norm::rms(EPSILON).weight(row).run(stream, x, y)?,
            Operation::RmsNormResidual => {
                let norm = Norm::rms(EPSILON).weight(row).residual(other);
                norm.run(stream, x, y)?;
            }
            Operation::LayerNorm => {
                let norm = Norm::layer(EPSILON).weight(row).bias(row);
                norm.run(stream, x, y)?;
            }
            Operation::Softmax => softmax(stream, x, y)?,
            Operation::Rope => {
                let heads = columns / HEAD;
                let positions = layout!((dyn rows, dyn heads):(1, 0));
                let positions = Tensor::new(&self.positions, positions)?;
                let heads = [rows, heads, HEAD];
                let (x, y) = (
                    Tensor::new(x.view(), heads)?,
                    TensorMut::new(y.view_mut(), heads)?,
                );
                Rope::new(&self.angles).run(stream, positions, x, y)?;
            }
            Operation::Add => add(stream, x, &*other, y)?,
            Operation::Cast => cast(stream, x, &mut outputs.floats)?,
            Operation::Copy => unary(stream, Unary::Identity, x, y)?,
            Operation::Quantize => {
                let (codes, scales) = (&mut outputs.codes, &mut outputs.scales);
                Quantize::by_blocks().run(stream, x, codes, scales)?;
            }
            Operation::Argmax => argmax(stream, x, &mut outputs.places)?,
            Operation::Reduce => reduce(stream, Reduction::Sum, x, &mut outputs.of_rows)?,
            Operation::ReduceColumns => {
                reduce_modes(stream, Reduction::Sum, x, &[0], &mut outputs.of_rows)?;
            }
            Operation::TopK => {
                let chosen = [rows, TOP_K];
                let (places, weights) = (
                    TensorMut::new(outputs.places.view_mut(), chosen)?,
                    TensorMut::new(outputs.floats.view_mut(), chosen)?,
                );
                top_k(stream, x, RouterWeights::Softmax, places, weights)?;
            }
            Operation::Sampling => {
                let sampling = Sampling::new(1).temperature(0.8).top_k(TOP_K).top_p(0.95);
                sampling.run(stream, x, &self.counters, &mut outputs.places)?;
            }
        }
        Ok(())
    }
}
