//! GEMV: products whose C has few rows or few columns, and whose A and B are both K-major. Rows may begin anywhere.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::{Device, Function, LaunchConfig, Stream, View};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::{ElementC, FusedWithErf};
use cutlet_kernels::gemm::gemv::{
    Eights1, Fours1, GemvArgs, Ones1, Ones4, Shape, TwoOfEights1, VectorNorm, gemv_bf16_2x1_16b,
    gemv_bf16_4x1_16b, gemv_bf16_4x1_swiglu, gemv_bf16_8x1_any, gemv_bf16_8x4_any,
    gemv_f16_2x1_16b, gemv_f16_4x1_16b, gemv_f16_4x1_swiglu, gemv_f16_8x1_any, gemv_f16_8x4_any,
    gemv_f32_8x1_16b, gemv_f32_8x1_any, gemv_f32_8x4_any,
};
use half::{bf16, f16};

use crate::gemm::choice::device_speed::{DeviceSpeed, Work, overlapped};
use crate::gemm::normalised::NormalisedLaunch;
use crate::gemm::operand::Operand;
use crate::gemm::partials::Output;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, Fused, IndexedOperand, KernelQuery, Launch, LaunchPlan};
use crate::matrix::pointer;
use crate::{Error, Order, Result};

/// The arguments of a kernel: matrix, vectors, C, extents, the epilogue and the vectors' norm.
type Arguments<T> = (
    Global<T>,
    Global<T>,
    GlobalMut<T>,
    GemvArgs,
    FusedWithErf<T>,
    VectorNorm<T>,
);

/// A kernel.
#[derive(Debug)]
pub struct Instance<T: ElementC> {
    kernel: &'static Kernel<Arguments<T>>,
    /// Rows of the matrix that a block has.
    rows: usize,
    /// Vectors that a block multiplies.
    vectors: usize,
    /// Rows and vectors begin at multiples of so many bytes, and their length is a multiple of it.
    bytes: usize,
    /// Columns of a k-tile.
    k: usize,
    /// Whether it can normalise vectors.
    normalises: bool,
    /// Clocks of a multiprocessor's instructions for a k-tile, counted in the machine code.
    clocks: f64,
}

impl<T: ElementC> Instance<T> {
    const fn of<S: Shape>(kernel: &'static Kernel<Arguments<T>>, clocks: f64) -> Self {
        Instance {
            kernel,
            rows: S::ROWS,
            vectors: S::VECTORS,
            bytes: S::WIDTH * size_of::<T>(),
            k: S::K,
            normalises: S::NORMALISES,
            clocks,
        }
    }
}

/// An element type that kernels of the family multiply.
trait Element: Operand<Factor = f32> + Output<Acc = f32> {
    /// The kernels.
    fn instances() -> &'static [Instance<Self>];
    /// Those that gate the product.
    fn gated() -> &'static [Instance<Self>];
}

macro_rules! instances {
    ($($element:ty {
        $($kernel:ident: $shape:ty, $clocks:literal clocks;)+
        -> $($gated:ident: $gated_shape:ty, $gated_clocks:literal clocks;)*
    })+) => {$(
        impl Element for $element {
            fn instances() -> &'static [Instance<$element>] {
                static INSTANCES: &[Instance<$element>] =
                    &[$(Instance::of::<$shape>(&$kernel, $clocks),)+];
                INSTANCES
            }

            fn gated() -> &'static [Instance<$element>] {
                static GATED: &[Instance<$element>] =
                    &[$(Instance::of::<$gated_shape>(&$gated, $gated_clocks),)*];
                GATED
            }
        }
    )+};
}
instances! {
    bf16 {
        gemv_bf16_4x1_16b: Eights1, 330.0 clocks;
        gemv_bf16_2x1_16b: TwoOfEights1, 618.0 clocks;
        gemv_bf16_8x1_any: Ones1, 266.0 clocks;
        gemv_bf16_8x4_any: Ones4, 434.0 clocks;
        -> gemv_bf16_4x1_swiglu: Eights1, 330.0 clocks;
    }
    f16 {
        gemv_f16_4x1_16b: Eights1, 324.0 clocks;
        gemv_f16_2x1_16b: TwoOfEights1, 606.0 clocks;
        gemv_f16_8x1_any: Ones1, 266.0 clocks;
        gemv_f16_8x4_any: Ones4, 442.0 clocks;
        -> gemv_f16_4x1_swiglu: Eights1, 324.0 clocks;
    }
    f32 {
        gemv_f32_8x1_16b: Fours1, 206.0 clocks;
        gemv_f32_8x1_any: Ones1, 216.0 clocks;
        gemv_f32_8x4_any: Ones4, 368.0 clocks;
        ->
    }
}

