//! The arguments of a launch, and the part of it that a block computes.

use cutlet_device::{BlockCoord, DeviceData, Global, GlobalMut};
use cutlet_layout_core::{Divide, Divisor};

use crate::attention::args::Window;
use crate::attention::mask::VisibleKeys;
use crate::attention::scheduler::{Sequence, number};

/// Rows of a tile: those of an instruction.
pub const ROWS: u32 = 16;
/// Keys of a tile of a warp.
pub const KEYS: u32 = 16;

/// What a launch passes besides tensors.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct DecodeArgs {
    /// Where keys and values lie.
    pub cache: CacheArgs,
    /// Where partial outputs go: 16 rows of each block. Not written with one split.
    pub partials: GlobalMut<f32>,
    /// The natural logarithms of the sums of `e^score` of these rows.
    pub logarithms: GlobalMut<f32>,
    /// A counter for each tile of rows, which is 0 between launches: its splits count when their partial outputs are
    /// written, and the last one combines them. Not read unless `has_counters`.
    pub counters: GlobalMut<u32>,
    /// Elements of the queries from a sequence, a query and a head to the next.
    pub queries: [i64; 3],
    /// The same of the output.
    pub output: [i64; 3],
    /// The natural logarithm of each query's sum of `e^score`. Not written unless `writes_log_sum_exp`.
    pub log_sum_exp: GlobalMut<f32>,
    /// Elements of it from a sequence, a query and a head to the next.
    pub log_sum_exp_strides: [i64; 3],
    /// A score for each head that counts in the sum of weights and has no value. Not read unless `has_sinks`.
    pub sinks: Global<f32>,
    /// The blocks.
    pub work: WorkArgs,
    /// Which keys a query sees.
    pub window: Window,
    /// What the product of a query and a key is multiplied by. Positive.
    pub scale: f32,
    /// `cap · tanh(score / cap)`, unless the cap is 0.
    pub soft_cap: f32,
    /// Features of a head.
    pub features: i32,
    /// Not 0 if there are sinks.
    pub has_sinks: u32,
    /// Not 0 if the logarithms are written.
    pub writes_log_sum_exp: u32,
    /// Not 0 if there are counters. Without them, a second kernel combines splits.
    pub has_counters: u32,
}

/// Where keys and values lie: in pages, which a table names for each sequence. Without a table, each sequence has one
/// page.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct CacheArgs {
    /// The pages of each sequence. Not read unless `is_paged`.
    pub table: Global<i32>,
    /// Numbers from a sequence of the table to the next.
    pub table_stride: i64,
    /// How many keys each sequence has. Not read unless `has_lengths`.
    pub lengths: Global<i32>,
    /// Elements of keys, and of values, from a page, a row and a head to the next.
    pub strides: [i64; 3],
    /// Rows of a page.
    pub page: Divisor,
    /// Pages of the tensors. The keys and values of other pages are zeros.
    pub pages: i32,
    /// Keys of a sequence without a length, and the most of any.
    pub longest: i32,
    /// Not 0 if there are lengths.
    pub has_lengths: u32,
    /// Not 0 if there is a table.
    pub is_paged: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// The blocks of a launch: one for each tile of rows, head of keys, split and sequence, in this order.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct WorkArgs {
    /// Queries of a sequence.
    pub queries: i32,
    /// Heads of queries for each head of keys. The words of a divisor's multiplier and shift are read as one, so that
    /// their place decides whether a copy of the arguments stays in local memory.
    pub group: Divisor,
    /// Sequences.
    pub sequences: i32,
    /// Rows of a head of keys: queries times `group`.
    pub rows: Divisor,
    /// Fills a word.
    pub unused: u32,
    /// Tiles of these rows.
    pub tiles: Divisor,
    /// Heads of keys.
    pub heads_of_keys: Divisor,
    /// Splits.
    pub splits: Divisor,
}

/// What a block computes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// The tile of rows.
    pub tile: u32,
    /// The head of keys.
    pub head: u32,
    /// The split of the keys.
    pub split: u32,
    /// The sequence.
    pub sequence: u32,
}

impl CacheArgs {
    /// The elements before those of a head of keys.
    #[inline(always)]
    pub(super) fn of_head(&self, head: u32) -> i64 {
        let [.., of_head] = self.strides;
        i64::from(head) * of_head
    }
}

