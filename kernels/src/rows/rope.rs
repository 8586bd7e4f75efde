//! rope: rotary position embeddings: pairs of a row's elements are rotated by angles of its position.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadIdx, Threads, block_idx, fma, grid_dependency_wait,
    instantiate, launch_dependents, thread_idx,
};
use cutlet_layout_core::{
    Bound, Fragment, L, Raster, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, covers_exactly,
    tile_extent, tiles,
};
use half::{bf16, f16};

use super::{Number, RowStrides, Space, THREADS, narrowed};

/// Extents and strides of a rotation.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct RopeArgs {
    /// Strides of the rows that are read.
    pub x: RowStrides,
    /// Strides of the rows that are written.
    pub y: RowStrides,
    /// Strides of the rows' positions.
    pub positions: RowStrides,
    /// The rows, of which a pair counts as one column.
    pub space: Space,
    /// Positions of which the table has angles.
    pub table_rows: i32,
    /// Factor of the sines: 1, or −1 to rotate backwards.
    pub direction: f32,
}

/// How the threads of a block have pairs: tiles of rows and pairs.
pub trait RopeShape {
    /// A tile of pairs.
    type Tile: StaticLayout;
    /// Which pairs a thread has.
    type Pairs: ThreadValue;
    /// The same, in accesses of the angles' width.
    type Angles: ThreadValue;
    /// A tile of elements, whose neighbours are pairs.
    type Elements: StaticLayout;
    /// Which elements a thread has. Value `2v` and `2v + 1` are pair `v`.
    type OfPairs: ThreadValue;
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $tile:ty, $pairs:ty, $angles:ty; $elements:ty, $of_pairs:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl RopeShape for $name {
            type Tile = $tile;
            type Pairs = $pairs;
            type Angles = $angles;
            type Elements = $elements;
            type OfPairs = $of_pairs;
        }
        const _: () = assert!(
            covers_exactly::<$pairs>(tile_extent::<$tile>())
                && covers_exactly::<$angles>(tile_extent::<$tile>())
                && covers_exactly::<$of_pairs>(tile_extent::<$elements>()),
            "a shape's threads have each pair once"
        );
    )+};
}
shapes! {
    /// Vectors of eight elements of 16 bits.
    Rope8: L!((32, 64):(1@0, 1@1)), Tv<L!((8, 32):(8@1, 1@0)), L!(8:1@1), 8>,
        Tv<L!((8, 32):(8@1, 1@0)), L!(8:1@1), 4>;
        L!((32, 128):(1@0, 1@1)), Tv<L!((8, 32):(16@1, 1@0)), L!(16:1@1), 8>;
    /// Vectors of four elements of 32 bits.
    Rope4: L!((32, 32):(1@0, 1@1)), Tv<L!((8, 32):(4@1, 1@0)), L!(4:1@1), 4>,
        Tv<L!((8, 32):(4@1, 1@0)), L!(4:1@1), 4>;
        L!((32, 64):(1@0, 1@1)), Tv<L!((8, 32):(8@1, 1@0)), L!(8:1@1), 4>;
    /// Elements of any alignment.
    RopeAny: L!((8, 64):(1@0, 1@1)), Tv<L!((32, 8):(1@1, 1@0)), L!(2:32@1)>,
        Tv<L!((32, 8):(1@1, 1@0)), L!(2:32@1)>;
        L!((8, 128):(1@0, 1@1)), Tv<L!((32, 8):(2@1, 1@0)), L!((2, 2):(1@1, 64@1))>;
}

/// The tables of angles, and where the rows' positions are.
#[derive(Clone, Copy)]
struct Tables {
    positions: Global<i32>,
    cosines: Global<f32>,
    sines: Global<f32>,
    args: RopeArgs,
}

/// The angles of a thread's pairs.
struct Angles<S: RopeShape> {
    cosines: Fragment<f32, <S::Angles as ThreadValue>::Val>,
    sines: Fragment<f32, <S::Angles as ThreadValue>::Val>,
    /// 0, or NaN if the table does not have the row's position.
    missing: f32,
}

impl Tables {
    /// The angles of the thread's pairs of a tile.
    #[inline(always)]
    fn angles<S: RopeShape>(
        &self,
        thread: ThreadIdx<Threads<THREADS>>,
        tile: (u32, u32),
    ) -> Angles<S> {
        let space = self.args.space;
        let extent = [space.rows, space.columns];
        // SAFETY: the launcher promises a row of angles for each position of the table. All rows of the tensors are the
        // one of the thread's position.
        unsafe {
            let places = Tensor::new(self.cosines, RowMajor::new(extent, 0));
            let place = places
                .local_tile::<S::Tile>(tile)
                .partition::<S::Angles>(thread);
            let position = match place.bound().holds(0) {
                true => {
                    let [row, _] = place.bound().coordinate(0);
                    self.positions.load(space.begin(self.args.positions, row))
                }
                false => 0,
            };
            let exists = (position as u32) < self.args.table_rows as u32;
            let row = if exists { position } else { 0 };
            let begin = i64::from(row) * i64::from(space.columns);
            let [cosines, sines] = [self.cosines, self.sines].map(|table| {
                Tensor::new(table.offset(begin), RowMajor::new(extent, 0))
                    .local_tile::<S::Tile>(tile)
                    .partition::<S::Angles>(thread)
                    .load(0.0)
            });
            Angles {
                cosines,
                sines: sines.map(|_, sine| sine * self.args.direction),
                missing: if exists { 0.0 } else { f32::NAN },
            }
        }
    }
}

