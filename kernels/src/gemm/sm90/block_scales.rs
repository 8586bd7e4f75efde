//! Scales of blocks: a row of A has one for each k-tile, and B has one for each 128×128 block. Each k-tile's products
//! are scaled and added in f32.
//!
//! The tensor cores add 8-bit floats with fewer bits than f32 has. What they add of a k-tile is added to the sums in f32,
//! so the error does not grow with k. This is known as promotion.

use core::marker::PhantomData;

use cutlet_device::collective::{Consumer, Filling, StageIdx, VectorRing};
use cutlet_device::tma::{LoadOptions, TensorMap, TmaBox, tma_load};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread, warpgroup_sync};
use cutlet_device::{DeviceData, Global};
use cutlet_layout_core::{Fixed, L, Layout, StaticLayout, Tensor, Tv, each, tile_origin};

use super::config::{Config, RingA, RingB, Values};
use super::kernel::Atoms;
use super::mainloop::{WgmmaMainloop, m_atom};
use super::scaling::{ScaleRing, Scaling};
use crate::gemm::config::{AtomFragment, Consumers, StageCount, TileShape};
use crate::gemm::mainloop::{Mainloop, MainloopTile};

/// The columns of B, and its k, that have a scale together.
const BLOCK: usize = 128;

/// Scales of 1×128 elements of A, and of 128×128 elements of B. K-tiles have a k of 128.
#[derive(Clone, Copy, Debug)]
pub struct BlockScales;

/// The scales of a launch.
#[derive(Clone, Copy, Debug)]
pub struct BlockScaleOperands<'a> {
    /// The map of A's scales, as a matrix of a row for each k-tile and a column for each row of A, with the box
    /// [`box_scales`].
    pub map_a: &'a TensorMap,
    /// B's scales.
    pub b: ScalesOfB,
}

/// The scales of B: a row of them for each 128 columns of B, which has one for each k-tile.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ScalesOfB {
    /// The first one.
    pub first: Global<f32>,
    /// Elements from one row to the next.
    pub ld: i64,
}

/// The box of the map of A's scales: those of a tile's rows.
pub const fn box_scales<C: Config<Scaling = BlockScales>>() -> TmaBox {
    TmaBox {
        extent: [C::Tile::M as u32, 1],
        swizzle_bytes: 16,
    }
}

/// A tile's rows, in order.
#[derive(Clone, Copy)]
pub struct RowsOf<T>(PhantomData<T>);

impl<T: TileShape> StaticLayout for RowsOf<T> {
    const LAYOUT: Layout = Layout::static_mode(T::M as i64, 1);
}

impl Scaling for BlockScales {
    type Operands<'a> = BlockScaleOperands<'a>;
    type Ring<S: StageCount, T: TileShape> = VectorRing<f32, RowsOf<T>, S>;
    type Mainloop<C: Config<Scaling = Self>> = PromotingMainloop<C>;

