//! Rotary position embeddings.

use std::ops::Range;

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Buffer, LaunchConfig, Stream, View};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::rope::{
    Rope4, Rope8, RopeAny, RopeArgs, RopeShape, rope_bf16, rope_f16, rope_f32,
};
use cutlet_layout_core::{Int, Layout, tiles};
use half::{bf16, f16};

use super::operand::{Read, check_read, layout_of_rows, read, written, written_rows};
use super::space::{HasRows, RowSet};
use super::{WIDEST, refuse};
use crate::into_tensor::read_matrix;
use crate::matrix::{addresses, disjoint, in_stream};
use crate::{IntoTensor, IntoTensorMut, MAX_EXTENT, Matrix, Result, Tensor, TensorMut};

/// The operation's name in errors.
pub(super) const NAME: &str = "rope";

/// An element type of [`Rope`]: `f32`, `f16` or `bf16`.
pub trait RopeElement: DeviceData + sealed::Kernels {}
impl RopeElement for f32 {}
impl RopeElement for f16 {}
impl RopeElement for bf16 {}

/// Which elements of a row are rotated together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// Elements `i` and `i + d/2` of a row of `d`: Llama, GPT-NeoX and most models.
    #[default]
    Halves,
    /// Elements `2i` and `2i + 1`: GPT-J, and the first paper.
    Neighbours,
}

/// A kernel of a rotation.
type RopeKernel<T> = Kernel<(
    Global<T>,
    Global<i32>,
    Global<f32>,
    Global<f32>,
    GlobalMut<T>,
    RopeArgs,
)>;

/// A kernel, and how many tiles cover rows of pairs.
type Tiled<T> = (&'static RopeKernel<T>, fn([i32; 2]) -> [u32; 2]);

mod sealed {
    use super::{DeviceData, Tiled};

    /// The kernels of an element type: each for aligned vectors, then for any alignment.
    pub trait Kernels: DeviceData {
        const HALVES: [Tiled<Self>; 2];
        const NEIGHBOURS: [Tiled<Self>; 2];
    }
}

macro_rules! kernels {
    ($($element:ty, $shape:ty: $module:ident $halves:ident $halves_any:ident $neighbours:ident $neighbours_any:ident;)+)
        => {$(
        impl sealed::Kernels for $element {
            const HALVES: [Tiled<Self>; 2] = [
                (&$module::$halves, tiles::<<$shape as RopeShape>::Tile>),
                (&$module::$halves_any, tiles::<<RopeAny as RopeShape>::Tile>),
            ];
            const NEIGHBOURS: [Tiled<Self>; 2] = [
                (&$module::$neighbours, tiles::<<$shape as RopeShape>::Tile>),
                (&$module::$neighbours_any, tiles::<<RopeAny as RopeShape>::Tile>),
            ];
        }
    )+};
}
kernels! {
    f32, Rope4: rope_f32 rope_halves_f32 rope_halves_f32_any rope_neighbours_f32 rope_neighbours_f32_any;
    f16, Rope8: rope_f16 rope_halves_f16 rope_halves_f16_any rope_neighbours_f16 rope_neighbours_f16_any;
    bf16, Rope8: rope_bf16 rope_halves_bf16 rope_halves_bf16_any rope_neighbours_bf16 rope_neighbours_bf16_any;
}

/// The cosines and sines of the angles of each position, in f32.
#[derive(Debug)]
pub struct RopeTable {
    cosines: Buffer<f32>,
    sines: Buffer<f32>,
    positions: usize,
    pairs: usize,
}

impl RopeTable {
    /// The angles `position · base^(−2i/width)` of pair `i` of rows of `width` elements, for positions below `positions`.
    /// They are computed on the host in f64, and uploaded.
    ///
    /// # Errors
    /// If `width` is odd or 0, or there is not so much memory.
    pub fn new(stream: &Stream, positions: usize, width: usize, base: f64) -> Result<Self> {
        if width == 0 || !width.is_multiple_of(2) {
            return refuse(
                NAME,
                format!("rows have {width} elements; give an even number"),
            );
        }
        let frequencies: Vec<f64> = (0..width / 2)
            .map(|pair| base.powf(-2.0 * pair as f64 / width as f64))
            .collect();
        Self::with_frequencies(stream, positions, &frequencies)
    }

    /// The angles `position · frequencies[i]` of pair `i`, for models that scale frequencies.
    ///
    /// # Errors
    /// If there is no frequency or no position, or there is not so much memory.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Rope, RopeTable};
    ///
    /// let stream = Device::auto().stream()?;
    /// let quarter = std::f64::consts::FRAC_PI_2; // of a turn for each position
    /// let table = RopeTable::with_frequencies(&stream, 8, &[quarter])?;
    /// let mut x = DeviceTensor::upload(&stream, &[1.0f32, 0.0, 1.0, 0.0], [2, 2])?;
    /// let positions = DeviceTensor::upload(&stream, &[0, 1], [2])?;
    /// Rope::new(&table).run_in_place(&stream, &positions, &mut x)?;
    /// let x = x.download(&stream)?;
    /// assert_eq!(x[..2], [1.0, 0.0]);
    /// assert!(x[2].abs() < 1e-6 && x[3] == 1.0);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn with_frequencies(
        stream: &Stream,
        positions: usize,
        frequencies: &[f64],
    ) -> Result<Self> {
        let pairs = frequencies.len();
        if pairs == 0 || positions == 0 || positions > MAX_EXTENT {
            return refuse(
                NAME,
                format!(
                    "a table of {positions} positions and {pairs} pairs was asked for; give at least one of each"
                ),
            );
        }
        let angles = (0..positions)
            .flat_map(|position| frequencies.iter().map(move |it| position as f64 * it));
        let cosines: Vec<f32> = angles.clone().map(|angle| angle.cos() as f32).collect();
        let sines: Vec<f32> = angles.map(|angle| angle.sin() as f32).collect();
        Ok(RopeTable {
            cosines: stream.upload(&cosines)?,
            sines: stream.upload(&sines)?,
            positions,
            pairs,
        })
    }

    /// Number of positions.
    pub fn positions(&self) -> usize {
        self.positions
    }
}

