//! rope: rotary position embeddings: pairs of a row's elements are rotated by angles of its position.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadIdx, Threads, block_idx, fma, grid_dependency_wait,
    instantiate, launch_dependents, thread_idx,
};
use cutlet_layout_core::{
    Fragment, L, Raster, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, covers_exactly,
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
pub(super) struct Tables {
    pub(super) positions: Global<i32>,
    pub(super) cosines: Global<f32>,
    pub(super) sines: Global<f32>,
    pub(super) args: RopeArgs,
}

/// The angles of a thread's pairs.
pub(super) struct Angles<S: RopeShape> {
    cosines: Fragment<f32, <S::Angles as ThreadValue>::Val>,
    sines: Fragment<f32, <S::Angles as ThreadValue>::Val>,
    /// 0, or NaN if the table does not have the row's position.
    missing: f32,
}

impl Tables {
    /// The row of the thread's pairs of a tile. It is the last one for a thread without a row.
    #[inline(always)]
    pub(super) fn row<S: RopeShape>(
        &self,
        thread: ThreadIdx<Threads<THREADS>>,
        tile: (u32, u32),
    ) -> i32 {
        let space = self.args.space;
        let pairs = Tensor::identity([space.rows, space.columns])
            .local_tile::<S::Tile>(tile)
            .partition::<S::Pairs>(thread);
        let [row, _] = pairs.coordinate(0);
        row.min(space.rows - 1)
    }

    /// The angles of the thread's pairs of a tile.
    #[inline(always)]
    pub(super) fn angles<S: RopeShape>(
        &self,
        thread: ThreadIdx<Threads<THREADS>>,
        tile: (u32, u32),
    ) -> Angles<S> {
        let space = self.args.space;
        let extent = [space.rows, space.columns];
        let row = self.row::<S>(thread, tile);
        // SAFETY: the launcher promises a row of angles for each position of the table. All rows of the tensors are the
        // one of the thread's position.
        unsafe {
            let position = self.positions.load(space.begin(self.args.positions, row));
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

/// A thread's row: where its elements come from, and where its pairs go.
pub(super) struct Row<T: DeviceData> {
    /// The row's first element.
    pub from: Global<T>,
    /// Where it goes.
    pub to: GlobalMut<T>,
    /// Rows of the tiles, and pairs of a row. No rows if the thread's row goes nowhere.
    pub extent: [i32; 2],
    /// Whether pairs are rotated, or left as they are.
    pub rotates: bool,
}

/// Which elements of a row are pairs.
pub(super) trait Pairs {
    /// Rotates the thread's pairs of a tile.
    ///
    /// # Safety
    /// The row must have the pairs, and be aligned for the accesses of `S`, where it comes from and where it goes.
    unsafe fn rotate<S: RopeShape, T: Float + Number>(
        thread: ThreadIdx<Threads<THREADS>>,
        tile: (u32, u32),
        angles: Angles<S>,
        row: Row<T>,
    );
}

/// Elements `i` and `i + pairs`, as GPT-NeoX, Llama and most models have them.
pub(super) struct Halves;

impl Pairs for Halves {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn rotate<S: RopeShape, T: Float + Number>(
        thread: ThreadIdx<Threads<THREADS>>,
        tile: (u32, u32),
        angles: Angles<S>,
        row: Row<T>,
    ) {
        // All rows of the tensors are the thread's.
        let place = RowMajor::new(row.extent, 0);
        let apart = i64::from(row.extent[1]);
        // SAFETY: as promised by the caller.
        let ([first, second], [to_first, to_second]) = unsafe {
            (
                [row.from, row.from.offset(apart)].map(|half| Tensor::new(half, place)),
                [row.to, row.to.offset(apart)].map(|half| Tensor::new(half, place)),
            )
        };
        let [first, second] = [first, second].map(|half| {
            half.local_tile::<S::Tile>(tile)
                .partition::<S::Pairs>(thread)
                .load(T::default())
        });
        let turned = |v: usize| {
            let pair = [first.get(v).to_f32(), second.get(v).to_f32()];
            if row.rotates {
                angles.rotate(v, pair)
            } else {
                pair
            }
        };
        let firsts = narrowed::<T, _>(&first.map(|v, _| turned(v)[0]));
        let seconds = narrowed::<T, _>(&first.map(|v, _| turned(v)[1]));
        to_first
            .local_tile::<S::Tile>(tile)
            .partition::<S::Pairs>(thread)
            .store(&firsts);
        to_second
            .local_tile::<S::Tile>(tile)
            .partition::<S::Pairs>(thread)
            .store(&seconds);
    }
}

/// Elements `2i` and `2i + 1`, as GPT-J and the first paper have them.
pub(super) struct Neighbours;

impl Pairs for Neighbours {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn rotate<S: RopeShape, T: Float + Number>(
        thread: ThreadIdx<Threads<THREADS>>,
        tile: (u32, u32),
        angles: Angles<S>,
        row: Row<T>,
    ) {
        let [rows, pairs] = row.extent;
        let place = RowMajor::new([rows, 2 * pairs], 0);
        // SAFETY: as promised by the caller.
        let (from, to) = unsafe { (Tensor::new(row.from, place), Tensor::new(row.to, place)) };
        let values = from
            .local_tile::<S::Elements>(tile)
            .partition::<S::OfPairs>(thread)
            .load(T::default());
        let turned = values.map(|v, _| {
            let pair = v / 2;
            let elements = [values.get(2 * pair), values.get(2 * pair + 1)].map(Float::to_f32);
            let turned = if row.rotates {
                angles.rotate(pair, elements)
            } else {
                elements
            };
            turned[v % 2]
        });
        to.local_tile::<S::Elements>(tile)
            .partition::<S::OfPairs>(thread)
            .store(&narrowed::<T, _>(&turned));
    }
}

/// Rotates the pairs of each row.
///
/// `y` may be `x`.
///
/// # Safety
/// The operands must have these extents, and be aligned for the accesses of `S`. `x` and `y` have twice as many columns as
/// the rows' space, and the tables as many.
#[inline(always)]
unsafe fn rope<P: Pairs, S: RopeShape, T: Float + Number>(
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
    let row = tables.row::<S>(thread, tile);
    let row = Row {
        from: x.offset(space.begin(args.x, row)),
        to: y.offset(space.begin(args.y, row)),
        extent: [space.rows, space.columns],
        rotates: true,
    };
    // SAFETY: as promised by the caller.
    unsafe { P::rotate(thread, tile, angles, row) };
}

macro_rules! instances {
    ($($module:ident of $element:ty, $shape:ident: $halves:ident $halves_any:ident $neighbours:ident $neighbours_any:ident;)+)
        => {$(
        #[doc = concat!("The rotations of `", stringify!($element), "`.")]
        pub mod $module {
            use super::*;
            instances! { @each $element:
                $halves = Halves $shape, "Halves of rows whose vectors are aligned.";
                $halves_any = Halves RopeAny, "Halves of rows of any alignment.";
                $neighbours = Neighbours $shape, "Neighbours in rows whose vectors are aligned.";
                $neighbours_any = Neighbours RopeAny, "Neighbours in rows of any alignment.";
            }
        }
    )+};
    (@each $element:ty: $($name:ident = $pairs:ident $shape:ident, $doc:literal;)+) => {
        instantiate! {$(
            #[doc = $doc]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                x: Global<$element>,
                positions: Global<i32>,
                cosines: Global<f32>,
                sines: Global<f32>,
                y: GlobalMut<$element>,
                args: RopeArgs,
            ) = rope::<$pairs, $shape, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    rope_f32 of f32, Rope4: rope_halves_f32 rope_halves_f32_any rope_neighbours_f32 rope_neighbours_f32_any;
    rope_f16 of f16, Rope8: rope_halves_f16 rope_halves_f16_any rope_neighbours_f16 rope_neighbours_f16_any;
    rope_bf16 of bf16, Rope8: rope_halves_bf16 rope_halves_bf16_any rope_neighbours_bf16 rope_neighbours_bf16_any;
}
