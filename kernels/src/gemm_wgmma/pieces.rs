//! The way of a consumer's sums to C: in pieces of some columns, each through shared memory.
//!
//! Usually TMA takes the pieces from there while the block goes on: [`Pieces::store_by_tma`], all
//! unrolled. A consumer that is alone in its block mostly has one tile, and nothing to go on with: its threads
//! store the pieces themselves, which ends sooner: [`MajorC::store`]. Where old C is read, or TMA cannot
//! store C, [`Pieces::update`] does whatever it takes.
//! That is a loop at run time, because it is used less, and would be half of each kernel's code if
//! it were unrolled. Registers have no index at run time, so each turn of the loop works on the
//! first ones and then moves the rest up.

use core::marker::PhantomData;

use cutlet_device::hopper::{
    AccumulatorLayout, Float16, KMajor, Major, MnMajor, OperandTile, TensorMap, TileBox,
    WarpgroupIdx, WarpgroupThread, WarpgroupThreads, WgmmaInstruction, fence_async_shared,
    store_accumulator, tma_store_commit, tma_store_wait_read,
};
use cutlet_device::{DeviceData, GlobalMut, Shared, SharedMemory, lane_idx, sync_warp};
use cutlet_layout_core::{
    Coord, Fragment, L, Layout, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, WgmmaC, each,
    tiles,
};

use super::ahead::{self, Ahead};
use super::{Epilogue, TileC, WARP_ROWS, epilogue};

/// The columns of a consumer's pieces that may be on their way, of tiles with `n` columns, where so many `consumers`
/// have `left` bytes of shared memory for them: 128, or half of that as often as it takes, but a piece at least.
pub(super) const fn columns_that_fit(n: usize, consumers: usize, left: usize) -> usize {
    let mut columns = 128;
    while buffer_bytes(consumers, columns) > left && columns > piece_columns(n) {
        columns /= 2;
    }
    columns
}

/// Bytes of shared memory of so many consumers' pieces on their way.
pub(super) const fn buffer_bytes(consumers: usize, columns: usize) -> usize {
    2 * consumers * 64 * columns
}

/// The shared memory of a consumer's pieces on their way.
#[derive(Clone, Copy)]
pub struct Buffer<T> {
    start: Shared<T>,
    columns: usize,
}

impl<T: Float16> Buffer<T> {
    /// The first of so many consumers' buffers, which lie in the next bytes of shared memory.
    #[inline(always)]
    pub fn take(shared: &mut SharedMemory, consumers: usize, columns: usize) -> Self {
        let bytes = buffer_bytes(consumers, columns);
        Self {
            start: shared.take_aligned::<T, 1024>(bytes / size_of::<T>()),
            columns,
        }
    }

    /// That of a consumer, where this is the first one's.
    #[inline(always)]
    pub fn of(self, consumer: WarpgroupIdx) -> Self {
        let elements = consumer.own(64 * self.columns, 0);
        Self {
            start: self.start.offset(i64::from(elements)),
            ..self
        }
    }
}

/// A piece in shared memory, its lines of `SPAN` bytes each: rows, or columns where these are what is
/// consecutive in C.
type SharedC<T, JC, const PIECE: usize, const SPAN: usize> = OperandTile<T, JC, 64, PIECE, SPAN>;

/// The columns of a piece of tiles with `n` columns: the more, the longer the lines that TMA writes.
pub const fn piece_columns(n: usize) -> usize {
    let mut columns = 64;
    while !n.is_multiple_of(columns) {
        columns /= 2;
    }
    assert!(columns >= 8, "a tile has a multiple of 8 columns");
    columns
}

/// Bytes of the lines of a piece of so many columns: a row of it, or the part of a column that a warp has.
pub const fn piece_span<JC: Major>(columns: usize) -> usize {
    let elements = if JC::K_IS_CONSECUTIVE {
        assert!(
            columns >= 16,
            "a tile whose rows are stored has a multiple of 16 columns"
        );
        columns
    } else {
        16
    };
    2 * elements
}

/// The box of C's tensor map: a warp's rows of a piece.
pub(super) const fn tile_box<T: DeviceData, JC: Major, const PIECE: usize, const SPAN: usize>()
-> TileBox {
    SharedC::<T, JC, PIECE, SPAN>::tile_box(4)
}

