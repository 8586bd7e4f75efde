//! A problem of a tuning file, set up on a device. Its contestants are the kernel that is estimated to be the fastest,
//! and all kernel instances.

use std::rc::Rc;

use cutlet::{
    BetaKind, Bias, BiasAlong, Buffer, ElementType, Gemm, Layout, Matrix, Order, Precision,
    ProblemKey, ScalesKind, Stream, Tensor, TensorMut, layout,
};
use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_kernels::gemm::epilogue::Accumulator;
use half::{bf16, f16};

use super::operand::{GUARD, Operand};
use super::quantized::{Quantized, ScalesOfC, by_blocks};
use crate::bench::quantized::{LARGE, TOLERANCE};
use crate::deviation::Deviation;
use crate::gemm::arithmetic::{Element, Factor, Stored};
use crate::host_memory;
use crate::measure::case::{Case, Contestant, Role};
use crate::measure::check::{self, Check, Number};
use crate::measure::dtype::Dtype;
use crate::measure::epilogue::Epilogue;
use crate::measure::error::Error;
use crate::measure::random::{Fill, random, scaled};
use crate::measure::samples::{Samples, Vectors};
use crate::measure::scales::{
    DeviceScales, HostScales, Places, Scale, Scales, scale as scale_by, scale_but_blocks,
    scale_by_blocks,
};
use crate::measure::setting::Setting;

type Result<T, E = Error> = std::result::Result<T, E>;

/// A byte that, repeated, is a NaN in every float type and −1 in every integer type.
const POISON: u8 = 0xff;

/// A problem that can be tuned.
pub struct TuneCase<'a> {
    /// The key that the library gives the problem.
    pub key: ProblemKey,
    /// The name of the kernel that is estimated to be the fastest.
    pub estimated: &'static str,
    /// The contestants. The first is the estimated kernel.
    pub case: Box<dyn Case + 'a>,
}

/// Sets a problem up, or says why it is not tuned.
pub fn set_up<'a>(key: &ProblemKey, setting: &'a Setting) -> Result<Result<TuneCase<'a>, String>> {
    use ElementType as Of;
    if !may_have_scales(key) {
        return Ok(Err(format!(
            "products of {} into {} with {} are not tuned",
            key.operands, key.c, key.scales
        )));
    }
    match (key.operands, key.c) {
        (Of::F32, Of::F32) => set_up_as::<f32, f32>(key, setting, unscaled),
        (Of::F32, Of::Bf16) => set_up_as::<f32, bf16>(key, setting, unscaled),
        (Of::F32, Of::F16) => set_up_as::<f32, f16>(key, setting, unscaled),
        (Of::Bf16, Of::F32) => set_up_as::<bf16, f32>(key, setting, unscaled),
        (Of::Bf16, Of::Bf16) => set_up_as::<bf16, bf16>(key, setting, unscaled),
        (Of::Bf16, Of::F16) => set_up_as::<bf16, f16>(key, setting, unscaled),
        (Of::F16, Of::F32) => set_up_as::<f16, f32>(key, setting, unscaled),
        (Of::F16, Of::Bf16) => set_up_as::<f16, bf16>(key, setting, unscaled),
        (Of::F16, Of::F16) => set_up_as::<f16, f16>(key, setting, unscaled),
        (Of::E4m3, Of::F32) => set_up_as::<F8E4M3, f32>(key, setting, scale_by),
        (Of::E4m3, Of::Bf16) => set_up_as::<F8E4M3, bf16>(key, setting, scale_by),
        (Of::E4m3, Of::F16) => set_up_as::<F8E4M3, f16>(key, setting, scale_by),
        (Of::E4m3, Of::E4m3) => {
            let case = KeyCase::<F8E4M3, F8E4M3>::new(key, setting, scale_but_rows)?;
            tune_case(key, case.quantized(by_blocks)?)
        }
        (Of::E5m2, Of::F32) => set_up_as::<F8E5M2, f32>(key, setting, scale_by),
        (Of::E5m2, Of::Bf16) => set_up_as::<F8E5M2, bf16>(key, setting, scale_by),
        (Of::E5m2, Of::F16) => set_up_as::<F8E5M2, f16>(key, setting, scale_by),
        (Of::I8, Of::F32) => set_up_as::<i8, f32>(key, setting, scale_but_blocks),
        (Of::I8, Of::Bf16) => set_up_as::<i8, bf16>(key, setting, scale_but_blocks),
        (Of::I8, Of::F16) => set_up_as::<i8, f16>(key, setting, scale_but_blocks),
        (Of::F64, Of::F64) => set_up_as::<f64, f64>(key, setting, unscaled),
        (Of::I8, Of::I32) => set_up_as::<i8, i32>(key, setting, unscaled),
        (operands, c) => Ok(Err(format!(
            "products of {operands} into {c} are not tuned"
        ))),
    }
}

