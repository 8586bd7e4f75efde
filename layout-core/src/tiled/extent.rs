//! Extents as types, which the compiler divides: how often a tile repeats an instruction.
//!
//! The registers of a fragment are a type, and stable Rust computes no array length from the constants of a type
//! parameter. So the number of repeats is found by traits, from modes `M<N, 1>` that stand for the number `N`.

use crate::{
    E, Engine, Fixed, FragmentLayout, Inner, M, Partition, StaticLayout, StaticSwizzle, Tensor,
    ThreadIndex, ThreadValue, Whole,
};

/// The layout of a tile whose numbers of rows and columns are types.
///
/// `L!((64, 32):(1@0, 1@1))` is such a layout, and `L!((64, 32):(32, 1))`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tile with rows and columns that a tiled operation divides",
    note = "take a tile of a whole tensor first: `tensor.local_tile::<Tile>(..)`",
    note = "write it as `L!((ROWS, COLUMNS):(1@0, 1@1))`, with a single mode for the rows and one for the columns"
)]
pub trait TileShape: StaticLayout {
    /// The number of rows, as the mode `M<ROWS, 1>`.
    type Rows: StaticLayout;
    /// The number of columns, as the mode `M<COLUMNS, 1>`.
    type Columns: StaticLayout;
    /// The coordinates of the tile, row by row and column by column: tiles in other memory that have the same.
    type Extents: TileShape<Rows = Self::Rows, Columns = Self::Columns, Extents = Self::Extents>;
}

impl<const R: usize, const DR: i64, const BR: usize, const C: usize, const DC: i64, const BC: usize>
    TileShape for (E<R, DR, BR>, E<C, DC, BC>)
{
    type Rows = M<R, 1>;
    type Columns = M<C, 1>;
    type Extents = (E<R, 1, 0>, E<C, 1, 1>);
}

impl<const R: usize, const DR: i64, const C: usize, const DC: i64> TileShape
    for (M<R, DR>, M<C, DC>)
{
    type Rows = M<R, 1>;
    type Columns = M<C, 1>;
    type Extents = (E<R, 1, 0>, E<C, 1, 1>);
}

/// A tensor whose extents are types: a [`local_tile`](Tensor::local_tile), or a whole tile in shared memory.
#[diagnostic::on_unimplemented(
    message = "the extents of `{Self}` are no types, and a tiled operation divides them when the kernel is compiled",
    note = "take a tile first: `tensor.local_tile::<L!((ROWS, COLUMNS):(1@0, 1@1))>(..)`"
)]
pub trait Tiled: Copy {
    /// Where its elements are.
    type Engine: Engine;
    /// Its inner transform.
    type Inner: Inner;
    /// Its extents, as [`TileShape::Extents`].
    type Tile: TileShape;

    /// [`Tensor::partition`].
    fn partition_tile<C: ThreadValue>(
        self,
        thread: impl ThreadIndex,
    ) -> Partition<Self::Engine, Self::Inner, C>;

    /// [`Tensor::partition_broadcast`].
    fn partition_tile_broadcast<C: ThreadValue>(
        self,
        thread: impl ThreadIndex,
    ) -> Partition<Self::Engine, Self::Inner, C>;
}

macro_rules! tiled {
    ([$($parameters:tt)*] $inner:ty, $of:ty => $tile:ty) => {
        impl<$($parameters)*> Tiled for Tensor<E, $inner, $of> {
            type Engine = E;
            type Inner = $inner;
            type Tile = <$tile as TileShape>::Extents;

            #[inline(always)]
            fn partition_tile<C: ThreadValue>(
                self,
                thread: impl ThreadIndex,
            ) -> Partition<E, $inner, C> {
                self.partition::<C>(thread)
            }

            #[inline(always)]
            fn partition_tile_broadcast<C: ThreadValue>(
                self,
                thread: impl ThreadIndex,
            ) -> Partition<E, $inner, C> {
                self.partition_broadcast::<C>(thread)
            }
        }
    };
}
tiled!([E: Engine, I: Inner, T: TileShape] I, T => T);
tiled!([E: Engine, L: TileShape, W: StaticSwizzle] Fixed<L, W>, Whole => L);

/// An even number up to 256, or a larger one up to 8192 that has more factors of two, as a mode.
#[diagnostic::on_unimplemented(
    message = "a tile's extent is no multiple of what its tiled operation covers: `{Self}` would have to be halved",
    note = "an extent is the instruction's times the warps' (or threads' times values') along it, times a whole number; \
            up to 8192, of which those above 256 are multiples of 16, those above 512 of 32, and so on"
)]
pub trait Half: StaticLayout {
    /// Half of it.
    type Half: FragmentLayout;
}

macro_rules! halves {
    ($($half:literal)+) => {$(
        impl Half for M<{ 2 * $half }, 1> {
            type Half = M<$half, 1>;
        }
    )+};
}
halves! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96
    97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125
    126 127 128
    136 144 152 160 168 176 184 192 200 208 216 224 232 240 248 256
    272 288 304 320 336 352 368 384 400 416 432 448 464 480 496 512
    544 576 608 640 672 704 736 768 800 832 864 896 928 960 992 1024
    1088 1152 1216 1280 1344 1408 1472 1536 1600 1664 1728 1792 1856 1920 1984 2048
    2176 2304 2432 2560 2688 2816 2944 3072 3200 3328 3456 3584 3712 3840 3968 4096
}

/// An extent that repeats `Units`, each of which has `Unit` elements, a whole number of times.
pub trait Repeats<Unit, Units>: StaticLayout {
    /// How often, as the mode `M<TIMES, 1>`.
    type Times: FragmentLayout;
}

impl<X, Unit, Units> Repeats<Unit, Units> for X
where
    X: Divided<Unit, Quotient: Divided<Units>>,
{
    type Times = <X::Quotient as Divided<Units>>::Quotient;
}

/// An extent that is a whole number of times the power of two `By`.
#[diagnostic::on_unimplemented(
    message = "a tiled operation has `{By}` threads, warps or values along a direction of a tile, which is no power of two \
               up to 1024, nor all that there are"
)]
pub trait Divided<By>: StaticLayout {
    /// That number.
    type Quotient: FragmentLayout;
}

impl<const X: usize> Divided<M<1, 1>> for M<X, 1> {
    type Quotient = M<X, 1>;
}

macro_rules! divided {
    ($($by:literal: $half:literal)+) => {$(
        impl<X: Half<Half: Divided<M<$half, 1>>>> Divided<M<$by, 1>> for X {
            type Quotient = <X::Half as Divided<M<$half, 1>>>::Quotient;
        }
    )+};
}
divided! { 2: 1 4: 2 8: 4 16: 8 32: 16 64: 32 128: 64 256: 128 512: 256 1024: 512 }

macro_rules! divided_by_itself {
    ($($n:literal)+) => {$(
        impl Divided<M<$n, 1>> for M<$n, 1> {
            type Quotient = M<1, 1>;
        }
    )+};
}
// The columns of `wgmma` that are no powers of two: a tile has those of one instruction.
divided_by_itself! {
    24 40 48 56 72 80 88 96 104 112 120 136 144 152 160 168 176 184 192 200 208 216 224 232 240 248
}