/// The most rows or columns of C for which the estimates choose among all kernels. With more, memory brings the larger
/// operand several times.
const FEW_VECTORS: usize = 4;
/// The most rows or columns of C that the family takes.
const MOST_VECTORS: usize = 64;

/// C of the operands' type.
#[derive(Debug)]
pub struct ToOwnType;

impl<T: Element> Family<T, T> for ToOwnType {
    fn name(&self) -> &'static str {
        "gemv"
    }

    fn supports(&self, device: &Device) -> Result<()> {
        match device.compute_capability() {
            Some((major, minor)) if (major, minor) < (8, 0) => Err(Error::Device {
                asked: "gemm of few rows or columns, whose kernels are for compute capability 8.0 and later,",
                found: format!("{}, compute capability {major}.{minor}", device.describe()),
            }),
            _ => Ok(()),
        }
    }

    fn is_general(&self) -> bool {
        false
    }

    fn fuses_gates(&self) -> bool {
        true
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        match query {
            KernelQuery {
                orders: [Order::RowMajor, Order::ColMajor],
                of_batches: false,
                indexed: IndexedOperand::None,
                fused,
                ..
            } => {
                let instances = match fused {
                    Fused::Nothing | Fused::Something(_) => T::instances(),
                    Fused::Swiglu => T::gated(),
                };
                let names = instances.iter().map(|it| it.kernel.name());
                names.collect()
            }
            _ => Vec::new(),
        }
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, T>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<T, T>>> {
        let Some(candidate) = choose(stream.device(), problem, kernel) else {
            return Ok(None);
        };
        let launch = GemvLaunch::of(&candidate, stream.device())?;
        let name = candidate.instance.kernel.name();
        Ok(Some(LaunchPlan::new(name, candidate.microseconds, launch)))
    }

    fn plan_normalised(
        &self,
        stream: &Stream,
        problem: &Problem<'_, T, T>,
    ) -> Result<Option<Box<dyn NormalisedLaunch<T, T>>>> {
        let device = stream.device();
        let (m, n, _) = problem.extents();
        // With more rows, the matrix is read again for each.
        if m != 1 || n == 1 || Family::<T, T>::supports(self, device).is_err() {
            return Ok(None);
        }
        let mut instances = T::instances().iter().chain(T::gated());
        let normalising = instances.find_map(|it| match it.normalises {
            true => choose(device, problem, Some(it.kernel.name())),
            false => None,
        });
        Ok(match normalising {
            Some(candidate) => Some(Box::new(GemvLaunch::of(&candidate, device)?)),
            None => None,
        })
    }
}

/// A kernel that may solve the problem, and how it is launched.
struct Candidate<T: ElementC> {
    instance: &'static Instance<T>,
    /// Whether A has the vectors, so that the kernel computes Cᵀ = Bᵀ·Aᵀ.
    transposed: bool,
    /// The estimated time.
    microseconds: f64,
}

