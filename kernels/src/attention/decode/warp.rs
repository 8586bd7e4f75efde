//! A warp: its stages of keys and values, the two products, and the softmax between them.

use core::array;

use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
use cutlet_device::tile::{KMajor, MnMajor, OperandLayout, OperandTile, SwizzleSpan};
use cutlet_device::tiled::{
    CpAsync, LdMatrix, LdMatrixTransposed, copy, copy_if, gemm, load_a, load_b,
};
use cutlet_device::{Global, LaneIdx, Shared, lane_idx, sync_warp};
use cutlet_layout_core::{
    Bound, CopyPartition, Fixed, Fragment, Gather, L, Partition, Tensor, ThreadMma, TiledCopy, each,
};

use super::args::ROWS;
use super::cache::{CachedRows, CpAsyncBoth, KeysAndValues};
use super::rows::PackedRows;
use super::scores::Scores;
use super::storage::{Cache, Outputs, Ring, block_of};
use super::warps::{STAGES, Warps};
use crate::attention::element::{
    Accumulators, Element, OperandA, Products, StepsOfBlock, TileOfBlock, warp_of_block,
};
use crate::attention::mask::{RowsOfThread, ScorePlaces};
use crate::attention::softmax::{Softmax, normalised};

/// The scores of 16 rows and 16 keys.
type TileOfScores = L!((16, 16):(1@0, 1@1));
/// A warp's copies, of queries and of keys and values: eight features a lane.
type CopyQueries = TiledCopy<CpAsync<8>, L!((4, 8):(8, 1)), L!((1, 8):(0, 1))>;
type CopyBoth = TiledCopy<CpAsyncBoth, L!((4, 8):(8, 1)), L!((1, 8):(0, 1))>;

/// A sequence's keys and values.
pub(super) type CacheTensor<T> = Tensor<KeysAndValues<Global<T>>, Gather<CachedRows>>;
/// A lane's part of a tile of them.
type Source<T> =
    Partition<KeysAndValues<Global<T>>, Gather<CachedRows>, CopyPartition<CopyBoth, TileOfBlock>>;

/// A block of features of a stage.
type BothTiles<T> = Tensor<
    KeysAndValues<Shared<T>>,
    Fixed<OperandLayout<T, KMajor, 16, 64, 128>, SwizzleSpan<T, 128>>,
>;

/// A warp of a block.
#[derive(Clone, Copy)]
pub(super) struct Warp<T: Element, W: Warps, const D: usize, const BLOCKS: usize> {
    lane: LaneIdx,
    mma: ThreadMma<Products<T>, LaneIdx>,
    keys: Ring<T, W, D>,
    values: Ring<T, W, D>,
    /// Its number.
    nth: u32,
}

impl<T: Element, W: Warps, const D: usize, const BLOCKS: usize> Warp<T, W, D, BLOCKS> {
    /// The running lane's warp.
    #[inline(always)]
    pub fn new((keys, values): Cache<T, W, D>) -> Self {
        const { assert!(64 * BLOCKS == D, "a block has 64 features") };
        Self {
            lane: lane_idx(),
            mma: Products::<T>::thread_slice(lane_idx()),
            keys,
            values,
            nth: warp_of_block(),
        }
    }

    /// The tile of a stage.
    #[inline(always)]
    fn stage(&self, nth: u32) -> u32 {
        self.nth * STAGES + nth
    }

    /// Where a block of features of a stage is in the rings.
    ///
    /// # Safety
    /// Barriers must order reads and writes.
    #[inline(always)]
    unsafe fn both(&self, stage: u32, block: usize) -> BothTiles<T> {
        let of = |ring: Ring<T, W, D>| block_of(ring.tile(self.stage(stage)), block).start();
        let tiles = KeysAndValues {
            keys: of(self.keys),
            values: of(self.values),
        };
        // SAFETY: as promised by the caller. The tiles have these elements.
        unsafe { Tensor::new(tiles, Fixed::new()) }
    }

