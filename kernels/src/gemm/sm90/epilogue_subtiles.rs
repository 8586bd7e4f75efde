//! The way of a consumer's accumulators to C: in epilogue subtiles, each through shared memory.
//!
//! Usually TMA takes the subtiles from there while the block goes on: [`EpilogueSubtiles::store_by_tma`], all unrolled.
//! A consumer that is alone in its block mostly has one tile, and nothing to go on with: its threads store the subtiles
//! themselves, which ends sooner: [`StoreMajor::store`]. Where TMA cannot store C, they store words of 4 bytes:
//! [`EpilogueSubtiles::store_unaligned`]. Where old C is read, [`EpilogueSubtiles::update`] does all of it. That is a
//! loop at run time, because it is used less, and unrolled it would be half of each kernel's code. Registers have no
//! index at run time, so each turn of the loop works on the first ones and then moves the rest up.
//!
//! This file and `config` refer to each other: a configuration's major of C is a [`StoreMajor`], which stores the
//! subtiles of a configuration.

use core::marker::PhantomData;

use cutlet_device::collective::UnalignedRows;
use cutlet_device::sm90::{
    AccumulatorLayout, StoredAccumulator, WarpgroupThreads, store_accumulator,
};
use cutlet_device::tile::{
    KMajor, Major, MnMajor, SharedTile, TmaLayout, swizzle_source, tile_layout,
};
use cutlet_device::tma::{TensorMap, TmaBox, tma_store_commit, tma_store_wait_read};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{GlobalMut, Shared, SharedStorage, fence_async_shared, lane_idx, sync_warp};
use cutlet_layout_core::{
    AccessWidth, Coord, E, EngineMut, Fragment, FragmentLayout, Gather, L, Layout, MatrixInner,
    RowMajor, StaticLayout, StaticSwizzle, Tensor, ThreadValue, Tv, WgmmaC, each, tiles,
};

use super::config::{Acc, AtomFragment, Config};
use crate::gather::Indices;
use crate::gemm::config::{Consumers, TileShape};
use crate::gemm::epilogue::{self, ElementC, Epilogue, EpilogueOperands};
use crate::gemm::named_rows::NamedRows;
use crate::gemm::scheduler::{GroupOrigin, WARP_ROWS};

/// Columns of a consumer's subtiles that have room at a time, in `left` bytes of shared memory for all consumers: 128,
/// or half of that as often as it takes, but a subtile at least.
pub(super) const fn columns_that_fit<C: Config>(left: usize) -> usize {
    let mut columns = 128;
    while buffer_bytes::<C>(columns) > left && columns > C::EPI_N {
        columns /= 2;
    }
    columns
}

/// Bytes of shared memory of all consumers' subtiles, of `columns` columns each.
pub(super) const fn buffer_bytes<C: Config>(columns: usize) -> usize {
    C::Consumers::WARPGROUPS * 64 * columns * size_of::<C::Out>()
}

/// Shared memory for a consumer's subtiles on their way to C.
#[derive(Clone, Copy)]
pub struct SubtileBuffer<C: Config>(Shared<C::Out>);

/// As shared storage it is all consumers' buffers, and the first one's buffer.
impl<C: Config> SharedStorage for SubtileBuffer<C> {
    const BYTES: u32 = buffer_bytes::<C>(C::STAGED_COLUMNS) as u32;
    const ALIGN: u32 = 1024;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self(Shared::from_address(address))
    }
}

impl<C: Config> SubtileBuffer<C> {
    /// A consumer's buffer, where this one is the first consumer's.
    #[inline(always)]
    pub fn of(self, consumer: WarpgroupIdx) -> Self {
        let elements = consumer.own(64 * C::STAGED_COLUMNS, 0);
        Self(self.0.offset(i64::from(elements)))
    }

    /// The same memory for a configuration of half as many columns, whose buffers must be alike.
    #[inline(always)]
    pub fn as_half<H: Config<Out = C::Out>>(self) -> SubtileBuffer<H> {
        SubtileBuffer(self.0)
    }
}

/// How a subtile lies in shared memory: in lines along rows, or along columns where C is column-major. A line is a row
/// of the subtile, or the part of a column that a warp has.
#[derive(Clone, Copy)]
struct SubtileLayout<C>(PhantomData<C>);