/// Rotary position embeddings: pairs of each row's elements are rotated by the angles of the row's position.
///
/// A row is the last mode of a tensor, and is contiguous: the dimensions of a head. The positions are an `i32` for each
/// row, in memory of the device, so a graph that is replayed reads new ones: a tensor of the rows' modes, or of the first
/// of them. So (token) is enough for (token, head, dimension): a token's position is that of all its heads. The arithmetic
/// is in f32, and a result is rounded once. A position that the table does not have makes its row NaN.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Rope, RopeTable, shape};
///
/// let stream = Device::auto().stream()?;
/// let table = RopeTable::new(&stream, 4096, 64, 10_000.0)?;
/// // (token, q k or v, head, dimension): queries and keys are rotated where they are.
/// let mut qkv = DeviceTensor::<f32>::zeroed(&stream, [5, 3, 2, 64])?;
/// let positions = DeviceTensor::upload(&stream, &[100, 101, 102, 103, 104], [5])?;
/// let rope = Rope::new(&table);
/// rope.run_in_place(&stream, &positions, qkv.tensor_mut().slice(&shape!((_, 0, _, _)))?)?;
/// rope.run_in_place(&stream, &positions, qkv.tensor_mut().slice(&shape!((_, 1, _, _)))?)?;
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rope<'a> {
    pub(super) cosines: View<'a, f32>,
    pub(super) sines: View<'a, f32>,
    /// Rows of both.
    pub(super) positions: usize,
    /// Columns of both.
    pub(super) pairs: usize,
    pub(super) pairing: Pairing,
    direction: f32,
}

impl<'a> Rope<'a> {
    /// Rotations of [halves](Pairing::Halves) by the angles of a table.
    pub fn new(table: &'a RopeTable) -> Self {
        Rope {
            cosines: table.cosines.view(),
            sines: table.sines.view(),
            positions: table.positions,
            pairs: table.pairs,
            pairing: Pairing::default(),
            direction: 1.0,
        }
    }

