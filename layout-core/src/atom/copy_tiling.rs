//! The tilings of copies: a copy atom repeated over more threads and values.
//!
//! They are values: [`TiledCopy`](crate::TiledCopy) is the type that kernels use, and computes its layouts by them.

use super::{CopyAtom, MmaTiling};
use crate::error::{LayoutError, or_panic, tri};
use crate::layout::LayoutBuilder;
use crate::value_tensor::underscores;
use crate::{
    IntTuple, Layout, Tiler, ValueTensor, product_each, raked_product, right_inverse,
    try_coalesce_by_mode, try_composition, try_zipped_divide,
};

/// A [`CopyAtom`] that many threads execute, as often as a tile needs.
///
/// ```
/// use cutlet_layout_core::{CopyAtom, CopyTiling, layout};
///
/// // 32×8 threads, down the columns, each copying four neighbours of a column at once.
/// let copy = CopyTiling::new(
///     CopyAtom::universal(128, 32),
///     &layout!((32, 8):(1, 32)),
///     &layout!((4, 1):(1, 0)),
/// );
/// assert_eq!(copy.tile().to_string(), "(_128,_8)");
/// assert_eq!(copy.get_layout_s_tv().to_string(), "(_256,(_4,_1)):(_4,(_1,_0))");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CopyTiling {
    atom: CopyAtom,
    /// (thread, value) → position in the tile.
    layout: Layout,
    tile: IntTuple,
}

impl CopyTiling {
    /// CuTe's `make_tiled_copy`: `threads` numbers the threads, `values` numbers the values of a
    /// thread, and each thread's values are neighbours in the tile.
    ///
    /// # Panics
    /// If the layouts are not compact, or the atom does not divide the threads and values.
    #[track_caller]
    pub const fn new(atom: CopyAtom, threads: &Layout, values: &Layout) -> CopyTiling {
        let by_coordinate = raked_product(threads, values);
        let shape = IntTuple::fixed(&[threads.size(), values.size()]);
        let layout = right_inverse(&by_coordinate).with_shape(&shape);
        CopyTiling::of_layout(atom, &layout, &product_each(&by_coordinate.shape()))
    }

    /// A copy by a layout from (thread, value) to the positions in a tile.
    ///
    /// # Panics
    /// If the layout does not cover the tile, or the atom does not divide threads and values.
    #[track_caller]
    pub const fn of_layout(atom: CopyAtom, layout: &Layout, tile: &IntTuple) -> CopyTiling {
        assert!(
            super::covers(&crate::coalesce(&crate::filter_zeros(layout)), tile.size()),
            "CopyTiling: the threads and values do not cover each element of the tile once: match the layout to the tile"
        );
        let [threads, values] = [layout.mode(0).size(), layout.mode(1).size()];
        assert!(
            threads % atom.threads() == 0 && values % atom.reference().mode(1).size() == 0,
            "CopyTiling: the atom's threads and values do not divide those of the tiled copy: use multiples of both"
        );
        CopyTiling {
            atom,
            layout: *layout,
            tile: *tile,
        }
    }

    /// A copy of the M×K tile of A to or from the registers in which an MMA's threads hold it.
    ///
    /// # Panics
    /// As [`of_layout`](Self::of_layout).
    #[track_caller]
    pub const fn for_a(atom: CopyAtom, mma: &MmaTiling) -> CopyTiling {
        let [m, _, k] = mma.tile();
        CopyTiling::of_layout(atom, &mma.get_layout_a_tv(), &IntTuple::fixed(&[m, k]))
    }

    /// A copy of the N×K tile of B to or from the registers in which an MMA's threads hold it.
    ///
    /// # Panics
    /// As [`of_layout`](Self::of_layout).
    #[track_caller]
    pub const fn for_b(atom: CopyAtom, mma: &MmaTiling) -> CopyTiling {
        let [_, n, k] = mma.tile();
        CopyTiling::of_layout(atom, &mma.get_layout_b_tv(), &IntTuple::fixed(&[n, k]))
    }

    /// A copy of the M×N tile of C to or from the registers in which an MMA's threads hold it.
    ///
    /// # Panics
    /// As [`of_layout`](Self::of_layout).
    #[track_caller]
    pub const fn for_c(atom: CopyAtom, mma: &MmaTiling) -> CopyTiling {
        let [m, n, _] = mma.tile();
        CopyTiling::of_layout(atom, &mma.get_layout_c_tv(), &IntTuple::fixed(&[m, n]))
    }

    /// The atom.
    pub const fn atom(&self) -> &CopyAtom {
        &self.atom
    }

    /// The number of threads.
    pub const fn threads(&self) -> i64 {
        self.layout.mode(0).size()
    }

    /// The extents of the tile.
    pub const fn tile(&self) -> &IntTuple {
        &self.tile
    }

