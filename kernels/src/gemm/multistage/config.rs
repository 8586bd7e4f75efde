//! What the type of a multistage kernel says.

use core::marker::PhantomData;

use cutlet_device::{Shared, SharedStorage, SharedUnion, ThreadGroup, ThreadIdx};
use cutlet_layout_core::{Fixed, Fragment, FragmentLayout, StaticLayout, Tensor, ThreadValue};

use super::staging::{Staging, StridedMajor};
use super::store::SubtileStorage;
use crate::gemm::config::{StageCount, TileShape};
use crate::gemm::epilogue::Accumulator;

/// A stage's tile of an operand, as (mn, k).
pub type StageTile<S> =
    Tensor<Shared<<S as Staging>::Element>, Fixed<<S as Staging>::Layout, <S as Staging>::Swizzle>>;

/// The configuration of a kernel.
pub trait Config: Copy + 'static {
    /// A block's tile.
    type Tile: TileShape;
    /// How A goes through shared memory.
    type A: Staging;
    /// How B goes through shared memory.
    type B: Staging<Element = <Self::A as Staging>::Element, Source: StridedMajor>;
    /// The stages of the ring.
    type Stages: StageCount;
    /// How a stage is multiplied.
    type Product: Product<A = Self::A, B = Self::B>;

    /// Threads of a block.
    const THREADS: u32 = <Self::Product as ThreadGroup>::THREADS;
}

/// How the threads of a block multiply the tiles of a stage: in steps along k.
///
/// It is the group of the block's threads. Each warp has a rectangle of the tile of C. It leaves the warp in epilogue
/// subtiles: some of its rows at a time.
pub trait Product: ThreadGroup {
    /// How A goes through shared memory.
    type A: Staging;
    /// How B goes through shared memory.
    type B: Staging;
    /// The type of the accumulators.
    type Acc: Accumulator;
    /// A thread's accumulators: those of the first epilogue subtile, then those of the next.
    type Values: FragmentLayout;
    /// Thread-value layout of an epilogue subtile for a warp.
    type Subtile: ThreadValue;
    /// Rows and columns of an epilogue subtile.
    const SUBTILE: [usize; 2];
    /// Epilogue subtiles of a warp.
    const SUBTILES: usize;
    /// Warps of a block, below one another and side by side.
    const WARPS: [usize; 2];
    /// A thread's elements of A and of B in a step.
    type Fragments: Copy;
    /// Steps of a k-tile.
    type Steps: StaticLayout;

    /// Reads the thread's elements in a step of a stage's tiles.
    fn load(
        a: StageTile<Self::A>,
        b: StageTile<Self::B>,
        step: usize,
        thread: ThreadIdx<Self>,
    ) -> Self::Fragments;

    /// Adds the product of a step to the accumulators.
    fn multiply(fragments: &Self::Fragments, accumulators: &mut Accumulators<Self>);
}

/// What a block keeps in shared memory: the stages of both operands, then the epilogue subtiles in their place.
pub type Storage<C> = SharedUnion<Rings<C>, SubtileStorage<<C as Config>::Product>>;

/// The stages of A, and those of B.
pub type Rings<C> = (
    StageRing<<C as Config>::A, <C as Config>::Stages>,
    StageRing<<C as Config>::B, <C as Config>::Stages>,
);

/// The stages of an operand in shared memory. `N` is their number.
pub struct StageRing<S: Staging, N> {
    first: Shared<S::Element>,
    stages: PhantomData<N>,
}

impl<S: Staging, N: StageCount> SharedStorage for StageRing<S, N> {
    const BYTES: u32 = (N::STAGES * stage_elements::<S>() * size_of::<S::Element>()) as u32;
    const ALIGN: u32 = 1024;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            first: Shared::from_address(address),
            stages: PhantomData,
        }
    }
}

impl<S: Staging, N> StageRing<S, N> {
    /// The first element of the first stage.
    #[inline(always)]
    pub(super) fn first(&self) -> Shared<S::Element> {
        self.first
    }
}

/// Elements from a stage to the next: stages start at multiples of 1024 bytes, as swizzles need.
pub(super) const fn stage_elements<S: Staging>() -> usize {
    assert!(
        !S::Layout::LAYOUT.maps_below_zero(),
        "a stage begins with its layout's index 0"
    );
    let elements = S::Layout::LAYOUT.cosize() as usize;
    elements.next_multiple_of(1024 / size_of::<S::Element>())
}

/// The elements of A and B.
pub type Element<C> = <<C as Config>::A as Staging>::Element;
/// The type of the accumulators.
pub type Acc<C> = <<C as Config>::Product as Product>::Acc;
/// A thread's accumulators.
pub type Accumulators<P> = Fragment<<P as Product>::Acc, <P as Product>::Values>;
