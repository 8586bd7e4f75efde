//! The mask: which keys a query sees, and which blocks of keys need a mask.

use cutlet_device::LaneIdx;
use cutlet_device::sm90::{AccumulatorLayout, WgmmaInstruction};
use cutlet_device::warpgroup::WarpgroupThread;
use cutlet_layout_core::{Fragment, FragmentLayout, L, StaticLayout, Tensor};
use half::bf16;

use super::args::Window;
use super::element::{Products, TileOfBlock};
use super::scheduler::Sequence;

/// The keys that a query sees: from `first` on, and before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisibleKeys {
    /// The first one.
    pub first: i32,
    /// The one after the last one. Not above `first` if there are none.
    pub end: i32,
}

impl VisibleKeys {
    /// The keys that `query` of the sequence sees.
    #[inline(always)]
    pub fn of(query: i32, sequence: Sequence, window: Window) -> Self {
        let own = query + sequence.keys - sequence.queries;
        Self {
            first: (own - window.before).max(0),
            end: (own + window.after + 1).min(sequence.keys),
        }
    }
}

/// The blocks of keys that a tile of queries sees, in the order in which they are multiplied: those that need a mask come
/// first, so that one loop is without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBlocks {
    /// The first block.
    first: u32,
    /// The first block that needs no mask.
    unmasked: u32,
    /// The first block after those.
    masked: u32,
    /// The first block after all.
    end: u32,
}

impl KeyBlocks {
    /// The blocks of `block` keys that `rows` queries from `query` on see. There is one at least, so that queries
    /// without keys have scores.
    #[inline(always)]
    pub fn of(query: i32, rows: i32, block: u32, sequence: Sequence, window: Window) -> Self {
        let last_query = (query + rows).min(sequence.queries) - 1;
        let of = |query| VisibleKeys::of(query, sequence, window);
        let (of_first, of_last) = (of(query), of(last_query));
        let blocks_before = |key: i32| key.max(0) as u32 / block;
        let first = blocks_before(of_first.first.min(sequence.keys - 1));
        let end = blocks_before(of_last.end + block as i32 - 1).max(first + 1);
        // The window of the last query begins last, and that of the first query ends first.
        let masked = blocks_before(of_first.end).max(first).min(end);
        let unmasked = blocks_before(of_last.first + block as i32 - 1)
            .max(first)
            .min(masked);
        Self {
            first,
            unmasked,
            masked,
            end,
        }
    }

    /// Those before block `end`, which is not 0. There is one at least.
    #[inline(always)]
    pub fn before(self, end: u32) -> Self {
        Self {
            first: self.first.min(end - 1),
            unmasked: self.unmasked.min(end),
            masked: self.masked.min(end),
            end: self.end.min(end),
        }
    }

    /// Whether `block` is one of them.
    #[inline(always)]
    pub const fn contains(&self, block: u32) -> bool {
        self.first <= block && block < self.end
    }

    /// How many there are.
    #[inline(always)]
    pub const fn count(&self) -> u32 {
        self.end - self.first
    }

    /// How many of them need a mask.
    #[inline(always)]
    pub const fn count_masked(&self) -> u32 {
        self.count() - (self.masked - self.unmasked)
    }

    /// The `nth` one.
    #[inline(always)]
    pub const fn block(&self, nth: u32) -> u32 {
        let after = self.end - self.masked;
        if nth < after {
            self.end - 1 - nth
        } else if nth < self.count_masked() {
            self.first + nth - after
        } else {
            self.masked - 1 - (nth - self.count_masked())
        }
    }
}

/// The rows that a thread has scores of.
pub type RowsOfThread = L!(2:1);

/// Where a thread's scores are in a block of keys.
#[derive(Clone, Copy, Debug)]
pub struct ScorePlaces {
    /// The row of the first one.
    pub row: i32,
    /// The column of the first one.
    pub column: i32,
}

impl ScorePlaces {
    /// Rows that a thread has scores of.
    pub const ROWS: usize = RowsOfThread::SIZE;

    /// The places of a thread's accumulators of the instruction `I`.
    #[inline(always)]
    pub fn of<I: WgmmaInstruction>(thread: WarpgroupThread) -> Self {
        let all = Tensor::identity([I::M as i32, I::N as i32]);
        let [row, column] = all.partition::<AccumulatorLayout<I>>(thread).coordinate(0);
        Self { row, column }
    }

    /// The places of a lane's accumulators of 16 rows, whose warp multiplies them by `mma.sync`.
    #[inline(always)]
    pub(super) fn of_lane(lane: LaneIdx) -> Self {
        let all = Tensor::identity([16, 64]).local_tile::<TileOfBlock>((0, 0));
        let mma = Products::<bf16>::thread_slice(lane);
        let [row, column] = mma.partition_c(all).coordinate(0);
        Self { row, column }
    }

    /// The thread's row `nth`.
    #[inline(always)]
    pub const fn row_below(&self, nth: usize) -> i32 {
        self.row + 8 * nth as i32
    }

    /// Which of the thread's rows score `v` belongs to.
    #[inline(always)]
    pub const fn row_of(v: usize) -> usize {
        v / 2 % 2
    }

    /// How many columns score `v` is to the right of the first one.
    #[inline(always)]
    pub const fn columns_to(v: usize) -> i32 {
        (v / 4 * 8 + v % 2) as i32
    }
}

/// Makes the scores of keys that a row does not see −∞. `visible` are the keys of each of the thread's rows, and
/// `first_key` is the block's first one.
#[inline(always)]
pub fn mask<V: FragmentLayout>(
    scores: &Fragment<f32, V>,
    places: ScorePlaces,
    visible: [VisibleKeys; ScorePlaces::ROWS],
    first_key: i32,
) -> Fragment<f32, V> {
    let first = first_key + places.column;
    let visible = visible.map(|keys| [keys.first - first, keys.end - first]);
    scores.map(|v, score| {
        let [begin, end] = visible[ScorePlaces::row_of(v)];
        let column = ScorePlaces::columns_to(v);
        match begin <= column && column < end {
            true => score,
            false => f32::NEG_INFINITY,
        }
    })
}