/// The kernel that is estimated to be the fastest, or the one of this name. None if none solves the problem.
fn choose<T: Element>(
    device: &Device,
    problem: &Problem<'_, T>,
    kernel: Option<&str>,
) -> Option<Candidate<T>> {
    let (m, n, k) = problem.extents();
    let are_k_major = problem.a.order() == Order::RowMajor && problem.b.order() == Order::ColMajor;
    let is_plain = problem.rows.are_own() && problem.groups.are_one();
    if !(are_k_major && is_plain && (1..=MOST_VECTORS).contains(&m.min(n))) {
        return None;
    }
    let transposed = m < n;
    let (rows, vectors) = if transposed { (n, m) } else { (m, n) };
    // Gates and ups are rows of the matrix.
    let instances = match problem.epilogue.gate {
        None => T::instances(),
        Some(_) if transposed => T::gated(),
        Some(_) => &[],
    };
    let speed = DeviceSpeed::of(device);
    let takes = |it: &&Instance<T>| takes_vectors(&speed, it, [rows, vectors]);
    let fits = |it: &&Instance<T>| {
        let begin_aligned =
            [&problem.a, &problem.b].map(|operand| operand.starts_runs_at(it.bytes));
        begin_aligned == [true; 2]
            && (k * size_of::<T>()).is_multiple_of(it.bytes)
            && kernel.map_or_else(|| takes(it), |name| it.kernel.name() == name)
    };
    let candidates = instances.iter().filter(fits).map(|instance| Candidate {
        instance,
        transposed,
        microseconds: speed.time_of(work(&speed, instance, [rows, vectors, k])),
    });
    candidates.min_by(|one, other| one.microseconds.total_cmp(&other.microseconds))
}

/// Whether the instance may be the fastest for so many vectors: for more than a few, the C is so small that all of its
/// blocks run at the same time, each for one vector.
fn takes_vectors<T: ElementC>(
    device: &DeviceSpeed,
    instance: &Instance<T>,
    [rows, vectors]: [usize; 2],
) -> bool {
    // Blocks of four rows take half as long: two rounds of them are one of others.
    let rounds = if instance.rows == 4 { 2 } else { 1 };
    let at_a_time = rounds * AT_A_TIME * device.multiprocessors as usize;
    vectors <= FEW_VECTORS
        || instance.vectors == 1 && rows.div_ceil(instance.rows) * vectors <= at_a_time
}

/// Blocks that a multiprocessor runs at the same time: as many as the registers of most kernels allow.
const AT_A_TIME: usize = 4;
/// Clocks from a block's loads of a k-tile to its sums.
const LATENCY: f64 = 1000.0;
/// Clocks of a block besides its k-tiles.
const BLOCK: f64 = 2000.0;
/// Clocks of a launch.
const START: f64 = 1500.0;
/// The share of the memory's stated rate that kernels reach.
const OF_MEMORY_RATE: f64 = 0.8;

/// What a launch of the instance does.
fn work<T: ElementC>(
    device: &DeviceSpeed,
    instance: &Instance<T>,
    [rows, vectors, k]: [usize; 3],
) -> Work {
    let multiprocessors = device.multiprocessors as usize;
    let vector_tiles = vectors.div_ceil(instance.vectors);
    let blocks = (rows.div_ceil(instance.rows) * vector_tiles).div_ceil(multiprocessors);
    let k_tiles = k.div_ceil(instance.k) as f64;
    let rounds = blocks.div_ceil(AT_A_TIME) as f64;
    // A block waits for its loads, and then multiplies. Other blocks multiply meanwhile.
    let waiting = rounds * (k_tiles * (LATENCY + instance.clocks) + BLOCK);
    let computing = blocks as f64 * k_tiles * instance.clocks;
    let elements = (rows * vector_tiles + vectors) * k + rows * vectors;
    Work {
        computing: overlapped(computing, waiting),
        bytes: (elements * size_of::<T>()) as f64,
        of_memory_rate: OF_MEMORY_RATE,
        latency: 0.0,
        overhead: START,
    }
}

/// A kernel that is loaded.
struct GemvLaunch<T: ElementC> {
    function: Function<Arguments<T>>,
    rows: usize,
    vectors: usize,
    transposed: bool,
}

