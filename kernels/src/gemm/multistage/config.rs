//! What the type of a multistage kernel says.

use cutlet_device::{ThreadGroup, ThreadIdx};
use cutlet_layout_core::{Fragment, FragmentLayout, StaticLayout, ThreadValue};

use super::staging::{StageTile, Staging, StridedMajor};
use super::warps::Rectangles;
use crate::gemm::config::{StageCount, TileShape};
use crate::gemm::epilogue::Accumulator;

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
/// It is the group of the block's threads. A rectangle of C leaves its warp in epilogue subtiles: some of its rows at a
/// time.
pub trait Product: ThreadGroup + Rectangles {
    /// How A goes through shared memory.
    type A: Staging;
    /// How B goes through shared memory.
    type B: Staging;
    /// The type of the accumulators.
    type Acc: Accumulator;
    /// The tiled MMA.
    type Mma;
    /// A thread's accumulators, as the tiled MMA orders them.
    type Values: FragmentLayout;
    /// A thread's accumulators by rows: those of the first epilogue subtile, then those of the next.
    type Rows: FragmentLayout;
    /// Thread-value layout of an epilogue subtile for a warp.
    type Subtile: ThreadValue;
    /// Rows and columns of an epilogue subtile.
    const SUBTILE: [usize; 2];
    /// Epilogue subtiles of a warp.
    const SUBTILES: usize;
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

    /// The accumulators by rows. None moves: registers have other names.
    fn by_rows(accumulators: &Accumulators<Self>) -> Fragment<Self::Acc, Self::Rows>;
}

/// The elements of A and B.
pub type Element<C> = <<C as Config>::A as Staging>::Element;
/// The type of the accumulators.
pub type Acc<C> = <<C as Config>::Product as Product>::Acc;
/// A thread's accumulators.
pub type Accumulators<P> = Fragment<<P as Product>::Acc, <P as Product>::Values>;