/// Whether products of these types are tuned with such scales.
fn may_have_scales(key: &ProblemKey) -> bool {
    use ElementType as Of;
    match key.scales {
        ScalesKind::None => true,
        ScalesKind::Outer { .. } => match key.operands {
            Of::E4m3 => key.c != Of::E4m3,
            Of::E5m2 => true,
            Of::I8 => key.c != Of::I32,
            _ => false,
        },
        ScalesKind::Blocks => matches!(key.operands, Of::E4m3 | Of::E5m2),
    }
}

/// A product whose scales are those of blocks, if it has some.
fn scale_but_rows<'a>(
    gemm: Gemm<'a, F8E4M3, F8E4M3>,
    scales: &'a DeviceScales,
) -> cutlet::Result<Gemm<'a, F8E4M3, F8E4M3>> {
    match scales.host.places.are {
        Scales::Blocks => scale_by_blocks(gemm, scales),
        _ => Ok(gemm),
    }
}

/// A product of elements that have no scales.
fn unscaled<'a, T: Element<D>, D: Stored>(
    gemm: Gemm<'a, T, D>,
    _: &'a DeviceScales,
) -> cutlet::Result<Gemm<'a, T, D>> {
    Ok(gemm)
}

fn set_up_as<'a, T: Element<D> + Fill, D: Stored + Fill>(
    key: &ProblemKey,
    setting: &'a Setting,
    scale_by: Scale<T, D>,
) -> Result<Result<TuneCase<'a>, String>> {
    tune_case(key, KeyCase::<T, D>::new(key, setting, scale_by)?)
}

/// The case, unless the library has another key for it, or no kernel.
fn tune_case<'a, T: Element<D> + Fill, D: Stored + Fill>(
    key: &ProblemKey,
    mut case: KeyCase<'a, T, D>,
) -> Result<Result<TuneCase<'a>, String>> {
    let (found, estimated) = case.plan()?;
    let Some(found) = found else {
        return Ok(Err("it has no key".to_string()));
    };
    let estimated = match estimated {
        Some(estimated) => estimated,
        None if key.batch == 1 => TWO_KERNELS,
        None => return Ok(Err("no kernel computes the batch in one launch".to_string())),
    };
    if !is_aligned_as(&found, key) {
        return Ok(Err(format!(
            "no matrices of {} have alignments of {:?} bytes",
            key.operands, key.alignments
        )));
    }
    if found.scales != key.scales {
        return Ok(Err(format!(
            "it has {}, and scales that begin a buffer are tuned, which are {} here",
            key.scales, found.scales
        )));
    }
    Ok(Ok(TuneCase {
        key: found,
        estimated,
        case: Box::new(case),
    }))
}

/// The estimated kernel's name where a product and another kernel after it are estimated to be the fastest.
const TWO_KERNELS: &str = "two kernels";

/// Whether the matrices of a key have the alignments that were asked for. Those of a vector may be larger: a vector is
/// a single run, in either order.
fn is_aligned_as(found: &ProblemKey, asked: &ProblemKey) -> bool {
    let [m, n, k] = asked.extents;
    let of_operands = [[m, k], [k, n], [m, n]].into_iter();
    let mut alignments = of_operands.zip(found.alignments.into_iter().zip(asked.alignments));
    alignments.all(|(extents, (found, asked))| found == asked || extents.contains(&1))
}