/// The swizzle of its lines.
#[derive(Clone, Copy)]
struct SubtileSwizzle<C>(PhantomData<C>);

impl<C: Config> StaticLayout for SubtileLayout<C> {
    const LAYOUT: Layout =
        tile_layout::<C::Out>(Self::IS_K_MAJOR, [Self::MN, Self::K], Self::SWIZZLE_BYTES);
}

impl<C: Config> TmaLayout for SubtileLayout<C> {
    const MN: usize = 64;
    const K: usize = C::EPI_N;
    const SWIZZLE_BYTES: usize = size_of::<C::Out>()
        * if C::MajorC::IS_K_MAJOR {
            assert!(
                C::EPI_N >= 16,
                "a tile of a row-major C has a multiple of 16 columns"
            );
            C::EPI_N
        } else {
            WARP_ROWS
        };
    const IS_K_MAJOR: bool = C::MajorC::IS_K_MAJOR;
    type Swizzle = SubtileSwizzle<C>;
}

impl<C: Config> StaticSwizzle for SubtileSwizzle<C> {
    const SOURCE: u32 = swizzle_source::<C::Out>(SubtileLayout::<C>::SWIZZLE_BYTES);
    const SHIFT: u32 = 3;
}

/// A subtile in shared memory.
type SharedSubtile<C> = SharedTile<<C as Config>::Out, SubtileLayout<C>, SubtileSwizzle<C>>;

/// The box of C's tensor map: a warp's rows of a subtile.
pub(super) const fn tma_box<C: Config>() -> TmaBox {
    SharedSubtile::<C>::tile_box(4)
}

/// How the subtiles lie in shared memory that are there at a time, one behind the other, where C is row-major: as one
/// tile.
#[derive(Clone, Copy)]
struct StagedLayout<C>(PhantomData<C>);

impl<C: Config> StaticLayout for StagedLayout<C> {
    const LAYOUT: Layout = tile_layout::<C::Out>(true, [Self::MN, Self::K], Self::SWIZZLE_BYTES);
}

impl<C: Config> TmaLayout for StagedLayout<C> {
    const MN: usize = 64;
    /// As many columns as have room. If the tile has fewer, those that a warp reads as words at a time.
    const K: usize = match C::Tile::N.next_multiple_of(64) {
        columns if columns < C::STAGED_COLUMNS => columns,
        _ => C::STAGED_COLUMNS,
    };
    const SWIZZLE_BYTES: usize = SubtileLayout::<C>::SWIZZLE_BYTES;
    const IS_K_MAJOR: bool = true;
    type Swizzle = SubtileSwizzle<C>;
}

/// The columns that [`EpilogueSubtiles::update`] works on in a turn.
const TURN: usize = 16;
/// How a turn's elements lie in shared memory: in lines of a row each.
#[derive(Clone, Copy)]
struct TurnLayout<C>(PhantomData<C>);

/// The swizzle of its lines.
#[derive(Clone, Copy)]
struct TurnSwizzle<C>(PhantomData<C>);

impl<C: Config> StaticLayout for TurnLayout<C> {
    const LAYOUT: Layout = tile_layout::<C::Out>(true, [64, TURN], TURN * size_of::<C::Out>());
}

impl<C: Config> StaticSwizzle for TurnSwizzle<C> {
    const SOURCE: u32 = swizzle_source::<C::Out>(TURN * size_of::<C::Out>());
    const SHIFT: u32 = 3;
}

/// The rows and columns of a turn.
type TurnC = (E<64, 1, 0>, E<TURN, 1, 1>);
/// Which accumulators of a turn are whose: the first of those that a thread has of all columns.
type TurnOwners<const WIDTH: usize = 1> = Tv<WarpgroupThreads, TurnValues, WIDTH>;
/// The values of [`TurnOwners`].
type TurnValues = <WgmmaC<{ TURN / 8 }> as ThreadValue>::Val;
/// Who moves what of a turn between shared memory and C: a warp two lines at a time, of any alignment.
type TurnLines = Tv<L!((16, 2, 4):(1@1, 4@0, 16@0)), L!((4, 2):(1@0, 8@0))>;

/// The first element of rows, for each lane.
type FirstElement = Tv<L!(32:0@0), L!(1:1@1)>;

/// Who stores what of a subtile: each thread 16 bytes of a row, neighbours side by side, so that a warp stores whole
/// rows at once.
#[derive(Clone, Copy)]
struct Rows<C>(PhantomData<C>);

