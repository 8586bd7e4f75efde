//! A warp: its queries, the two products of a block of keys, and the store of its output.
//!
//! Loops over atoms and blocks of features are ladders ([`each`]), so that accumulators stay in registers.

use cutlet_device::collective::StageIdx;
use cutlet_device::tile::{KMajor, MnMajor, OperandLayout, OperandTile, SwizzleSpan};
use cutlet_device::tiled::{
    CpAsync, LdMatrix, LdMatrixTransposed, copy, copy_if, gemm, load_a, load_b,
};
use cutlet_device::{GlobalMut, LaneIdx, Shared, lane_idx, sync_warp, warp_idx_sync};
use cutlet_layout_core::{
    Bound, Fixed, Fragment, L, M, RowMajor, Tensor, ThreadMma, TiledCopy, Width, each,
};

use super::loader::Matrix;
use super::storage::{Storage, WARPS};
use crate::attention::element::{
    Accumulators, Element, OperandA, Products, StepsOfBlock, TileOfBlock, warp_of_block,
};
use crate::attention::scheduler::WorkTile;
use crate::attention::softmax::{PerRow, normalised};

/// A warp's copies of 16 queries, and of their output: eight features a lane.
type CopyQueries = TiledCopy<CpAsync<8>, L!((4, 8):(8, 1)), L!((1, 8):(0, 1))>;
type CopyOutput = TiledCopy<Width<8>, L!((4, 8):(8, 1)), L!((1, 8):(0, 1))>;
/// The layout of 16 queries and 64 features in shared memory.
type InShared<T> = Fixed<OperandLayout<T, KMajor, 16, 64, 128>, SwizzleSpan<T, 128>>;

/// A lane's accumulators of 16 rows and 64 columns.
pub(super) type OfBlock<T> = Accumulators<T, TileOfBlock>;
/// A lane's weights of 16 rows and 64 keys, as operand A.
pub(super) type Weights<T> = Fragment<OperandA<T, TileOfBlock>, StepsOfBlock>;
/// A lane's output.
pub(super) type Output<T, const BLOCKS: usize, const ATOMS: usize> = [[OfBlock<T>; BLOCKS]; ATOMS];
/// A number of atoms, or of blocks of features.
pub(super) type Times<const COUNT: usize> = M<COUNT, 1>;

/// A warp of a block, with 16 · `ATOMS` queries.
#[derive(Clone, Copy)]
pub(super) struct Warp<T: Element, const BLOCKS: usize, const ATOMS: usize, const STAGES: usize> {
    lane: LaneIdx,
    mma: ThreadMma<Products<T>, LaneIdx>,
    storage: Storage<T, BLOCKS, ATOMS, STAGES>,
}

