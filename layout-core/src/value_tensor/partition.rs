//! Slicing, tiling and partitioning tensors: everything that acts on the outer layout.

use super::{ValueTensor, unwrap};
use crate::error::LayoutError;
use crate::int_tuple::TupleBuilder;
use crate::{ComposedLayout, IntTuple, Layout, Tiler, product_each, try_dice};

macro_rules! layout_operations {
    ($(
        $(#[$doc:meta])*
        $name:ident, $try_name:ident ($arg:ident: $type:ty);
    )+) => {
        impl<E, I: Copy> ValueTensor<E, I> {$(
            $(#[$doc])*
            ///
            /// # Panics
            #[doc = concat!("If [`ComposedLayout::", stringify!($try_name), "`] returns an error.")]
            #[track_caller]
            pub fn $name(self, $arg: &$type) -> ValueTensor<E, I> {
                let layout = unwrap(self.layout.$try_name($arg));
                ValueTensor { layout, ..self }
            }
        )+}
    };
}
layout_operations! {
    /// The part of the tensor that a coordinate marks with `_`.
    slice, try_slice(coord: IntTuple);

    /// The tensor seen through a layout of its 1-D coordinates.
    composition, try_composition(layout: Layout);

    /// The tensor's elements that a tiler points to, mode by mode.
    composition_by_mode, try_composition_by_mode(tiler: Tiler);

    /// The tensor split mode by mode: `((TileM,RestM), (TileN,RestN), …)`.
    logical_divide, try_logical_divide(tiler: Tiler);

    /// The tensor split into tiles and rests: `((TileM,TileN), (RestM,RestN))`.
    zipped_divide, try_zipped_divide(tiler: Tiler);

    /// The tensor split into tiles and rests: `((TileM,TileN), RestM, RestN)`.
    tiled_divide, try_tiled_divide(tiler: Tiler);

    /// The tensor split into tiles and rests: `(TileM, TileN, RestM, RestN)`.
    flat_divide, try_flat_divide(tiler: Tiler);
}

impl<E, I: Copy> ValueTensor<E, I> {
    /// Modes `begin..end` grouped into one.
    ///
    /// # Panics
    /// If [`Layout::try_group`] returns an error.
    #[track_caller]
    pub fn group_modes(self, begin: usize, end: usize) -> ValueTensor<E, I> {
        let outer = unwrap(self.outer().try_group(begin, end));
        self.with_outer(outer)
    }

    /// The tile at a coordinate among tiles: CuTe's `inner_partition`.
    ///
    /// Modes past the coordinate are kept, behind the tile's modes. If the tiler does not divide an
    /// extent, the last tiles reach beyond the tensor.
    ///
    /// # Panics
    /// As [`zipped_divide`](Self::zipped_divide), and if there is no such tile.
    #[track_caller]
    pub fn inner_partition(self, tiler: &Tiler, coord: &IntTuple) -> ValueTensor<E, I> {
        let whole = *self.outer();
        let tiled = self.zipped_divide(tiler);
        let [tile, rest] = [0, 1].map(|i| tiled.outer().mode(i).shape());
        assert!(
            is_within(coord, &rest),
            "inner_partition: {whole} in tiles of {tiler} has no tile {coord}: there are {rest}"
        );
        let coord = padded(coord, rest.rank());
        let coord = unwrap(tuple_of_two(&underscores(tile.rank()), &coord));
        tiled.slice(&coord)
    }

    /// The elements of all tiles at a coordinate within the tile: CuTe's `outer_partition`.
    ///
    /// If the tiler does not divide an extent, the elements of the last tiles may lie beyond the
    /// tensor.
    ///
    /// # Panics
    /// As [`zipped_divide`](Self::zipped_divide), and if the tile has no such coordinate.
    #[track_caller]
    pub fn outer_partition(self, tiler: &Tiler, coord: &IntTuple) -> ValueTensor<E, I> {
        let tiled = self.zipped_divide(tiler);
        let [tile, rest] = [0, 1].map(|i| tiled.outer().mode(i).shape());
        assert!(
            is_within(coord, &tile),
            "outer_partition: a tile of {tiler} has no coordinate {coord}: its shape is {tile}"
        );
        let coord = padded(coord, tile.rank());
        let coord = unwrap(tuple_of_two(&coord, &underscores(rest.rank())));
        tiled.slice(&coord)
    }

    /// The tile at a coordinate among tiles, on which a block of threads works: CuTe's
    /// `local_tile`.
    ///
    /// # Panics
    /// As [`inner_partition`](Self::inner_partition).
    #[track_caller]
    pub fn local_tile(self, tiler: &Tiler, coord: &IntTuple) -> ValueTensor<E, I> {
        self.inner_partition(tiler, coord)
    }

    /// [`local_tile`](Self::local_tile) of the modes that a projection does not mark with `_`. For
    /// the tile of A, the tiler and the coordinate are those of (M, N, K) and the projection is
    /// `(1, _, 1)`.
    ///
    /// # Panics
    /// As [`inner_partition`](Self::inner_partition), and if the ranks differ.
    #[track_caller]
    pub fn local_tile_projected(
        self,
        tiler: &Tiler,
        coord: &IntTuple,
        projection: &IntTuple,
    ) -> ValueTensor<E, I> {
        assert!(
            tiler.rank() == projection.rank() && coord.rank() == projection.rank(),
            "local_tile: tiler {tiler}, coordinate {coord} and projection {projection} must have the same rank"
        );
        let mut tiles = [Tiler::UNDERSCORE; crate::CAPACITY];
        let mut coords = [IntTuple::EMPTY; crate::CAPACITY];
        let mut kept = 0;
        for i in (0..projection.rank()).filter(|&i| !projection.mode(i).has_underscore()) {
            tiles[kept] = tiler.mode(i);
            coords[kept] = coord.mode(i);
            kept += 1;
        }
        self.inner_partition(
            &Tiler::tuple(&tiles[..kept]),
            &IntTuple::tuple(&coords[..kept]),
        )
    }

    /// The elements of thread `thread` if a thread layout is repeated over the tensor: CuTe's
    /// `local_partition`.
    ///
    /// ```
    /// use cutlet_layout_core::{Counting, ValueTensor, layout};
    ///
    /// let tensor = ValueTensor::new(Counting, layout!((4, 6):(1, 4)));
    /// let mine = tensor.local_partition(&layout!((2, 3):(3, 1)), 4); // thread 4 is at (1, 1)
    /// assert_eq!(mine.iter().map(|i| i.leaf(0).value()).collect::<Vec<_>>(), [5, 7, 17, 19]);
    /// ```
    ///
    /// # Panics
    /// As [`outer_partition`](Self::outer_partition), and if there is no such thread.
    #[track_caller]
    pub fn local_partition(self, threads: &Layout, thread: i64) -> ValueTensor<E, I> {
        assert!(
            (0..threads.size()).contains(&thread),
            "local_partition: {threads} has no thread {thread}: it has {}, numbered from 0",
            threads.size()
        );
        let tile = Tiler::shape(&product_each(&threads.shape()));
        let coord = threads.get_flat_coord(thread.into());
        self.outer_partition(&tile, &coord)
    }

    /// [`local_partition`](Self::local_partition) by the modes of the thread layout that a
    /// projection does not mark with `_`.
    ///
    /// # Panics
    /// As [`local_partition`](Self::local_partition), and if the projection does not fit.
    #[track_caller]
    pub fn local_partition_projected(
        self,
        threads: &Layout,
        thread: i64,
        projection: &IntTuple,
    ) -> ValueTensor<E, I> {
        assert!(
            (0..threads.size()).contains(&thread),
            "local_partition: {threads} has no thread {thread}: it has {}, numbered from 0",
            threads.size()
        );
        let kept = unwrap(try_dice(projection, threads));
        // Threads that differ only in modes that the projection leaves out share their elements.
        let coord = threads.get_flat_coord(thread.into());
        let mut coords = [IntTuple::EMPTY; crate::CAPACITY];
        let mut len = 0;
        for i in (0..projection.rank()).filter(|&i| !projection.mode(i).has_underscore()) {
            coords[len] = coord.mode(i);
            len += 1;
        }
        let tile = Tiler::shape(&product_each(&kept.shape()));
        self.outer_partition(&tile, &IntTuple::tuple(&coords[..len]))
    }

    /// The same engine and inner transform behind another outer layout.
    pub(crate) fn with_outer(self, outer: Layout) -> ValueTensor<E, I> {
        let layout = ComposedLayout::new(*self.layout.inner(), *self.layout.offset(), outer);
        ValueTensor { layout, ..self }
    }
}

/// A coordinate of `rank` underscores; a single `_` for rank 1.
pub(crate) const fn underscores(rank: usize) -> IntTuple {
    if rank == 1 {
        IntTuple::UNDERSCORE
    } else {
        padded(&IntTuple::EMPTY, rank)
    }
}

/// Whether a coordinate of at most as many modes as a shape lies within it; `_` always does.
///
/// Slicing does not check this: a coordinate beyond a shape continues there. A coordinate that does
/// not fit the shape's parentheses counts as inside, because slicing refuses it.
fn is_within(coord: &IntTuple, shape: &IntTuple) -> bool {
    match coord.as_int() {
        Some(int) => (0..shape.size()).contains(&int.value()),
        None if coord.is_tuple() && shape.is_tuple() => {
            (0..coord.rank().min(shape.rank())).all(|i| is_within(&coord.mode(i), &shape.mode(i)))
        }
        None => true,
    }
}

/// A coordinate padded to a rank with `_`. An integer counts through all modes, and stays.
const fn padded(coord: &IntTuple, rank: usize) -> IntTuple {
    if !coord.is_tuple() {
        return *coord;
    }
    let mut modes = [IntTuple::UNDERSCORE; crate::CAPACITY];
    let mut i = 0;
    while i < coord.rank() {
        modes[i] = coord.mode(i);
        i += 1;
    }
    IntTuple::tuple(modes.split_at(if rank > i { rank } else { i }).0)
}

const fn tuple_of_two(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    let mut builder = TupleBuilder::new();
    builder.open();
    builder.append(a);
    builder.append(b);
    builder.close();
    builder.finish()
}
