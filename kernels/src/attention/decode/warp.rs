//! A warp: its stages of keys and values, the two products, and the softmax between them.

use core::array;

use cutlet_device::collective::{Stages, TileRing};
use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
use cutlet_device::sm80::{Mma16816, WarpMma};
use cutlet_device::tile::{KMajor, MnMajor, OperandLayout, OperandTile, SharedTile, SwizzleSpan};
use cutlet_device::tiled::{
    CpAsync, FragmentA, FragmentC, LdMatrix, LdMatrixTransposed, accumulators_as_a, copy, copy_if,
    gemm, load_a, load_b,
};
use cutlet_device::{
    DeviceData, Float16, Global, LaneIdx, MmaInstruction, Shared, SharedArray, SharedStorage,
    SharedUnion, lane_idx, sync_warp, tanh_approx, warp_idx_sync,
};
use cutlet_layout_core::{
    Bound, CopyPartition, Fixed, Fragment, FragmentLayout, Gather, InOrder, L, M16N8K16Bits16, Mma,
    Partition, Tensor, ThreadMma, TiledCopy, TiledMma, each, tile_origin,
};
use half::{bf16, f16};

use super::args::{DecodeArgs, KEYS, ROWS, WARPS, Work};
use super::cache::{CachedRows, CpAsyncBoth, KeysAndValues};
use super::rows::PackedRows;
use crate::attention::mask::{RowsOfThread, ScorePlaces, VisibleKeys, mask};
use crate::attention::scheduler::Sequence;
use crate::attention::softmax::Softmax;

/// Stages of a warp. While one is multiplied, the others arrive.
const STAGES: usize = 3;
/// 16 rows or keys of a block of 64 features, which a line of 128 bytes holds.
pub(super) type TileOfBlock = L!((16, 64):(1@0, 1@1));
/// The scores of 16 rows and 16 keys.
type TileOfScores = L!((16, 16):(1@0, 1@1));
/// The k-steps of a block of features.
type StepsOfBlock = L!(4:1);
/// A warp's copies, of queries and of keys and values: eight features a lane.
type CopyQueries = TiledCopy<CpAsync<8>, L!((4, 8):(8, 1)), L!((1, 8):(0, 1))>;
type CopyBoth = TiledCopy<CpAsyncBoth, L!((4, 8):(8, 1)), L!((1, 8):(0, 1))>;

/// The atom, which a warp executes for itself.
type Atom = M16N8K16Bits16;
type OneWarp = L!((1, 1):(0, 0));
type Products<T> = TiledMma<<T as Element>::Instruction, OneWarp>;
type Accumulators<T, Tile> = FragmentC<<T as Element>::Instruction, OneWarp, InOrder, Tile>;
type OperandA<T, Tile> = FragmentA<<T as Element>::Instruction, OneWarp, Tile>;

/// An element type, by its instruction.
pub trait Element: Float16 + Default {
    /// The instruction.
    type Instruction: WarpMma<FragmentA = [u32; 4], FragmentB = [u32; 2]>
        + MmaInstruction<
            A = Self,
            B = Self,
            Acc = f32,
            Values = <Mma16816<bf16> as MmaInstruction>::Values,
        > + Mma<
            LayoutA = <Atom as Mma>::LayoutA,
            LayoutB = <Atom as Mma>::LayoutB,
            LayoutC = <Atom as Mma>::LayoutC,
            RowsOfC = <Atom as Mma>::RowsOfC,
            M = <Atom as Mma>::M,
            N = <Atom as Mma>::N,
            K = <Atom as Mma>::K,
        >;

    /// Weights as operand A of their product with values.
    #[doc(hidden)]
    fn operand(
        mma: ThreadMma<Products<Self>, LaneIdx>,
        weights: &Accumulators<Self, TileOfScores>,
    ) -> OperandA<Self, TileOfScores>;
}

