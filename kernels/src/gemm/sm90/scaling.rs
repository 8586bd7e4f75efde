//! The seam of scales: what a kernel multiplies besides A and B. Scales of a k-tile reach shared memory with it, in a
//! ring of their own, and choose the mainloop.

use core::marker::PhantomData;

use cutlet_device::collective::{Filling, Pipeline};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{PartialSum, ReduceAddElement, SharedStorage};

use super::config::{Config, RingA, RingB, Storage};
use super::kernel::Atoms;
use super::mainloop::WgmmaMainloop;
use crate::gemm::config::{StageCount, TileShape};
use crate::gemm::epilogue::{Accumulator, FromSums};
use crate::gemm::mainloop::Mainloop;
use crate::gemm::scheduler::{GroupOrigin, TileScheduler};

/// How A and B are scaled: [`Unscaled`], or by [`BlockScales`](super::BlockScales).
pub trait Scaling: Copy + 'static {
    /// What the tensor cores add products in.
    type Sum: PartialSum;
    /// What the epilogue gets.
    type Acc: Accumulator + ReduceAddElement + FromSums<Self::Sum>;
    /// Where a launch has the scales.
    type Operands<'a>: Copy;
    /// The stages' scales in shared memory.
    type Ring<S: StageCount, T: TileShape>: SharedStorage + Copy;
    /// Products of the tensor cores for each product of two elements.
    const PRODUCTS: u32 = 1;
    /// Whether consumers add each k-tile's products to sums. A consumer's tensor cores wait meanwhile.
    const IS_PROMOTED: bool = false;
    /// Whether threads read A and B in shared memory. TMA then neither rounds f32 to tf32, nor leaves out rows beyond
    /// A's last one.
    const THREADS_READ_OPERANDS: bool = false;
    /// How a consumer multiplies k-tiles.
    type Mainloop<C: Config<Scaling = Self>>: Mainloop<Accumulators = Atoms<C>>;

    /// Bytes that the loads of a k-tile's scales bring.
    fn bytes<T: TileShape>() -> u32;

    /// Starts to load a k-tile's scales into a stage, for the tile that begins at this row and column of C, or of a
    /// group's, [in the scheduler's units](TileScheduler::begin).
    ///
    /// # Safety
    /// The stage must be empty, and the operands those of the launch.
    unsafe fn load<C: Config<Scaling = Self>>(
        ring: ScaleRing<C>,
        operands: Self::Operands<'_>,
        filling: &Filling,
        begin: (u32, u32),
        k_tile: u32,
        group: Option<GroupOrigin>,
    );

    /// Initialises the barriers of the ring, if it has some. One thread of the block calls it.
    ///
    /// # Safety
    /// The barriers' memory must not be in use.
    #[inline(always)]
    unsafe fn init<C: Config<Scaling = Self>>(_ring: ScaleRing<C>) {}

    /// What the warps of the producer warpgroup do that load nothing.
    #[inline(always)]
    fn transform<C: Config<Scaling = Self>, S: TileScheduler>(
        _block: Storage<C>,
        _scheduler: &S,
        _thread: WarpgroupThread,
    ) {
    }

    /// The mainloop of a consumer, over the stages of these rings.
    fn mainloop<C: Config<Scaling = Self>>(
        rings: (RingA<C>, RingB<C>),
        scales: ScaleRing<C>,
        operands: Self::Operands<'_>,
        pipeline: Pipeline<C::Stages, C::Cluster>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> Self::Mainloop<C>;
}

/// The stages' scales.
pub(super) type ScaleRing<C> =
    <<C as Config>::Scaling as Scaling>::Ring<<C as Config>::Stages, <C as Config>::Tile>;
/// Where a launch has the scales.
pub(super) type ScaleOperands<'a, C> = <<C as Config>::Scaling as Scaling>::Operands<'a>;

/// A and B have no scales. Sums of `S` become accumulators of `A`.
#[derive(Clone, Copy, Debug)]
pub struct Unscaled<S = f32, A = S>(PhantomData<(S, A)>);

/// No memory for scales.
#[derive(Clone, Copy, Debug)]
pub struct NoRing;

impl SharedStorage for NoRing {
    const BYTES: u32 = 0;
    const ALIGN: u32 = 1;

    #[inline(always)]
    fn at(_: u32) -> Self {
        Self
    }
}

impl<S, A> Scaling for Unscaled<S, A>
where
    S: PartialSum,
    A: Accumulator + ReduceAddElement + FromSums<S>,
{
    type Sum = S;
    type Acc = A;
    type Operands<'a> = ();
    type Ring<St: StageCount, T: TileShape> = NoRing;
    type Mainloop<C: Config<Scaling = Self>> = WgmmaMainloop<C>;

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
    ) -> WgmmaMainloop<C> {
        WgmmaMainloop::new(rings, pipeline.consumer(), consumer, thread)
    }
}
