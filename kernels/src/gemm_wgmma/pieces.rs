//! The way of a consumer's sums to C: in pieces of 32 columns, each through shared memory.
//!
//! Usually TMA takes the pieces from there while the block goes on: [`Pieces::store_by_tma`], all
//! unrolled. Where old C is read, or TMA cannot store C, [`Pieces::update`] does whatever it takes.
//! That is a loop at run time, because it is used less, and would be half of each kernel's code if
//! it were unrolled. Registers have no index at run time, so each turn of the loop works on the
//! first ones and then moves the rest up.

use cutlet_device::hopper::{
    AccumulatorLayout, Float16, KMajor, OperandTile, TensorMap, WarpgroupThread, WarpgroupThreads,
    WgmmaInstruction, fence_async_shared, store_accumulator, tma_store_commit, tma_store_wait_read,
};
use cutlet_device::{GlobalMut, lane_idx, sync_warp};
use cutlet_layout_core::{
    Fragment, L, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, WgmmaC, each,
};

use super::Epilogue;
use super::ahead::Ahead;

/// A piece: some columns of a consumer's rows.
pub(super) type PieceC = L!((64, 32):(1@0, 1@1));
/// A piece in shared memory.
pub(super) type SharedC<T> = OperandTile<T, KMajor, 64, 32, 64>;
/// Pieces that a consumer may have on their way.
pub(super) const BUFFERS: usize = 4;
/// The latest stores, which may still be reading their buffers when the next piece takes one. The
/// stores of the tile before may have ended with any buffer: a tile begins when all are free.
const LATEST: u32 = BUFFERS as u32 - 1;

/// Which sums of a piece are whose: the first of those that a thread has of all columns.
type Sums<const WIDTH: usize = 1> = Tv<WarpgroupThreads, Values, WIDTH>;
type Values = <WgmmaC<4> as ThreadValue>::Val;
/// Who moves what of a piece between shared memory and C where TMA does not: a warp a line at a
/// time, whatever its alignment, of the 16 rows whose sums it has.
type Lines = Tv<L!((32, 4):(1@1, 16@0)), L!(16:1@0)>;

/// The pieces of a consumer's rows of a tile.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'a, T: Float16> {
    /// Room for those on their way, the consumer's own.
    pub buffers: [SharedC<T>; BUFFERS],
    /// Where they go.
    pub rows: Tensor<GlobalMut<T>, RowMajor>,
    /// The same, for TMA.
    pub map: &'a TensorMap,
    /// Who is running.
    pub thread: WarpgroupThread,
}

