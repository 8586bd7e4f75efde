//! The kernel: dK, dV and the sums of dQ, by the roles of a block's warpgroups.
//!
//! One thread of the first warpgroup is the *producer*: it loads a tile of keys and values, and then the queries that
//! see them, with the gradients of their outputs, block by block. Each of the two other warpgroups is a *consumer* of 64
//! of the tile's keys. It keeps their dK and dV in registers. Of dQ, consumers divide each block's features or queries:
//! their dS meet in shared memory. The L2 cache adds up the dQ of all tiles of keys.

use cutlet_device::collective::{BackAndForth, Producer};
use cutlet_device::tma::{LoadOptions, TensorMap, prefetch_tensor_map, tma_load};
use cutlet_device::warpgroup::{
    WarpgroupIdx, WarpgroupThread, decrease_registers, increase_registers, warpgroup_idx,
    warpgroup_sync, warpgroup_thread_idx,
};
use cutlet_device::{
    GlobalMut, elect_one, grid_dependency_wait, launch_dependents, sync_threads, sync_warp,
    uniform, warp_idx_sync,
};
use cutlet_layout_core::{RowMajor, StaticLayout};

use super::args::{BackwardArgs, KeyTile, Strides};
use super::config::{
    Config, KEYS, PART, RingOfNumbers, Stages, Storage, SumsOfBlock, Tile, part_of,
};
use super::mainloop::{Gradients, KeysOfConsumer, Mainloop, OfKeys, Step, consumer_idx};
use super::rows::store_rows;
use super::turns::Turns;
use crate::attention::mask::{KeyBlocks, ScorePlaces};
use crate::attention::sm90::config::{CONSUMERS, ROWS};

/// The maps of queries, keys, values, the output's gradient and the statistics.
type Maps<'a> = [&'a TensorMap; 5];

/// All tiles of keys that are this block's. Any grid computes all.
///
/// # Safety
/// The kernel must have the threads of `C`. The first four maps must describe the tensors as (feature, row, head,
/// sequence), and the last one the statistics, with the boxes of `C`. `of_keys` and `of_values` must be the memory that
/// `args` describes, which must have the rows of all sequences. There must be sums of dQ for all blocks of queries, and
/// counters of turns if these are taken. Then blocks of the grid that wait for each other must run at the same time.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the kernel's maps and arguments")]
pub unsafe fn backward<C: Config>(
    queries: &TensorMap,
    keys: &TensorMap,
    values: &TensorMap,
    gradient: &TensorMap,
    statistics: &TensorMap,
    of_keys: GlobalMut<C::Element>,
    of_values: GlobalMut<C::Element>,
    args: BackwardArgs,
    block: Storage<C>,
) {
    let () = C::CHECK;
    let maps = [queries, keys, values, gradient, statistics];
    let (warp, warpgroup, thread) = (warp_idx_sync(), warpgroup_idx(), warpgroup_thread_idx());
    launch_dependents();
    if warp.is_first() && elect_one() {
        prefetch_tensor_map(queries);
        prefetch_tensor_map(keys);
        prefetch_tensor_map(values);
        prefetch_tensor_map(gradient);
        prefetch_tensor_map(statistics);
        // SAFETY: no thread uses the barriers before the block has met.
        unsafe {
            block.keys.1.init(1, CONSUMERS as u32);
            block.values.1.init(1, CONSUMERS as u32);
            block.full.init(1, CONSUMERS as u32);
        }
    }
    sync_threads();
    grid_dependency_wait();

    if warpgroup.is_first() {
        decrease_registers::<40>();
        if warp.is_first() && elect_one() {
            let loader = Loader::<C> {
                maps,
                block,
                args: &args,
            };
            // SAFETY: as promised by the caller.
            unsafe { loader.produce() };
        }
        return;
    }
    increase_registers::<232>();
    // SAFETY: as promised by the caller.
    unsafe { consume::<C>(of_keys, of_values, &args, block, thread) };
}

/// Whether the tile has keys. A sequence that is shorter than the longest one has tiles without.
#[inline(always)]
fn has_keys(tile: &KeyTile) -> bool {
    first_key(tile) < tile.sequence.keys
}

/// The tile's first key.
#[inline(always)]
fn first_key(tile: &KeyTile) -> i32 {
    (tile.of_keys * KEYS as u32) as i32
}

/// The blocks of queries that see a tile's keys: the blocks of keys that a tile of queries sees, of which each has taken
/// the other's place. A sequence that is longer than the launcher was told has no statistics of later blocks.
#[inline(always)]
fn query_blocks<C: Config>(args: &BackwardArgs, tile: &KeyTile) -> KeyBlocks {
    let blocks = KeyBlocks::of(
        first_key(tile),
        KEYS as i32,
        C::QUERIES as u32,
        tile.sequence.transposed(),
        args.window.transposed(),
    );
    blocks.before(args.blocks.of_head)
}