/// The columns that [`Pieces::update`] works on in a turn.
const TURN: usize = 16;
type TurnC = TileC<64, TURN>;
/// Which sums of a turn are whose: the first of those that a thread has of all columns.
type Sums<const WIDTH: usize = 1> = Tv<WarpgroupThreads, Values, WIDTH>;
type Values = <WgmmaC<{ TURN / 8 }> as ThreadValue>::Val;
/// Who moves what of a turn between shared memory and C: a warp two lines at a time, whatever their
/// alignment.
type Lines = Tv<L!((16, 2, 4):(1@1, 4@0, 16@0)), L!((4, 2):(1@0, 8@0))>;

/// Who stores what of a piece: 16 bytes of a row each, neighbours what is next to each other, so that a warp stores
/// whole rows of it at once.
type Rows<const PIECE: usize> = Tv<RowThreads<PIECE>, RowValues<PIECE>, 8>;

/// How often a thread stores 16 bytes of a piece of so many columns.
const fn stores(columns: usize) -> usize {
    WARP_ROWS * columns / 256
}

/// The threads of [`Rows`]: a warp's are at as many of its rows as have 256 elements.
#[derive(Clone, Copy)]
struct RowThreads<const PIECE: usize>;

impl<const PIECE: usize> StaticLayout for RowThreads<PIECE> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode((PIECE / 8) as i64, 8, 1),
        Layout::static_basis_mode((256 / PIECE) as i64, 1, 0),
        Layout::static_basis_mode(4, WARP_ROWS as i64, 0),
    ]);
    type Storage<V: Copy> = [V; 128];
}

/// The values of [`Rows`]: 8 of a row, and so on through the warp's rows. They are never in a fragment.
#[derive(Clone, Copy)]
struct RowValues<const PIECE: usize>;

impl<const PIECE: usize> StaticLayout for RowValues<PIECE> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(8, 1, 1),
        Layout::static_basis_mode(stores(PIECE) as i64, (256 / PIECE) as i64, 0),
    ]);
    type Storage<V: Copy> = [V; PIECE];
}

/// The pieces of 64 rows of a tile.
#[derive(Clone, Copy)]
pub struct Pieces<'a, T: Float16, JC, const PIECE: usize, const SPAN: usize> {
    /// Room for those on their way, the consumer's own.
    buffer: Buffer<T>,
    /// Where they go. If that is by TMA, only the coordinates count.
    rows: Tensor<GlobalMut<T>, RowMajor>,
    /// Where this tile's own rows and columns begin: those before are stored with the tile before.
    own: Coord,
    /// The same as `rows`, for TMA.
    map: &'a TensorMap,
    /// Who is running.
    thread: WarpgroupThread,
    /// What is consecutive in C.
    major: PhantomData<JC>,
}

