//! The mainloop: `wgmma` over the k-tiles of a work tile, one group in flight while the next k-tile is awaited.

use cutlet_device::collective::{Consumer, OrderedBarrier, StageIdx};
use cutlet_device::sm90::{Accumulator, WgmmaGroup, warpgroup_arrive, warpgroup_wait};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread, warpgroup_sync};

use super::config::{Config, RingA, RingB};
use super::kernel::Atoms;
use crate::gemm::config::Consumers;
use crate::gemm::mainloop::{Mainloop, MainloopTile};

/// Multiplies k-tiles by `wgmma`.
pub struct WgmmaMainloop<C: Config> {
    pub(super) rings: (RingA<C>, RingB<C>),
    pub(super) stages: Consumer<C::Stages, C::Cluster>,
    pub(super) consumer: WarpgroupIdx,
    pub(super) thread: WarpgroupThread,
    order: OrderedBarrier,
}

/// The accumulators under way of one M atom.
pub(super) type UnderWay<C> = Accumulator<<C as Config>::Mma>;

impl<C: Config> WgmmaMainloop<C> {
    /// The mainloop of a consumer, over these stages.
    #[inline(always)]
    pub fn new(
        rings: (RingA<C>, RingB<C>),
        stages: Consumer<C::Stages, C::Cluster>,
        consumer: WarpgroupIdx,
        thread: WarpgroupThread,
    ) -> Self {
        let order = OrderedBarrier::new(consumer);
        if !C::Consumers::ARE_COOPERATIVE {
            order.begin();
        }
        Self {
            rings,
            stages,
            consumer,
            thread,
            order,
        }
    }

    /// Waits until the tensor cores are this consumer's.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) fn begin(&self) {
        if !C::Consumers::ARE_COOPERATIVE {
            self.order.wait();
        }
    }

    /// Hands the tensor cores over to the other consumer of two that take turns.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) fn end(&self) {
        if !C::Consumers::ARE_COOPERATIVE {
            self.order.pass();
        }
    }

    /// Issues the instructions of a k-tile.
    #[inline(always)]
    pub(super) fn multiply(
        &self,
        accumulators: &mut [UnderWay<C>],
        stage: StageIdx,
        accumulate: bool,
    ) {
        let group = warpgroup_arrive();
        for (nth, accumulator) in accumulators.iter_mut().enumerate() {
            self.multiply_atom(&group, nth, accumulator, stage, accumulate);
        }
        group.commit();
    }

    /// Adds the instructions of a k-tile and of the consumer's `nth` M atom to a group.
    #[inline(always)]
    pub(super) fn multiply_atom(
        &self,
        group: &WgmmaGroup,
        nth: usize,
        accumulator: &mut UnderWay<C>,
        stage: StageIdx,
        accumulate: bool,
    ) {
        let (a, b) = (
            self.rings.0.operand_a::<C::Mma>(stage),
            self.rings.1.operand_b::<C::Mma>(stage),
        );
        let a = a.rows(m_atom::<C>(self.consumer, nth));
        let a = [a.k_step(0), a.k_step(1), a.k_step(2), a.k_step(3)];
        let b = [b.k_step(0), b.k_step(1), b.k_step(2), b.k_step(3)];
        // SAFETY: the stage is full until it is released.
        unsafe { group.mma_x4(accumulator, a, b, accumulate) };
    }
}

/// Which of the tile's M atoms is the consumer's `nth`.
#[inline(always)]
pub(super) fn m_atom<C: Config>(consumer: WarpgroupIdx, nth: usize) -> u32 {
    match C::Consumers::ARE_COOPERATIVE {
        true => consumer.own(C::Consumers::M_ATOMS, nth),
        false => nth as u32,
    }
}

impl<C: Config> Mainloop for WgmmaMainloop<C> {
    type Accumulators = Atoms<C>;

    #[inline(always)]
    fn takes_next(&mut self, k_tiles: u32) -> bool {
        let takes = C::Consumers::ARE_COOPERATIVE || self.order.next_is_mine();
        if !takes {
            self.stages.skip(k_tiles);
        }
        takes
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn pass_over(&mut self, k_tiles: u32) {
        for _ in 0..k_tiles {
            let filled = self.stages.wait();
            // A warp that has not waited yet would miss the phase if the stage were released and filled again.
            warpgroup_sync(self.consumer);
            self.stages.release(filled, self.thread);
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn mma(&mut self, tile: MainloopTile) -> Atoms<C> {
        let mut accumulators = C::Consumers::accumulators::<C::Mma>();
        self.begin();
        let mut under_way = self.stages.wait();
        self.multiply(accumulators.as_mut(), under_way.stage(), false);
        for _ in 1..tile.count {
            let filled = self.stages.wait();
            self.multiply(accumulators.as_mut(), filled.stage(), true);
            // The group before is done: its stage may be filled again.
            warpgroup_wait::<1>();
            self.stages.release(under_way, self.thread);
            under_way = filled;
        }
        self.end();
        let accumulators = C::Consumers::wait(accumulators);
        self.stages.release(under_way, self.thread);
        accumulators
    }
}