    /// Copies a lane's part of a tile of keys and values. What does not exist becomes zeros.
    ///
    /// # Safety
    /// No lane may read the stage until it has arrived, or have to read what was there before.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn fill(&self, stage: u32, from: &Source<T>) {
        for block in 0..BLOCKS {
            // SAFETY: as promised by the caller.
            let to = unsafe { self.both(stage, block) };
            let to = CopyBoth::thread_slice(self.lane).partition(to);
            let from = from.moved_along_rows((64 * block) as i32);
            copy_if(&from, &to, |v| from.bound().holds(v));
        }
    }

    /// Copies a lane's part of the queries to where the values of a stage will be.
    ///
    /// # Safety
    /// As [`fill`](Self::fill).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn fill_queries(&self, stage: u32, rows: Tensor<Global<T>, Gather<PackedRows>>) {
        let copies = CopyQueries::thread_slice(self.lane);
        let from = copies.partition(rows.local_tile::<TileOfBlock>((0u32, 0u32)));
        for block in 0..BLOCKS {
            // SAFETY: as promised by the caller.
            let to = unsafe { block_of(self.values.tile(self.stage(stage)), block).tensor() };
            let from = from.moved_along_rows((64 * block) as i32);
            copy(&from, &copies.partition(to));
        }
    }

    /// Attends with the rows of a tile to the warp's tiles of keys among `begin..end`.
    ///
    /// # Safety
    /// The stages must be the warp's alone.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn attend(
        &self,
        queries: Tensor<Global<T>, Gather<PackedRows>>,
        cache: CacheTensor<T>,
        [begin, end]: [u32; 2],
        scores: Scores,
    ) -> Attended<T, BLOCKS> {
        let copies = CopyBoth::thread_slice(self.lane);
        // It reads the pages of the lane's rows.
        let source = |tile| copies.partition(cache.local_tile::<TileOfBlock>((tile, 0u32)));
        // SAFETY: a stage is filled when all lanes have met after they read it.
        let fill = |stage, tile, from: &Source<T>| unsafe {
            if tile < end {
                self.fill(stage, from);
            }
            cp_async_commit();
        };
        let last = const { STAGES - 1 };
        let mut tile = begin + self.nth;
        // The queries arrive with the first tile, where the last stage will be.
        // SAFETY: the last stage is filled when the queries have been read.
        unsafe { self.fill_queries(last, queries) };
        for stage in 0..last {
            let tile = tile + W::WARPS * stage;
            fill(stage, tile, &source(tile));
        }
        let mut next = source(tile + W::WARPS * last);
        cp_async_wait::<{ STAGES - 2 }>();
        sync_warp();
        let queries = self.queries(last);

        let mut softmax = Softmax::new(scores.scale);
        let mut output = [self.mma.fragment_c::<TileOfBlock, f32>(0.0); BLOCKS];
        let mut stage = 0;
        while tile < end {
            cp_async_wait::<{ STAGES - 2 }>();
            // The stage has arrived, and all lanes have read the one before.
            sync_warp();
            let free = if stage == 0 { last } else { stage - 1 };
            fill(free, tile + W::WARPS * last, &next);
            next = source(tile + W::WARPS * (last + 1));

            let products = self.products(&queries, stage);
            let (weights, rescale) = softmax.add(&scores.of_tile(products, tile));
            let weights = T::operand::<TileOfScores>(self.mma, &weights, 0);
            for (block, output) in output.iter_mut().enumerate() {
                *output = output.map(|v, value| value * rescale[ScorePlaces::row_of(v)]);
                self.add_values(block, stage, &weights, output);
            }
            tile += W::WARPS;
            stage = if stage == last { 0 } else { stage + 1 };
        }
        cp_async_wait::<0>();
        Attended {
            output,
            softmax,
            places: scores.places,
        }
    }

    /// The queries as operand A, from where they arrived.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn queries(&self, stage: u32) -> [Fragment<OperandA<T, TileOfBlock>, StepsOfBlock>; BLOCKS] {
        array::from_fn(|block| {
            // SAFETY: the queries have arrived.
            let tile = unsafe { block_of(self.values.tile(self.stage(stage)), block).tensor() };
            Fragment::from_fn(|step| load_a(LdMatrix, self.mma, tile, step))
        })
    }

    /// The products of the queries and the keys of a stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn products(
        &self,
        queries: &[Fragment<OperandA<T, TileOfBlock>, StepsOfBlock>; BLOCKS],
        stage: u32,
    ) -> Accumulators<T, TileOfScores> {
        let mut products = self.mma.fragment_c::<TileOfScores, f32>(0.0);
        for (block, queries) in queries.iter().enumerate() {
            // SAFETY: the stage has arrived.
            let keys = unsafe { block_of(self.keys.tile(self.stage(stage)), block).tensor() };
            each::<StepsOfBlock>(|step| {
                let keys = load_b(LdMatrix, self.mma, keys, step);
                gemm::<_, _, _, _, _, _, TileOfScores>(
                    self.mma,
                    &queries.get(step),
                    &keys,
                    &mut products,
                );
            });
        }
        products
    }

    /// Adds the weighted values of a stage to a block of features of the output.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add_values(
        &self,
        block: usize,
        stage: u32,
        weights: &OperandA<T, TileOfScores>,
        output: &mut Accumulators<T, TileOfBlock>,
    ) {
        let values = block_of(self.values.tile(self.stage(stage)), block);
        // Lines along features are rows of values, and columns of operand B.
        let values = OperandTile::<T, MnMajor, 64, 16>::from_shared(values.start());
        // SAFETY: the stage has arrived.
        let values = load_b(LdMatrixTransposed, self.mma, unsafe { values.tensor() }, 0);
        gemm::<_, _, _, _, _, _, TileOfBlock>(self.mma, weights, &values, output);
    }

    /// Writes what the warp has attended to.
    ///
    /// # Safety
    /// No warp may access the stages any more.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn give(&self, attended: Attended<T, BLOCKS>, outputs: Outputs<W, D>) {
        let Attended {
            output,
            softmax,
            places,
        } = attended;
        let (factors, logarithms) = softmax.finish(f32::NEG_INFINITY);
        let tile = outputs.values.tile(self.nth);
        for (block, output) in output.iter().enumerate() {
            let output = normalised(output, factors);
            // SAFETY: the tile is the warp's.
            let to = unsafe { block_of(tile, block).tensor() };
            self.mma.partition_c_in_vectors::<2, _>(to).store(&output);
        }
        // One of the four lanes of a row writes.
        each::<RowsOfThread>(|nth| {
            if places.column == 0 {
                let row = self.nth * ROWS + places.row_below(nth) as u32;
                // SAFETY: the rows are the warp's.
                unsafe { outputs.logarithms.store(i64::from(row), logarithms[nth]) };
            }
        });
    }
}

/// What a warp makes of its keys, before it is divided by the sums of weights.
#[derive(Clone, Copy)]
pub(super) struct Attended<T: Element, const BLOCKS: usize> {
    output: [Accumulators<T, TileOfBlock>; BLOCKS],
    softmax: Softmax,
    places: ScorePlaces,
}
