//! Epilogues: what becomes of the sums on their way to C.

use cutlet_device::{DeviceData, fma};
use cutlet_layout_core::Coord;

/// What becomes of each sum before it is rounded and written to C; a kernel's last argument.
///
/// A thread applies it to its values one after the other, unrolled: what is the same for all of them
/// is computed once.
///
/// Values beyond C's edges are computed as well. An index made of the coordinate must be kept within
/// what is there.
///
/// ```
/// use cutlet_device::DeviceData;
/// use cutlet_kernels::gemm_wgmma::{Epilogue, Scale};
/// use cutlet_layout_core::Coord;
///
/// /// The causal mask of attention: a scaled score, or -∞ where a column is later than the row.
/// #[derive(Clone, Copy, DeviceData)]
/// #[repr(C)]
/// struct Causal {
///     scale: f32,
/// }
///
/// impl Epilogue for Causal {
///     #[inline(always)]
///     fn reads_old(&self) -> bool {
///         false
///     }
///
///     #[inline(always)]
///     fn is_identity(&self) -> bool {
///         false
///     }
///
///     #[inline(always)]
///     fn apply(&self, sum: f32, _: Option<f32>, [row, column]: Coord) -> f32 {
///         if column > row { f32::NEG_INFINITY } else { self.scale * sum }
///     }
/// }
///
/// let causal = Causal { scale: 0.125 };
/// assert_eq!(causal.apply(4.0, None, [2, 1]), 0.5);
/// assert_eq!(causal.apply(4.0, None, [1, 2]), f32::NEG_INFINITY);
///
/// let scale = Scale { alpha: 2.0, beta: -1.0 };
/// assert!(scale.reads_old());
/// assert_eq!(scale.apply(4.0, Some(3.0), [0, 0]), 5.0);
/// ```
///
/// The package `examples/own-epilogue/` makes a kernel with an epilogue of its own and launches it.
pub trait Epilogue: DeviceData {
    /// Whether [`apply`](Self::apply) is given the old element of C. The same for all elements;
    /// where it is false, C is not read.
    fn reads_old(&self) -> bool;

    /// Whether, without the old element, the sum is what is written; then nothing is applied.
    fn is_identity(&self) -> bool;

    /// The new element of C at `at` = (row, column), which may lie beyond C's edges, where what
    /// comes out is not used.
    fn apply(&self, sum: f32, old: Option<f32>, at: Coord) -> f32;
}

/// `alpha · sum + beta · old`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Scale {
    /// Factor of the sum.
    pub alpha: f32,
    /// Factor of the old element; if it is 0, C is not read.
    pub beta: f32,
}

impl Epilogue for Scale {
    #[inline(always)]
    fn reads_old(&self) -> bool {
        self.beta != 0.0
    }

    #[inline(always)]
    fn is_identity(&self) -> bool {
        self.alpha == 1.0
    }

    #[inline(always)]
    fn apply(&self, sum: f32, old: Option<f32>, _: Coord) -> f32 {
        let scaled = self.alpha * sum;
        match old {
            Some(old) => fma(self.beta, old, scaled),
            None => scaled,
        }
    }
}
