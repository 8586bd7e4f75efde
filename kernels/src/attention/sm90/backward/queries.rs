//! The end of the backward pass: dQ of its sums in f32.

use cutlet_device::warpgroup::{warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::{GlobalMut, MmaInstruction, SharedStorage, block_idx};
use cutlet_layout_core::{Fixed, Fragment, NoSwizzle, RowMajor, StaticLayout, Tensor};

use super::args::QueriesArgs;
use super::config::{Config, StoresOfQueries, SumsOfBlock, SumsOfThread, TilesOfQueries};
use super::rows::store_rows;
use crate::attention::scheduler::Sequence;
use crate::attention::sm90::config::CONSUMERS;

/// Threads of a block: as many as those that wrote the sums of a block of queries.
pub const THREADS: u32 = 128 * CONSUMERS as u32;

/// What a block keeps in shared memory: a tile for each warpgroup.
#[derive(Clone, Copy, SharedStorage)]
pub struct Storage<C: Config> {
    tiles: TilesOfQueries<C>,
}

/// Writes dQ of a block of queries.
///
/// # Safety
/// `to` and the sums must be those of the arguments.
#[inline(always)]
pub unsafe fn queries<C: Config>(
    to: GlobalMut<C::Element>,
    args: QueriesArgs,
    storage: Storage<C>,
) {
    let (warpgroup, thread) = (warpgroup_idx(), warpgroup_thread_idx());
    let block = args.blocks.of_threads(block_idx().x);
    let sequence = Sequence::of(&args.sequences, block.sequence);
    let start = sequence.offset(sequence.first_query, block.head, args.strides);
    let rows = RowMajor::new([sequence.queries, args.features], args.strides[1]);
    let part = warpgroup.own(1, 0);
    let place = match C::DIVIDES_FEATURES {
        true => (block.of_queries, part),
        false => (block.of_queries * CONSUMERS as u32 + part, 0),
    };
    let own =
        (i64::from(block.nth) * CONSUMERS as i64 + i64::from(part)) * SumsOfBlock::SIZE as i64;
    // SAFETY: as promised by the caller. The tile is the warpgroup's.
    unsafe {
        let sums = Tensor::new(
            args.query_sums.as_global().offset(own),
            Fixed::<SumsOfBlock, NoSwizzle>::new(),
        );
        let sums = sums.partition::<SumsOfThread>(thread).load(0.0);
        let values = Fragment::<f32, <C::OfQueries as MmaInstruction>::Values>::from_fn(|v| {
            args.scale * sums.get(v)
        });
        let tile = storage.tiles.tile(warpgroup);
        store_rows::<C::OfQueries, _, _, StoresOfQueries>(
            tile,
            (to.offset(start), rows),
            place,
            &values,
            thread,
        );
    }
}
