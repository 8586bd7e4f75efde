//! Partial output in scratch memory, and the second kernels that make C of it.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Scratch, Stream};
use cutlet_kernels::gemm::epilogue::{Accumulator, ElementC, Epilogue, FusedWithErf};
use cutlet_kernels::gemm::epilogue_pass::{
    self, PassArgs, epilogue_pass_bf16, epilogue_pass_f16, epilogue_pass_f32,
};
use cutlet_kernels::gemm::split_k_reduce::{
    self, ReduceArgs, split_k_reduce_bf16_fused, split_k_reduce_f16_fused,
    split_k_reduce_f32_fused, split_k_reduce_f64_fused, split_k_reduce_i32_fused,
};

use super::operand::Operand;
use super::problem::Problem;
use crate::{MatrixMut, Order, Result};

/// The most splits that one warpgroup adds alone.
const MOST_FOR_ONE: u32 = 8;

/// The kernel that adds partials, applies the epilogue `Epi` and writes a C of `D`.
pub type SplitKReduce<D, Epi> =
    Kernel<(Global<<D as ElementC>::Acc>, GlobalMut<D>, ReduceArgs, Epi)>;
/// The kernel that applies everything that can be fused to accumulators, and writes a C of `D`.
pub type EpiloguePass<D> = Kernel<(
    Global<<D as ElementC>::Acc>,
    GlobalMut<D>,
    PassArgs,
    FusedWithErf<D>,
)>;

/// An element type of C, and its second kernels.
pub trait Output: ElementC {
    /// The split-K reduction with everything that can be fused.
    const SPLIT_K_REDUCE: &'static SplitKReduce<Self, FusedWithErf<Self>>;
    /// The epilogue pass. Without one, the reduction of a single split takes its place.
    const EPILOGUE_PASS: Option<&'static EpiloguePass<Self>>;
}

macro_rules! output {
    ($($element:ty: $split_k_reduce:ident, $epilogue_pass:expr;)+) => {$(
        impl Output for $element {
            const SPLIT_K_REDUCE: &'static SplitKReduce<Self, FusedWithErf<Self>> = &$split_k_reduce;
            const EPILOGUE_PASS: Option<&'static EpiloguePass<Self>> = $epilogue_pass;
        }
    )+};
}
output! {
    half::bf16: split_k_reduce_bf16_fused, Some(&epilogue_pass_bf16);
    half::f16: split_k_reduce_f16_fused, Some(&epilogue_pass_f16);
    f32: split_k_reduce_f32_fused, Some(&epilogue_pass_f32);
    f64: split_k_reduce_f64_fused, None;
    i32: split_k_reduce_i32_fused, None;
}

/// Partial output: for each split, a row-major matrix that contains C's rows and columns.
#[derive(Debug)]
pub struct Partials<'s, Acc: Accumulator> {
    pub elements: Scratch<'s, Acc>,
    /// Rows and columns of a split. The columns are a multiple of 4.
    pub extent: [usize; 2],
    /// Splits.
    pub splits: u32,
}

impl<'s, Acc: Accumulator> Partials<'s, Acc> {
    /// Allocates memory for the partial output. Its elements are not initialised.
    pub fn new(stream: &'s Stream, extent: [usize; 2], splits: u32) -> Result<Self> {
        Ok(Partials {
            elements: stream.scratch(extent[0] * extent[1] * splits as usize)?,
            extent,
            splits,
        })
    }

    /// Makes the problem's C of the partial output, with the whole epilogue.
    ///
    /// # Safety
    /// The partial output must have at least C's extents.
    pub unsafe fn finish<T: Operand<Factor = Acc>, D: Output<Acc = Acc>>(
        &self,
        stream: &Stream,
        mut problem: Problem<'_, T, D>,
    ) -> Result<()> {
        let fused = problem.fused_with_erf();
        let Some(epilogue_pass) = D::EPILOGUE_PASS.filter(|_| self.splits == 1) else {
            // SAFETY: the epilogue's operands were checked with the problem, which borrows them for the call. The
            // caller promises the partials' extents.
            return unsafe { self.reduce(stream, D::SPLIT_K_REDUCE, fused, &mut problem.c) };
        };
        let in_fours = problem.reads_pairs()
            && problem.c.order() == Order::RowMajor
            && problem.c.starts_runs_at(4 * size_of::<D>())
            && problem.c.columns().is_multiple_of(4);
        let c = &mut problem.c;
        let [m, n] = [c.rows() as i32, c.columns() as i32];
        let raster = epilogue_pass::raster([m, n]);
        let extents = PassArgs {
            strides: c.strides(),
            ld: self.extent[1] as i64,
            m,
            n,
            in_fours: in_fours.into(),
            raster,
        };
        let function = stream.device().load(&cutlet_kernels::PTX, epilogue_pass)?;
        // SAFETY: the partials have at least C's extents, as promised. C and the epilogue's operands were checked
        // against their memory, which lives until the stream has got past the launch.
        unsafe {
            let args = (self.elements.view(), &mut c.view, extents, fused);
            stream.launch(&function, raster.size(), args)?;
        }
        Ok(())
    }

    /// Adds the partials of all splits, applies the epilogue, and writes C.
    ///
    /// # Safety
    /// The partials must have at least C's extents. The epilogue's operands must live until the stream has got past the
    /// launch.
    pub unsafe fn reduce<D: ElementC<Acc = Acc>, Epi: Epilogue>(
        &self,
        stream: &Stream,
        by: &'static SplitKReduce<D, Epi>,
        epilogue: Epi,
        c: &mut MatrixMut<'_, D>,
    ) -> Result<()> {
        let [split_rows, ld] = self.extent;
        let cooperative = self.splits > MOST_FOR_ONE;
        let raster = split_k_reduce::raster([c.rows() as i32, c.columns() as i32], cooperative);
        let extents = ReduceArgs {
            strides: c.strides(),
            ld: ld as i64,
            split_stride: (split_rows * ld) as i64,
            m: c.rows() as i32,
            n: c.columns() as i32,
            splits: self.splits,
            cooperative: cooperative.into(),
            raster,
            padding: 0,
        };
        let launch = LaunchConfig::dependent(raster.size());
        let function = stream.device().load(&cutlet_kernels::PTX, by)?;
        // SAFETY: C was checked against its memory. C and the partials live until the stream has got past the launch.
        // The caller promises the rest.
        unsafe {
            let args = (self.elements.view(), &mut c.view, extents, epilogue);
            stream.launch(&function, launch, args)?;
        }
        Ok(())
    }
}