macro_rules! element {
    ($($element:ty),+) => {$(
        impl Element for $element {
            type Instruction = Mma16816<$element>;

            #[inline(always)]
            fn operand(
                mma: ThreadMma<Products<Self>, LaneIdx>,
                weights: &Accumulators<Self, TileOfScores>,
            ) -> OperandA<Self, TileOfScores> {
                accumulators_as_a::<_, _, _, TileOfScores>(mma, weights, 0)
            }
        }
    )+};
}
element!(bf16, f16);

/// The stages of all warps: tiles of 16 keys or values of `D` features.
type Ring<T, const D: usize> = TileRing<
    T,
    OperandLayout<T, KMajor, 16, D, 128>,
    SwizzleSpan<T, 128>,
    Stages<{ WARPS as usize * STAGES }>,
>;
/// Stages of keys and of values.
pub(super) type Cache<T, const D: usize> = (Ring<T, D>, Ring<T, D>);

/// Outputs of the warps, and the logarithms of the sums of their rows.
#[derive(Clone, Copy, SharedStorage)]
pub struct Outputs<const D: usize> {
    /// A tile of a warp's rows for each.
    pub(super) values: TileRing<
        f32,
        OperandLayout<f32, KMajor, 16, D, 128>,
        SwizzleSpan<f32, 128>,
        Stages<{ WARPS as usize }>,
    >,
    /// The rows of each warp.
    pub(super) logarithms: SharedArray<f32, { (WARPS * ROWS) as usize }>,
}

/// What a block keeps in shared memory: stages first, outputs in the end.
pub type Storage<T, const D: usize> = SharedUnion<Cache<T, D>, Outputs<D>>;

/// A block of 64 features of a tile of 16 rows, which has such blocks one after the other.
#[inline(always)]
pub(super) fn block_of<T: DeviceData, const D: usize>(
    tile: SharedTile<T, OperandLayout<T, KMajor, 16, D, 128>, SwizzleSpan<T, 128>>,
    block: usize,
) -> OperandTile<T, KMajor, 16, 64> {
    let elements = const { 16 * 64 };
    SharedTile::from_shared(tile.start().offset((elements * block) as i64))
}

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

/// What becomes of scores.
#[derive(Clone, Copy)]
pub(super) struct Scores {
    /// What the softmax multiplies scores by.
    scale: f32,
    /// What products are multiplied by before the cap.
    scale_before: f32,
    /// The cap, or 0.
    soft_cap: f32,
    /// Where the lane's scores are.
    places: ScorePlaces,
    /// The keys that the lane's rows see.
    visible: [VisibleKeys; ScorePlaces::ROWS],
    /// The key of the first tile's first one.
    first_key: i32,
}

impl Scores {
    /// Those of a lane. The first tile begins with the key `first_key`.
    #[inline(always)]
    pub fn new(args: &DecodeArgs, work: Work, sequence: Sequence, first_key: i32) -> Self {
        let all = Tensor::identity([16, 16]).local_tile::<TileOfScores>((0, 0));
        let mma = Products::<bf16>::thread_slice(lane_idx());
        let [row, column] = mma.partition_c(all).coordinate(0);
        let places = ScorePlaces { row, column };
        let visible = [0, 1].map(|nth| {
            let row = work.tile * ROWS + places.row_below(nth) as u32;
            let (query, _) = args.work.query_and_head(work.head, row);
            VisibleKeys::of(query as i32, sequence, args.window)
        });
        let [scale, scale_before] = match args.soft_cap == 0.0 {
            true => [args.scale, 0.0],
            false => [1.0, args.scale / args.soft_cap],
        };
        Self {
            scale,
            scale_before,
            soft_cap: args.soft_cap,
            places,
            visible,
            first_key,
        }
    }