impl<C: Config> Rows<C> {
    /// Elements of 16 bytes.
    const VECTOR: usize = <C::Out as StoredAccumulator>::Vector::VALUES;
    /// Rows that a warp stores at a time.
    const AT_ONCE: usize = 32 * Self::VECTOR / C::EPI_N;
}

impl<C: Config> ThreadValue for Rows<C> {
    type Thr = RowThreads<C>;
    type Val = RowValues<C>;
    type Width = <C::Out as StoredAccumulator>::Vector;
}

/// The threads of [`Rows`].
#[derive(Clone, Copy)]
struct RowThreads<C>(PhantomData<C>);

impl<C: Config> StaticLayout for RowThreads<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(
            (C::EPI_N / Rows::<C>::VECTOR) as i64,
            Rows::<C>::VECTOR as i64,
            1,
        ),
        Layout::static_basis_mode(Rows::<C>::AT_ONCE as i64, 1, 0),
        Layout::static_basis_mode(4, WARP_ROWS as i64, 0),
    ]);
}

/// The values of [`Rows`]: 16 bytes of a row, and so on through the warp's rows. They are never in a fragment.
#[derive(Clone, Copy)]
struct RowValues<C>(PhantomData<C>);

impl<C: Config> StaticLayout for RowValues<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(Rows::<C>::VECTOR as i64, 1, 1),
        Layout::static_basis_mode(
            (WARP_ROWS / Rows::<C>::AT_ONCE) as i64,
            Rows::<C>::AT_ONCE as i64,
            0,
        ),
    ]);
}

impl<C: Config> FragmentLayout for RowValues<C> {
    type Storage = [(); 32];
}

/// The rows of C that an M atom has.
pub(super) type AtomRows<C> = Tensor<GlobalMut<<C as Config>::Out>, RowMajor, <C as Config>::AtomC>;

/// The epilogue subtiles of an M atom.
#[derive(Clone, Copy)]
pub struct EpilogueSubtiles<C: Config> {
    /// Room for those on their way, the consumer's own.
    buffer: SubtileBuffer<C>,
    /// Where they go. TMA uses the coordinates alone.
    rows: AtomRows<C>,
    /// Where this tile's own rows and columns begin. The tile before stores those before them.
    own: Coord,
    /// Who is running.
    thread: WarpgroupThread,
}

impl<C: Config> EpilogueSubtiles<C> {
    /// Subtiles that have room in the buffer.
    const STAGED: usize = C::STAGED_COLUMNS / C::EPI_N;

    /// The subtiles of `rows`, on their way through `buffer`, of a tile whose own rows and columns begin at `own`.
    #[inline(always)]
    pub(super) fn new(
        buffer: SubtileBuffer<C>,
        rows: AtomRows<C>,
        own: Coord,
        thread: WarpgroupThread,
    ) -> Self {
        Self {
            buffer,
            rows,
            own,
            thread,
        }
    }

    /// Applies the epilogue, where it does not read old C.
    #[inline(always)]
    pub(super) fn apply<Epi: Epilogue<Acc = Acc<C>>>(
        &self,
        accumulators: &mut AtomFragment<C>,
        epilogue: Epi,
    ) {
        let places = self
            .rows
            .partition::<AccumulatorLayout<C::Mma>>(self.thread);
        epilogue::apply(epilogue, accumulators, |v| places.bound().coordinate(v));
    }

    /// The first of the running warp's subtiles that is this tile's own, not the tile's before.
    #[inline(always)]
    fn first_own(&self) -> i32 {
        let begin = self
            .rows
            .local_tile::<C::UnitC>((self.thread.warp(), 0u32))
            .origin();
        match begin[0] >= self.own[0] {
            true => (self.own[1] - begin[1]) / C::EPI_N as i32,
            false => i32::MAX,
        }
    }