    /// Rotations of [halves](Pairing::Halves) by the angles of a table of your own: `cosines` and `sines` are (position,
    /// pair), with contiguous rows behind one another.
    ///
    /// # Errors
    /// If the two do not have one shape of two modes, or are not packed by rows.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Rope};
    ///
    /// let stream = Device::auto().stream()?;
    /// // A quarter of a turn for position 1.
    /// let cosines = DeviceTensor::upload(&stream, &[1.0f32, 0.0], [2, 1])?;
    /// let sines = DeviceTensor::upload(&stream, &[0.0f32, 1.0], [2, 1])?;
    /// let mut x = DeviceTensor::upload(&stream, &[3.0f32, 4.0, 3.0, 4.0], [2, 2])?;
    /// let positions = DeviceTensor::upload(&stream, &[0, 1], [2])?;
    /// Rope::of_angles(&cosines, &sines)?.run_in_place(&stream, &positions, &mut x)?;
    /// assert_eq!(x.download(&stream)?, [3.0, 4.0, -4.0, 3.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn of_angles(
        cosines: impl IntoTensor<'a, Element = f32>,
        sines: impl IntoTensor<'a, Element = f32>,
    ) -> Result<Self> {
        let [cosines, sines] = [
            read_matrix(NAME, "the cosines", cosines)?,
            read_matrix(NAME, "the sines", sines)?,
        ];
        let (positions, pairs) = (cosines.rows(), cosines.columns());
        let is_table = |it: &Matrix<'_, f32>| {
            let [down, across] = it.strides();
            (it.rows(), it.columns()) == (positions, pairs)
                && (positions <= 1 || down == pairs as i64)
                && (pairs <= 1 || across == 1)
        };
        let is_empty = positions == 0 || pairs == 0 || positions > MAX_EXTENT;
        if is_empty || !is_table(&cosines) || !is_table(&sines) {
            return refuse(
                NAME,
                format!(
                    "the cosines are {positions}×{pairs} and the sines {}×{}; give two packed row-major matrices of one \
                     shape, with a row for each position and a column for each pair",
                    sines.rows(),
                    sines.columns()
                ),
            );
        }
        Ok(Rope {
            cosines: cosines.view,
            sines: sines.view,
            positions,
            pairs,
            pairing: Pairing::default(),
            direction: 1.0,
        })
    }

    /// The same rotations of other pairs.
    pub fn pairing(self, pairing: Pairing) -> Self {
        Rope { pairing, ..self }
    }

    /// Rotations in the other direction, which undo those of this one, and are their gradient.
    pub fn backwards(self) -> Self {
        let direction = -self.direction;
        Rope { direction, ..self }
    }

    /// Enqueues the rotation of the rows of `x` into `y`, which has its shape.
    ///
    /// # Errors
    /// - Shapes do not agree, rows are not contiguous, or more than three modes of rows do not continue one another.
    /// - A row has not twice as many elements as the table has angles.
    /// - `y` overlaps another operand.
    /// - An operand is on another device than the stream, or bound to another stream.
    pub fn run<'x, T: RopeElement>(
        &self,
        stream: &Stream,
        positions: impl IntoTensor<'x, Element = i32>,
        x: impl IntoTensor<'x, Element = T>,
        y: impl IntoTensorMut<'x, Element = T>,
    ) -> Result<()> {
        match (read(positions)?, read(x)?, written(y)?) {
            (Some(positions), Some(x), Some(y)) => {
                self.launch(stream, &positions, Read(Some(x)), y)
            }
            (_, None, None) => Ok(()),
            _ => refuse(
                NAME,
                "some of the tensors have no elements; give them the same shape".to_string(),
            ),
        }
    }

    /// Enqueues the rotation of the rows of `x` in their place.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_in_place<'x, T: RopeElement>(
        &self,
        stream: &Stream,
        positions: impl IntoTensor<'x, Element = i32>,
        x: impl IntoTensorMut<'x, Element = T>,
    ) -> Result<()> {
        match (read(positions)?, written(x)?) {
            (Some(positions), Some(x)) => self.launch(stream, &positions, Read(None), x),
            (_, None) => Ok(()),
            (None, Some(_)) => refuse(
                NAME,
                "there are no positions; give one for each row".to_string(),
            ),
        }
    }

    /// Returns an error unless the stream may read the tables, and what is written does not overlap them.
    pub(super) fn check_tables(&self, stream: &Stream, written: Range<u64>) -> Result<()> {
        for view in [self.cosines, self.sines] {
            in_stream(NAME, stream, "the table", view)?;
            disjoint(NAME, "the table", addresses(&view), written.clone())?;
        }
        Ok(())
    }

    /// Counts a pair of the rows as one column. Returns whether the halves of rows, and the angles of a position, which
    /// are read in vectors, too, are aligned.
    ///
    /// # Errors
    /// If a row has not twice as many elements as the table has angles.
    pub(super) fn take_pairs(&self, rows: &mut RowSet) -> Result<bool> {
        let [_, columns] = rows.extent();
        if columns != 2 * self.pairs {
            return refuse(
                NAME,
                format!(
                    "a row has {columns} elements, and the table has angles of {} pairs; give rows of {}",
                    self.pairs,
                    2 * self.pairs
                ),
            );
        }
        rows.space.columns = self.pairs as i32;
        rows.space.last_columns = self.pairs as i32;
        let is_aligned = |table: View<'_, f32>| table.address().is_multiple_of(WIDEST as u64);
        Ok(rows.is_aligned
            && self.pairs.is_multiple_of(rows.width.max(4))
            && [self.cosines, self.sines].into_iter().all(is_aligned))
    }

    /// The arguments of rows of pairs, where `x`, `y` and the positions are these of the operands.
    pub(super) fn args(&self, rows: &RowSet, [x, y, positions]: [usize; 3]) -> RopeArgs {
        RopeArgs {
            x: rows.strides[x],
            y: rows.strides[y],
            positions: rows.strides[positions],
            space: rows.space,
            table_rows: self.positions as i32,
            direction: self.direction,
        }
    }

    fn launch<T: RopeElement>(
        &self,
        stream: &Stream,
        positions: &Tensor<'_, i32>,
        x: Read<'_, T>,
        mut y: TensorMut<'_, T>,
    ) -> Result<()> {
        in_stream(NAME, stream, "y", y.view.view())?;
        x.check(NAME, stream, "x", &y)?;
        check_read(NAME, stream, "the positions", positions, &y)?;
        self.check_tables(stream, y.addresses())?;
        let of_positions = number_of_rows("the positions", &positions.layout, &y.layout)?;
        let of_positions = HasRows {
            what: "the positions",
            layout: &of_positions,
            address: positions.view.address(),
            bytes: 0,
        };
        let mut rows = RowSet::of(
            NAME,
            &[written_rows("y", &y), x.rows("x", &y), of_positions],
        )?;
        let is_aligned = self.take_pairs(&mut rows)?;
        let args = self.args(&rows, [1, 0, 2]);
        let kernels = match self.pairing {
            Pairing::Halves => T::HALVES,
            Pairing::Neighbours => T::NEIGHBOURS,
        };
        let (kernel, tiles_of) = kernels[usize::from(!is_aligned)];
        let blocks = blocks(tiles_of, &rows)?;
        let kernel = stream.device().load(&PTX, kernel)?;
        let source = x.source(&y);
        let [cosines, sines] = [self.cosines, self.sines];
        // SAFETY: the rows were checked against the tensors' memory. There is a position for each row, and the kernel
        // compares it with the table, which has angles for half of a row's elements. What is written overlaps nothing else
        // but an `x` that it is.
        unsafe {
            let args = (
                source,
                positions.view,
                cosines,
                sines,
                y.view.reborrow(),
                args,
            );
            Ok(stream.launch(&kernel, LaunchConfig::dependent(blocks), args)?)
        }
    }
}