/// How many of the blocks need a mask. They come last: if tiles wait for their turns, others would begin with a block that
/// the tile before ends with. A tile that the sequence does not fill is masked throughout, as the keys beyond are another
/// sequence's.
#[inline(always)]
fn count_masked(tile: &KeyTile, blocks: &KeyBlocks) -> u32 {
    match first_key(tile) + KEYS as i32 > tile.sequence.keys {
        true => blocks.count(),
        false => blocks.count_masked(),
    }
}

/// The producer: loads the tiles of keys and values, and the blocks of queries.
struct Loader<'a, C: Config> {
    maps: Maps<'a>,
    block: Storage<C>,
    args: &'a BackwardArgs,
}

impl<C: Config> Loader<'_, C> {
    /// # Safety
    /// The maps must be those of the launch. One thread calls it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn produce(&self) {
        let mut keys = self.block.keys.1.producer();
        let mut values = self.block.values.1.producer();
        let mut stages = self.block.full.producer();
        for work in BackAndForth::new(self.args.tiles.count()) {
            let tile = KeyTile::of(self.args, work);
            if !has_keys(&tile) {
                continue;
            }
            let blocks = query_blocks::<C>(self.args, &tile);
            let masked = count_masked(&tile, &blocks);
            let at = [
                tile.sequence.first_key + first_key(&tile),
                0,
                tile.head as i32,
                tile.sequence.nth,
            ];
            // SAFETY: the maps have the tiles' boxes, and the stages are empty.
            unsafe {
                let filling = keys.acquire(Tile::<C, C::Keys>::BYTES);
                self.block
                    .keys
                    .0
                    .load(self.maps[1], at, filling.barrier(), LoadOptions::DEFAULT);
                let filling = values.acquire(CONSUMERS as u32 * Tile::<C, C::Values>::BYTES);
                for consumer in 0..CONSUMERS as u32 {
                    let to = self.block.values.0.tile(consumer);
                    let [key, feature, head, sequence] = at;
                    let at = [
                        key + (consumer * ROWS as u32) as i32,
                        feature,
                        head,
                        sequence,
                    ];
                    to.load(self.maps[2], at, filling.barrier(), LoadOptions::DEFAULT);
                }
                for head in self.args.heads_of(&tile) {
                    for nth in 0..blocks.count() {
                        let nth = match nth + masked < blocks.count() {
                            true => nth + masked,
                            false => nth + masked - blocks.count(),
                        };
                        self.load_queries(&mut stages, &tile, head, blocks.block(nth));
                    }
                }
            }
        }
    }

    /// Loads a block of queries, their statistics, and the gradients of their outputs.
    ///
    /// # Safety
    /// As [`produce`](Self::produce).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_queries(
        &self,
        stages: &mut Producer<Stages>,
        tile: &KeyTile,
        head: u32,
        block: u32,
    ) {
        let query = tile.sequence.first_query + (block * C::QUERIES as u32) as i32;
        let at = |part: usize| {
            [
                query + (part * PART) as i32,
                0,
                head as i32,
                tile.sequence.nth,
            ]
        };
        let of_statistics = 2 * (self.args.blocks.first(tile.nth, head) + block) as i32;
        let bytes = C::PARTS as u32 * Tile::<C, C::Queries>::BYTES;
        // SAFETY: the maps have the tiles' boxes, and the stages are empty.
        unsafe {
            let filling = stages.acquire(2 * (bytes + RingOfNumbers::<C>::VECTOR_BYTES));
            let (stage, full) = (filling.stage(), filling.barrier());
            for part in 0..C::PARTS {
                let to = part_of::<C>(self.block.queries, stage, part);
                to.load(self.maps[0], at(part), full, LoadOptions::DEFAULT);
                let to = part_of::<C>(self.block.gradients, stage, part);
                to.load(self.maps[3], at(part), full, LoadOptions::DEFAULT);
            }
            let log_sums = self.block.log_sums.stage(stage);
            tma_load(
                self.maps[4],
                [0, of_statistics],
                log_sums,
                full,
                LoadOptions::DEFAULT,
            );
            let row_sums = self.block.row_sums.stage(stage);
            tma_load(
                self.maps[4],
                [0, of_statistics + 1],
                row_sums,
                full,
                LoadOptions::DEFAULT,
            );
        }
    }
}

