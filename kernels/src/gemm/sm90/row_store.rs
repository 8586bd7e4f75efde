//! The store of a scattered C: a consumer's threads store rows of the product to rows of a table that indices name.

use core::marker::PhantomData;

use cutlet_device::collective::WorkTile;
use cutlet_device::tile::Major;
use cutlet_device::tma::TensorMap;
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{GlobalMut, Relaxed, uniform};
use cutlet_layout_core::{RowMajor, Tensor};

use super::config::{Acc, AtomFragment, Config};
use super::epilogue_subtiles::{EpilogueSubtiles, SubtileBuffer};
use super::kernel::{Atoms, Params, StoreRole};
use super::mainloop::m_atom;
use crate::gemm::args::Args;
use crate::gemm::config::Consumers;
use crate::gemm::epilogue::{Epilogue, EpilogueOperands};
use crate::gemm::named_rows::NamedRows;
use crate::gemm::scheduler::TileScheduler;
use crate::gemm::store::Store;

/// To a table: row `r` of the product, after the epilogue `Epi`, goes to the row that the index number `r` names.
///
/// # Safety
/// The table must have the columns of C. TMA could store it if `args` says so. There must be an index for each row of
/// the product, and an element for the report.
#[derive(Debug)]
pub struct ToRows<Epi>(PhantomData<Epi>);

impl<C: Config, Epi: Epilogue<Acc = Acc<C>>> StoreRole<C> for ToRows<Epi> {
    type Epilogue = Epi;

    #[inline(always)]
    fn prefetch_map(_: &TensorMap) {}

    #[inline(always)]
    fn store<'a, S: TileScheduler + 'a>(
        params: &'a Params<'a, C::Out, Epi>,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a {
        RowStore::<C, Epi, S>::new(params, scheduler, buffer, who)
    }
}

/// Stores the work tiles of a consumer to named rows.
struct RowStore<'a, C: Config, Epi, S> {
    table: GlobalMut<C::Out>,
    rows: NamedRows,
    args: &'a Args,
    epilogue: Epi,
    scheduler: S,
    buffer: SubtileBuffer<C>,
    consumer: WarpgroupIdx,
    thread: WarpgroupThread,
    /// Whether rows are stored by elements, because old ones are read, or 16 bytes cannot be stored at a time.
    updates: bool,
}

impl<'a, C, Epi, S> RowStore<'a, C, Epi, S>
where
    C: Config,
    Epi: Epilogue<Acc = Acc<C>>,
    S: TileScheduler,
{
    /// The store of a consumer.
    #[inline(always)]
    pub fn new(
        params: &Params<'a, C::Out, Epi>,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> Self {
        const {
            assert!(
                C::Consumers::M_ATOMS == 1
                    && C::MajorC::IS_K_MAJOR
                    && EpilogueOperands::<Epi>::ARE_NONE,
                "rows are stored by threads with registers for one M atom, and the epilogue reads nothing of its rows"
            );
        }
        let Params {
            c: table,
            args,
            epilogue,
            ..
        } = *params;
        // Read before the mainloop, so that the parameters are not reloaded after it.
        let updates = uniform(u32::from(args.tma.stores_c == 0 || epilogue.reads_old())) != 0;
        Self {
            table,
            rows: args.table.rows,
            args,
            epilogue,
            scheduler,
            buffer,
            consumer,
            thread,
            updates,
        }
    }
}

impl<C, Epi, S> Store for RowStore<'_, C, Epi, S>
where
    C: Config,
    Epi: Epilogue<Acc = Acc<C>>,
    S: TileScheduler,
{
    type Accumulators = <C::Consumers as Consumers>::Atoms<AtomFragment<C>>;
    type Prepared = ();

    #[inline(always)]
    fn prepare(&self, _: WorkTile) {}

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store(&self, work: WorkTile, mut accumulators: Self::Accumulators, (): ()) {
        let [m, n] = self.args.output.extent;
        let (first, count) = match S::IS_GROUPED {
            false => (0, m),
            true => {
                let group = self.scheduler.origin(work);
                (group.first_row, group.rows)
            }
        };
        let begin = self.scheduler.begin(work);
        let atom = (m_atom::<C>(self.consumer, 0), 0u32);
        // SAFETY: the launcher promises an index for each row, and the table. Indices may name a row twice, so stores
        // are relaxed. The other tensor is for coordinates alone.
        let (to, places) = unsafe {
            let inner = self.rows.matrix(first, [count, n]);
            (
                Tensor::new(Relaxed::of(self.table), inner),
                Tensor::new(self.table, RowMajor::new([count, n], self.rows.ld)),
            )
        };
        let to = to
            .local_tile::<C::UnitC>(begin)
            .local_tile::<C::AtomC>(atom);
        let places = places
            .local_tile::<C::UnitC>(begin)
            .local_tile::<C::AtomC>(atom);
        let subtiles = EpilogueSubtiles::<C>::new(self.buffer, places, [0, 0], self.thread);
        let accumulators = &mut accumulators.as_mut()[0];
        // SAFETY: the rows of the product are this consumer's, and so is the buffer. The launcher promises the report.
        unsafe {
            if self.updates {
                subtiles.update(&to, accumulators, self.epilogue);
            } else {
                if !self.epilogue.is_identity() {
                    subtiles.apply(accumulators, self.epilogue);
                }
                subtiles.scatter(&to, accumulators);
            }
            // Once for all tiles of a row.
            if begin.1 == 0 && self.rows.out_of_range.is_error() {
                subtiles.report_misses(&to, &self.rows, first);
            }
        }
    }

    #[inline(always)]
    fn drain(self) {}
}