    /// `C = epilogue(accumulators)` by TMA and this map, where the epilogue does not read old C. The stores may still
    /// be under way afterwards. In a group, `rows` are those of its C.
    ///
    /// # Safety
    /// The map must describe C, with boxes of [`tma_box`]. No other thread may use the rows and the buffer.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) unsafe fn store_by_tma<Epi: Epilogue<Acc = Acc<C>>>(
        &self,
        map: &TensorMap,
        accumulators: &mut AtomFragment<C>,
        epilogue: Epi,
        operands: EpilogueOperands<Epi>,
        group: Option<GroupOrigin>,
    ) {
        const {
            assert!(
                EpilogueOperands::<Epi>::ARE_NONE || C::EPI_N.is_multiple_of(epilogue::COLUMNS),
                "an epilogue that reads operands needs tiles with a multiple of 32 columns"
            );
        }
        if EpilogueOperands::<Epi>::ARE_NONE && !epilogue.is_identity() {
            self.apply(accumulators, epilogue);
        }
        let places = || {
            self.rows
                .partition::<AccumulatorLayout<C::Mma>>(self.thread)
        };
        let at = |v| places().bound().coordinate(v);
        let to = |subtile: u32| self.rows.local_tile::<C::SubtileC>((0u32, subtile));
        // The tile before stores its own subtiles. Here they go below C, where TMA stores nothing: a branch around the
        // store would take longer for all others.
        let below = self.rows.extent()[0];
        let first_own = self.first_own();
        for subtile in 0..const { C::Tile::N / C::EPI_N } {
            if !EpilogueOperands::<Epi>::ARE_NONE {
                for part in 0..C::EPI_N / epilogue::COLUMNS {
                    let nth = subtile * (C::EPI_N / epilogue::COLUMNS) + part;
                    operands.apply(epilogue, accumulators, nth, at);
                }
            }
            let tile = self.shared(subtile);
            // The tile before may have ended with any place of the buffer: a tile begins when all are free.
            if lane_idx().is_first() {
                match (subtile, Self::STAGED) {
                    (0, _) | (_, 1) => tma_store_wait_read::<0>(),
                    (_, 2) => tma_store_wait_read::<1>(),
                    (_, 4) => tma_store_wait_read::<3>(),
                    (_, 8) => tma_store_wait_read::<7>(),
                    (_, 16) => tma_store_wait_read::<15>(),
                    _ => unreachable!("a subtile has 8, 16, 32 or 64 columns"),
                }
            }
            sync_warp();
            // SAFETY: each warp touches only the 16 rows whose accumulators it has; the rest as promised by the caller.
            unsafe {
                store_accumulator::<C::Mma, _, _, _>(
                    tile,
                    0u32,
                    subtile,
                    self.thread,
                    accumulators,
                );
                fence_async_shared();
                sync_warp();
                if lane_idx().is_first() {
                    let [row, column] = to(subtile as u32).origin();
                    let is_own = subtile as i32 >= first_own;
                    let to = [if is_own { row } else { below }, column];
                    match group {
                        None => tile.store_part::<4, 2>(self.thread.warp(), map, to),
                        Some(group) => {
                            let [inner, outer] = group.nth[2];
                            let to = [to[0] + group.first_row, to[1], inner, outer];
                            tile.store_part::<4, 4>(self.thread.warp(), map, to);
                        }
                    }
                    tma_store_commit();
                }
            }
        }
    }

    /// A subtile's place in shared memory, where others have been before.
    #[inline(always)]
    fn shared(&self, subtile: usize) -> SharedSubtile<C> {
        let start = subtile % Self::STAGED * const { 64 * C::EPI_N };
        SharedTile::from_shared(self.buffer.0.offset(start as i64))
    }

    /// The same subtiles for [`update`](Self::update), where TMA has stored others from the buffer before. The running
    /// warp then uses only the part of the buffer from which its own rows were stored.
    #[inline(always)]
    pub(super) fn after_tma(self) -> Self {
        if lane_idx().is_first() {
            tma_store_wait_read::<0>();
        }
        sync_warp();
        let between = const { WARP_ROWS as i64 * (C::EPI_N as i64 - TURN as i64) };
        let SubtileBuffer(buffer) = self.buffer;
        let to_own = i64::from(self.thread.warp()) * between;
        Self {
            buffer: SubtileBuffer(buffer.offset(to_own)),
            ..self
        }
    }

    /// `to = epilogue(accumulators, to)` without TMA, where `to` is memory for the rows. Old elements are read only if
    /// the epilogue reads them.
    ///
    /// # Safety
    /// No other thread may use `to`, unless its engine allows it, and the buffer.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) unsafe fn update<Epi: Epilogue<Acc = Acc<C>>, Eng, I>(
        &self,
        to: &Tensor<Eng, I, C::AtomC>,
        accumulators: &mut AtomFragment<C>,
        epilogue: Epi,
    ) where
        Eng: EngineMut<Element = C::Out>,
        I: MatrixInner,
    {
        let Self { rows, thread, .. } = *self;
        let SubtileBuffer(buffer) = self.buffer;
        let [_, inside] = tiles::<TurnC>([64, rows.extent()[1] - rows.origin()[1]]);
        let turns = inside.min(const { (C::Tile::N / TURN) as u32 });
        let tile_c = |turn: u32| to.local_tile::<TurnC>((0u32, turn));
        let old_of = |turn: u32| {
            tile_c(turn)
                .partition::<TurnLines>(thread)
                .load(C::Out::default())
        };
        let tile = SharedTile::<_, TurnLayout<C>, TurnSwizzle<C>>::from_shared(buffer);

        let mut next_old = Fragment::filled(C::Out::default());
        if epilogue.reads_old() {
            next_old = old_of(0);
        }
        for turn in 0..turns {
            // SAFETY: each warp touches only the 16 rows whose accumulators it has, and its lanes meet between one's
            // accesses and another's; the rest as promised by the caller.
            unsafe {
                let in_shared = tile.tensor();
                let lines = in_shared.partition::<TurnLines>(thread);
                let places = rows
                    .local_tile::<TurnC>((0u32, turn))
                    .partition::<TurnOwners>(thread);
                let at = |v| places.bound().coordinate(v);
                if epilogue.reads_old() {
                    // C is read in lines. Old elements meet their accumulators in shared memory.
                    lines.store(&next_old);
                    sync_warp();
                    in_shared
                        .partition::<TurnOwners<2>>(thread)
                        .for_each(|v, old| {
                            let old = Some(old.widen());
                            accumulators.set(v, epilogue.apply(accumulators.get(v), old, at(v)));
                        });
                    if turn + 1 < turns {
                        next_old = old_of(turn + 1);
                    }
                    sync_warp();
                } else if !epilogue.is_identity() {
                    each::<TurnValues>(|v| {
                        accumulators.set(v, epilogue.apply(accumulators.get(v), None, at(v)))
                    });
                }
                store_accumulator::<C::Mma, _, _, _>(tile, 0u32, 0, thread, accumulators);
                sync_warp();
                let to = tile_c(turn).partition::<TurnLines>(thread);
                to.store(&lines.load(C::Out::default()));
                sync_warp();
            }
            *accumulators = accumulators.moved_up(TurnValues::SIZE);
        }
    }

    /// `C = accumulators`, after the epilogue, in words of 4 bytes. C's rows may begin anywhere, and are `ld` elements
    /// apart.
    ///
    /// # Safety
    /// No other thread may use the rows and the buffer.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) unsafe fn store_unaligned(&self, accumulators: &AtomFragment<C>, ld: i64) {
        let count = const { C::Tile::N / C::EPI_N };
        for first in (0..count).step_by(Self::STAGED) {
            let staged = first..(first + Self::STAGED).min(count);
            let own = self
                .rows
                .local_tile::<C::SubtileC>((0u32, first as u32))
                .local_tile::<C::UnitC>((self.thread.warp(), 0u32));
            let [rows, columns] =
                [0, 1].map(|direction| own.extent()[direction] - own.origin()[direction]);
            let to = UnalignedRows {
                first: own
                    .partition_broadcast::<FirstElement>(lane_idx())
                    .engine_at(0),
                ld,
                extent: [rows, columns.min((staged.len() * C::EPI_N) as i32)],
            };
            // SAFETY: each warp touches only the 16 rows whose accumulators it has, and its lanes meet between one's
            // accesses and another's; the rest as promised by the caller.
            unsafe {
                for nth in staged {
                    let tile = self.shared(nth);
                    store_accumulator::<C::Mma, _, _, _>(
                        tile,
                        0u32,
                        nth,
                        self.thread,
                        accumulators,
                    );
                }
                sync_warp();
                let tile = SharedTile::<_, StagedLayout<C>, _>::from_shared(self.buffer.0);
                to.store(tile, self.thread.warp() * WARP_ROWS as u32);
            }
            sync_warp();
        }
    }

    /// Stores accumulators, after the epilogue, to the named rows `to`, 16 bytes at a time.
    ///
    /// # Safety
    /// The table's rows must begin at multiples of 16 bytes, and have a multiple of 16 bytes. No other thread may use
    /// them, unless the engine allows it, and the buffer.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) unsafe fn scatter<Eng: EngineMut<Element = C::Out>>(
        &self,
        to: &Tensor<Eng, Gather<Indices>, C::AtomC>,
        accumulators: &AtomFragment<C>,
    ) {
        // The indices are read once.
        let to = to
            .local_tile::<C::SubtileC>((0u32, 0u32))
            .partition::<Rows<C>>(self.thread);
        for nth in 0..const { C::Tile::N / C::EPI_N } {
            // SAFETY: each warp touches only the 16 rows whose accumulators it has, and its lanes meet between one's
            // accesses and another's; the rest as promised by the caller.
            unsafe {
                if nth >= Self::STAGED {
                    sync_warp();
                }
                let tile = self.shared(nth);
                store_accumulator::<C::Mma, _, _, _>(tile, 0u32, nth, self.thread, accumulators);
                sync_warp();
                tile.tensor()
                    .partition::<Rows<C>>(self.thread)
                    .copy_to(&to.moved_along_rows((nth * C::EPI_N) as i32));
            }
        }
        sync_warp();
    }

    /// Reports the named rows that do not exist. The matrix begins with the index number `first`.
    ///
    /// # Safety
    /// As [`NamedRows::report_misses`].
    #[inline(always)]
    pub(super) unsafe fn report_misses<Eng: EngineMut<Element = C::Out>>(
        &self,
        to: &Tensor<Eng, Gather<Indices>, C::AtomC>,
        names: &NamedRows,
        first: i32,
    ) {
        let columns = to.local_tile::<TurnC>((0u32, 0u32));
        let lines = columns.partition::<TurnLines>(self.thread);
        // SAFETY: as promised by the caller.
        unsafe { names.report_misses(first, lines.bound()) };
    }
}

