//! The kernel: attention, by the roles of a block's warpgroups.
//!
//! One thread of the first warpgroup is the *producer*: it loads queries, keys and values by TMA. Each of the two other
//! warpgroups is a *consumer* of 64 of a tile's queries. For each block of keys it multiplies queries and keys, makes
//! weights of the scores, and multiplies these by the values. The consumers take turns at the tensor cores: while one
//! of them makes weights, the other one multiplies.

use cutlet_device::collective::{BackAndForth, Producer, Stages};
use cutlet_device::tma::{LoadOptions, TensorMap, prefetch_tensor_map};
use cutlet_device::warpgroup::{
    WarpgroupIdx, WarpgroupThread, decrease_registers, increase_registers, warpgroup_idx,
    warpgroup_thread_idx,
};
use cutlet_device::{
    GlobalMut, elect_one, grid_dependency_wait, launch_dependents, sync_threads, uniform,
    warp_idx_sync,
};

use cutlet_layout_core::Divide;

use super::config::{CONSUMERS, Config, ROWS, Storage, Tile};
use super::mainloop::Mainloop;
use super::scores::ScoresOfRows;
use super::store::{Rows, store};
use crate::attention::args::Args;
use crate::attention::mask::{KeyBlocks, ScorePlaces};
use crate::attention::scheduler::{Sequence, WorkTile};
use crate::attention::score_mod::ScoreMod;

/// All tiles that are this block's. Any grid computes all.
///
/// # Safety
/// The kernel must have the threads of `C`. The maps must describe queries, keys and values as (feature, row, head,
/// sequence), with the boxes of `C`. `output` must be the memory that `args` describes, which must have the rows of all
/// sequences.
#[inline(always)]
pub unsafe fn attention<C: Config, M: ScoreMod>(
    queries: &TensorMap,
    keys: &TensorMap,
    values: &TensorMap,
    output: GlobalMut<C::Element>,
    args: Args,
    score_mod: M,
    block: Storage<C>,
) {
    let () = C::CHECK;
    let (warp, warpgroup, thread) = (warp_idx_sync(), warpgroup_idx(), warpgroup_thread_idx());
    launch_dependents();
    if warp.is_first() && elect_one() {
        prefetch_tensor_map(queries);
        prefetch_tensor_map(keys);
        prefetch_tensor_map(values);
        // SAFETY: no thread uses the barriers before the block has met.
        unsafe {
            block.queries.1.init(1, 1);
            block.keys.1.init(1, CONSUMERS as u32);
            block.values.1.init(1, CONSUMERS as u32);
        }
    }
    sync_threads();
    grid_dependency_wait();

    if warpgroup.is_first() {
        decrease_registers::<40>();
        if warp.is_first() && elect_one() {
            let loader = Loader::<C> {
                maps: [queries, keys, values],
                block,
                args: &args,
            };
            // SAFETY: as promised by the caller.
            unsafe { loader.produce() };
        }
        return;
    }
    increase_registers::<232>();
    let consumer = warpgroup.after(1);
    // SAFETY: as promised by the caller.
    unsafe { consume::<C, M>(output, &args, &score_mod, block, (consumer, thread)) };
}

/// Whether the tile has queries. A sequence that is shorter than the longest one has tiles without.
#[inline(always)]
fn has_queries<C: Config>(tile: WorkTile, sequence: Sequence) -> bool {
    ((tile.of_queries * C::QUERIES) as i32) < sequence.queries
}

/// The blocks of keys that a tile sees.
#[inline(always)]
fn key_blocks<C: Config>(args: &Args, tile: WorkTile, sequence: Sequence) -> KeyBlocks {
    let query = tile.of_queries * C::QUERIES;
    let (rows, block) = (C::QUERIES as i32, C::KEYS as u32);
    KeyBlocks::of(query as i32, rows, block, sequence, args.window)
}

/// The producer: loads the tiles of every work tile.
struct Loader<'a, C: Config> {
    maps: [&'a TensorMap; 3],
    block: Storage<C>,
    args: &'a Args,
}