impl WorkArgs {
    /// What a block computes.
    #[inline(always)]
    pub(super) fn of_block(self, block: BlockCoord) -> Work {
        let (rest, tile) = self.tiles.div_rem(number(block));
        let (rest, head) = self.heads_of_keys.div_rem(rest);
        let (sequence, split) = self.splits.div_rem(rest);
        Work {
            tile,
            head,
            split,
            sequence,
        }
    }

    /// Whether there are partial outputs.
    #[inline(always)]
    pub(super) fn has_splits(self) -> bool {
        self.splits.divisor() > 1
    }

    /// The number of the block that computes some work.
    #[inline(always)]
    pub(super) fn block_of(self, work: Work) -> u32 {
        let split = work.sequence * self.splits.divisor() + work.split;
        let head = split * self.heads_of_keys.divisor() + work.head;
        head * self.tiles.divisor() + work.tile
    }

    /// The number of the tile of rows that a block has a split of.
    #[inline(always)]
    pub(super) fn tile_of(self, work: Work) -> u32 {
        let head = work.sequence * self.heads_of_keys.divisor() + work.head;
        head * self.tiles.divisor() + work.tile
    }

    /// The query of a row, and the head of the query.
    #[inline(always)]
    pub(super) fn query_and_head(self, head_of_keys: u32, row: u32) -> (u32, u32) {
        let (query, in_group) = self.group.div_rem(row);
        (query, head_of_keys * self.group.divisor() + in_group)
    }

    /// The tiles of keys of a split, of so many keys: from the first one to the one after the last one. A split has a
    /// number of rounds, in each of which every one of the block's `warps` has a tile.
    #[inline(always)]
    pub(super) fn tiles_of_split(self, split: u32, keys: u32, warps: u32) -> [u32; 2] {
        let tiles = keys.div_ceil(KEYS);
        let rounds = tiles.div_ceil(warps);
        let [begin, end] = [split, split + 1].map(|nth| self.splits.div_rem(nth * rounds).0);
        [begin * warps, (end * warps).min(tiles)]
    }
}

impl DecodeArgs {
    /// The sequence as masks see it.
    ///
    /// # Safety
    /// There must be a length for each sequence, or none.
    #[inline(always)]
    pub(super) unsafe fn sequence(&self, nth: u32) -> Sequence {
        let cache = &self.cache;
        // SAFETY: as promised by the caller.
        let length = unsafe {
            let has_lengths = cache.has_lengths != 0;
            cache.lengths.load_if(i64::from(nth), has_lengths)
        };
        Sequence {
            nth: nth as i32,
            first_query: 0,
            first_key: 0,
            queries: self.work.queries,
            keys: match cache.has_lengths {
                0 => cache.longest,
                _ => length.max(0).min(cache.longest),
            },
        }
    }

    /// The sink of a head, or −∞.
    ///
    /// # Safety
    /// There must be a sink for each head, or none.
    #[inline(always)]
    pub(super) unsafe fn sink(&self, head: u32) -> f32 {
        let has_sinks = self.has_sinks != 0;
        // SAFETY: as promised by the caller.
        let sink = unsafe { self.sinks.load_if(i64::from(head), has_sinks) };
        if has_sinks { sink } else { f32::NEG_INFINITY }
    }

    /// Stores the logarithm of a row's sum, if it is asked for. The row may be none of the queries'.
    ///
    /// # Safety
    /// The logarithms must have the queries.
    #[inline(always)]
    pub(super) unsafe fn store_log_sum_exp(
        &self,
        sequence: u32,
        (query, head): (u32, u32),
        logarithm: f32,
    ) {
        if self.writes_log_sum_exp == 0 || query as i32 >= self.work.queries {
            return;
        }
        let [of_sequence, of_query, of_head] = self.log_sum_exp_strides;
        let index = i64::from(sequence) * of_sequence
            + i64::from(query) * of_query
            + i64::from(head) * of_head;
        // SAFETY: as promised by the caller.
        unsafe { self.log_sum_exp.store(index, logarithm) };
    }

    /// The keys that some query of the sequence sees.
    #[inline(always)]
    pub(super) fn visible(&self, sequence: Sequence) -> VisibleKeys {
        let of = |query| VisibleKeys::of(query, sequence, self.window);
        let (first, end) = (of(0).first, of(sequence.queries - 1).end);
        VisibleKeys {
            first,
            end: end.max(first),
        }
    }
}