impl<T: Float16 + Default> Pieces<'_, T> {
    /// `C = epilogue(sums)` where old C is not read, by TMA. The stores may still be under way
    /// afterwards.
    ///
    /// # Safety
    /// The map must describe C, with boxes of a piece's 16 rows, and nobody else may use the rows
    /// and the buffers.
    #[inline(always)]
    pub unsafe fn store_by_tma<I: WgmmaInstruction, Epi: Epilogue>(
        &self,
        mut sums: Fragment<f32, I::Values>,
        epilogue: Epi,
        ahead: Ahead<Epi>,
    ) {
        if Ahead::<Epi>::IS_EMPTY && !epilogue.is_identity() {
            let places = self.rows.partition::<AccumulatorLayout<I>>(self.thread);
            sums = sums.map(|v, sum| epilogue.apply(sum, None, places.bound().coordinate(v)));
        }
        let mut buffers = self.buffers;
        for piece in 0..const { I::N / 32 } {
            if !Ahead::<Epi>::IS_EMPTY {
                let places = self.rows.partition::<AccumulatorLayout<I>>(self.thread);
                ahead.apply(epilogue, &mut sums, piece, |v| places.bound().coordinate(v));
            }
            let tile = self.buffers[piece % BUFFERS];
            match piece {
                0 => wait_for_buffers::<0>(),
                _ => wait_for_buffers::<LATEST>(),
            }
            // SAFETY: each warp touches only the 16 rows whose sums it has; the rest as promised by
            // the caller.
            unsafe {
                store_accumulator::<I, _, _, _>(tile, 0u32, piece, self.thread, &sums);
                self.send(tile, piece as u32);
            }
        }
    }

    /// `C = epilogue(sums, C)`, or without old C if the epilogue does not read it; by TMA or without
    /// it. Stores may still be under way afterwards.
    ///
    /// # Safety
    /// As [`store_by_tma`](Self::store_by_tma), but the map is used with `by_tma` only.
    #[inline(always)]
    pub unsafe fn update<I: WgmmaInstruction, Epi: Epilogue>(
        &self,
        mut sums: Fragment<f32, I::Values>,
        epilogue: Epi,
        by_tma: bool,
    ) {
        let Self {
            rows,
            thread,
            mut buffers,
            ..
        } = *self;
        let piece_c = |piece: u32| rows.local_tile::<PieceC>((0u32, piece));
        let old_lines = |piece: u32| {
            let lines = piece_c(piece).partition::<Lines>(thread);
            lines.load(T::default())
        };

        let end = rows.extent()[1].min(rows.origin()[1] + I::N as i32);
        let exists = |piece: u32| piece_c(piece).origin()[1] < end;

        let mut next_old = Fragment::filled(T::default());
        if epilogue.reads_old() {
            next_old = old_lines(0);
        }
        wait_for_buffers::<0>();
        let mut piece = 0;
        while exists(piece) {
            let tile = buffers[0];
            // SAFETY: each warp touches only the 16 rows whose sums it has, and its lanes meet
            // between one's accesses and another's; the rest as promised by the caller.
            unsafe {
                let in_shared = tile.tensor();
                let lines = in_shared.partition::<Lines>(thread);
                let places = piece_c(piece).partition::<Sums>(thread);
                let at = |v| places.bound().coordinate(v);
                wait_for_buffers::<LATEST>();
                if epilogue.reads_old() {
                    // C is read in lines, and old elements find their sums in shared memory.
                    lines.store(&next_old);
                    sync_warp();
                    let old = in_shared.partition::<Sums<2>>(thread).load(T::default());
                    each::<Values>(|v| {
                        let old = Some(old.get(v).to_f32());
                        sums.set(v, epilogue.apply(sums.get(v), old, at(v)));
                    });
                    if exists(piece + 1) {
                        next_old = old_lines(piece + 1);
                    }
                    sync_warp();
                } else if !epilogue.is_identity() {
                    each::<Values>(|v| sums.set(v, epilogue.apply(sums.get(v), None, at(v))));
                }
                store_accumulator::<I, _, _, _>(tile, 0u32, 0, thread, &sums);
                if by_tma {
                    self.send(tile, piece);
                } else {
                    sync_warp();
                    let lines = lines.load(T::default());
                    piece_c(piece).partition::<Lines>(thread).store(&lines);
                }
            }
            sums = sums.rotated(Values::SIZE);
            buffers = [buffers[1], buffers[2], buffers[3], buffers[0]];
            piece += 1;
        }
    }

    /// Has TMA store the rows of a piece that the warp has written to `tile`.
    ///
    /// # Safety
    /// As [`store_by_tma`](Self::store_by_tma).
    #[inline(always)]
    unsafe fn send(&self, tile: SharedC<T>, piece: u32) {
        fence_async_shared();
        sync_warp();
        if lane_idx().is_first() {
            let to = self.rows.local_tile::<PieceC>((0u32, piece)).origin();
            // SAFETY: as promised by the caller.
            unsafe { tile.store_part::<4, 2>(self.thread.warp(), self.map, to) };
            tma_store_commit();
        }
    }
}

/// The buffer whose turn it is; then it is the next one's.
#[inline(always)]
fn take_turns<B: Copy>(buffers: &mut [B; BUFFERS]) -> B {
    let [first, second, third, fourth] = *buffers;
    *buffers = [second, third, fourth, first];
    first
}

/// Waits until all but `PENDING` of the warp's stores have read their buffers.
#[inline(always)]
fn wait_for_buffers<const PENDING: u32>() {
    if lane_idx().is_first() {
        tma_store_wait_read::<PENDING>();
    }
    sync_warp();
}