impl<T: Element> Launch<T, T> for GemvLaunch<T> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T>) -> Result<()> {
        let none = VectorNorm {
            weights: Global::from_ptr(std::ptr::null()),
            epsilon: 0.0,
            exists: 0,
        };
        self.enqueue(stream, problem, none)
    }
}

impl<T: Element> NormalisedLaunch<T, T> for GemvLaunch<T> {
    fn launch(
        &self,
        stream: &Stream,
        problem: Problem<'_, T>,
        weights: View<'_, T>,
        epsilon: f32,
    ) -> Result<()> {
        let norm = VectorNorm {
            weights: pointer(weights),
            epsilon,
            exists: 1,
        };
        self.enqueue(stream, problem, norm)
    }
}

impl<T: Element> GemvLaunch<T> {
    fn of(candidate: &Candidate<T>, device: &Device) -> Result<Self> {
        Ok(GemvLaunch {
            function: device.load(&PTX, candidate.instance.kernel)?,
            rows: candidate.instance.rows,
            vectors: candidate.instance.vectors,
            transposed: candidate.transposed,
        })
    }

    fn enqueue(&self, stream: &Stream, problem: Problem<'_, T>, norm: VectorNorm<T>) -> Result<()> {
        let (m, n, k) = problem.extents();
        let (mut problem, rows, vectors) = match self.transposed {
            true => (problem.transposed(), n, m),
            false => (problem, m, n),
        };
        let tiles = (
            rows.div_ceil(self.rows) as u32,
            vectors.div_ceil(self.vectors) as u32,
        );
        let args = GemvArgs {
            ld_matrix: problem.a.ld() as i64,
            ld_vectors: problem.b.ld() as i64,
            strides_c: problem.c.strides(),
            rows: rows as i32,
            vectors: vectors as i32,
            k: k as i32,
            padding: 0,
        };
        let epilogue = problem.fused_with_erf();
        let config = LaunchConfig::dependent(tiles);
        // SAFETY: the matrices and the epilogue's operands were checked against their memory. C overlaps neither A nor
        // B, and is borrowed mutably. `choose` checked the alignment, and a plan runs on that shape alone. A norm has a
        // weight for each column, and begins where allocations do.
        unsafe {
            let (a, b, c) = (problem.a.view, problem.b.view, problem.c.view.reborrow());
            stream.launch(&self.function, config, (a, b, c, args, epilogue, norm))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::choice::measured::H200;

    /// Memory takes 28 microseconds to bring the matrix at its stated rate.
    #[test]
    fn a_vector_takes_little_longer_than_memory() {
        let [.., any, _] = <bf16 as Element>::instances() else {
            panic!("there are kernels for any alignment");
        };
        let time = H200.time_of(work(&H200, any, [8192, 1, 8191]));
        assert!((28.0..45.0).contains(&time), "{time}");
    }

    #[test]
    fn many_vectors_are_multiplied_one_by_one_if_c_is_small() {
        let [wide, .., one, four] = <bf16 as Element>::instances() else {
            panic!("there are four kernels");
        };
        for (instance, [rows, vectors], expected) in [
            (four, [8192, 4], true),
            (four, [32, 16], false),
            (wide, [176, 16], true),
            (one, [176, 16], true),
            (one, [160, 56], false),
        ] {
            let takes = takes_vectors(&H200, instance, [rows, vectors]);
            assert_eq!(takes, expected, "{rows}x{vectors}");
        }
    }

    /// Four vectors take less time at once than one after the other.
    #[test]
    fn vectors_are_multiplied_together() {
        let [.., one, four] = <f16 as Element>::instances() else {
            panic!("there are four kernels");
        };
        let extents = [8192, 4, 8191];
        let time = |instance| H200.time_of(work(&H200, instance, extents));
        assert!(time(four) < 0.5 * time(one));
    }
}