impl<T: Element, const BLOCKS: usize, const ATOMS: usize, const STAGES: usize>
    Warp<T, BLOCKS, ATOMS, STAGES>
{
    /// The running lane's warp.
    #[inline(always)]
    pub fn new(storage: Storage<T, BLOCKS, ATOMS, STAGES>) -> Self {
        Self {
            lane: lane_idx(),
            mma: Products::<T>::thread_slice(lane_idx()),
            storage,
        }
    }

    /// Which 16 rows of the queries the warp has in an atom.
    #[inline(always)]
    pub fn rows(tile: WorkTile, atom: usize) -> u32 {
        (tile.of_queries * WARPS as u32 + warp_of_block()) * ATOMS as u32 + atom as u32
    }

    /// The warp's tile of a block of features.
    ///
    /// # Safety
    /// The queries must have arrived, or the tile must be free.
    #[inline(always)]
    unsafe fn tile(&self, atom: usize, block: usize) -> Tensor<Shared<T>, InShared<T>> {
        // SAFETY: as promised by the caller.
        unsafe {
            self.storage.queries[atom][block]
                .tile(warp_idx_sync())
                .tensor()
        }
    }

    /// Loads the queries. Rows and features that there are not become zeros.
    ///
    /// # Safety
    /// No lane may read them before the copies were waited for.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_queries(&self, queries: Matrix<T>, tile: WorkTile) {
        let copies = CopyQueries::thread_slice(self.lane);
        each::<Times<ATOMS>>(|atom| {
            each::<Times<BLOCKS>>(|block| {
                let from = (Self::rows(tile, atom), block as u32);
                let from = copies.partition(queries.local_tile::<TileOfBlock>(from));
                // SAFETY: as promised by the caller.
                let to = copies.partition(unsafe { self.tile(atom, block) });
                copy_if(&from, &to, |v| from.bound().holds(v));
            });
        });
    }

    /// The products of the queries and a stage of keys.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn multiply_keys(&self, stage: StageIdx) -> [OfBlock<T>; ATOMS] {
        let mut scores = [self.mma.fragment_c::<TileOfBlock, f32>(0.0); ATOMS];
        each::<Times<BLOCKS>>(|block| {
            // SAFETY: the stage has arrived.
            let keys = unsafe { self.storage.stages[block].stage(stage).tensor() };
            each::<StepsOfBlock>(|step| {
                let keys = load_b(LdMatrix, self.mma, keys, step);
                each::<Times<ATOMS>>(|atom| {
                    // SAFETY: the queries arrived with the first keys.
                    let queries = unsafe { self.tile(atom, block) };
                    let queries = load_a(LdMatrix, self.mma, queries, step);
                    let scores = &mut scores[atom];
                    gemm::<_, _, _, _, _, _, TileOfBlock>(self.mma, &queries, &keys, scores);
                });
            });
        });
        scores
    }

    /// Weights as operand A.
    #[inline(always)]
    pub fn operand(&self, weights: &OfBlock<T>) -> Weights<T> {
        Fragment::from_fn(|step| T::operand::<TileOfBlock>(self.mma, weights, step))
    }

    /// An output of zeros.
    #[inline(always)]
    pub fn no_output(&self) -> Output<T, BLOCKS, ATOMS> {
        [[self.mma.fragment_c::<TileOfBlock, f32>(0.0); BLOCKS]; ATOMS]
    }

    /// Adds the weighted values of a stage to the output.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn multiply_values(
        &self,
        weights: &Fragment<Weights<T>, Times<ATOMS>>,
        stage: StageIdx,
        output: &mut Output<T, BLOCKS, ATOMS>,
    ) {
        each::<Times<BLOCKS>>(|block| {
            // Lines along features are rows of values, and columns of operand B.
            let values = self.storage.stages[block].stage(stage).start();
            // SAFETY: the stage has arrived.
            let values = unsafe { OperandTile::<T, MnMajor, 64, 64>::from_shared(values).tensor() };
            each::<StepsOfBlock>(|step| {
                let values = load_b(LdMatrixTransposed, self.mma, values, step);
                each::<Times<ATOMS>>(|atom| {
                    let (weights, output) = (weights.get(atom).get(step), &mut output[atom][block]);
                    gemm::<_, _, _, _, _, _, TileOfBlock>(self.mma, &weights, &values, output);
                });
            });
        });
    }

    /// Stores the output of an atom's rows, multiplied by their factors, by way of the memory of the queries.
    ///
    /// # Safety
    /// The output must have the rows. No lane may need the queries any more.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store(
        &self,
        (atom, output): (usize, &[OfBlock<T>; BLOCKS]),
        factors: PerRow,
        to: Tensor<GlobalMut<T>, RowMajor>,
        tile: WorkTile,
    ) {
        // SAFETY: as promised by the caller.
        let through = |block| unsafe { self.tile(atom, block) };
        each::<Times<BLOCKS>>(|block| {
            let output = normalised(&output[block], factors).map(|_, value| T::from_f32(value));
            let to = self.mma.partition_c_in_vectors::<2, _>(through(block));
            to.store(&output);
        });
        sync_warp();
        let copies = CopyOutput::thread_slice(self.lane);
        each::<Times<BLOCKS>>(|block| {
            let to = to.local_tile::<TileOfBlock>((Self::rows(tile, atom), block as u32));
            copy(&copies.partition(through(block)), &copies.partition(to));
        });
    }
}
