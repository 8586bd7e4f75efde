//! The store: a consumer's accumulators go to C, to partial output, or through the fixup.

use core::marker::PhantomData;

use cutlet_device::collective::{Fixup, WorkTile};
use cutlet_device::sm90::AccumulatorLayout;
use cutlet_device::tile::Major;
use cutlet_device::tma::{TensorMap, prefetch_tensor_map, tma_store_wait_read};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{GlobalMut, lane_idx, uniform};
use cutlet_layout_core::{RowMajor, Tensor, tile_origin};

use super::config::{Acc, AtomFragment, Config, Values, runs_fixup, writes_partials};
use super::epilogue_subtiles::{AtomRows, EpilogueSubtiles, StoreMajor, SubtileBuffer};
use super::kernel::{Atoms, Params, StoreRole};
use super::mainloop::m_atom;
use super::partial_output::{Place, partials_of, write_partials};
use crate::gemm::args::Args;
use crate::gemm::config::{Consumers, TileShape};
use crate::gemm::epilogue::{Epilogue, EpilogueOperands};
use crate::gemm::scheduler::{GroupOrigin, TileScheduler, WARP_ROWS};
use crate::gemm::store::Store;

/// To C, after the epilogue `Epi`.
#[derive(Debug)]
pub struct ToMatrix<Epi>(PhantomData<Epi>);

impl<C: Config, Epi: Epilogue<Acc = Acc<C>>> StoreRole<C> for ToMatrix<Epi> {
    type Epilogue = Epi;

    #[inline(always)]
    fn prefetch_map(map_c: &TensorMap) {
        prefetch_tensor_map(map_c);
    }

    #[inline(always)]
    fn store<'a, S: TileScheduler + 'a>(
        params: &'a Params<'a, C::Out, Epi>,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a {
        TileStore::<C, Epi, S>::new(*params, scheduler, buffer, who)
    }
}

/// Stores the work tiles of a consumer.
pub(super) struct TileStore<'a, C: Config, Epi, S> {
    c: GlobalMut<C::Out>,
    map: &'a TensorMap,
    args: &'a Args,
    epilogue: Epi,
    scheduler: S,
    buffer: SubtileBuffer<C>,
    fixup: Fixup<Values<C>, Acc<C>>,
    consumer: WarpgroupIdx,
    thread: WarpgroupThread,
    /// Whether C is updated by threads, because old elements are read, or TMA cannot store it.
    updates: bool,
    /// Whether the epilogue leaves accumulators as they are. Only asked where threads store C themselves.
    is_identity: bool,
}

/// Where a tile of C begins, in units of the scheduler.
type TileOfC<C> = Tensor<GlobalMut<<C as Config>::Out>, RowMajor, <C as Config>::UnitC>;

