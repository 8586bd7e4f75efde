//! The tile scheduler: which tiles of queries a block computes.

use cutlet_device::{BlockCoord, Global};
use cutlet_layout_core::{L, TileIndex, tile_origin};

use super::args::{SequencesArgs, TilesArgs};

/// A tile of queries of a head of a sequence.
#[derive(Clone, Copy, Debug)]
pub struct WorkTile {
    /// Which tile of the sequence's queries.
    pub of_queries: u32,
    /// The head of the queries.
    pub head: u32,
    /// Which sequence.
    pub sequence: u32,
}

/// Where a sequence lies in the tensors.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    /// Its coordinate along the tensors' mode of sequences.
    pub nth: i32,
    /// The row of its first query.
    pub first_query: i32,
    /// The row of its first key.
    pub first_key: i32,
    /// How many queries it has.
    pub queries: i32,
    /// How many keys it has.
    pub keys: i32,
}

impl Sequence {
    /// Sequence `nth` of a launch.
    #[inline(always)]
    pub fn of(args: &SequencesArgs, nth: u32) -> Self {
        if args.are_packed == 0 {
            return Self {
                nth: nth as i32,
                first_query: 0,
                first_key: 0,
                queries: args.queries,
                keys: args.keys,
            };
        }
        let nth = i64::from(nth);
        // Wrong numbers must not lead out of the tensors.
        //
        // SAFETY: the launcher promises the first rows of all sequences, and the end of the last one.
        let rows = |firsts: Global<i32>, all: i32| unsafe {
            let first = firsts.load(nth).max(0).min(all);
            (first, firsts.load(nth + 1).max(first).min(all) - first)
        };
        let (first_query, queries) = rows(args.first_queries, args.queries);
        let (first_key, keys) = rows(args.first_keys, args.keys);
        Self {
            nth: 0,
            first_query,
            first_key,
            queries,
            keys,
        }
    }

    /// Elements of a tensor with these strides of sequences, rows and heads before a row of a head of the sequence.
    #[inline(always)]
    pub fn offset(&self, row: i32, head: u32, strides: [i64; 3]) -> i64 {
        let [of_sequence, of_row, of_head] = strides;
        i64::from(self.nth) * of_sequence + i64::from(row) * of_row + i64::from(head) * of_head
    }

    /// The sequence with keys for queries, and queries for keys.
    #[inline(always)]
    pub const fn transposed(self) -> Self {
        Self {
            nth: self.nth,
            first_query: self.first_key,
            first_key: self.first_query,
            queries: self.keys,
            keys: self.queries,
        }
    }
}

impl TilesArgs {
    /// How many tiles there are.
    #[inline(always)]
    pub const fn count(&self) -> u32 {
        self.of_head * self.all_heads
    }
}

impl WorkTile {
    /// The tile of a block, of a grid with a block for each.
    #[inline(always)]
    pub fn of_block(args: &TilesArgs, block: BlockCoord) -> Self {
        Self::of(args, number(block))
    }

    /// Tile `nth` of a launch. Those of the last queries come first: if queries see no later keys, they take longest.
    #[inline(always)]
    pub fn of(args: &TilesArgs, nth: u32) -> Self {
        let (rest, head) = div_rem(nth, args.heads_at_a_time);
        let (heads_before, of_head) = div_rem(rest, args.of_head);
        let head = heads_before * args.heads_at_a_time + head;
        let (sequence, head) = div_rem(head, args.heads);
        Self {
            of_queries: args.of_head - 1 - of_head,
            head,
            sequence,
        }
    }
}

/// An index as the number of what is its own, in launches where each block, or warp, has one.
#[inline(always)]
pub(super) fn number(index: impl TileIndex) -> u32 {
    let [nth, _] = tile_origin::<L!((1, 1):(1@0, 1@1))>((index, 0u32));
    nth as u32
}

/// Quotient and remainder, once for a tile. The launcher promises a divisor that is not 0, which the compiler does not
/// know.
#[inline(always)]
fn div_rem(dividend: u32, divisor: u32) -> (u32, u32) {
    let divisor = divisor.max(1);
    (dividend / divisor, dividend % divisor)
}