struct KeyCase<'a, T: Element<D>, D: Stored> {
    setting: &'a Setting,
    key: ProblemKey,
    contestants: Vec<Contestant>,
    instances: Vec<String>,
    sets: usize,
    of_a: Operand,
    of_b: Operand,
    of_c: Operand,
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<D>,
    bias: Buffer<D>,
    of_residual: Operand,
    residual: Buffer<D>,
    /// What set 0 of C holds before a run that is checked.
    old: Buffer<D>,
    beta: T::Factor,
    /// The scales of all sets, and how a product gets them.
    scales: DeviceScales,
    scale_by: Scale<T, D>,
    /// The scales of C, and how a product gets them. None if C has none.
    quantized: Option<(ScalesOfC, Quantized<T, D>)>,
    /// The samples of set 0's last product, once they were asked for.
    samples: Option<Rc<Samples>>,
}

impl<'a, T: Element<D> + Fill, D: Stored + Fill> KeyCase<'a, T, D> {
    fn new(key: &ProblemKey, setting: &'a Setting, scale_by: Scale<T, D>) -> Result<Self> {
        let ([m, n, k], [order_a, order_b]) = (key.extents, key.orders);
        let [align_a, align_b, align_c] = key.alignments;
        let [count_a, count_b] = matrices(key);
        let of_a = Operand::new(count_a, [m, k], order_a, align_a, size_of::<T>());
        let of_b = Operand::new(count_b, [k, n], order_b, align_b, size_of::<T>());
        let row_major = Order::RowMajor;
        let of_c = Operand::new(key.batch, [m, n], row_major, align_c, size_of::<D>());
        let order = key.residual.unwrap_or(row_major);
        let of_residual = Operand::new(1, [m, n], order, align_c, size_of::<D>());
        let bytes = (of_a.stride + of_b.stride) as u128 * size_of::<T>() as u128
            + of_c.stride as u128 * size_of::<D>() as u128;
        if !setting.on_gpu() {
            // Memory of the device is memory of the host. Old C, residual and what is downloaded take more.
            host_memory::expect(4 * bytes)?;
        }
        let sets = setting.sets(usize::try_from(bytes).unwrap_or(usize::MAX));
        let (stream, seed) = (&setting.stream, setting.seed);
        let residuals = if key.residual.is_some() {
            of_residual.stride
        } else {
            0
        };
        let mut case = KeyCase {
            setting,
            key: *key,
            contestants: vec![Contestant {
                name: "the estimated kernel".to_string(),
                role: Role::Cutlet,
            }],
            instances: Vec::new(),
            sets,
            of_a,
            of_b,
            of_c,
            a: scaled(stream, sets * of_a.stride, seed, scale(key))?,
            b: random(stream, sets * of_b.stride, seed.wrapping_add(1))?,
            c: random(stream, sets * of_c.stride, seed.wrapping_add(2))?,
            bias: random(stream, m.max(n), seed.wrapping_add(3))?,
            of_residual,
            residual: random(stream, residuals, seed.wrapping_add(4))?,
            old: random(stream, of_c.stride, seed.wrapping_add(5))?,
            beta: T::Factor::of(match key.beta {
                BetaKind::Zero => 0.0,
                BetaKind::One => 1.0,
                // The old C of a run is the C of the run before: its size must not grow.
                BetaKind::Other => -1.0,
            })
            .unwrap_or(T::Factor::ZERO),
            scales: HostScales::random(places(key), seed.wrapping_add(6))
                .times(scale_of_scales(key))
                .upload(stream)?,
            scale_by,
            quantized: None,
            samples: None,
        };
        if !case.reads_old() {
            stream.fill_bytes(&mut case.old, POISON)?;
        }
        Ok(case)
    }

    /// The same with a C that is quantised in this way.
    fn quantized(self, quantized: Quantized<T, D>) -> Result<Self> {
        let [m, n, _] = self.key.extents;
        let scales = ScalesOfC::new(&self.setting.stream, self.sets, [m, n])?;
        Ok(KeyCase {
            quantized: Some((scales, quantized)),
            ..self
        })
    }

    /// Whether C depends on the old C.
    fn reads_old(&self) -> bool {
        self.key.beta != BetaKind::Zero && self.key.residual.is_none()
    }

