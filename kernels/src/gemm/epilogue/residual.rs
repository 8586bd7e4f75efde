//! A residual: another matrix, or C as it was, added to the accumulators.

use cutlet_device::collective::Group;
use cutlet_device::{DeviceData, Global, fma};
use cutlet_layout_core::Coord;

use super::{Accumulator, ElementC, Epilogue, Pair};

/// `x + beta · source[row, column]`. The source has C's extents and any order.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Residual<T: ElementC> {
    source: Global<T>,
    strides: [i64; 2],
    extent: Coord,
    beta: T::Acc,
    /// Makes the size a multiple of the alignment.
    padding: T::Acc,
}

impl<T: ElementC> Residual<T> {
    /// Adds `beta` times the matrix at `source`, of `extent` = (rows, columns). Its rows and columns are `strides`
    /// elements apart.
    ///
    /// # Safety
    /// The source must exist while a kernel with the epilogue runs, and no other kernel may write it. It may be C.
    /// [`gemm`](crate::gemm::sm90::gemm) calls [`apply_pairs`](Epilogue::apply_pairs), which needs rows of consecutive
    /// elements, of even length, and aligned to a pair's size.
    #[inline(always)]
    pub unsafe fn new(beta: T::Acc, source: Global<T>, strides: [i64; 2], extent: Coord) -> Self {
        Self {
            source,
            strides,
            extent,
            beta,
            padding: T::Acc::ZERO,
        }
    }

    /// `N` neighbours in memory, widened, from the element `index` at coordinate `at` on. Returns zeros beyond the
    /// edges.
    #[inline(always)]
    fn read<const N: usize>(
        &self,
        at: Coord,
        index: i64,
        widen: impl FnOnce([T; N]) -> [T::Acc; N],
    ) -> [T::Acc; N] {
        if at[0] >= self.extent[0] || at[1] >= self.extent[1] {
            return [T::Acc::ZERO; N];
        }
        // An edge tile that shifts back reads old C also where the tile before stores C, and then does not store there.
        //
        // SAFETY: the caller of `new` promised that the element exists. For pairs, rows have an even length.
        widen(unsafe { self.source.load_vec_unordered(index) })
    }
}

impl<T: ElementC> Epilogue for Residual<T> {
    type Acc = T::Acc;
    /// The index of the row's first element.
    type Row = i64;
    type Columns = ();

    #[inline(always)]
    fn row(&self, row: i32) -> i64 {
        i64::from(row) * self.strides[0]
    }

    #[inline(always)]
    fn of_group(self, group: Group, to_c: i64) -> Self {
        Self {
            source: self.source.offset(to_c),
            extent: [group.rows, self.extent[1]],
            ..self
        }
    }

    #[inline(always)]
    fn apply(&self, acc: T::Acc, _: Option<T::Acc>, at: Coord) -> T::Acc {
        let index = i64::from(at[0]) * self.strides[0] + i64::from(at[1]) * self.strides[1];
        let [old] = self.read(at, index, |[old]| [old.widen()]);
        fma(self.beta, old, acc)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[T::Acc; 2]; N],
        pair: impl Fn(usize) -> Pair<i64, ()>,
    ) {
        // All reads are in flight before the first value is needed.
        let mut old = [[T::Acc::ZERO; 2]; N];
        for (nth, old) in old.iter_mut().enumerate() {
            let Pair { at, row, .. } = pair(nth);
            let index = row + i64::from(at[1]);
            *old = self.read(at, index, |[first, second]| [first.widen(), second.widen()]);
        }
        for (accs, old) in accs.iter_mut().zip(&old) {
            *accs = [
                fma(self.beta, old[0], accs[0]),
                fma(self.beta, old[1], accs[1]),
            ];
        }
    }
}
