//! The factors of a GEMM: alpha and beta.

use cutlet_device::{DeviceData, fma};
use cutlet_layout_core::Coord;

use super::Epilogue;

/// `alpha · acc + beta · old`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Scale {
    /// Factor of the accumulator.
    pub alpha: f32,
    /// Factor of the old element. If it is 0, C is not read.
    pub beta: f32,
}

impl Scale {
    /// Leaves accumulators unchanged.
    pub const ONE: Self = Self {
        alpha: 1.0,
        beta: 0.0,
    };
}

impl Epilogue for Scale {
    type Acc = f32;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn reads_old(&self) -> bool {
        self.beta != 0.0
    }

    #[inline(always)]
    fn is_identity(&self) -> bool {
        self.alpha == 1.0
    }

    #[inline(always)]
    fn apply(&self, acc: f32, old: Option<f32>, _: Coord) -> f32 {
        let scaled = self.alpha * acc;
        match old {
            Some(old) => fma(self.beta, old, scaled),
            None => scaled,
        }
    }
}