impl<'a, T: Float16 + Default, JC: Major, const PIECE: usize, const SPAN: usize>
    Pieces<'a, T, JC, PIECE, SPAN>
{
    /// The pieces of `rows`, on their way through `buffer`: of a tile whose own rows and columns begin at `own`.
    #[inline(always)]
    pub fn new(
        buffer: Buffer<T>,
        rows: Tensor<GlobalMut<T>, RowMajor>,
        own: Coord,
        map: &'a TensorMap,
        thread: WarpgroupThread,
    ) -> Self {
        Self {
            buffer,
            rows,
            own,
            map,
            thread,
            major: PhantomData,
        }
    }

    /// `sums = epilogue(sums)` where old C is not read.
    #[inline(always)]
    pub fn apply<I: WgmmaInstruction, Epi: Epilogue>(
        &self,
        sums: &mut Fragment<f32, I::Values>,
        epilogue: Epi,
    ) {
        let places = self.rows.partition::<AccumulatorLayout<I>>(self.thread);
        epilogue::apply(epilogue, sums, |v| places.bound().coordinate(v));
    }

    /// Pieces that may be on their way.
    #[inline(always)]
    fn most_under_way(&self) -> usize {
        self.buffer.columns / PIECE
    }

    /// The first of the running warp's pieces that is this tile's own, not the tile's before.
    #[inline(always)]
    fn first_own(&self) -> i32 {
        let begin = self
            .rows
            .local_tile::<TileC<WARP_ROWS, PIECE>>((self.thread.warp(), 0u32))
            .origin();
        match begin[0] >= self.own[0] {
            true => (self.own[1] - begin[1]) / PIECE as i32,
            false => i32::MAX,
        }
    }

    /// `C = epilogue(sums)` where old C is not read, by TMA. The stores may still be under way
    /// afterwards.
    ///
    /// # Safety
    /// The map must describe C, with boxes of [`tile_box`], and nobody else may use the rows and the
    /// buffer.
    #[inline(always)]
    pub(super) unsafe fn store_by_tma<I: WgmmaInstruction, Epi: Epilogue>(
        &self,
        sums: &mut Fragment<f32, I::Values>,
        epilogue: Epi,
        ahead: Ahead<Epi>,
    ) {
        const {
            assert!(
                Ahead::<Epi>::IS_EMPTY || PIECE.is_multiple_of(ahead::COLUMNS),
                "an epilogue that reads of columns takes tiles with a multiple of 32"
            );
        }
        if Ahead::<Epi>::IS_EMPTY && !epilogue.is_identity() {
            self.apply::<I, _>(sums, epilogue);
        }
        let places = || self.rows.partition::<AccumulatorLayout<I>>(self.thread);
        let at = |v| places().bound().coordinate(v);
        let to = |piece: u32| self.rows.local_tile::<TileC<64, PIECE>>((0u32, piece));
        // What is another tile's goes below C, where TMA stores nothing: a branch around the store would be the
        // longer way for all others.
        let below = self.rows.extent()[0];
        let first_own = self.first_own();
        for piece in 0..const { I::N / PIECE } {
            if !Ahead::<Epi>::IS_EMPTY {
                for part in 0..PIECE / ahead::COLUMNS {
                    let nth = piece * (PIECE / ahead::COLUMNS) + part;
                    ahead.apply(epilogue, sums, nth, at);
                }
            }
            let tile = self.shared(piece);
            // The stores of the tile before may have ended with any buffer: a tile begins when all
            // are free.
            if lane_idx().is_first() {
                match (piece, self.most_under_way()) {
                    (0, _) | (_, 1) => tma_store_wait_read::<0>(),
                    (_, 2) => tma_store_wait_read::<1>(),
                    (_, 4) => tma_store_wait_read::<3>(),
                    (_, 8) => tma_store_wait_read::<7>(),
                    (_, 16) => tma_store_wait_read::<15>(),
                    _ => unreachable!("a piece has 8, 16, 32 or 64 columns"),
                }
            }
            sync_warp();
            // SAFETY: each warp touches only the 16 rows whose sums it has; the rest as promised by
            // the caller.
            unsafe {
                store_accumulator::<I, _, _, _>(tile, 0u32, piece, self.thread, sums);
                fence_async_shared();
                sync_warp();
                if lane_idx().is_first() {
                    let [row, column] = to(piece as u32).origin();
                    let is_own = piece as i32 >= first_own;
                    let to = [if is_own { row } else { below }, column];
                    tile.store_part::<4, 2>(self.thread.warp(), self.map, to);
                    tma_store_commit();
                }
            }
        }
    }

    /// Where a piece is in shared memory, from which others have gone before.
    #[inline(always)]
    fn shared(&self, piece: usize) -> SharedC<T, JC, PIECE, SPAN> {
        let start = piece % self.most_under_way() * const { 64 * PIECE };
        SharedC::from_shared(self.buffer.start.offset(start as i64))
    }

    /// `C = epilogue(sums, C)`, or without old C if the epilogue does not read it, without TMA.
    ///
    /// # Safety
    /// Nobody else may use the rows and the buffer.
    #[inline(always)]
    pub unsafe fn update<I: WgmmaInstruction, Epi: Epilogue>(
        &self,
        sums: &mut Fragment<f32, I::Values>,
        epilogue: Epi,
    ) {
        let Self { rows, thread, .. } = *self;
        let buffer = self.buffer.start;
        let [_, inside] = tiles::<TurnC>([64, rows.extent()[1] - rows.origin()[1]]);
        let turns = inside.min(const { (I::N / TURN) as u32 });
        let tile_c = |turn: u32| rows.local_tile::<TurnC>((0u32, turn));
        let old_of = |turn: u32| tile_c(turn).partition::<Lines>(thread).load(T::default());
        let tile = SharedC::<T, KMajor, TURN, { 2 * TURN }>::from_shared(buffer);

        let mut next_old = Fragment::filled(T::default());
        if epilogue.reads_old() {
            next_old = old_of(0);
        }
        for turn in 0..turns {
            // SAFETY: each warp touches only the 16 rows whose sums it has, and its lanes meet
            // between one's accesses and another's; the rest as promised by the caller.
            unsafe {
                let in_shared = tile.tensor();
                let lines = in_shared.partition::<Lines>(thread);
                let places = tile_c(turn).partition::<Sums>(thread);
                let at = |v| places.bound().coordinate(v);
                if epilogue.reads_old() {
                    // C is read in lines, and old elements find their sums in shared memory.
                    lines.store(&next_old);
                    sync_warp();
                    in_shared.partition::<Sums<2>>(thread).for_each(|v, old| {
                        let old = Some(old.to_f32());
                        sums.set(v, epilogue.apply(sums.get(v), old, at(v)));
                    });
                    if turn + 1 < turns {
                        next_old = old_of(turn + 1);
                    }
                    sync_warp();
                } else if !epilogue.is_identity() {
                    each::<Values>(|v| sums.set(v, epilogue.apply(sums.get(v), None, at(v))));
                }
                store_accumulator::<I, _, _, _>(tile, 0u32, 0, thread, sums);
                sync_warp();
                let to = tile_c(turn).partition::<Lines>(thread);
                to.store(&lines.load(T::default()));
                sync_warp();
            }
            *sums = sums.moved_up(Values::SIZE);
        }
    }
}