    #[inline(always)]
    fn bytes<T: TileShape>() -> u32 {
        (T::M * size_of::<f32>()) as u32
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<C: Config<Scaling = Self>>(
        ring: ScaleRing<C>,
        operands: BlockScaleOperands<'_>,
        filling: &Filling,
        row: u32,
        k_tile: u32,
    ) {
        let [row, _] = tile_origin::<C::UnitA>((row, 0u32));
        let (to, barrier) = (ring.stage(filling.stage()), filling.barrier());
        let from = [row, k_tile as i32];
        // SAFETY: as promised by the caller.
        unsafe { tma_load(operands.map_a, from, to, barrier, LoadOptions::DEFAULT) };
    }

    #[inline(always)]
    fn mainloop<C: Config<Scaling = Self>>(
        rings: (RingA<C>, RingB<C>),
        scales: ScaleRing<C>,
        operands: BlockScaleOperands<'_>,
        stages: Consumer<C::Stages, C::Cluster>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> PromotingMainloop<C> {
        const {
            assert!(
                C::Tile::K == BLOCK && BLOCK.is_multiple_of(C::Tile::N),
                "a k-tile has one scale for a row of A, and one for the tile's columns of B"
            );
        }
        PromotingMainloop {
            products: WgmmaMainloop::new(rings, stages, consumer, thread),
            scales,
            of_b: operands.b,
        }
    }
}

/// Multiplies k-tiles by `wgmma`, scales their products, and adds them in f32.
pub struct PromotingMainloop<C: Config<Scaling = BlockScales>> {
    products: WgmmaMainloop<C>,
    scales: ScaleRing<C>,
    of_b: ScalesOfB,
}

/// The scales of an M atom's rows.
type AtomScales = L!((64, 1):(1, 0));
/// Which of them a thread reads: those of the two rows whose accumulators it has. The four lanes of a row read the same.
type OfRows = Tv<L!((4, 8, 4):(0@0, 1@0, 16@0)), L!(2:8@0)>;

impl<C: Config<Scaling = BlockScales>> PromotingMainloop<C> {
    /// The scales of the products of the thread's two rows in the consumer's `nth` M atom, where `of_b` is B's.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn scales(&self, stage: StageIdx, nth: usize, of_b: f32) -> [f32; 2] {
        let WgmmaMainloop {
            consumer, thread, ..
        } = self.products;
        let first = 64 * i64::from(m_atom::<C>(consumer, nth));
        let atom = self.scales.stage(stage).offset(first);
        // SAFETY: the stage is full until it is released.
        let atom = unsafe { Tensor::new(atom, Fixed::<AtomScales>::new()) };
        let of_a = atom.partition_broadcast::<OfRows>(thread).load(0.0);
        [of_a.get(0) * of_b, of_a.get(1) * of_b]
    }

    /// B's scale of the columns of the tile that begins there, in a k-tile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn scale_of_b(&self, (_, column): (u32, u32), k_tile: u32) -> f32 {
        let [column, _] = tile_origin::<C::UnitB>((column, 0u32));
        let row = i64::from(column) / BLOCK as i64;
        let ScalesOfB { first, ld } = self.of_b;
        // SAFETY: the launcher promises a scale for each block, and the kernel before this one has ended.
        unsafe { first.load(row * ld + i64::from(k_tile)) }
    }
}

impl<C: Config<Scaling = BlockScales>> Mainloop for PromotingMainloop<C> {
    type Accumulators = Atoms<C>;

    #[inline(always)]
    fn takes_next(&mut self, k_tiles: u32) -> bool {
        self.products.takes_next(k_tiles)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn pass_over(&mut self, k_tiles: u32) {
        self.products.pass_over(k_tiles);
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn mma(&mut self, tile: MainloopTile) -> Atoms<C> {
        let WgmmaMainloop {
            consumer, thread, ..
        } = self.products;
        let mut sums = C::Consumers::atoms(AtomFragment::<C::Mma>::filled(0.0));
        self.products.begin();
        for k_tile in tile.k_tiles {
            let of_b = self.scale_of_b(tile.begin, k_tile);
            let filled = self.products.stages.wait();
            let mut products = C::Consumers::accumulators::<C::Mma>();
            self.products
                .multiply(products.as_mut(), filled.stage(), false);
            let mut products = C::Consumers::wait(products);
            let atoms = sums.as_mut().iter_mut().zip(products.as_mut());
            for (nth, (sums, products)) in atoms.enumerate() {
                let scales = self.scales(filled.stage(), nth, of_b);
                each::<Values<C>>(|v| {
                    // Pairs of two rows take turns.
                    let scaled = scales[v / 2 % 2] * products.get(v);
                    sums.set(v, sums.get(v) + scaled);
                });
            }
            // All threads have read their scales.
            warpgroup_sync(consumer);
            self.products.stages.release(filled, thread);
        }
        self.products.end();
        sums
    }
}
