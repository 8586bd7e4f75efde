//! Scales of blocks: a row of A has one for each k-tile, and B has one for each 128×128 block. They are the factors of
//! each k-tile's products, as these are [promoted](super::promotion).

use core::marker::PhantomData;

use cutlet_device::collective::{Filling, Pipeline, StageIdx, VectorRing};
use cutlet_device::tma::{LoadOptions, TensorMap, TmaBox, tma_load};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{DeviceData, Global, fma};
use cutlet_layout_core::{Fixed, L, Layout, StaticLayout, Tensor, Tv, tile_origin};

use super::config::{Config, RingA, RingB};
use super::mainloop::{WgmmaMainloop, m_atom};
use super::promotion::{Factors, PromotingMainloop};
use super::scaling::{ScaleRing, Scaling};
use crate::gemm::config::{StageCount, TileShape};
use crate::gemm::mainloop::MainloopTile;
use crate::gemm::scheduler::GroupOrigin;

/// The columns of B, and its k, that have a scale together.
pub(super) const BLOCK: usize = 128;

/// Scales of 1×128 elements of A, and of 128×128 elements of B. K-tiles have a k of 128.
///
/// Boxes of A's scales begin at multiples of 16 bytes, and tiles of groups at any row. There, `BEFORE` is 4, and a box has
/// so many rows more: less than these come before the tile's.
#[derive(Clone, Copy, Debug)]
pub struct BlockScales<const BEFORE: usize = 0>;

/// Scales of blocks: [`BlockScales`], or [`TransposedBlockScales`](super::TransposedBlockScales).
pub trait BlockScaling: for<'a> Scaling<Operands<'a> = BlockScaleOperands<'a>> {
    /// Rows that a box of scales has before the tile's.
    const ROWS_BEFORE: usize;
    /// Whether the columns of B have the scales of 128×1 elements, instead of the rows of A.
    const ARE_OF_COLUMNS: bool;
}

impl<const BEFORE: usize> BlockScaling for BlockScales<BEFORE> {
    const ROWS_BEFORE: usize = BEFORE;
    const ARE_OF_COLUMNS: bool = false;
}

/// The scales of a launch. Lines are rows of A, whose B then has the blocks, or columns of B, whose A has them.
#[derive(Clone, Copy, Debug)]
pub struct BlockScaleOperands<'a> {
    /// The map of the lines' scales, as a matrix of a row for each k-tile and a column for each line, with the box
    /// [`box_scales`]. Of groups, it has such a matrix for each A.
    pub map_lines: &'a TensorMap,
    /// The blocks' scales.
    pub blocks: ScalesOfBlocks,
}

/// The scales of blocks of a matrix, or of each matrix of a batch: a row of them for each 128 lines of the matrix, which
/// has one for each k-tile.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ScalesOfBlocks {
    /// The first one.
    pub first: Global<f32>,
    /// Elements from one row to the next.
    pub ld: i64,
    /// Elements from the scales of one matrix to those of the next.
    pub stride: i64,
    /// The last row. Clusters that compute Cᵀ multiply tiles beyond it, which nothing stores.
    pub last: i64,
}

/// The box of the map of the lines' scales: those of a tile.
pub const fn box_scales<C: Config<Scaling: BlockScaling>>() -> TmaBox {
    let lines = match C::Scaling::ARE_OF_COLUMNS {
        false => C::Tile::M,
        true => C::Tile::N,
    };
    TmaBox {
        extent: [(lines + C::Scaling::ROWS_BEFORE) as u32, 1],
        swizzle_bytes: 16,
    }
}

/// A tile's rows, in order. If a box has more rows, there is room for twice as many, so that a stage's address takes a
/// shift.
#[derive(Clone, Copy)]
pub struct RowsOf<T, const BEFORE: usize>(PhantomData<T>);

impl<T: TileShape, const BEFORE: usize> StaticLayout for RowsOf<T, BEFORE> {
    const LAYOUT: Layout = match BEFORE {
        0 => Layout::static_mode(T::M as i64, 1),
        _ => Layout::static_mode(2 * T::M as i64, 1),
    };
}

impl<const BEFORE: usize> Scaling for BlockScales<BEFORE> {
    type Sum = f32;
    type Acc = f32;
    type Operands<'a> = BlockScaleOperands<'a>;
    type Ring<S: StageCount, T: TileShape> = VectorRing<f32, RowsOf<T, BEFORE>, S>;
    type Mainloop<C: Config<Scaling = Self>> = PromotingMainloop<C, ScaleFactors<C, BEFORE>>;
    const IS_PROMOTED: bool = true;