    /// The library's key of the problem, and the name of the kernel that is estimated to be the fastest. Adds all
    /// kernels that may solve the problem, in each decomposition.
    fn plan(&mut self) -> Result<(Option<ProblemKey>, Option<&'static str>)> {
        let stream = &self.setting.stream;
        let mut gemm = self.gemm(0, 0)?;
        let key = gemm.problem_key(stream)?;
        let plan = gemm.plan(stream)?;
        self.instances = gemm.candidates(stream)?;
        let contestants = self.instances.iter().map(|name| Contestant {
            name: name.clone(),
            role: Role::Instance,
        });
        self.contestants.truncate(1);
        self.contestants.extend(contestants);
        Ok((key, plan.kernel()))
    }

    /// The product of set number `set`, by a contestant's kernel.
    fn gemm(&mut self, contestant: usize, set: usize) -> Result<Gemm<'_, T, D>> {
        let (key, [m, n, _]) = (&self.key, self.key.extents);
        let mut gemm = Gemm::new(
            batch(&self.a, &self.of_a, set)?,
            batch(&self.b, &self.of_b, set)?,
            batch_mut(&mut self.c, &self.of_c, set)?,
        );
        gemm = gemm.beta(self.beta).precision(key.precision);
        gemm = (self.scale_by)(gemm, &self.scales)?;
        if let Some((scales, quantized)) = &mut self.quantized {
            gemm = quantized(gemm, scales.matrix_mut(set)?);
        }
        gemm = match key.bias {
            None => gemm,
            Some(BiasAlong::Rows) => gemm.bias(Bias::rows(self.bias.slice(..m)?)),
            Some(BiasAlong::Columns) => gemm.bias(Bias::columns(self.bias.slice(..n)?)),
        };
        if key.residual.is_some() {
            gemm = gemm.source(matrix(&self.residual, &self.of_residual, 0)?, self.beta);
        }
        if let Some(activation) = key.activation {
            gemm = gemm.activation(activation);
        }
        Ok(match contestant {
            0 => gemm.untuned(),
            nth => gemm.instance(&self.instances[nth - 1]),
        })
    }

    /// Samples of set 0's last product.
    fn samples(&mut self) -> Result<Rc<Samples>> {
        if let Some(samples) = &self.samples {
            return Ok(samples.clone());
        }
        let ([m, n, k], stream) = (self.key.extents, &self.setting.stream);
        let (of_a, of_b) = (&self.of_a, &self.of_b);
        let rows = Vectors {
            elements: self.a.slice(of_a.last(0))?,
            count: m,
            length: k,
            contiguous: of_a.order == Order::RowMajor,
            ld: of_a.ld,
        };
        let columns = Vectors {
            elements: self.b.slice(of_b.last(0))?,
            count: n,
            length: k,
            contiguous: of_b.order == Order::ColMajor,
            ld: of_b.ld,
        };
        let bias = stream.download(&self.bias)?;
        let (of_source, source) = match (self.key.beta, self.key.residual) {
            (BetaKind::Zero, _) => (&self.of_c, Vec::new()),
            (_, None) => (
                &self.of_c,
                stream.download(self.old.slice(self.of_c.last(0))?)?,
            ),
            (_, Some(_)) => {
                let elements = self.residual.slice(self.of_residual.elements(0))?;
                (&self.of_residual, stream.download(elements)?)
            }
        };
        let (key, beta) = (self.key, self.beta);
        let entry = |product: f64, [row, column]: [usize; 2]| {
            let at = match of_source.order {
                Order::RowMajor => row * of_source.ld + column,
                Order::ColMajor => column * of_source.ld + row,
            };
            let old = source.get(at).map_or(0.0, |old| old.to_f64());
            let bias = match key.bias {
                None => 0.0,
                Some(BiasAlong::Rows) => bias[row].to_f64(),
                Some(BiasAlong::Columns) => bias[column].to_f64(),
            };
            let sum = match key.c {
                ElementType::I32 => T::Factor::reference(T::Factor::ONE, product, beta, old, bias),
                // Sums of i8 are scaled in floats, too.
                _ => f64::reference(1.0, product, beta.value(), old, bias),
            };
            let activation = Epilogue {
                bias: false,
                activation: key.activation,
            };
            activation.apply(sum, 0.0)
        };
        let scales = &self.scales.host;
        let factor = |at, l| scales.factor(at, l);
        let samples = Samples::new(stream, rows, columns, self.setting.seed, factor, entry)?;
        Ok(self.samples.insert(Rc::new(samples)).clone())
    }

    /// Brings the C of set 0 and what follows it to what they were before the first run.
    fn restore(&mut self) -> Result<()> {
        let old = self.old.slice(..self.of_c.stride)?;
        let c = self.c.slice_mut(..self.of_c.stride)?;
        self.setting.stream.copy(old, c)?;
        match &mut self.quantized {
            None => Ok(()),
            Some((scales, _)) => scales.poison(&self.setting.stream),
        }
    }

    /// How far the samples of set 0's last C are from f64.
    fn deviation(&self, samples: &Samples) -> Result<Deviation> {
        let (stream, ld) = (&self.setting.stream, self.of_c.ld);
        let c = self.c.slice(self.of_c.last(0))?;
        let Some((scales, _)) = &self.quantized else {
            return samples.deviation(stream, c, ld);
        };
        let numbers = scales.numbers(stream, &stream.download(c)?, &self.of_c)?;
        samples.deviation(stream, stream.upload(&numbers)?.view(), ld)
    }

    /// What is wrong with the C of set 0, if anything.
    fn wrong(&mut self, name: &str) -> Result<Option<String>> {
        let samples = self.samples()?;
        let stream = &self.setting.stream;
        let elements = self.of_c.last(0);
        let deviation = self.deviation(&samples)?;
        if let Some(wrong) = check::wrong(&deviation, tolerance(&self.key), size(&self.key)) {
            return Ok(Some(format!("{name} against f64: {wrong}")));
        }
        let guard = elements.end..elements.end + GUARD;
        let [found, before] = [
            stream.download(self.c.slice(guard.clone())?)?,
            stream.download(self.old.slice(guard)?)?,
        ];
        let mut pairs = found.iter().zip(&before);
        let same = |(found, before): (&D, &D)| match before.is_poison() {
            true => found.is_poison(),
            false => found.to_f64() == before.to_f64(),
        };
        Ok((!pairs.all(same)).then(|| format!("{name} wrote past the end of C")))
    }
}

