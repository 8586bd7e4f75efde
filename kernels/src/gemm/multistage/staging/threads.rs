//! Which thread copies which elements of a k-tile: thread-value layouts along the lines of a stage.

use core::marker::PhantomData;

use cutlet_layout_core::{AccessWidth, FragmentLayout, Layout, StaticLayout, ThreadValue, Width};

use super::GlobalMajor;

/// The thread-value layout of [`Vectors`](super::Vectors): threads go along a line, then to the next line.
#[derive(Clone, Copy, Debug)]
pub struct VectorCopy<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: GlobalMajor, L: StaticLayout, const THREADS: usize> ThreadValue
    for VectorCopy<W, J, L, THREADS>
{
    type Thr = VectorThreads<W, J, L, THREADS>;
    type Val = VectorValues<W, J, L, THREADS>;
    type Width = W;
}

/// The threads of a [`VectorCopy`].
#[derive(Clone, Copy, Debug)]
pub struct VectorThreads<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: GlobalMajor, L: StaticLayout, const THREADS: usize> StaticLayout
    for VectorThreads<W, J, L, THREADS>
{
    const LAYOUT: Layout = lines::<W, J, L>(THREADS).threads(W::VALUES as i64);
}

/// The values of a [`VectorCopy`].
#[derive(Clone, Copy, Debug)]
pub struct VectorValues<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: GlobalMajor, L: StaticLayout, const THREADS: usize> StaticLayout
    for VectorValues<W, J, L, THREADS>
{
    const LAYOUT: Layout = lines::<W, J, L>(THREADS).values(W::VALUES as i64, 1);
}

impl<W: AccessWidth, J: GlobalMajor, L: StaticLayout, const THREADS: usize> FragmentLayout
    for VectorValues<W, J, L, THREADS>
{
    type Storage = J::Values;
}

/// The lines of a stage, which run along the major direction.
struct Lines {
    /// The major direction.
    along: usize,
    /// Vectors of a line that are copied at a time.
    vectors: i64,
    /// The number of lines.
    count: i64,
    /// Lines that all threads together copy at a time.
    at_a_time: i64,
}

impl Lines {
    /// The lines of a stage of layout `L`, of whose lines so many vectors are copied at a time.
    const fn new<J: GlobalMajor, L: StaticLayout>(vectors: i64, threads: usize) -> Self {
        let along = along::<J>();
        let count = L::LAYOUT.mode(1 - along).size();
        let at_a_time = least(threads as i64 / vectors, count);
        assert!(
            at_a_time >= 1 && count % at_a_time == 0,
            "the threads of a block copy a number of lines at a time that divides those of a stage"
        );
        Self {
            along,
            vectors,
            count,
            at_a_time,
        }
    }

    /// The threads, of which neighbours have vectors of so many elements of a line.
    const fn threads(&self, width: i64) -> Layout {
        Layout::concat(&[
            Layout::static_basis_mode(self.vectors, width, self.along),
            Layout::static_basis_mode(self.at_a_time, 1, 1 - self.along),
        ])
    }

    /// A thread's values: `count` of a line, `stride` elements apart, and so on through the lines.
    const fn values(&self, count: i64, stride: i64) -> Layout {
        Layout::concat(&[
            Layout::static_basis_mode(count, stride, self.along),
            Layout::static_basis_mode(self.count / self.at_a_time, self.at_a_time, 1 - self.along),
        ])
    }
}

/// The major direction, along which lines run.
const fn along<J: GlobalMajor>() -> usize {
    if J::IS_K_MAJOR { 1 } else { 0 }
}

/// The lines of a stage that are copied in vectors: all vectors of a line at a time.
const fn lines<W: AccessWidth, J: GlobalMajor, L: StaticLayout>(threads: usize) -> Lines {
    let vectors = length::<J, L>() / W::VALUES as i64;
    Lines::new::<J, L>(vectors, threads)
}

const fn least(a: i64, b: i64) -> i64 {
    if a < b { a } else { b }
}

/// The thread-value layout of copies of single elements. A warp has up to 16 elements of a line, so that it reads whole
/// sectors, of two lines or more.
#[derive(Clone, Copy, Debug)]
pub struct ElementCopy<J, L, const THREADS: usize>(PhantomData<(J, L)>);

impl<J: GlobalMajor, L: StaticLayout, const THREADS: usize> ThreadValue
    for ElementCopy<J, L, THREADS>
{
    type Thr = ElementThreads<J, L, THREADS>;
    type Val = ElementValues<J, L, THREADS>;
    type Width = Width<1>;
}

/// The threads of an [`ElementCopy`].
#[derive(Clone, Copy, Debug)]
pub struct ElementThreads<J, L, const THREADS: usize>(PhantomData<(J, L)>);

impl<J: GlobalMajor, L: StaticLayout, const THREADS: usize> StaticLayout
    for ElementThreads<J, L, THREADS>
{
    const LAYOUT: Layout = element_lines::<J, L>(THREADS).threads(1);
}

/// The values of an [`ElementCopy`].
#[derive(Clone, Copy, Debug)]
pub struct ElementValues<J, L, const THREADS: usize>(PhantomData<(J, L)>);

impl<J: GlobalMajor, L: StaticLayout, const THREADS: usize> StaticLayout
    for ElementValues<J, L, THREADS>
{
    const LAYOUT: Layout = {
        let lines = element_lines::<J, L>(THREADS);
        lines.values(length::<J, L>() / lines.vectors, lines.vectors)
    };
}

impl<J: GlobalMajor, L: StaticLayout, const THREADS: usize> FragmentLayout
    for ElementValues<J, L, THREADS>
{
    type Storage = J::Values;
}

/// The elements of a line of a stage.
const fn length<J: GlobalMajor, L: StaticLayout>() -> i64 {
    L::LAYOUT.mode(along::<J>()).size()
}

/// The lines of a stage, whose elements are copied one by one.
const fn element_lines<J: GlobalMajor, L: StaticLayout>(threads: usize) -> Lines {
    let length = length::<J, L>();
    let vectors = least(if J::IS_K_MAJOR { 16 } else { 32 }, length);
    assert!(
        length % vectors == 0,
        "the threads of a block copy a number of elements at a time that divides those of a line"
    );
    Lines::new::<J, L>(vectors, threads)
}