    #[inline(always)]
    fn bytes<T: TileShape>() -> u32 {
        ((T::M + BEFORE) * size_of::<f32>()) as u32
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<C: Config<Scaling = Self>>(
        ring: ScaleRing<C>,
        operands: BlockScaleOperands<'_>,
        filling: &Filling,
        (row, _): (u32, u32),
        k_tile: u32,
        group: Option<GroupOrigin>,
    ) {
        let [row, _] = tile_origin::<C::UnitA>((row, 0u32));
        let (to, barrier) = (ring.stage(filling.stage()), filling.barrier());
        let (map, options) = (operands.map_lines, LoadOptions::DEFAULT);
        // SAFETY: as promised by the caller.
        unsafe {
            match group {
                None => tma_load(map, [row, k_tile as i32], to, barrier, options),
                Some(group) => {
                    let [inner, _] = group.nth[0];
                    let unit = const { unit(BEFORE) };
                    let row = (row + group.first_row) / unit * unit;
                    let from = [row, k_tile as i32, inner];
                    tma_load(map, from, to, barrier, options);
                }
            }
        }
    }

    #[inline(always)]
    fn mainloop<C: Config<Scaling = Self>>(
        rings: (RingA<C>, RingB<C>),
        scales: ScaleRing<C>,
        operands: BlockScaleOperands<'_>,
        pipeline: Pipeline<C::Stages, C::Cluster>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> PromotingMainloop<C, ScaleFactors<C, BEFORE>> {
        const {
            assert!(
                C::Tile::K == BLOCK && BLOCK.is_multiple_of(C::Tile::N),
                "a k-tile has one scale for a row of A, and one for the tile's columns of B"
            );
        }
        let products = WgmmaMainloop::new(rings, pipeline.consumer(), consumer, thread);
        let factors = ScaleFactors {
            scales,
            of_b: operands.blocks,
        };
        PromotingMainloop::new(products, factors)
    }
}

/// The rows that boxes begin at multiples of.
const fn unit(before: usize) -> i32 {
    match before {
        0 => 1,
        rows => rows as i32,
    }
}

/// The scales of a k-tile as factors of its products.
pub struct ScaleFactors<C: Config<Scaling = BlockScales<BEFORE>>, const BEFORE: usize> {
    scales: ScaleRing<C>,
    of_b: ScalesOfBlocks,
}

/// The scales of an M atom's rows.
type AtomScales = L!((64, 1):(1, 0));
/// Which of them a thread reads: those of the two rows whose accumulators it has. The four lanes of a row read the same.
type OfRows = Tv<L!((4, 8, 4):(0@0, 1@0, 16@0)), L!(2:8@0)>;

impl<C, const BEFORE: usize> Factors<C> for ScaleFactors<C, BEFORE>
where
    C: Config<Scaling = BlockScales<BEFORE>>,
{
    /// B's scale of the tile's columns, and the tile's first row in the box of A's scales.
    type OfTile = (f32, i64);
    type OfAtom = [f32; 2];
    const ARE_IN_STAGE: bool = true;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn of_tile(&self, tile: &MainloopTile, k_tile: u32) -> (f32, i64) {
        let (_, column) = tile.begin;
        let (first_row, nth_b) = tile.group;
        let [column, _] = tile_origin::<C::UnitB>((column, 0u32));
        let row = i64::from(column) / BLOCK as i64;
        let ScalesOfBlocks {
            first, ld, stride, ..
        } = self.of_b;
        let to_b = i64::from(nth_b) * stride;
        // SAFETY: the launcher promises a scale for each block, and the kernel before this one has ended.
        let of_b = unsafe { first.load(to_b + row * ld + i64::from(k_tile)) };
        // Tiles begin at multiples of the unit in their groups.
        (of_b, i64::from(first_row % const { unit(BEFORE) }))
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn of_atom(
        &self,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
        nth: usize,
        stage: StageIdx,
        (of_b, in_box): (f32, i64),
    ) -> [f32; 2] {
        let first = in_box + 64 * i64::from(m_atom::<C>(consumer, nth));
        let atom = self.scales.stage(stage).offset(first);
        // SAFETY: the stage is full until it is released.
        let atom = unsafe { Tensor::new(atom, Fixed::<AtomScales>::new()) };
        let of_a = atom.partition_broadcast::<OfRows>(thread).load(0.0);
        [of_a.get(0) * of_b, of_a.get(1) * of_b]
    }

    #[inline(always)]
    fn add(factors: [f32; 2], v: usize, product: f32, sum: f32) -> f32 {
        // Pairs of two rows take turns.
        fma(factors[v / 2 % 2], product, sum)
    }
}