impl<T: Element<D> + Fill, D: Stored + Fill> Case for KeyCase<'_, T, D> {
    fn sets(&self) -> usize {
        self.sets
    }

    fn contestants(&self) -> &[Contestant] {
        &self.contestants
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        Ok(self.gemm(contestant, set)?.run(stream)?)
    }

    fn fault(&mut self, contestant: usize) -> Result<Option<String>> {
        self.restore()?;
        let stream = &self.setting.stream;
        self.enqueue(stream, contestant, 0)?;
        let name = self.contestants[contestant].name.clone();
        self.wrong(&name)
    }

    fn check(&mut self, contestant: usize) -> Result<Check> {
        let mut check = Check::new(tolerance(&self.key));
        if let Some(wrong) = self.fault(contestant)? {
            check.fail(wrong);
        }
        Ok(check)
    }

    fn poison(&mut self) -> Result<()> {
        self.restore()
    }

    fn recheck(&mut self, contestant: usize) -> Result<Check> {
        let mut check = Check::new(tolerance(&self.key));
        let name = format!("{}, as it was timed", self.contestants[contestant].name);
        // How often an old C was added depends on the way of timing.
        if !self.reads_old()
            && let Some(wrong) = self.wrong(&name)?
        {
            check.fail(wrong);
        }
        Ok(check)
    }
}

/// The matrix number `set` of an operand.
fn matrix<'a, T: Number>(buffer: &'a Buffer<T>, of: &Operand, set: usize) -> Result<Matrix<'a, T>> {
    let elements = buffer.slice(of.elements(set))?;
    Ok(Matrix::with_ld(
        elements, of.rows, of.columns, of.order, of.ld,
    )?)
}

/// The layout of an operand's matrices.
fn layout_of(of: &Operand) -> Layout {
    let (down, across) = match of.order {
        Order::RowMajor => (of.ld, 1),
        Order::ColMajor => (1, of.ld),
    };
    let (rows, columns, count, apart) = (of.rows, of.columns, of.count, of.apart);
    layout!((dyn rows, dyn columns, dyn count):(dyn down, dyn across, dyn apart))
}

/// The matrices of set number `set` of an operand. One matrix is the same in all products.
fn batch<'a, T: Number>(buffer: &'a Buffer<T>, of: &Operand, set: usize) -> Result<Tensor<'a, T>> {
    Ok(Tensor::new(buffer.slice(of.elements(set))?, layout_of(of))?)
}

