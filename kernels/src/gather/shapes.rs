//! Shapes: how a block covers a tile of rows, for each width of an access, and for long and short rows.
//!
//! With all shapes, a thread has all its loads in flight before its first store. More values in flight, or a tile of
//! another form, is a change of one line here.

use cutlet_layout_core::{L, StaticLayout, ThreadValue, Tv, covers_exactly, tile_extent};

/// How a block of 256 threads covers a tile of rows.
pub trait Shape {
    /// The block's tile: (rows, units).
    type Tile: StaticLayout;
    /// Thread-value layout of the tile.
    type Threads: ThreadValue;
}

macro_rules! shape {
    ($(#[$doc:meta])* $name:ident: $tile:ty, $thr:ty, $val:ty, $width:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Shape for $name {
            type Tile = $tile;
            type Threads = Tv<$thr, $val, $width>;
        }
        const _: () =
            assert!(covers_exactly::<<$name as Shape>::Threads>(tile_extent::<$tile>()));
    };
}
shape! {
    /// Rows of 2 KiB and more, in 16-byte accesses: 16 rows by 512 words.
    Long16: L!((16, 512):(1@0, 1@1)), L!((128, 2):(4@1, 1@0)), L!((4, 8):(1@1, 2@0)), 4
}
shape! {
    /// Rows of 4 KiB, each in one tile, in 16-byte accesses: 8 rows by 1024 words.
    Page16: L!((8, 1024):(1@0, 1@1)), L!(256:4@1), L!((4, 8):(1@1, 1@0)), 4
}
shape! {
    /// Rows of 1 KiB, each in one tile, in 16-byte accesses: 32 rows by 256 words.
    Kilo16: L!((32, 256):(1@0, 1@1)), L!((64, 4):(4@1, 1@0)), L!((4, 8):(1@1, 4@0)), 4
}
shape! {
    /// Rows from 256 bytes, in 16-byte accesses: 128 rows by 64 words.
    Medium16: L!((128, 64):(1@0, 1@1)), L!((16, 16):(4@1, 1@0)), L!((4, 8):(1@1, 16@0)), 4
}
shape! {
    /// Short rows, in 16-byte accesses: 256 rows by 16 words.
    Short16: L!((256, 16):(1@0, 1@1)), L!((4, 64):(4@1, 1@0)), L!((4, 4):(1@1, 64@0)), 4
}
shape! {
    /// Rows of 128 units and more, one unit an access: 16 rows by 128 units.
    Long: L!((16, 128):(1@0, 1@1)), L!((128, 2):(1@1, 1@0)), L!(8:2@0), 1
}
shape! {
    /// Short rows, one unit an access: 256 rows by 8 units.
    Short: L!((256, 8):(1@0, 1@1)), L!((8, 32):(1@1, 1@0)), L!(8:32@0), 1
}
shape! {
    /// Very long rows, or a single one, one unit an access: 1 row by 2048 units.
    Wide: L!((1, 2048):(1@0, 1@1)), L!(256:1@1), L!(8:256@1), 1
}
