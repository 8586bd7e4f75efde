//! Promotion: each k-tile's products are added to sums in f32, with or without a factor.
//!
//! The tensor cores add products of 8-bit floats with fewer bits than f32 has. Here they add those of a k-tile alone, so
//! the error does not grow with k. While one consumer adds, the other one's products keep the tensor cores busy.

use core::marker::PhantomData;

use cutlet_device::collective::{Filling, Pipeline, StageIdx};
use cutlet_device::sm90::warpgroup_arrive;
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread, warpgroup_sync};
use cutlet_layout_core::each;

use super::config::{Acc, AtomFragment, Config, RingA, RingB, Values};
use super::kernel::Atoms;
use super::mainloop::{UnderWay, WgmmaMainloop};
use super::scaling::{NoRing, Scaling};
use crate::gemm::config::{Consumers, StageCount, TileShape};
use crate::gemm::epilogue::{Accumulator, FromSums};
use crate::gemm::mainloop::{Mainloop, MainloopTile};
use crate::gemm::scheduler::GroupOrigin;

/// A and B have no scales. Sums are promoted.
#[derive(Clone, Copy, Debug)]
pub struct Promoted;

/// What the tensor cores add products in.
type Sum<C> = <<C as Config>::Scaling as Scaling>::Sum;

/// What the products of a k-tile are multiplied by before they are added to the sums.
pub trait Factors<C: Config> {
    /// What a k-tile's factors have in common.
    type OfTile: Copy;
    /// The factors of a thread's products in an M atom.
    type OfAtom: Copy;
    /// Whether threads read factors from the stage, which is then released after all of them have.
    const ARE_IN_STAGE: bool;

    /// What a k-tile's factors have in common, of this tile. It is read before the products take their registers.
    fn of_tile(&self, tile: &MainloopTile, k_tile: u32) -> Self::OfTile;

    /// The factors of the thread's products in the consumer's `nth` M atom.
    fn of_atom(
        &self,
        who: (WarpgroupIdx, WarpgroupThread),
        nth: usize,
        stage: StageIdx,
        of_tile: Self::OfTile,
    ) -> Self::OfAtom;

    /// The sum of the thread's value `v`, and its product.
    fn add(factors: Self::OfAtom, v: usize, product: Sum<C>, sum: Acc<C>) -> Acc<C>;
}

/// No factors.
#[derive(Clone, Copy, Debug)]
pub struct One;

impl<C: Config> Factors<C> for One {
    type OfTile = ();
    type OfAtom = ();
    const ARE_IN_STAGE: bool = false;

    #[inline(always)]
    fn of_tile(&self, _: &MainloopTile, _: u32) {}

    #[inline(always)]
    fn of_atom(&self, _: (WarpgroupIdx, WarpgroupThread), _: usize, _: StageIdx, (): ()) {}

    #[inline(always)]
    fn add((): (), _: usize, product: Sum<C>, sum: Acc<C>) -> Acc<C> {
        Accumulator::plus(sum, FromSums::from_sum(product))
    }
}

impl Scaling for Promoted {
    type Sum = f32;
    type Acc = f32;
    type Operands<'a> = ();
    type Ring<S: StageCount, T: TileShape> = NoRing;
    type Mainloop<C: Config<Scaling = Self>> = PromotingMainloop<C, One>;
    const IS_PROMOTED: bool = true;

    #[inline(always)]
    fn bytes<T: TileShape>() -> u32 {
        0
    }

    #[inline(always)]
    unsafe fn load<C: Config<Scaling = Self>>(
        _: NoRing,
        (): (),
        _: &Filling,
        _: (u32, u32),
        _: u32,
        _: Option<GroupOrigin>,
    ) {
    }

    #[inline(always)]
    fn mainloop<C: Config<Scaling = Self>>(
        rings: (RingA<C>, RingB<C>),
        _: NoRing,
        (): (),
        pipeline: Pipeline<C::Stages, C::Cluster>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> PromotingMainloop<C, One> {
        let products = WgmmaMainloop::new(rings, pipeline.consumer(), consumer, thread);
        PromotingMainloop::new(products, One)
    }
}

/// Multiplies k-tiles by `wgmma`, and adds their products in f32.
pub struct PromotingMainloop<C: Config, F> {
    products: WgmmaMainloop<C>,
    factors: F,
    of: PhantomData<C>,
}

impl<C: Config, F: Factors<C>> PromotingMainloop<C, F> {
    /// The mainloop with these factors.
    #[inline(always)]
    pub fn new(products: WgmmaMainloop<C>, factors: F) -> Self {
        Self {
            products,
            factors,
            of: PhantomData,
        }
    }
}

impl<C: Config, F: Factors<C>> Mainloop for PromotingMainloop<C, F> {
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
        let mut sums = C::Consumers::atoms(AtomFragment::<C>::filled(Acc::<C>::ZERO));
        self.products.begin();
        for k_tile in tile.k_tiles {
            let of_tile = self.factors.of_tile(&tile, k_tile);
            let filled = self.products.stages.wait();
            // One M atom after the other: there are registers for the products of one.
            for (nth, sums) in sums.as_mut().iter_mut().enumerate() {
                let mut products = UnderWay::<C>::new();
                let group = warpgroup_arrive();
                self.products
                    .multiply_atom(&group, nth, &mut products, filled.stage(), false);
                group.commit();
                let who = (consumer, thread);
                let factors = self.factors.of_atom(who, nth, filled.stage(), of_tile);
                let products = products.wait();
                each::<Values<C>>(|v| {
                    sums.set(v, F::add(factors, v, products.get(v), sums.get(v)));
                });
            }
            if F::ARE_IN_STAGE {
                warpgroup_sync(consumer);
            }
            self.products.stages.release(filled, thread);
        }
        self.products.end();
        sums
    }
}