/// A major of C, and how a consumer's threads store sums in it, which the epilogue has been applied to.
pub trait MajorC: Major + Sized {
    /// `C = sums`, 16 bytes at a time: C's rows, or columns, must be a multiple of 16 bytes apart, and begin and
    /// end at one.
    ///
    /// # Safety
    /// Nobody else may use the rows and the buffer.
    unsafe fn store<I: WgmmaInstruction, T, const PIECE: usize, const SPAN: usize>(
        pieces: &Pieces<T, Self, PIECE, SPAN>,
        sums: &Fragment<f32, I::Values>,
    ) where
        T: Float16 + Default;
}

impl MajorC for KMajor {
    #[inline(always)]
    unsafe fn store<I: WgmmaInstruction, T, const PIECE: usize, const SPAN: usize>(
        pieces: &Pieces<T, Self, PIECE, SPAN>,
        sums: &Fragment<f32, I::Values>,
    ) where
        T: Float16 + Default,
    {
        let Pieces { rows, thread, .. } = *pieces;
        let buffers = pieces.most_under_way();
        let count = const { I::N / PIECE };
        // All at once, where there is room for all.
        let together = if count <= buffers { count } else { 1 };
        // What is another tile's goes below C, where nothing is stored: no branch is as short.
        let [below, _] = tiles::<TileC<64, PIECE>>(rows.extent());
        let first_own = pieces.first_own();
        for first in (0..count).step_by(together) {
            // SAFETY: each warp touches only the 16 rows whose sums it has, and its lanes meet between one's
            // accesses and another's; the rest as promised by the caller.
            unsafe {
                if first >= buffers {
                    sync_warp();
                }
                for piece in first..first + together {
                    let tile = pieces.shared(piece);
                    store_accumulator::<I, _, _, _>(tile, 0u32, piece, thread, sums);
                }
                sync_warp();
                for piece in first..first + together {
                    let is_own = piece as i32 >= first_own;
                    let to = (if is_own { 0 } else { below }, piece as u32);
                    let from = pieces.shared(piece).tensor();
                    from.partition::<Rows<PIECE>>(thread)
                        .copy_to(&rows.local_tile::<TileC<64, PIECE>>(to).partition(thread));
                }
            }
        }
        sync_warp();
    }
}

impl MajorC for MnMajor {
    #[inline(always)]
    unsafe fn store<I: WgmmaInstruction, T, const PIECE: usize, const SPAN: usize>(
        _: &Pieces<T, Self, PIECE, SPAN>,
        _: &Fragment<f32, I::Values>,
    ) where
        T: Float16 + Default,
    {
        unreachable!("TMA stores a C whose columns are consecutive")
    }
}
