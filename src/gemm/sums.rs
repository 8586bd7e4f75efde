//! Sums in f32 that a kernel left in scratch memory, and the kernel that takes them to C.

use cutlet_device::{DeviceData, Float, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Scratch, Stream};
use cutlet_kernels::gemm_wgmma::parts::{self, Parts};
use cutlet_kernels::gemm_wgmma::parts::{
    sum_parts_bf16_fused, sum_parts_f16_fused, sum_parts_f32_fused,
};
use cutlet_kernels::gemm_wgmma::{Epilogue, Fused};

use crate::{MatrixMut, Result};

/// The most parts that one warpgroup adds.
const MOST_FOR_ONE: u32 = 8;

/// What adds parts and takes them through the epilogue `Epi` to a C of `D`.
#[derive(Debug)]
pub struct SumParts<D: 'static, Epi: 'static> {
    /// The kernel.
    pub kernel: &'static Kernel<(Global<f32>, GlobalMut<D>, Parts, Epi)>,
    /// Whether it waits for the kernel before it, which then need not have ended when it starts.
    pub waits: bool,
}

/// The elements of a C.
pub trait Output: Float + Default {
    /// With everything that can be fused.
    const SUM_PARTS: SumParts<Self, Fused<Self>>;
}

macro_rules! output {
    ($($element:ty: $kernel:ident, $waits:literal;)+) => {$(
        impl Output for $element {
            const SUM_PARTS: SumParts<Self, Fused<Self>> = SumParts {
                kernel: &$kernel,
                waits: $waits,
            };
        }
    )+};
}
output! {
    half::bf16: sum_parts_bf16_fused, true;
    half::f16: sum_parts_f16_fused, true;
    f32: sum_parts_f32_fused, false;
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

    /// Adds the parts and takes them to C.
    ///
    /// # Safety
    /// The epilogue's memory must be there until the stream has got past the launch.
    pub unsafe fn finish<D: DeviceData, Epi: Epilogue>(
        &self,
        stream: &Stream,
        by: &SumParts<D, Epi>,
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
            overlap_previous: by.waits,
        };
        let function = stream.device().load(&cutlet_kernels::PTX, by.kernel)?;
        // SAFETY: the parts have at least C's extents, and C was checked against the memory behind
        // it; both are there until the stream has got past the launch. The rest as promised.
        unsafe {
            let args = (self.elements.view(), &mut c.view, extents, epilogue);
            stream.launch(&function, launch, args)?;
        }
        Ok(())
    }
}