impl<S: RopeShape> Angles<S> {
    /// A pair, rotated.
    #[inline(always)]
    fn rotate(&self, v: usize, [first, second]: [f32; 2]) -> [f32; 2] {
        let (cosine, sine) = (self.cosines.get(v) + self.missing, self.sines.get(v));
        [
            fma(first, cosine, -(second * sine)),
            fma(second, cosine, first * sine),
        ]
    }
}

/// Rotates pairs of elements `i` and `i + pairs` of each row, as GPT-NeoX, Llama and most models have them.
///
/// `y` may be `x`.
///
/// # Safety
/// The operands must have these extents, and be aligned for the accesses of `S`. `x` and `y` have twice as many columns as
/// the rows' space, and the tables as many.
#[inline(always)]
unsafe fn halves<S: RopeShape, T: Float + Number>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    positions: Global<i32>,
    cosines: Global<f32>,
    sines: Global<f32>,
    y: GlobalMut<T>,
    args: RopeArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    let tables = Tables {
        positions,
        cosines,
        sines,
        args,
    };
    let space = args.space;
    let tile = Raster::new(tiles::<S::Tile>([space.rows, space.columns]), 1).tile(block_idx().x);
    let angles = tables.angles::<S>(thread, tile);
    let apart = i64::from(space.columns);
    // SAFETY: the launcher promises the extents.
    let ([first, second], [to_first, to_second]) = unsafe {
        (
            [x, x.offset(apart)].map(|half| Tensor::new(half, space.rows(args.x))),
            [y, y.offset(apart)].map(|half| Tensor::new(half, space.rows(args.y))),
        )
    };
    let [first, second] = [first, second].map(|half| {
        half.local_tile::<S::Tile>(tile)
            .partition::<S::Pairs>(thread)
            .load(T::default())
    });
    let rotated = |v: usize| angles.rotate(v, [first.get(v).to_f32(), second.get(v).to_f32()]);
    let firsts = narrowed::<T, _>(&first.map(|v, _| rotated(v)[0]));
    let seconds = narrowed::<T, _>(&first.map(|v, _| rotated(v)[1]));
    to_first
        .local_tile::<S::Tile>(tile)
        .partition::<S::Pairs>(thread)
        .store(&firsts);
    to_second
        .local_tile::<S::Tile>(tile)
        .partition::<S::Pairs>(thread)
        .store(&seconds);
}

/// Rotates pairs of elements `2i` and `2i + 1` of each row, as GPT-J and the first paper have them.
///
/// `y` may be `x`.
///
/// # Safety
/// As [`halves`].
#[inline(always)]
unsafe fn neighbours<S: RopeShape, T: Float + Number>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    positions: Global<i32>,
    cosines: Global<f32>,
    sines: Global<f32>,
    y: GlobalMut<T>,
    args: RopeArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    let tables = Tables {
        positions,
        cosines,
        sines,
        args,
    };
    let space = args.space;
    let tile = Raster::new(tiles::<S::Tile>([space.rows, space.columns]), 1).tile(block_idx().x);
    let angles = tables.angles::<S>(thread, tile);
    let of_elements = Space {
        columns: 2 * space.columns,
        last_columns: 2 * space.columns,
        ..space
    };
    // SAFETY: the launcher promises the extents.
    let (x, y) = unsafe {
        (
            Tensor::new(x, of_elements.rows(args.x)),
            Tensor::new(y, of_elements.rows(args.y)),
        )
    };
    let values = x
        .local_tile::<S::Elements>(tile)
        .partition::<S::OfPairs>(thread)
        .load(T::default());
    let rotated = values.map(|v, _| {
        let pair = v / 2;
        let elements = [values.get(2 * pair), values.get(2 * pair + 1)].map(Float::to_f32);
        angles.rotate(pair, elements)[v % 2]
    });
    y.local_tile::<S::Elements>(tile)
        .partition::<S::OfPairs>(thread)
        .store(&narrowed::<T, _>(&rotated));
}

macro_rules! instances {
    ($($module:ident of $element:ty, $shape:ident: $halves:ident $halves_any:ident $neighbours:ident $neighbours_any:ident;)+)
        => {$(
        #[doc = concat!("The rotations of `", stringify!($element), "`.")]
        pub mod $module {
            use super::*;
            instances! { @each $element:
                $halves = halves $shape, "Halves of rows whose vectors are aligned.";
                $halves_any = halves RopeAny, "Halves of rows of any alignment.";
                $neighbours = neighbours $shape, "Neighbours in rows whose vectors are aligned.";
                $neighbours_any = neighbours RopeAny, "Neighbours in rows of any alignment.";
            }
        }
    )+};
    (@each $element:ty: $($name:ident = $function:ident $shape:ident, $doc:literal;)+) => {
        instantiate! {$(
            #[doc = $doc]
            #[kernel(threads = 256)]
            pub unsafe fn $name(
                x: Global<$element>,
                positions: Global<i32>,
                cosines: Global<f32>,
                sines: Global<f32>,
                y: GlobalMut<$element>,
                args: RopeArgs,
            ) = $function::<$shape, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    rope_f32 of f32, Rope4: rope_halves_f32 rope_halves_f32_any rope_neighbours_f32 rope_neighbours_f32_any;
    rope_f16 of f16, Rope8: rope_halves_f16 rope_halves_f16_any rope_neighbours_f16 rope_neighbours_f16_any;
    rope_bf16 of bf16, Rope8: rope_halves_bf16 rope_halves_bf16_any rope_neighbours_bf16 rope_neighbours_bf16_any;
}