    /// (thread, value) → position in the tile, for the side in registers.
    pub const fn get_layout_tv(&self) -> &Layout {
        &self.layout
    }

    /// (thread, value) → position in the tile, as threads read it: CuTe's `get_layoutS_TV`.
    pub const fn get_layout_s_tv(&self) -> Layout {
        self.of_side(self.atom.source())
    }

    /// (thread, value) → position in the tile, as threads write it: CuTe's `get_layoutD_TV`.
    pub const fn get_layout_d_tv(&self) -> Layout {
        self.of_side(self.atom.destination())
    }

    const fn of_side(&self, side: &Layout) -> Layout {
        or_panic(self.try_thrval(&Layout::col_major(&self.tile), side)).take(0, 2)
    }

    /// A source's layout as `(thread, value, RestM, RestN, …)`: CuTe's `tidfrg_S`.
    ///
    /// # Errors
    /// If the layout cannot be divided by the tile.
    pub const fn try_tidfrg_s(&self, source: &Layout) -> Result<Layout, LayoutError> {
        self.tidfrg(source, self.atom.source())
    }

    /// A destination's layout as `(thread, value, RestM, RestN, …)`: CuTe's `tidfrg_D`.
    ///
    /// # Errors
    /// If the layout cannot be divided by the tile.
    pub const fn try_tidfrg_d(&self, destination: &Layout) -> Result<Layout, LayoutError> {
        self.tidfrg(destination, self.atom.destination())
    }

    const fn tidfrg(&self, layout: &Layout, side: &Layout) -> Result<Layout, LayoutError> {
        let divided = tri!(try_zipped_divide(layout, &Tiler::shape(&self.tile)));
        let held = tri!(self.try_thrval(&divided.mode(0), side));
        let mut builder = LayoutBuilder::new();
        builder.open();
        builder.append_modes(&held);
        builder.append_modes(&divided.mode(1));
        builder.close();
        builder.finish()
    }

    /// A tile's layout as (thread, value), in the order of one side of the atom.
    const fn try_thrval(&self, tile: &Layout, side: &Layout) -> Result<Layout, LayoutError> {
        let reference = self.atom.reference();
        let atom = IntTuple::fixed(&[reference.mode(0).size(), reference.mode(1).size()]);
        // ((atom's threads, atom's values), (other threads, other values)) → position
        let by_atom = tri!(try_zipped_divide(&self.layout, &Tiler::shape(&atom)));
        let to_side = tri!(try_composition(&right_inverse(reference), side));
        let own = tri!(try_composition(&by_atom.mode(0), &to_side));
        let others = by_atom.mode(1);
        let mut builder = LayoutBuilder::new();
        builder.open();
        let mut i = 0;
        while i < 2 {
            builder.open();
            builder.append(&own.mode(i));
            builder.append(&others.mode(i));
            builder.close();
            i += 1;
        }
        builder.close();
        let held = tri!(builder.finish());
        let one = IntTuple::fixed(&[1]);
        let pair = IntTuple::fixed(&[1, 1]);
        let profile = IntTuple::tuple(&[one.mode(0), pair]);
        try_composition(tile, &tri!(try_coalesce_by_mode(&held, &profile)))
    }

    /// The part of a source that a thread reads, as `(value, RestM, RestN, …)`.
    ///
    /// # Panics
    /// If [`try_tidfrg_s`](Self::try_tidfrg_s) returns an error, or if there is no such thread.
    #[track_caller]
    pub fn partition_s<E, I: Copy>(
        &self,
        source: ValueTensor<E, I>,
        thread: i64,
    ) -> ValueTensor<E, I> {
        let tidfrg = or_panic(self.try_tidfrg_s(source.outer()));
        self.slice(source.with_outer(tidfrg), thread)
    }

    /// The part of a destination that a thread writes, as `(value, RestM, RestN, …)`.
    ///
    /// # Panics
    /// If [`try_tidfrg_d`](Self::try_tidfrg_d) returns an error, or if there is no such thread.
    #[track_caller]
    pub fn partition_d<E, I: Copy>(
        &self,
        destination: ValueTensor<E, I>,
        thread: i64,
    ) -> ValueTensor<E, I> {
        let tidfrg = or_panic(self.try_tidfrg_d(destination.outer()));
        self.slice(destination.with_outer(tidfrg), thread)
    }

    #[track_caller]
    fn slice<E, I: Copy>(&self, tidfrg: ValueTensor<E, I>, thread: i64) -> ValueTensor<E, I> {
        let threads = self.threads();
        assert!(
            (0..threads).contains(&thread),
            "CopyTiling: there is no thread {thread}: the {threads} threads are numbered from 0"
        );
        let mut coord = underscores(tidfrg.rank());
        coord = coord.replace(0, &IntTuple::from(thread));
        tidfrg.slice(&coord)
    }
}
