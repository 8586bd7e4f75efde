//! The factors of a GEMM: alpha and beta.

use cutlet_device::{DeviceData, fma};
use cutlet_layout_core::Coord;

use super::{Accumulator, Epilogue};

/// `alpha · acc + beta · old`, with factors of the accumulators' type.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Scale<F: Accumulator = f32> {
    /// Factor of the accumulator.
    pub alpha: F,
    /// Factor of the old element. If it is 0, C is not read.
    pub beta: F,
}

impl<F: Accumulator> Scale<F> {
    /// Leaves accumulators unchanged.
    pub const ONE: Self = Self {
        alpha: F::ONE,
        beta: F::ZERO,
    };
}

impl<F: Accumulator> Epilogue for Scale<F> {
    type Acc = F;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn reads_old(&self) -> bool {
        self.beta != F::ZERO
    }

    #[inline(always)]
    fn is_identity(&self) -> bool {
        self.alpha == F::ONE
    }

    #[inline(always)]
    fn apply(&self, acc: F, old: Option<F>, _: Coord) -> F {
        let scaled = self.alpha.times(acc);
        match old {
            Some(old) => fma(self.beta, old, scaled),
            None => scaled,
        }
    }
}
