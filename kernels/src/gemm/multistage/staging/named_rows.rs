//! A K-major operand whose rows are those of a table that indices name.

use cutlet_device::tile::Major;
use cutlet_device::{ThreadGroup, ThreadIdx, ThreadsOf};
use cutlet_layout_core::{
    Engine, Gather, Partition, StaticLayout, Tensor, ThreadValue, tile_origin,
};

use super::GlobalMajor;
use crate::gemm::named_rows::{NamedRows, RowNumbers};

/// k is consecutive, in rows that indices name. A thread copies `VALUES` elements of a k-tile.
#[derive(Clone, Copy, Debug)]
pub struct NamedKMajor<const VALUES: usize>;

impl<const VALUES: usize> Major for NamedKMajor<VALUES> {
    const IS_K_MAJOR: bool = true;
}

/// A [`NamedKMajor`].
pub trait NamedMajor: GlobalMajor<Matrix = Gather<RowNumbers>> {
    /// Reports the rows that do not exist. The matrix begins with the index number `first`.
    ///
    /// # Safety
    /// As [`NamedRows::report_misses`].
    unsafe fn report_misses<E: Engine, C: ThreadValue>(
        rows: &NamedRows,
        first: i32,
        start: &Self::Start<E, C>,
    );
}

impl<const VALUES: usize> NamedMajor for NamedKMajor<VALUES> {
    #[inline(always)]
    unsafe fn report_misses<E: Engine, C: ThreadValue>(
        rows: &NamedRows,
        first: i32,
        start: &Self::Start<E, C>,
    ) {
        // SAFETY: as promised by the caller.
        unsafe { rows.report_misses(first, start.bound()) };
    }
}

impl<const VALUES: usize> GlobalMajor for NamedKMajor<VALUES> {
    type Matrix = Gather<RowNumbers>;
    type Values = [(); VALUES];
    /// The accesses to the k-tile at k = 0, so that each index is read once.
    type Start<E: Engine, C: ThreadValue> = Partition<E, Gather<RowNumbers>, C>;

    #[inline(always)]
    fn start<E: Engine, T: StaticLayout, C: ThreadValue>(
        matrix: &Tensor<E, Gather<RowNumbers>>,
        tile: u32,
        thread: ThreadIdx<impl ThreadGroup>,
    ) -> Partition<E, Gather<RowNumbers>, C> {
        matrix.local_tile::<T>((tile, 0u32)).partition::<C>(thread)
    }

    #[inline(always)]
    fn accesses<E: Engine, T: StaticLayout, C: ThreadValue>(
        start: &Partition<E, Gather<RowNumbers>, C>,
        _: &Tensor<E, Gather<RowNumbers>>,
        (_, k_tile): (u32, u32),
        _: ThreadIdx<ThreadsOf<C>>,
    ) -> Partition<E, Gather<RowNumbers>, C> {
        let [_, k] = tile_origin::<T>((0u32, k_tile));
        start.moved_along_rows(k)
    }
}
