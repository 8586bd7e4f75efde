//! The epilogue subtiles: some rows of a warp's rectangle of C, which leave it together.

use core::marker::PhantomData;

use cutlet_layout_core::{
    AccessWidth, FragmentLayout, Layout, MmaTiling, StaticLayout, ThreadValue, Tiler,
};

use super::warps::{Rectangles, in_rectangles};

/// Rows and columns of an epilogue subtile: a block of rows, or more if a warp would store fewer than 512 elements.
pub(super) const fn subtile<P: Rectangles>() -> [usize; 2] {
    let columns = P::TILE[1] / P::WARPS[1];
    let block = P::ORDER[0].size() as usize;
    let mut rows = block;
    while rows * columns < 512 {
        rows += block;
    }
    assert!(
        (P::TILE[0] / P::WARPS[0]).is_multiple_of(rows),
        "a warp's rows are whole epilogue subtiles, of 512 elements or more"
    );
    [rows, columns]
}

/// Thread-value layout of an epilogue subtile of a warp, whose accesses have the width `W`.
#[derive(Clone, Copy, Debug)]
pub struct Subtile<P, W>(PhantomData<(P, W)>);

impl<P: Rectangles, W: AccessWidth> ThreadValue for Subtile<P, W> {
    type Thr = SubtileThreads<P>;
    type Val = SubtileValues<P>;
    type Width = W;
}

/// The lanes over the rows and columns of an epilogue subtile.
#[derive(Clone, Copy)]
pub struct SubtileThreads<P>(PhantomData<P>);

impl<P: Rectangles> StaticLayout for SubtileThreads<P> {
    const LAYOUT: Layout = P::BY_LANE.mode(0).flatten();
}

/// A thread's accumulators of an epilogue subtile, as [`Product::by_rows`](super::Product::by_rows) orders them. They
/// are never in a fragment of their own.
#[derive(Clone, Copy)]
pub struct SubtileValues<P>(PhantomData<P>);

impl<P: Rectangles> StaticLayout for SubtileValues<P> {
    const LAYOUT: Layout = {
        let values = P::BY_LANE.mode(1);
        Layout::concat(&[values.mode(0), values.get(&[1, 1]), values.get(&[1, 0])])
    };
}

impl<P: Rectangles> FragmentLayout for SubtileValues<P> {
    type Storage = [(); 256];
}

/// What lanes and values have of an epilogue subtile. The compiler computes a constant of a type once.
trait ByLane: Rectangles {
    /// (lane, (value, (rows, columns))), whose rows and columns are those of the tiled MMA.
    const BY_LANE: Layout;
}

impl<P: Rectangles> ByLane for P {
    const BY_LANE: Layout = {
        let [rows, columns] = subtile::<P>();
        let one = Layout::static_mode(1, 0);
        MmaTiling::new(P::ATOM, &Layout::concat(&[one, one, one]))
            .permuted([
                in_rectangles::<P>(0, rows, 1),
                in_rectangles::<P>(1, columns, 1),
                Tiler::UNDERSCORE,
            ])
            .layout_c_tv(&Layout::concat(&[
                Layout::static_basis_mode(rows as i64, 1, 0),
                Layout::static_basis_mode(columns as i64, 1, 1),
            ]))
    };
}