impl<'a, C, Epi, S> TileStore<'a, C, Epi, S>
where
    C: Config,
    Epi: Epilogue<Acc = Acc<C>>,
    S: TileScheduler,
{
    /// Whether a consumer's threads store C themselves instead of TMA. A consumer that is alone in its block mostly has
    /// one tile, and nothing to multiply while TMA stores.
    const THREADS_STORE: bool =
        C::Consumers::WARPGROUPS == 1 && C::MajorC::IS_K_MAJOR && EpilogueOperands::<Epi>::ARE_NONE;
    /// Whether the first M atom's operands are read before the mainloop, too. Consumers of several M atoms have no
    /// registers for numbers of f32 meanwhile.
    const READS_EARLY: bool =
        C::Consumers::M_ATOMS == 1 || size_of::<Epi::Columns>() < size_of::<[f32; 2]>();

    /// The store of a consumer.
    #[inline(always)]
    pub fn new(
        params: Params<'a, C::Out, Epi>,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> Self {
        let Params {
            map_c: map,
            c,
            workspace,
            args,
            epilogue,
            ..
        } = params;
        let can_update = const {
            C::Consumers::M_ATOMS == 1
                && C::MajorC::IS_K_MAJOR
                && (EpilogueOperands::<Epi>::ARE_NONE || S::IS_GROUPED)
        };
        // Read before the mainloop, so that the parameters are not reloaded after it.
        let updates =
            can_update && uniform(u32::from(args.tma.stores_c == 0 || epilogue.reads_old())) != 0;
        let is_identity = Self::THREADS_STORE && uniform(u32::from(epilogue.is_identity())) != 0;
        let arrivals = args.output.arrivals;
        Self {
            c,
            map,
            args,
            epilogue,
            scheduler,
            buffer,
            fixup: Fixup::new(partials_of(workspace), arrivals, C::M_ATOMS),
            consumer,
            thread,
            updates,
            is_identity,
        }
    }

    /// Elements from the first C to the group's.
    #[inline(always)]
    fn to_c(&self, group: GroupOrigin) -> i64 {
        group.to_c + i64::from(group.first_row) * self.args.output.ldc
    }

    /// How many of the running warp's rows of an M atom are the group's, if TMA would overwrite others, which are the
    /// next group's. The warp's threads store such rows themselves.
    #[inline(always)]
    fn last_rows(&self, atom: &AtomRows<C>, group: GroupOrigin) -> Option<i32> {
        let threads_can = const { C::Consumers::M_ATOMS == 1 && !Self::THREADS_STORE };
        let own = atom.local_tile::<C::UnitC>((self.thread.warp(), 0u32));
        let left = uniform(own.extent()[0] - own.origin()[0]);
        (threads_can && group.is_followed && left < WARP_ROWS as i32).then_some(left)
    }

    /// The rows of C that the consumer's `nth` M atom has of a tile.
    #[inline(always)]
    fn atom_rows(&self, tile: &TileOfC<C>, nth: usize) -> AtomRows<C> {
        tile.local_tile::<C::AtomC>((m_atom::<C>(self.consumer, nth), 0u32))
    }

    /// What the epilogue, which is that of the tile's group, needs of an M atom's rows and columns.
    #[inline(always)]
    fn atom_operands(&self, epilogue: Epi, tile: &TileOfC<C>, nth: usize) -> EpilogueOperands<Epi> {
        if EpilogueOperands::<Epi>::ARE_NONE {
            return EpilogueOperands::none();
        }
        let places = self
            .atom_rows(tile, nth)
            .partition::<AccumulatorLayout<C::Mma>>(self.thread);
        EpilogueOperands::read(epilogue, const { C::Tile::N / 8 }, |v| {
            places.bound().coordinate(v)
        })
    }

    /// Whether partial output is written, or the fixup runs. One branch for both: most launches do neither, and wait
    /// for the answer. Groups have neither.
    #[inline(always)]
    fn has_partials(&self, work: WorkTile) -> bool {
        if S::IS_GROUPED {
            return false;
        }
        let (writes_partials, runs_fixup) =
            const { (writes_partials::<Epi>(), runs_fixup::<C, Epi>()) };
        let has_splits = runs_fixup && work.share.count > 1;
        has_splits | (writes_partials && self.args.output.partial.is_some())
    }

    /// Writes an M atom's accumulators as partial output.
    ///
    /// # Safety
    /// As [`Store::store`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write_partials(
        &self,
        work: WorkTile,
        nth: usize,
        accumulators: &mut AtomFragment<C>,
    ) {
        let (row, column) = self.scheduler.begin(work);
        let [tile_rows, _] = C::TILE_IN_UNITS;
        let place = Place {
            tile: (work.split_row * tile_rows + row, column),
            atom: (m_atom::<C>(self.consumer, nth), 0),
            thread: self.thread,
        };
        // SAFETY: the launcher promises room for the partial output. These rows are this consumer's, or another tile's
        // whose accumulators are the same.
        unsafe {
            write_partials::<C>(
                accumulators,
                self.epilogue,
                partials_of(self.c),
                &self.args.output,
                place,
            );
        }
    }

    /// Adds an M atom's accumulators to those of other splits. Returns whether they are complete.
    ///
    /// # Safety
    /// As [`Store::store`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn fix_up(
        &self,
        work: WorkTile,
        nth: usize,
        accumulators: &mut AtomFragment<C>,
    ) -> bool {
        let m_atom = (work.tile, m_atom::<C>(self.consumer, nth));
        // SAFETY: the launcher promises room for the partials of each share of each M atom.
        unsafe {
            self.fixup
                .add(m_atom, work.share, self.thread, accumulators)
        }
    }

    /// Stores the accumulators of the consumer's `nth` M atom.
    ///
    /// # Safety
    /// As [`Store::store`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_atom(
        &self,
        work: WorkTile,
        nth: usize,
        accumulators: &mut AtomFragment<C>,
        prepared: (TileOfC<C>, EpilogueOperands<Epi>),
    ) {
        // SAFETY: as promised by the caller.
        unsafe {
            if self.has_partials(work) {
                if const { writes_partials::<Epi>() } && self.args.output.partial.is_some() {
                    return self.write_partials(work, nth, accumulators);
                }
                if const { runs_fixup::<C, Epi>() } && !self.fix_up(work, nth, accumulators) {
                    return;
                }
            }
            self.write(work, nth, accumulators, prepared);
        }
    }

    /// Applies the epilogue to an M atom's accumulators and writes C.
    ///
    /// # Safety
    /// As [`Store::store`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write(
        &self,
        work: WorkTile,
        nth: usize,
        accumulators: &mut AtomFragment<C>,
        (tile, operands): (TileOfC<C>, EpilogueOperands<Epi>),
    ) {
        let group = S::IS_GROUPED.then(|| self.scheduler.origin(work));
        let epilogue = match group {
            None => self.epilogue,
            Some(group) => self.epilogue.of_group(work.group, self.to_c(group)),
        };
        let own = tile_origin::<C::TileC>((work.row, work.column));
        let rows = self.atom_rows(&tile, nth);
        let subtiles = EpilogueSubtiles::<C>::new(self.buffer, rows, own, self.thread);
        // SAFETY: the launcher promises that the map and C's memory are C. The tile's own of these rows are this
        // consumer's, and so is the buffer.
        unsafe {
            if self.updates {
                if !EpilogueOperands::<Epi>::ARE_NONE || epilogue.reads_old() {
                    subtiles.update(&rows, accumulators, epilogue);
                } else {
                    if !epilogue.is_identity() {
                        subtiles.apply(accumulators, epilogue);
                    }
                    subtiles.store_unaligned(accumulators, self.args.output.ldc);
                }
            } else if let Some(left) = group.and_then(|group| self.last_rows(&rows, group)) {
                if left > 0 {
                    subtiles.after_tma().update(&rows, accumulators, epilogue);
                }
            } else {
                let operands = match nth {
                    0 if Self::READS_EARLY => operands,
                    _ => self.atom_operands(epilogue, &tile, nth),
                };
                if Self::THREADS_STORE {
                    if !self.is_identity {
                        subtiles.apply(accumulators, epilogue);
                    }
                    C::MajorC::store(&subtiles, accumulators);
                } else {
                    subtiles.store_by_tma(self.map, accumulators, epilogue, operands, group);
                }
            }
        }
    }
}

