//! Which threads have a row: a warp or a block.

use cutlet_device::{Float, Global, ThreadIdx, Threads, block_idx};
use cutlet_layout_core::{
    AccessWidth, Bound, Engine, Fragment, L, StaticLayout, Tensor, ThreadValue, Tv, covers_exactly,
    each, tile_extent,
};

use super::{Number, Rows};

/// Threads of a block.
pub const THREADS: u32 = 256;

/// How the threads of a block have rows. They hold a tile of their rows in registers.
///
/// 16 elements a thread are enough loads in flight, and more would make each kernel's code longer.
pub trait Shape {
    /// The rows of a block, and the part of them that the threads hold.
    type Tile: StaticLayout;
    /// Which elements a thread has.
    type Threads: ThreadValue;
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $tile:ty, $threads:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Shape for $name {
            type Tile = $tile;
            type Threads = $threads;
        }
        const _: () = assert!(
            covers_exactly::<$threads>(tile_extent::<$tile>()),
            "a shape's threads have each element of its tile once"
        );
    )+};
}
shapes! {
    /// A warp has a row, in vectors of eight elements.
    Warp8: L!((8, 512):(1@0, 1@1)), Tv<L!((32, 8):(8@1, 1@0)), L!((8, 2):(1@1, 256@1)), 8>;
    /// A warp has a row, in vectors of four elements.
    Warp4: L!((8, 512):(1@0, 1@1)), Tv<L!((32, 8):(4@1, 1@0)), L!((4, 4):(1@1, 128@1)), 4>;
    /// A warp has a row of any alignment.
    WarpAny: L!((8, 256):(1@0, 1@1)), Tv<L!((32, 8):(1@1, 1@0)), L!(8:32@1)>;
    /// A block has a row, in vectors of eight elements.
    Block8: L!((1, 4096):(1@0, 1@1)), Tv<L!(256:8@1), L!((8, 2):(1@1, 2048@1)), 8>;
    /// A block has a row, in vectors of four elements.
    Block4: L!((1, 4096):(1@0, 1@1)), Tv<L!(256:4@1), L!((4, 4):(1@1, 1024@1)), 4>;
    /// A block has a row of any alignment.
    BlockAny: L!((1, 2048):(1@0, 1@1)), Tv<L!(256:1@1), L!(8:256@1)>;
}

/// The first value of the access that brings value `v`: all of its values exist, or none does.
#[inline(always)]
pub const fn of_access<S: Shape>(v: usize) -> usize {
    v - v % <<S::Threads as ThreadValue>::Width as AccessWidth>::VALUES
}

/// Has the L2 cache fetch the first tile of the block that is `ahead` further on. That block waits less for its row.
#[inline(always)]
pub fn fetch_ahead<S: Shape, T: Number>(
    operand: &Tensor<Global<T>, Rows>,
    ahead: u32,
    thread: ThreadIdx<Threads<THREADS>>,
) {
    let later = operand
        .local_tile::<S::Tile>((block_idx().x.advanced_by(ahead), 0u32))
        .partition::<S::Threads>(thread);
    each::<<S::Threads as ThreadValue>::Val>(|v| {
        if v == of_access::<S>(v) && later.bound().holds(v) {
            // SAFETY: the element exists.
            unsafe { later.engine_at(v).prefetch(0) };
        }
    });
}

/// A thread's values of a tile, as f32.
pub type Held<S> = Fragment<f32, <<S as Shape>::Threads as ThreadValue>::Val>;

/// The thread's values of a tile of the block's rows. Those that do not exist are 0.
#[inline(always)]
pub fn held<S: Shape, T: Float + Default, E: Engine<Element = T>>(
    operand: &Tensor<E, Rows>,
    tile: u32,
    thread: ThreadIdx<Threads<THREADS>>,
) -> Held<S> {
    operand
        .local_tile::<S::Tile>((block_idx().x, tile))
        .partition::<S::Threads>(thread)
        .load(T::default())
        .map(|_, value| value.to_f32())
}