/// The blocks for the tiles of rows of pairs.
pub(super) fn blocks(tiles_of: fn([i32; 2]) -> [u32; 2], rows: &RowSet) -> Result<u32> {
    let [count, pairs] = rows.extent();
    let [down, across] = tiles_of([count as i32, pairs as i32]);
    match down.checked_mul(across).filter(|&it| it < 1 << 31) {
        Some(blocks) => Ok(blocks),
        None => refuse(NAME, format!("there are {count} rows; give parts of them")),
    }
}

/// The layout of numbers for the rows of x, or for the first modes of them, with a number for each row.
///
/// # Errors
/// If they are for other modes.
pub(super) fn number_of_rows(what: &str, numbers: &Layout, x: &Layout) -> Result<Layout> {
    layout_of_rows(NAME, what, &repeated(numbers, x), x)
}

/// The layout of positions of the first modes of x, repeated along its other modes of rows.
fn repeated(positions: &Layout, x: &Layout) -> Layout {
    let (given, modes) = (positions.rank(), x.rank() - 1);
    if given >= modes || positions.shape() != x.take(0, given).shape() {
        return *positions;
    }
    (given..modes).fold(*positions, |layout, mode| {
        let again = Layout::leaf(Int::dynamic(x.mode(mode).size()), Int::dynamic(0));
        match layout.rank() {
            1 => Layout::concat2(&layout.mode(0), &again),
            _ => layout.append(&again),
        }
    })
}
