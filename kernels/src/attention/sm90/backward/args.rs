//! The arguments of the launches.

use core::ops::Range;

use cutlet_device::{BlockCoord, DeviceData, Global, GlobalMut};
use cutlet_layout_core::{Divide, L, tile_origin};

use super::turns::TurnsArgs;
use crate::attention::args::{SequencesArgs, TilesArgs, Window};
use crate::attention::scheduler::{Sequence, WorkTile};

/// Blocks of queries, of all heads of all sequences. Each has its statistics, and its place in the sums of dQ.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct QueryBlocksArgs {
    /// Blocks of a head. Each sequence has as many as the longest one.
    pub of_head: u32,
    /// Heads of a sequence.
    pub heads: u32,
}

/// A block of queries of a head of a sequence.
#[derive(Clone, Copy, Debug)]
pub struct QueryBlock {
    /// Which of all blocks.
    pub nth: u32,
    /// Which block of the sequence's queries.
    pub of_queries: u32,
    /// The head.
    pub head: u32,
    /// Which sequence.
    pub sequence: u32,
}

impl QueryBlocksArgs {
    /// The block of queries of a block of threads.
    #[inline(always)]
    pub fn of_threads(&self, block: BlockCoord) -> QueryBlock {
        let [nth, _] = tile_origin::<L!((1, 1):(1@0, 1@1))>((block, 0u32));
        let nth = nth as u32;
        // The launcher promises numbers that are not 0, which the compiler does not know.
        let (blocks, heads) = (self.of_head.max(1), self.heads.max(1));
        QueryBlock {
            nth,
            of_queries: nth % blocks,
            head: nth / blocks % heads,
            sequence: nth / blocks / heads,
        }
    }

    /// The first of the blocks of a head.
    #[inline(always)]
    pub const fn first(&self, sequence: u32, head: u32) -> u32 {
        (sequence * self.heads + head) * self.of_head
    }
}

/// Elements from a sequence, a row and a head of a tensor to the next.
pub type Strides = [i64; 3];

/// What the kernel of [`statistics`](super::statistics) gets.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct StatisticsArgs {
    /// The natural logarithms of the sums of `e^score`.
    pub log_sum_exp: Global<f32>,
    /// Their strides.
    pub log_sum_exp_strides: Strides,
    /// Those of the output.
    pub output: Strides,
    /// Those of the output's gradient.
    pub output_gradient: Strides,
    /// Where the statistics go: for each block of queries, first the logarithms to the base 2, then `D`.
    pub statistics: GlobalMut<f32>,
    /// The sequences.
    pub sequences: SequencesArgs,
    /// The blocks of queries.
    pub blocks: QueryBlocksArgs,
    /// Features of a head.
    pub features: i32,
    /// Fills the last word.
    pub unused: u32,
}

/// What the kernel of [`kernel`](super::kernel) gets besides tensors.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct BackwardArgs {
    /// The sums of dQ, in f32: for each block of queries, the accumulators of the consumers' threads.
    pub query_sums: GlobalMut<f32>,
    /// The turns at these.
    pub turns: TurnsArgs,
    /// The strides of dK.
    pub keys: Strides,
    /// The strides of dV.
    pub values: Strides,
    /// The sequences.
    pub sequences: SequencesArgs,
    /// The tiles of keys.
    pub tiles: TilesArgs,
    /// The blocks of queries.
    pub blocks: QueryBlocksArgs,
    /// Which keys a query sees.
    pub window: Window,
    /// What the product of a query and a key is multiplied by. Positive.
    pub scale: f32,
    /// Features of a head.
    pub features: i32,
}

/// What the kernel of [`queries`](super::queries) gets.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct QueriesArgs {
    /// The sums of dQ, as [`BackwardArgs`] has them.
    pub query_sums: GlobalMut<f32>,
    /// The strides of dQ.
    pub strides: Strides,
    /// The sequences.
    pub sequences: SequencesArgs,
    /// The blocks of queries.
    pub blocks: QueryBlocksArgs,
    /// What the sums are multiplied by.
    pub scale: f32,
    /// Features of a head.
    pub features: i32,
}

/// A tile of keys of a head of a sequence.
#[derive(Clone, Copy, Debug)]
pub struct KeyTile {
    /// Which tile of the sequence's keys.
    pub of_keys: u32,
    /// The head of the keys.
    pub head: u32,
    /// Which sequence of the launch.
    pub nth: u32,
    /// Where the sequence lies.
    pub sequence: Sequence,
}

impl BackwardArgs {
    /// The heads of queries that share the keys of a tile.
    #[inline(always)]
    pub fn heads_of(&self, tile: &KeyTile) -> Range<u32> {
        let group = self.sequences.group.divisor();
        tile.head * group..(tile.head + 1) * group
    }
}

impl KeyTile {
    /// Tile `nth` of a launch. Those of the first keys come first: if queries see no later keys, they take longest.
    #[inline(always)]
    pub fn of(args: &BackwardArgs, nth: u32) -> Self {
        let tile = WorkTile::of(&args.tiles, nth);
        Self {
            of_keys: args.tiles.of_head - 1 - tile.of_queries,
            head: tile.head,
            nth: tile.sequence,
            sequence: Sequence::of(&args.sequences, tile.sequence),
        }
    }
}
