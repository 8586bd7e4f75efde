//! Scales of blocks in a kernel that computes Cᵀ: a column of B has one for each k-tile, and A has one for each 128×128
//! block.

use core::marker::PhantomData;

use cutlet_device::collective::{Filling, Pipeline, StageIdx, VectorRing};
use cutlet_device::fma;
use cutlet_device::tma::{LoadOptions, tma_load};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_layout_core::{Fixed, L, Layout, StaticLayout, Tensor, Tv, tile_origin};

use super::block_scales::{BLOCK, BlockScaleOperands, BlockScaling, ScalesOfBlocks};
use super::config::{Config, RingA, RingB};
use super::mainloop::WgmmaMainloop;
use super::promotion::{Factors, PromotingMainloop};
use super::scaling::{ScaleRing, Scaling};
use crate::gemm::config::{StageCount, TileShape};
use crate::gemm::mainloop::MainloopTile;
use crate::gemm::scheduler::GroupOrigin;

/// Scales of 128×128 elements of A, and of 128×1 elements of B. K-tiles have a k of 128.
#[derive(Clone, Copy, Debug)]
pub struct TransposedBlockScales;

impl BlockScaling for TransposedBlockScales {
    const ROWS_BEFORE: usize = 0;
    const ARE_OF_COLUMNS: bool = true;
}

/// A tile's columns, in order.
#[derive(Clone, Copy)]
pub struct ColumnsOf<T>(PhantomData<T>);

impl<T: TileShape> StaticLayout for ColumnsOf<T> {
    const LAYOUT: Layout = Layout::static_mode(T::N as i64, 1);
}

impl Scaling for TransposedBlockScales {
    type Sum = f32;
    type Acc = f32;
    type Operands<'a> = BlockScaleOperands<'a>;
    type Ring<S: StageCount, T: TileShape> = VectorRing<f32, ColumnsOf<T>, S>;
    type Mainloop<C: Config<Scaling = Self>> = PromotingMainloop<C, ColumnFactors<C>>;
    const IS_PROMOTED: bool = true;

    #[inline(always)]
    fn bytes<T: TileShape>() -> u32 {
        (T::N * size_of::<f32>()) as u32
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<C: Config<Scaling = Self>>(
        ring: ScaleRing<C>,
        operands: BlockScaleOperands<'_>,
        filling: &Filling,
        (_, column): (u32, u32),
        k_tile: u32,
        _: Option<GroupOrigin>,
    ) {
        let [column, _] = tile_origin::<C::UnitB>((column, 0u32));
        let (to, barrier) = (ring.stage(filling.stage()), filling.barrier());
        let (map, from) = (operands.map_lines, [column, k_tile as i32]);
        // SAFETY: as promised by the caller.
        unsafe { tma_load(map, from, to, barrier, LoadOptions::DEFAULT) };
    }

    #[inline(always)]
    fn mainloop<C: Config<Scaling = Self>>(
        rings: (RingA<C>, RingB<C>),
        scales: ScaleRing<C>,
        operands: BlockScaleOperands<'_>,
        pipeline: Pipeline<C::Stages, C::Cluster>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> PromotingMainloop<C, ColumnFactors<C>> {
        const {
            assert!(
                C::Tile::K == BLOCK && BLOCK.is_multiple_of(C::Tile::M),
                "a k-tile has one scale for a column of B, and one for the tile's rows of A"
            );
            assert!(
                C::Tile::N <= 8 * MOST_GROUPS,
                "a thread has registers for the scales of 128 columns"
            );
        }
        let products = WgmmaMainloop::new(rings, pipeline.consumer(), consumer, thread);
        let of_a = operands.blocks;
        PromotingMainloop::new(products, ColumnFactors { scales, of_a })
    }
}

/// The scales of a k-tile as factors of its products.
pub struct ColumnFactors<C: Config<Scaling = TransposedBlockScales>> {
    scales: ScaleRing<C>,
    of_a: ScalesOfBlocks,
}

/// The scales of eight columns. A thread has a pair of neighbours in each such group.
type GroupScales = L!((8, 1):(1, 0));
/// Which of them a thread reads. The lanes of all rows read the same.
type OfPair = Tv<L!((4, 8, 4):(2@0, 0@0, 0@0)), L!(2:1@0), 2>;
/// Groups of the widest tile.
const MOST_GROUPS: usize = 16;

impl<C: Config<Scaling = TransposedBlockScales>> Factors<C> for ColumnFactors<C> {
    /// A's scale of the tile's rows.
    type OfTile = f32;
    /// For each group of columns, the factors of the thread's pair.
    type OfAtom = [[f32; 2]; MOST_GROUPS];
    const ARE_IN_STAGE: bool = true;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn of_tile(&self, tile: &MainloopTile, k_tile: u32) -> f32 {
        let (row, _) = tile.begin;
        let [row, _] = tile_origin::<C::UnitA>((row, 0u32));
        let ScalesOfBlocks {
            first, ld, last, ..
        } = self.of_a;
        // A cluster's tiles beyond C are multiplied, too.
        let of_rows = (i64::from(row) / BLOCK as i64).min(last) * ld;
        // SAFETY: the launcher promises a scale for each block, and the kernel before this one has ended.
        unsafe { first.load(of_rows + i64::from(k_tile)) }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn of_atom(
        &self,
        (_, thread): (WarpgroupIdx, WarpgroupThread),
        _: usize,
        stage: StageIdx,
        of_a: f32,
    ) -> [[f32; 2]; MOST_GROUPS] {
        let of_columns = self.scales.stage(stage);
        let mut factors = [[0.0; 2]; MOST_GROUPS];
        for (group, factors) in factors.iter_mut().enumerate() {
            if group < const { C::Tile::N / 8 } {
                let of_group = of_columns.offset(8 * group as i64);
                // SAFETY: the stage is full until it is released.
                let of_group = unsafe { Tensor::new(of_group, Fixed::<GroupScales>::new()) };
                let of_b = of_group.partition_broadcast::<OfPair>(thread).load(0.0);
                *factors = [of_b.get(0) * of_a, of_b.get(1) * of_a];
            }
        }
        factors
    }

    #[inline(always)]
    fn add(factors: [[f32; 2]; MOST_GROUPS], v: usize, product: f32, sum: f32) -> f32 {
        fma(factors[v / 4][v % 2], product, sum)
    }
}