impl<C: Config> Loader<'_, C> {
    /// # Safety
    /// The maps must be those of the launch. One thread calls it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn produce(&self) {
        let Storage {
            queries,
            keys,
            values,
        } = self.block;
        let (mut of_queries, mut of_keys, mut of_values) =
            (queries.1.producer(), keys.1.producer(), values.1.producer());
        for work in BackAndForth::new(self.args.tiles.count()) {
            let tile = WorkTile::of(&self.args.tiles, work);
            let sequence = Sequence::of(&self.args.sequences, tile.sequence);
            if !has_queries::<C>(tile, sequence) {
                continue;
            }
            let blocks = key_blocks::<C>(self.args, tile, sequence);
            // SAFETY: as promised by the caller.
            unsafe {
                // Consumers release keys before queries.
                self.load_keys(&mut of_keys, tile, sequence, blocks.block(0));
                self.load_queries(&mut of_queries, tile, sequence);
                // Consumers multiply the next block's keys before a block's values.
                for nth in 1..blocks.count() {
                    self.load_keys(&mut of_keys, tile, sequence, blocks.block(nth));
                    self.load_values(&mut of_values, tile, sequence, blocks.block(nth - 1));
                }
                let last = blocks.block(blocks.count() - 1);
                self.load_values(&mut of_values, tile, sequence, last);
            }
        }
    }

    /// Loads the queries of each consumer.
    ///
    /// # Safety
    /// As [`produce`](Self::produce), and as the functions below.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_queries(
        &self,
        stages: &mut Producer<Stages<CONSUMERS>>,
        tile: WorkTile,
        sequence: Sequence,
    ) {
        for consumer in 0..CONSUMERS as u32 {
            let filling = stages.acquire(Tile::<C, C::Queries>::BYTES);
            let query = ((tile.of_queries * CONSUMERS as u32 + consumer) * ROWS as u32) as i32;
            let at = [
                sequence.first_query + query,
                0,
                tile.head as i32,
                sequence.nth,
            ];
            let to = self.block.queries.0.stage(filling.stage());
            // SAFETY: the map has the tile's box, and the stage is empty.
            unsafe { to.load(self.maps[0], at, filling.barrier(), LoadOptions::DEFAULT) };
        }
    }

    /// The head of the keys and values.
    #[inline(always)]
    fn head_of_keys(&self, tile: WorkTile) -> i32 {
        self.args.sequences.group.div_rem(tile.head).0 as i32
    }

    /// Loads a block of keys.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_keys(
        &self,
        stages: &mut Producer<C::Stages>,
        tile: WorkTile,
        sequence: Sequence,
        block: u32,
    ) {
        let filling = stages.acquire(Tile::<C, C::Keys>::BYTES);
        let key = sequence.first_key + block as i32 * C::KEYS as i32;
        let at = [key, 0, self.head_of_keys(tile), sequence.nth];
        let to = self.block.keys.0.stage(filling.stage());
        // SAFETY: as above.
        unsafe { to.load(self.maps[1], at, filling.barrier(), LoadOptions::DEFAULT) };
    }

    /// Loads a block of values.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_values(
        &self,
        stages: &mut Producer<C::Stages>,
        tile: WorkTile,
        sequence: Sequence,
        block: u32,
    ) {
        let filling = stages.acquire(Tile::<C, C::Values>::BYTES);
        let key = sequence.first_key + block as i32 * C::KEYS as i32;
        let at = [0, key, self.head_of_keys(tile), sequence.nth];
        let to = self.block.values.0.stage(filling.stage());
        // SAFETY: as above.
        unsafe { to.load(self.maps[2], at, filling.barrier(), LoadOptions::DEFAULT) };
    }
}

/// A consumer: the attention of its queries of every work tile.
///
/// # Safety
/// As [`attention`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn consume<C: Config, M: ScoreMod>(
    output: GlobalMut<C::Element>,
    args: &Args,
    score_mod: &M,
    block: Storage<C>,
    (consumer, thread): (WarpgroupIdx, WarpgroupThread),
) {
    let mut mainloop = Mainloop::<C>::new(block, consumer, thread);
    let places = ScorePlaces::of::<C::Scores>(thread);
    for work in BackAndForth::new(args.tiles.count()) {
        let rows = Rows::of(args, work, consumer);
        if !has_queries::<C>(rows.tile, rows.sequence) {
            continue;
        }
        let blocks = key_blocks::<C>(args, rows.tile, rows.sequence);
        let scores = ScoresOfRows::new(args, score_mod, rows, places);
        let (values, softmax) = mainloop.attend(blocks, &scores);
        // Computed anew: the mainloop has no registers for what it does not use.
        let rows = Rows::of(args, uniform(work), consumer);
        let places = ScorePlaces::of::<C::Scores>(thread);
        // SAFETY: the launcher promises a sink for each head.
        let sink = unsafe { args.sink(rows.tile.head) };
        let (factors, logarithms) = softmax.finish(sink);
        // SAFETY: the rows are this consumer's own.
        unsafe {
            store::<C>(output, &args.output, rows, (&values, factors), thread);
            rows.store_log_sum_exp(&args.output, logarithms, places);
        }
    }
}