/// The matrices of set number `set` of an operand, for writing.
fn batch_mut<'a, T: Number>(
    buffer: &'a mut Buffer<T>,
    of: &Operand,
    set: usize,
) -> Result<TensorMut<'a, T>> {
    let elements = buffer.slice_mut(of.elements(set))?;
    Ok(TensorMut::new(elements, layout_of(of))?)
}

/// The factor of A's random numbers. It brings the input of an activation to about N(0, 1): far from 0, all activations
/// are alike, and a wrong one would pass. It is a power of two, so that no digit is lost.
fn scale(key: &ProblemKey) -> f32 {
    let [.., k] = key.extents;
    match (key.operands, key.c, key.activation) {
        // Larger sums are no numbers of f16.
        (ElementType::I8, ElementType::F16, _) if key.scales == ScalesKind::None => 1.0 / 64.0,
        (ElementType::I8, ..) | (.., None) => 1.0,
        (.., Some(_)) => (-0.5 * (k as f32).log2()).round().exp2(),
    }
}

/// The factor of the random scales of A, which does the same for sums of i8. They would be no numbers of f16, too.
fn scale_of_scales(key: &ProblemKey) -> f32 {
    let [.., k] = key.extents;
    match key.operands {
        ElementType::I8 => (-(TYPICAL_I8.powi(2) * (k as f32).sqrt()).log2())
            .round()
            .exp2(),
        _ => 1.0,
    }
}

/// The typical size of random numbers from −128 to 127.
const TYPICAL_I8: f32 = 74.0;

/// The typical size of an entry of C before the activation; of a C that is quantised, of a large one.
fn size(key: &ProblemKey) -> f64 {
    let [.., k] = key.extents;
    let added = [key.bias.is_some(), key.beta != BetaKind::Zero];
    let added = added.iter().filter(|it| **it).count();
    // Numbers of A and B are N(0, 1), or from −128 to 127.
    let of_one = match (key.operands, key.scales) {
        (ElementType::I8, ScalesKind::None) => TYPICAL_I8.powi(2),
        (ElementType::I8, _) => TYPICAL_I8.powi(2) * scale_of_scales(key),
        _ => 1.0,
    };
    let of_product = f64::from(scale(key) * of_one);
    let size = (of_product.powi(2) * k as f64 + added as f64).sqrt();
    match key.c {
        ElementType::E4m3 => LARGE * size,
        _ => size,
    }
}

/// Where the scales of A and B lie.
fn places(key: &ProblemKey) -> Places {
    Places {
        are: match key.scales {
            ScalesKind::None => Scales::None,
            ScalesKind::Blocks => Scales::Blocks,
            ScalesKind::Outer { .. } => Scales::Outer,
        },
        extents: key.extents,
        matrices: matrices(key),
    }
}

/// How many As a product has, and how many Bs.
fn matrices(key: &ProblemKey) -> [usize; 2] {
    key.shared.map(|is_one| if is_one { 1 } else { key.batch })
}