impl<C, Epi, S> Store for TileStore<'_, C, Epi, S>
where
    C: Config,
    Epi: Epilogue<Acc = Acc<C>>,
    S: TileScheduler,
{
    type Accumulators = <C::Consumers as Consumers>::Atoms<AtomFragment<C>>;
    /// The tile of C, and the operands of the first M atom.
    type Prepared = (TileOfC<C>, EpilogueOperands<Epi>);

    #[inline(always)]
    fn prepare(&self, work: WorkTile) -> Self::Prepared {
        let output = &self.args.output;
        let (c, extent, epilogue) = match S::IS_GROUPED {
            false => (self.c, output.extent, self.epilogue),
            true => {
                let to_c = self.to_c(self.scheduler.origin(work));
                (
                    self.c.offset(to_c),
                    [work.group.rows, output.extent[1]],
                    self.epilogue.of_group(work.group, to_c),
                )
            }
        };
        // SAFETY: the launcher promises that C is there.
        let c = unsafe { Tensor::new(c, RowMajor::new(extent, output.ldc)) };
        let tile = c.local_tile::<C::UnitC>(self.scheduler.begin(work));
        let operands = match Self::READS_EARLY {
            true => self.atom_operands(epilogue, &tile, 0),
            false => EpilogueOperands::none(),
        };
        (tile, operands)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store(
        &self,
        work: WorkTile,
        mut accumulators: Self::Accumulators,
        prepared: Self::Prepared,
    ) {
        for (nth, accumulators) in accumulators.as_mut().iter_mut().enumerate() {
            // SAFETY: as promised by the caller.
            unsafe { self.store_atom(work, nth, accumulators, prepared) };
        }
    }

    #[inline(always)]
    fn drain(self) {
        // TMA reads it.
        if !Self::THREADS_STORE && lane_idx().is_first() {
            tma_store_wait_read::<0>();
        }
    }
}