/// A major of C, and how a consumer's threads store accumulators in such a C.
pub trait StoreMajor: Major {
    /// `C = accumulators`, 16 bytes at a time, after the epilogue. C's rows, or columns, must be multiples of 16 bytes
    /// apart, and begin and end at one.
    ///
    /// # Safety
    /// No other thread may use the rows and the buffer.
    unsafe fn store<C: Config<MajorC = Self>>(
        subtiles: &EpilogueSubtiles<C>,
        accumulators: &AtomFragment<C>,
    );
}

impl StoreMajor for KMajor {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store<C: Config<MajorC = Self>>(
        subtiles: &EpilogueSubtiles<C>,
        accumulators: &AtomFragment<C>,
    ) {
        let EpilogueSubtiles { rows, thread, .. } = *subtiles;
        let staged = EpilogueSubtiles::<C>::STAGED;
        let count = const { C::Tile::N / C::EPI_N };
        // All at once, where there is room for all.
        let together = if count <= staged { count } else { 1 };
        // The tile before stores its own subtiles. Here they go below C, where nothing is stored: no branch is as
        // short.
        let [below, _] = tiles::<C::SubtileC>(rows.extent());
        let first_own = subtiles.first_own();
        for first in (0..count).step_by(together) {
            // SAFETY: each warp touches only the 16 rows whose accumulators it has, and its lanes meet between one's
            // accesses and another's; the rest as promised by the caller.
            unsafe {
                if first >= staged {
                    sync_warp();
                }
                for nth in first..first + together {
                    let tile = subtiles.shared(nth);
                    store_accumulator::<C::Mma, _, _, _>(tile, 0u32, nth, thread, accumulators);
                }
                sync_warp();
                for nth in first..first + together {
                    let is_own = nth as i32 >= first_own;
                    let to = (if is_own { 0 } else { below }, nth as u32);
                    let from = subtiles.shared(nth).tensor();
                    from.partition::<Rows<C>>(thread)
                        .copy_to(&rows.local_tile::<C::SubtileC>(to).partition(thread));
                }
            }
        }
        sync_warp();
    }
}

impl StoreMajor for MnMajor {
    #[inline(always)]
    unsafe fn store<C: Config<MajorC = Self>>(_: &EpilogueSubtiles<C>, _: &AtomFragment<C>) {
        unreachable!("TMA stores a column-major C")
    }
}