/// The largest relative distance of a right C from its reference.
fn tolerance(key: &ProblemKey) -> f64 {
    let [.., k] = key.extents;
    let of_c = match key.c {
        ElementType::F32 => Dtype::F32,
        ElementType::Bf16 => Dtype::Bf16,
        ElementType::E4m3 => return TOLERANCE,
        ElementType::E5m2 | ElementType::E4m3E5m2 | ElementType::E5m2E4m3 => Dtype::E4m3,
        ElementType::F16 => Dtype::F16,
        ElementType::F64 => Dtype::F64,
        ElementType::I8 | ElementType::I32 => Dtype::I8,
    };
    let of_products = match key.precision {
        Precision::Exact if matches!(key.operands, ElementType::E4m3 | ElementType::E5m2) => {
            Dtype::E4m3
        }
        Precision::Exact => of_c,
        Precision::Tf32 => Dtype::Tf32,
        Precision::Tf32x3 => Dtype::Tf32x3,
        Precision::FastAccumulation => Dtype::E4m3Fast,
    };
    of_c.tolerance(k).max(of_products.tolerance(k))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutlet::Device;

    /// A key of these types, with other words in place of some.
    fn key(types: &str, other: &[(&str, &str)]) -> ProblemKey {
        let mut line = format!(
            "{types} precision=exact m=20 n=24 k=32 a=row b=col alignments=32,32,32 beta=0 bias=none residual=none \
             activation=none"
        );
        for (from, to) in other {
            assert!(line.contains(from), "{line}");
            line = line.replace(from, to);
        }
        line.parse().unwrap()
    }

    /// Asserts that the estimated kernel is right at a problem, and that a C that was not computed is not.
    fn assert_checked<T: Element<D> + Fill, D: Stored + Fill>(
        key: &ProblemKey,
        scale_by: Scale<T, D>,
    ) {
        let setting = Setting::new(&Device::cpu(), 1).unwrap();
        let mut case = KeyCase::<T, D>::new(key, &setting, scale_by).unwrap();
        assert_right(key, &mut case);
    }

    /// Asserts the same of a case.
    fn assert_right<T: Element<D> + Fill, D: Stored + Fill>(
        key: &ProblemKey,
        case: &mut KeyCase<'_, T, D>,
    ) {
        let stream = &case.setting.stream;
        let (found, _) = case.plan().unwrap();
        assert_eq!(found, Some(*key));
        assert_eq!(case.fault(0).unwrap(), None, "{key}");
        assert_eq!(case.recheck(0).unwrap().wrong, None);
        case.restore().unwrap();
        let wrong = case.wrong("nobody").unwrap();
        assert!(
            wrong.is_some_and(|wrong| wrong.starts_with("nobody against f64: ")),
            "{key}"
        );
        // The first element after C.
        assert_eq!(case.fault(0).unwrap(), None);
        let end = case.of_c.elements(0).end;
        let zero = stream.zeroed::<D>(1).unwrap();
        let after = case.c.slice_mut(end..end + 1).unwrap();
        stream.copy(&zero, after).unwrap();
        let wrong = case.wrong("somebody").unwrap();
        assert_eq!(
            wrong.as_deref(),
            Some("somebody wrote past the end of C"),
            "{key}"
        );
    }

    #[test]
    fn every_kind_of_problem_is_set_up_as_its_key_says_and_checked() {
        let f32_ = "operands=f32 c=f32";
        for other in [
            &[][..],
            &[("beta=0", "beta=1")],
            &[("beta=0", "beta=other"), ("residual=none", "residual=col")],
            &[
                ("bias=none", "bias=rows"),
                ("activation=none", "activation=silu"),
            ],
            &[
                ("a=row b=col", "a=col b=row"),
                ("bias=none", "bias=columns"),
            ],
            &[("alignments=32,32,32", "alignments=4,16,8")],
            &[
                ("exact", "3xtf32"),
                ("k=32", "k=160"),
                ("alignments=32,32,32", "alignments=128,64,4"),
            ],
            &[("k=32", "k=32 batch=3 shared=none")],
            &[
                ("k=32", "k=32 batch=3 shared=b"),
                ("alignments=32,32,32", "alignments=4,16,8"),
                ("bias=none", "bias=columns"),
                ("beta=0", "beta=1"),
            ],
            &[("m=20", "m=1"), ("k=32", "k=32 batch=2 shared=a")],
            &[
                ("m=20", "m=1"),
                ("alignments=32,32,32", "alignments=128,32,4"),
            ],
        ] {
            assert_checked::<f32, f32>(&key(f32_, other), unscaled);
        }
        let beta = [("beta=0", "beta=other")];
        assert_checked::<f32, f16>(&key("operands=f32 c=f16", &beta), unscaled);
        assert_checked::<i8, i32>(&key("operands=i8 c=i32", &beta), unscaled);
        assert_checked::<f64, f64>(&key("operands=f64 c=f64", &beta), unscaled);
        let into = |c: &str, scales: &str, other: &[(&str, &str)]| {
            let types = format!("operands=F8E4M3 c={c}");
            let with_scales = format!("exact scales={scales}");
            let all = [other, &[("exact", &*with_scales), ("k=32", "k=160")]].concat();
            key(&types, &all)
        };
        let bias = [("bias=none", "bias=columns")];
        for other in [&[][..], &bias, &[("a=row b=col", "a=col b=row")]] {
            for scales in ["outer", "blocks"] {
                assert_checked::<F8E4M3, bf16>(&into("bf16", scales, other), scale_by);
                assert_checked::<F8E4M3, f32>(&into("f32", scales, other), scale_by);
            }
        }
        let batches = [
            &[("k=32", "k=32 batch=3 shared=none")][..],
            &[("k=32", "k=32 batch=3 shared=b"), ("n=24", "n=136")],
        ];
        for batch in batches {
            for scales in ["outer", "blocks"] {
                assert_checked::<F8E4M3, bf16>(&into("bf16", scales, batch), scale_by);
            }
        }
        let odd = [
            ("n=24", "n=23"),
            ("alignments=32,32,32", "alignments=32,32,2"),
        ];
        assert_checked::<F8E4M3, f16>(&into("f16", "outer-unpaired", &odd), scale_by);
    }

    #[test]
    fn products_of_i8_and_of_e5m2_are_scaled() {
        let outer = ("exact", "exact scales=outer");
        let fused = [outer, ("beta=0", "beta=1"), ("bias=none", "bias=columns")];
        let blocks = [("exact", "exact scales=blocks"), ("k=32", "k=160")];
        let of_blocks = key("operands=F8E5M2 c=bf16", &blocks);
        assert_checked::<F8E5M2, bf16>(&of_blocks, scale_by);
        for other in [&[][..], &[outer], &fused] {
            assert_checked::<i8, bf16>(&key("operands=i8 c=bf16", other), scale_but_blocks);
            assert_checked::<i8, f16>(&key("operands=i8 c=f16", other), scale_but_blocks);
            assert_checked::<i8, f32>(&key("operands=i8 c=f32", other), scale_but_blocks);
            assert_checked::<F8E5M2, bf16>(&key("operands=F8E5M2 c=bf16", other), scale_by);
            assert_checked::<F8E5M2, f32>(&key("operands=F8E5M2 c=f32", other), scale_by);
        }
    }

    #[test]
    fn a_quantised_c_is_checked_with_its_scales() {
        let types = "operands=F8E4M3 c=F8E4M3";
        let scales = ("exact", "exact scales=blocks");
        let blocks = ("n=24", "n=264");
        let odd = [
            ("n=24", "n=23"),
            ("alignments=32,32,32", "alignments=32,32,1"),
        ];
        for other in [&[][..], &[scales], &[scales, blocks], &odd] {
            let key = key(types, other);
            let setting = Setting::new(&Device::cpu(), 1).unwrap();
            let case = KeyCase::<F8E4M3, F8E4M3>::new(&key, &setting, scale_but_rows).unwrap();
            let mut case = case.quantized(by_blocks).unwrap();
            assert_right(&key, &mut case);
            assert_eq!(case.fault(0).unwrap(), None);
            let (scales, _) = case.quantized.as_mut().unwrap();
            scales.poison(&setting.stream).unwrap();
            assert!(case.wrong("no scales").unwrap().is_some(), "{key}");
        }
    }

    #[test]
    fn keys_that_no_matrices_have_are_left_out() {
        let setting = Setting::new(&Device::cpu(), 1).unwrap();
        for (key, expected) in [
            (
                key("operands=f32 c=i32", &[]),
                "products of f32 into i32 are not tuned",
            ),
            (
                key(
                    "operands=f32 c=f32",
                    &[("alignments=32,32,32", "alignments=2,32,32")],
                ),
                "no matrices of f32 have alignments of [2, 32, 32] bytes",
            ),
            (
                key("operands=i8 c=i32", &[("exact", "exact scales=outer")]),
                "products of i8 into i32 with scales of rows and columns are not tuned",
            ),
            (
                key("operands=bf16 c=bf16", &[("exact", "exact scales=blocks")]),
                "products of bf16 into bf16 with scales of blocks are not tuned",
            ),
            (
                key(
                    "operands=F8E4M3 c=bf16",
                    &[("exact", "exact scales=outer-unpaired")],
                ),
                "it has scales of rows and columns that are not aligned, and scales that begin a buffer are tuned, which \
                 are scales of rows and columns here",
            ),
        ] {
            let found = set_up(&key, &setting).unwrap().err();
            assert_eq!(found.as_deref(), Some(expected));
        }
    }
}
