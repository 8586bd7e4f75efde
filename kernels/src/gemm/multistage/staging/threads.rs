//! Which thread copies which elements of a k-tile: a tiled copy along the lines of a stage.

use core::marker::PhantomData;

use cutlet_layout_core::{
    AccessWidth, CopyAtom, CopyTiling, FragmentLayout, Layout, StaticLayout, ThreadValue, TileShape,
};

use super::GlobalMajor;

/// The thread-value layout of a copy by `THREADS` threads to a stage of layout `L`. Threads go along a line, which runs
/// along the major direction `J`, then to the next line. An access moves `W` elements.
#[derive(Clone, Copy, Debug)]
pub struct LineCopy<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: GlobalMajor, L: TileShape, const THREADS: usize>
    LineCopy<W, J, L, THREADS>
{
    /// The direction of lines among (mn, k).
    const ALONG: usize = if J::IS_K_MAJOR { 1 } else { 0 };

    /// The tiled copy.
    const TILING: CopyTiling = {
        let (width, lines) = (W::VALUES as i64, L::LAYOUT.mode(1 - Self::ALONG).size());
        let vectors = Self::vectors_at_a_time();
        let at_a_time = least(THREADS as i64 / vectors, lines);
        assert!(
            at_a_time >= 1 && lines % at_a_time == 0,
            "the threads of a block copy a number of lines at a time that divides those of a stage"
        );
        CopyTiling::new(
            CopyAtom::universal(8 * width, 8),
            &Self::of_lines(
                Layout::static_mode(vectors, 1),
                Layout::static_mode(at_a_time, vectors),
            ),
            &Self::of_lines(Layout::static_mode(width, 1), Layout::static_mode(1, 0)),
        )
    };

    /// (thread, value, (rest along lines, rest of lines)) → the (mn, k) of a k-tile.
    const DIVIDED: Layout = {
        match Self::TILING.try_tidfrg_s(&L::Extents::LAYOUT) {
            Ok(divided) => {
                let rest = [divided.mode(2), divided.mode(3)];
                let rest = Layout::concat2(&rest[Self::ALONG], &rest[1 - Self::ALONG]);
                Layout::concat(&[divided.mode(0), divided.mode(1), rest])
            }
            Err(_) => panic!("the threads of a block copy elements that do not divide a stage"),
        }
    };

    /// Vectors of a line that are copied at a time: all of them. Of single elements at most so many that a warp, which
    /// has two lines or more, reads whole sectors.
    const fn vectors_at_a_time() -> i64 {
        let vectors = L::LAYOUT.mode(Self::ALONG).size() / W::VALUES as i64;
        if W::VALUES > 1 {
            return vectors;
        }
        let at_a_time = least(if J::IS_K_MAJOR { 16 } else { 32 }, vectors);
        assert!(
            vectors % at_a_time == 0,
            "the threads of a block copy a number of elements at a time that divides those of a line"
        );
        at_a_time
    }

    /// Modes of (mn, k): `along` of lines, and `across` them.
    const fn of_lines(along: Layout, across: Layout) -> Layout {
        if J::IS_K_MAJOR {
            Layout::concat2(&across, &along)
        } else {
            Layout::concat2(&along, &across)
        }
    }
}

const fn least(a: i64, b: i64) -> i64 {
    if a < b { a } else { b }
}

impl<W: AccessWidth, J: GlobalMajor, L: TileShape, const THREADS: usize> ThreadValue
    for LineCopy<W, J, L, THREADS>
{
    type Thr = LineThreads<W, J, L, THREADS>;
    type Val = LineValues<W, J, L, THREADS>;
    type Width = W;
}

/// The threads of a [`LineCopy`].
#[derive(Clone, Copy, Debug)]
pub struct LineThreads<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: GlobalMajor, L: TileShape, const THREADS: usize> StaticLayout
    for LineThreads<W, J, L, THREADS>
{
    const LAYOUT: Layout = LineCopy::<W, J, L, THREADS>::DIVIDED.mode(0).flatten();
}

/// The values of a [`LineCopy`].
#[derive(Clone, Copy, Debug)]
pub struct LineValues<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: GlobalMajor, L: TileShape, const THREADS: usize> StaticLayout
    for LineValues<W, J, L, THREADS>
{
    const LAYOUT: Layout = LineCopy::<W, J, L, THREADS>::DIVIDED.take(1, 3);
}

impl<W: AccessWidth, J: GlobalMajor, L: TileShape, const THREADS: usize> FragmentLayout
    for LineValues<W, J, L, THREADS>
{
    type Storage = J::Values;
}
