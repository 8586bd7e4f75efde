//! The kernel: attention of the queries of a tile, block by block of keys.

use cutlet_device::collective::CpAsyncPipeline;
use cutlet_device::{DeviceData, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, lane_idx};
use cutlet_layout_core::{Divide, Engine, Fragment, RowMajor, Tensor, each};

use super::loader::Loader;
use super::storage::{KEYS, Storage, WARPS};
use super::warp::{Times, Warp};
use crate::attention::args::{Args, OperandStrides};
use crate::attention::element::Element;
use crate::attention::mask::{KeyBlocks, ScorePlaces};
use crate::attention::rows::Rows;
use crate::attention::scheduler::{Sequence, WorkTile};
use crate::attention::score_mod::ScoreMod;
use crate::attention::scores::ScoresOfRows;
use crate::attention::softmax::Softmax;

/// Threads of a block.
pub const THREADS: u32 = 32 * WARPS as u32;

/// Queries of a tile whose warps have 16 · `atoms`.
pub const fn queries(atoms: usize) -> u32 {
    (16 * WARPS * atoms) as u32
}

/// The tile of the block. The grid has a block for each.
///
/// # Safety
/// `strides` and `args` must describe the tensors, whose rows begin at multiples of 16 bytes, and which must have the
/// rows of all sequences. Features are a multiple of 8, and at most 64 · `BLOCKS`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn attention<
    T: Element,
    M: ScoreMod,
    const BLOCKS: usize,
    const ATOMS: usize,
    const STAGES: usize,
>(
    thread: ThreadIdx<impl ThreadGroup>,
    queries: Global<T>,
    keys: Global<T>,
    values: Global<T>,
    output: GlobalMut<T>,
    args: Args,
    strides: OperandStrides,
    score_mod: M,
    storage: Storage<T, BLOCKS, ATOMS, STAGES>,
) {
    let tile = WorkTile::of_block(&args.tiles, block_idx().x);
    let sequence = Sequence::of(&args.sequences, tile.sequence);
    let of_tile = const { self::queries(ATOMS) };
    let first_query = (tile.of_queries * of_tile) as i32;
    if first_query >= sequence.queries {
        return;
    }
    let blocks = KeyBlocks::of(first_query, of_tile as i32, KEYS, sequence, args.window);
    let head_of_keys = args.sequences.group.div_rem(tile.head).0;
    // SAFETY: as promised by the caller.
    let of_keys = |tensor, strides| unsafe {
        let before = sequence.offset(sequence.first_key, head_of_keys, strides);
        matrix(
            tensor,
            before,
            strides,
            [sequence.keys, args.output.features],
        )
    };
    let mut loader = Loader {
        thread,
        keys: of_keys(keys, strides.keys),
        values: of_keys(values, strides.values),
        blocks,
        stages: storage.stages,
        pipeline: CpAsyncPipeline::new(),
    };
    let warp = Warp::new(storage);
    let rows = |atom| Rows {
        sequence,
        tile,
        first_query: (Warp::<T, BLOCKS, ATOMS, STAGES>::rows(tile, atom) * 16) as i32,
    };
    let extent = [sequence.queries, args.output.features];
    // SAFETY: as promised by the caller. Queries are read after the first keys have arrived.
    unsafe {
        let before = rows(0).offset(strides.queries);
        warp.load_queries(matrix(queries, before, strides.queries, extent), tile);
    }
    loader.begin();

    let places = ScorePlaces::of_lane(lane_idx());
    let scores_of = |atom| ScoresOfRows::new(&args, &score_mod, rows(atom), places);
    let mut softmax = [Softmax::new(scores_of(0).scale()); ATOMS];
    let mut output_of = warp.no_output();
    for nth in 0..blocks.count() {
        let scores = warp.multiply_keys(loader.wait_for_keys(nth));
        let values = loader.wait_for_values(nth);
        let first_key = (blocks.block(nth) * KEYS) as i32;
        let are_masked = !M::IS_IDENTITY || nth < blocks.count_masked();
        let weights = Fragment::from_fn(|atom| {
            let scores = scores_of(atom).of_keys(&scores[atom], first_key, are_masked);
            let (weights, rescale) = softmax[atom].add(&scores);
            each::<Times<BLOCKS>>(|block| {
                let output = &mut output_of[atom][block];
                *output = output.map(|v, value| value * rescale[ScorePlaces::row_of(v)]);
            });
            warp.operand(&weights)
        });
        warp.multiply_values(&weights, values, &mut output_of);
    }
    loader.pipeline.drain();

    each::<Times<ATOMS>>(|atom| {
        let rows = rows(atom);
        // SAFETY: as promised by the caller. All warps are done with queries and stages.
        unsafe {
            let (factors, logarithms) = softmax[atom].finish(args.sink(tile.head));
            let to = rows.offset(args.output.strides);
            let to = matrix(output, to, args.output.strides, extent);
            warp.store((atom, &output_of[atom]), factors, to, tile);
            rows.store_log_sum_exp(&args.output, logarithms, places);
        }
    });
}

/// The rows of a sequence and a head, which are so many elements after the tensor's first one.
///
/// # Safety
/// They must exist.
#[inline(always)]
unsafe fn matrix<T: DeviceData, E: Engine<Element = T>>(
    tensor: E,
    before: i64,
    [_, of_row, _]: [i64; 3],
    extent: [i32; 2],
) -> Tensor<E, RowMajor> {
    // SAFETY: as promised by the caller.
    unsafe { Tensor::new(tensor.offset(before), RowMajor::new(extent, of_row)) }
}