/// A consumer: dK and dV of its keys of every tile, and its part of dQ.
///
/// # Safety
/// As [`backward`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn consume<C: Config>(
    of_keys: GlobalMut<C::Element>,
    of_values: GlobalMut<C::Element>,
    args: &BackwardArgs,
    block: Storage<C>,
    thread: WarpgroupThread,
) {
    let (mut keys, mut values) = (block.keys.1.consumer(), block.values.1.consumer());
    let mut mainloop = Mainloop::<C>::new(block, thread);
    for work in BackAndForth::new(args.tiles.count()) {
        let tile = KeyTile::of(args, work);
        if !has_keys(&tile) {
            continue;
        }
        let (full_keys, full_values) = (keys.wait(), values.wait());
        // SAFETY: as promised by the caller.
        let gradients = unsafe { attend(&mut mainloop, args, &tile, thread) };
        keys.release(full_keys, thread);
        // Computed anew: the mainloop has no registers for what it does not use.
        let (tile, consumer) = (KeyTile::of(args, uniform(work)), consumer_idx());
        let rows = RowsOfKeys {
            args,
            tile: &tile,
            consumer,
        };
        let Gradients {
            keys,
            values: of_value,
        } = gradients;
        // SAFETY: the tile of values is this consumer's until it is released. The rows are its own.
        unsafe {
            store::<C>(
                block,
                of_values,
                args.values,
                rows,
                &of_value.wait(),
                thread,
            );
            // A warp's rows of dV are read before those of dK take their place.
            sync_warp();
            let scale = args.scale;
            let of_key = keys.wait().map(|_, value| value * scale);
            store::<C>(block, of_keys, args.keys, rows, &of_key, thread);
        }
        warpgroup_sync(consumer);
        values.release(full_values, thread);
    }
}

/// dK, without the scale, and dV of a consumer's keys.
///
/// # Safety
/// As [`backward`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn attend<C: Config>(
    mainloop: &mut Mainloop<C>,
    args: &BackwardArgs,
    tile: &KeyTile,
    thread: WarpgroupThread,
) -> Gradients<C> {
    let places = ScorePlaces::of::<C::Scores>(thread);
    let (transposed, window) = (tile.sequence.transposed(), args.window.transposed());
    let first = first_key(tile) + consumer_idx().own(ROWS, 0) as i32;
    let keys = KeysOfConsumer::new(first, transposed, window, args.scale, places);
    let blocks = query_blocks::<C>(args, tile);
    let before = KeyTile {
        of_keys: tile.of_keys.saturating_sub(1),
        ..*tile
    };
    let turns = Turns::of(args.turns, tile, query_blocks::<C>(args, &before));
    let masked = count_masked(tile, &blocks);
    let mut gradients = Gradients::<C>::new();
    for head in args.heads_of(tile) {
        let first = args.blocks.first(tile.nth, head);
        let step = |nth: u32| {
            let block = blocks.block(nth);
            let sums = i64::from(first + block) * (CONSUMERS * SumsOfBlock::SIZE) as i64;
            Step {
                first_query: (block * C::QUERIES as u32) as i32,
                query_sums: args.query_sums.offset(sums),
                turn: turns.at(block, first + block),
            }
        };
        // SAFETY: as promised by the caller.
        unsafe {
            for nth in masked..blocks.count() {
                mainloop.step::<false>(&mut gradients, &keys, step(nth));
            }
            for nth in 0..masked {
                mainloop.step::<true>(&mut gradients, &keys, step(nth));
            }
        }
    }
    gradients
}

/// Where the gradients of a consumer's keys go.
#[derive(Clone, Copy)]
struct RowsOfKeys<'a> {
    args: &'a BackwardArgs,
    tile: &'a KeyTile,
    consumer: WarpgroupIdx,
}

/// Stores dK or dV of a consumer's keys.
///
/// # Safety
/// The consumer's tile of values must be in no other use. `to` must have the rows.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn store<C: Config>(
    block: Storage<C>,
    to: GlobalMut<C::Element>,
    strides: Strides,
    RowsOfKeys {
        args,
        tile,
        consumer,
    }: RowsOfKeys<'_>,
    values: &OfKeys<C>,
    thread: WarpgroupThread,
) {
    let KeyTile {
        sequence,
        head,
        of_keys,
        ..
    } = *tile;
    let to = to.offset(sequence.offset(sequence.first_key, head, strides));
    let rows = RowMajor::new([sequence.keys, args.features], strides[1]);
    let nth = of_keys * CONSUMERS as u32 + consumer.own(1, 0);
    // SAFETY: as promised by the caller.
    unsafe {
        store_rows::<C::OfKeys, _, C::Values, C::StoresOfKeys>(
            block.values.0.tile(consumer),
            (to, rows),
            (nth, 0u32),
            values,
            thread,
        );
    }
}
