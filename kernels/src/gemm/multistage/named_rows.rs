//! The kernel of gathered and scattered products: the rows of A, of C, or of both are those of a table that indices
//! name. One kernel serves all of them, because rows without indices stand for themselves.

use cutlet_device::collective::Group;
use cutlet_device::{Global, GlobalMut, Relaxed, ThreadGroup, ThreadIdx};
use cutlet_layout_core::{Fragment, Gather, Partition, RowMajor, Tensor, ThreadValue, Width};

use super::args::{MultistageArgs, NamedOperands};
use super::config::{Acc, Accumulators, Config, Element};
use super::kernel::{RowsOf, run};
use super::staging::{Matrix, NamedMajor, Source, Staging, Start};
use super::storage::Storage;
use super::store::{
    Fours, PassValues, Place, RowsOfPass, SubtileStorage, TileOfC, ToGlobal, each_pass,
};
use crate::gemm::epilogue::{ElementC, Epilogue};
use crate::gemm::named_rows::{NamedRows, RowNumbers};

/// The block's split of its tile of the product, as [`gemm`](super::gemm). The epilogue gets the old elements of C.
///
/// # Safety
/// As [`gemm`](super::gemm), where the tables are A and C. There must be an index for each row of the product, or none,
/// and an element for the report.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn named_rows_gemm<C, D, Epi>(
    thread: ThreadIdx<impl ThreadGroup>,
    a: Global<Element<C>>,
    b: Global<Element<C>>,
    c: GlobalMut<D>,
    partials: GlobalMut<Acc<C>>,
    args: MultistageArgs,
    epilogue: Epi,
    storage: Storage<C>,
) where
    C: Config<A: Staging<Source: NamedMajor>>,
    D: ElementC<Acc = Acc<C>>,
    Epi: Epilogue<Acc = Acc<C>>,
{
    let rows = args.rows;
    // SAFETY: as promised by the caller.
    unsafe { run::<C, D, Epi, _>(thread, a, b, c, partials, args, rows, epilogue, storage) };
}

impl<C, D> RowsOf<C, D> for NamedOperands
where
    C: Config<A: Staging<Source: NamedMajor>>,
    D: ElementC,
{
    /// The rows of a group are found by the numbers of their indices. A residual has its rows in order.
    #[inline(always)]
    fn strides(&self, args: &MultistageArgs) -> [i64; 2] {
        [0, args.strides_c[0]]
    }

    #[inline(always)]
    unsafe fn matrix_a(&self, args: &MultistageArgs, group: Group) -> Matrix<C::A> {
        let [_, _, k] = args.extents;
        // SAFETY: as promised by the caller.
        unsafe { self.a.matrix_of_any(group.first_row, [group.rows, k]) }
    }

    #[inline(always)]
    unsafe fn report_misses(&self, group: Group, column: u32, start: &Start<C::A>) {
        // Once for all tiles of a row.
        if column == 0 {
            // SAFETY: as promised by the caller.
            unsafe { Source::<C::A>::report_misses(&self.a, group.first_row, start) };
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store<Epi: Epilogue<Acc = Acc<C>>>(
        &self,
        accumulators: Accumulators<C::Product>,
        c: GlobalMut<D>,
        partials: GlobalMut<Acc<C>>,
        args: &MultistageArgs,
        (group, _): (Group, i64),
        epilogue: Epi,
        storage: SubtileStorage<C::Product>,
        place: Place<C::Product>,
    ) where
        D: ElementC<Acc = Acc<C>>,
    {
        let to = Destination {
            c,
            partials,
            rows: self.c,
            first_row: group.first_row,
            rows_of_product: group.rows,
        };
        // SAFETY: as promised by the caller.
        unsafe {
            each_pass::<C::Product>(accumulators, storage, place.thread, |pass, values| {
                to.store::<C, _>(args, epilogue, place, pass, values);
            });
        }
    }
}

/// Where the rows of a product go.
#[derive(Clone, Copy)]
struct Destination<D: ElementC> {
    c: GlobalMut<D>,
    partials: GlobalMut<D::Acc>,
    rows: NamedRows,
    /// The index number of the product's first row.
    first_row: i32,
    rows_of_product: i32,
}

impl<D: ElementC> Destination<D> {
    /// Applies the epilogue to a thread's accumulators of a pass and writes C, or writes the partials of a split.
    ///
    /// # Safety
    /// There must be memory for them, and an element for the report.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store<C, Epi>(
        &self,
        args: &MultistageArgs,
        epilogue: Epi,
        place: Place<C::Product>,
        pass: (u32, u32),
        values: Fragment<Acc<C>, PassValues<C::Product>>,
    ) where
        C: Config,
        D: ElementC<Acc = Acc<C>>,
        Epi: Epilogue<Acc = Acc<C>>,
    {
        let Place {
            row,
            column,
            split,
            thread,
        } = place;
        let [_, n, _] = args.extents;
        let extent = [self.rows_of_product, n];
        // SAFETY: as promised by the caller. Indices may name a row twice, so stores are relaxed.
        let (partials, c) = unsafe {
            let partials = self.partials.offset(i64::from(split) * args.split_stride);
            let named = self.rows.matrix_of_any(self.first_row, extent);
            (
                Tensor::new(partials, RowMajor::new(extent, args.partial_ld)),
                Tensor::new(Relaxed::of(self.c), named),
            )
        };
        let tile = (row, column);
        if args.partial_ld > 0 {
            partials
                .local_tile::<TileOfC<C>>(tile)
                .local_tile::<RowsOfPass<C>>(pass)
                .partition_partial::<ToGlobal<C::Product, Fours<C::Product>>>(thread)
                .store(&values);
            return;
        }
        let c = c
            .local_tile::<TileOfC<C>>(tile)
            .local_tile::<RowsOfPass<C>>(pass);
        // SAFETY: the caller promises an element for the report.
        unsafe {
            if args.in_fours != 0 {
                let to = c.partition_partial::<ToGlobal<C::Product, Fours<C::Product>>>(thread);
                finish(epilogue, &values, &to);
                self.report_misses(column, &to);
            } else {
                let to = c.partition_partial::<ToGlobal<C::Product, Width<1>>>(thread);
                finish(epilogue, &values, &to);
                self.report_misses(column, &to);
            }
        }
    }

    /// Reports rows that do not exist, once for all tiles of a row.
    ///
    /// # Safety
    /// There must be an element for the report.
    #[inline(always)]
    unsafe fn report_misses<V: ThreadValue>(&self, column: u32, to: &NamedElements<D, V>) {
        if column == 0 {
            // SAFETY: as promised by the caller.
            unsafe { self.rows.report_misses(self.first_row, to.bound()) };
        }
    }
}

/// A thread's accesses to rows of C.
type NamedElements<D, V> = Partition<Relaxed<D>, Gather<RowNumbers>, V>;

/// Applies the epilogue to accumulators and stores them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn finish<Epi: Epilogue, D: ElementC<Acc = Epi::Acc>, V: ThreadValue>(
    epilogue: Epi,
    values: &Fragment<Epi::Acc, V::Val>,
    to: &NamedElements<D, V>,
) {
    let reads_old = epilogue.reads_old();
    let mut old = Fragment::<D, V::Val>::filled(D::default());
    if reads_old {
        to.load_into(&mut old, 0);
    }
    to.store_with(|v| {
        let old = reads_old.then(|| old.get(v).widen());
        D::narrow(epilogue.apply(values.get(v), old, to.bound().coordinate(v)))
    });
}
