//! Sums in f32 that a kernel left in scratch memory, and the kernels that take them to C.

use cutlet_device::{DeviceData, Float, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Scratch, Stream};
use cutlet_kernels::gemm_wgmma::finish::{self, Whole, finish_bf16, finish_f16, finish_f32};
use cutlet_kernels::gemm_wgmma::parts::{
    self, Parts, sum_parts_bf16_fused, sum_parts_f16_fused, sum_parts_f32_fused,
};
use cutlet_kernels::gemm_wgmma::{Epilogue, Fused};

use super::Problem;
use crate::{MatrixMut, Result};

/// The most parts that one warpgroup adds alone.
const MOST_FOR_ONE: u32 = 8;

/// The kernel that adds parts and takes them through the epilogue `Epi` to a C of `D`.
pub type SumParts<D, Epi> = Kernel<(Global<f32>, GlobalMut<D>, Parts, Epi)>;
/// The kernel that takes whole sums through all that can be fused to a C of `D`.
pub type FinishWhole<D> = Kernel<(Global<f32>, GlobalMut<D>, Whole, Fused<D>)>;

/// The elements of a C.
pub trait Output: Float + Default {
    /// What takes sums in parts to C, with everything that can be fused.
    const SUM_PARTS: &'static SumParts<Self, Fused<Self>>;
    /// What takes whole sums to C.
    const FINISH: &'static FinishWhole<Self>;
}

macro_rules! output {
    ($($element:ty: $sum_parts:ident, $finish:ident;)+) => {$(
        impl Output for $element {
            const SUM_PARTS: &'static SumParts<Self, Fused<Self>> = &$sum_parts;
            const FINISH: &'static FinishWhole<Self> = &$finish;
        }
    )+};
}
output! {
    half::bf16: sum_parts_bf16_fused, finish_bf16;
    half::f16: sum_parts_f16_fused, finish_f16;
    f32: sum_parts_f32_fused, finish_f32;
}

/// Sums of the parts of a GEMM: for each part, rows and columns that contain C's, row-major.
#[derive(Debug)]
pub struct Sums {
    pub elements: Scratch<f32>,
    /// Rows of a part, and columns: a multiple of 4.
    pub extent: [usize; 2],
    /// Parts.
    pub count: u32,
}

impl Sums {
    /// Room for them.
    pub fn new(stream: &Stream, extent: [usize; 2], count: u32) -> Result<Self> {
        Ok(Sums {
            elements: stream.scratch(extent[0] * extent[1] * count as usize)?,
            extent,
            count,
        })
    }

    /// Takes them to the problem's C, with all that is fused.
    ///
    /// # Safety
    /// The sums must have at least C's extents.
    pub unsafe fn finish<T: DeviceData, D: Output>(
        &self,
        stream: &Stream,
        mut problem: Problem<'_, T, D>,
    ) -> Result<()> {
        let fused = problem.fused();
        if self.count > 1 {
            // SAFETY: what the epilogue reads was checked with the problem, which borrows it for the call. The sums are as
            // promised.
            return unsafe { self.add(stream, D::SUM_PARTS, fused, &mut problem.c) };
        }
        let in_fours = problem.reads_pairs()
            && problem.c.starts_runs_at(4 * size_of::<D>())
            && problem.c.columns().is_multiple_of(4);
        let c = &mut problem.c;
        let [m, n] = [c.rows() as i32, c.columns() as i32];
        let raster = finish::raster([m, n]);
        let extents = Whole {
            ldc: c.ld() as i64,
            ld: self.extent[1] as i64,
            m,
            n,
            in_fours: in_fours.into(),
            raster,
        };
        let function = stream.device().load(&cutlet_kernels::PTX, D::FINISH)?;
        // SAFETY: the sums have at least C's extents, as promised, and C, like what the epilogue reads, was checked against
        // the memory behind it; all is there until the stream has got past the launch.
        unsafe {
            let args = (self.elements.view(), &mut c.view, extents, fused);
            stream.launch(&function, raster.size(), args)?;
        }
        Ok(())
    }

    /// Adds the parts, and takes them to C.
    ///
    /// # Safety
    /// The sums must have at least C's extents, and the epilogue's memory must be there until the stream has got past the
    /// launch.
    pub unsafe fn add<D: DeviceData, Epi: Epilogue>(
        &self,
        stream: &Stream,
        by: &'static SumParts<D, Epi>,
        epilogue: Epi,
        c: &mut MatrixMut<'_, D>,
    ) -> Result<()> {
        let [part_rows, ld] = self.extent;
        let together = self.count > MOST_FOR_ONE;
        let raster = parts::raster([c.rows() as i32, c.columns() as i32], together);
        let extents = Parts {
            ldc: c.ld() as i64,
            ld: ld as i64,
            distance: (part_rows * ld) as i64,
            m: c.rows() as i32,
            n: c.columns() as i32,
            count: self.count,
            together: together.into(),
            raster,
            padding: 0,
        };
        let launch = LaunchConfig {
            grid: raster.size().into(),
            overlap_previous: true,
        };
        let function = stream.device().load(&cutlet_kernels::PTX, by)?;
        // SAFETY: C was checked against the memory behind it; that and the parts are there until the stream has got past
        // the launch. The rest as promised.
        unsafe {
            let args = (self.elements.view(), &mut c.view, extents, epilogue);
            stream.launch(&function, launch, args)?;
        }
        Ok(())
    }
}