    /// The scores of a tile for the softmax: capped and masked.
    #[inline(always)]
    fn of_tile<V: FragmentLayout>(
        &self,
        products: Fragment<f32, V>,
        tile: u32,
    ) -> Fragment<f32, V> {
        let capped = match self.soft_cap == 0.0 {
            true => products,
            false => products.map(|_, it| self.soft_cap * tanh_approx(it * self.scale_before)),
        };
        let first_key = self.first_key + (tile * KEYS) as i32;
        mask(&capped, self.places, self.visible, first_key)
    }
}

/// A warp of a block.
#[derive(Clone, Copy)]
pub(super) struct Warp<T: Element, const D: usize, const BLOCKS: usize> {
    lane: LaneIdx,
    mma: ThreadMma<Products<T>, LaneIdx>,
    keys: Ring<T, D>,
    values: Ring<T, D>,
    /// Its number.
    nth: u32,
}

impl<T: Element, const D: usize, const BLOCKS: usize> Warp<T, D, BLOCKS> {
    /// The running lane's warp.
    #[inline(always)]
    pub fn new((keys, values): Cache<T, D>) -> Self {
        const { assert!(64 * BLOCKS == D, "a block has 64 features") };
        let [nth, _] = tile_origin::<L!((1, 1):(1@0, 1@1))>((warp_idx_sync(), 0u32));
        Self {
            lane: lane_idx(),
            mma: Products::<T>::thread_slice(lane_idx()),
            keys,
            values,
            nth: nth as u32,
        }
    }

    /// The tile of a stage.
    #[inline(always)]
    fn stage(&self, nth: u32) -> u32 {
        self.nth * STAGES as u32 + nth
    }

    /// Where a block of features of a stage is in the rings.
    ///
    /// # Safety
    /// Barriers must order reads and writes.
    #[inline(always)]
    unsafe fn both(&self, stage: u32, block: usize) -> BothTiles<T> {
        let of = |ring: Ring<T, D>| block_of(ring.tile(self.stage(stage)), block).start();
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
        let last = const { STAGES as u32 - 1 };
        let mut tile = begin + self.nth;
        // The queries arrive with the first tile, where the last stage will be.
        // SAFETY: the last stage is filled when the queries have been read.
        unsafe { self.fill_queries(last, queries) };
        for stage in 0..last {
            let tile = tile + WARPS * stage;
            fill(stage, tile, &source(tile));
        }
        let mut next = source(tile + WARPS * last);
        cp_async_wait::<{ STAGES as u32 - 2 }>();
        sync_warp();
        let queries = self.queries(last);

        let mut softmax = Softmax::new(scores.scale);
        let mut output = [self.mma.fragment_c::<TileOfBlock, f32>(0.0); BLOCKS];
        let mut stage = 0;
        while tile < end {
            cp_async_wait::<{ STAGES as u32 - 2 }>();
            // The stage has arrived, and all lanes have read the one before.
            sync_warp();
            let free = if stage == 0 { last } else { stage - 1 };
            fill(free, tile + WARPS * last, &next);
            next = source(tile + WARPS * (last + 1));

            let products = self.products(&queries, stage);
            let (weights, rescale) = softmax.add(&scores.of_tile(products, tile));
            let weights = T::operand(self.mma, &weights);
            for (block, output) in output.iter_mut().enumerate() {
                *output = output.map(|v, value| value * rescale[ScorePlaces::row_of(v)]);
                self.add_values(block, stage, &weights, output);
            }
            tile += WARPS;
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
    pub unsafe fn give(&self, attended: Attended<T, BLOCKS>, outputs: Outputs<D>) {
        let Attended {
            output,
            softmax,
            places,
        } = attended;
        let (factors, logarithms) = softmax.finish(f32::NEG_INFINITY);
        let tile = outputs.values.tile(self.nth);
        for (block, output) in output.iter().enumerate() {
            let output = output.map(|v, value| match factors[ScorePlaces::row_of(v)] {
                // Whatever the values are.
                0.0 => 0.0,
                factor => value * factor,
            });
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
