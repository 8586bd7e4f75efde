//! Which thread copies which elements of a k-tile: thread-value layouts along the lines of a stage.

use core::marker::PhantomData;

use cutlet_device::sm90::Major;
use cutlet_layout_core::{AccessWidth, Layout, StaticLayout, ThreadValue, Width};

/// The thread-value layout of [`Vectors`](super::Vectors): threads go along a line, then to the next line.
#[derive(Clone, Copy, Debug)]
pub struct VectorCopy<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: Major, L: StaticLayout, const THREADS: usize> ThreadValue
    for VectorCopy<W, J, L, THREADS>
{
    type Thr = VectorThreads<W, J, L, THREADS>;
    type Val = VectorValues<W, J, L, THREADS>;
    type Width = W;
}

/// The threads of a [`VectorCopy`].
#[derive(Clone, Copy, Debug)]
pub struct VectorThreads<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: Major, L: StaticLayout, const THREADS: usize> StaticLayout
    for VectorThreads<W, J, L, THREADS>
{
    const LAYOUT: Layout = {
        let Lines {
            along,
            vectors,
            at_a_time,
            ..
        } = lines::<W, J, L>(THREADS);
        Layout::concat(&[
            Layout::static_basis_mode(vectors, W::VALUES as i64, along),
            Layout::static_basis_mode(at_a_time, 1, 1 - along),
        ])
    };
    type Storage<V: Copy> = [V; THREADS];
}

/// The values of a [`VectorCopy`]. They are never in registers.
#[derive(Clone, Copy, Debug)]
pub struct VectorValues<W, J, L, const THREADS: usize>(PhantomData<(W, J, L)>);

impl<W: AccessWidth, J: Major, L: StaticLayout, const THREADS: usize> StaticLayout
    for VectorValues<W, J, L, THREADS>
{
    const LAYOUT: Layout = {
        let Lines {
            along,
            count,
            at_a_time,
            ..
        } = lines::<W, J, L>(THREADS);
        Layout::concat(&[
            Layout::static_basis_mode(W::VALUES as i64, 1, along),
            Layout::static_basis_mode(count / at_a_time, at_a_time, 1 - along),
        ])
    };
    type Storage<V: Copy> = [V; 256];
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

const fn lines<W: AccessWidth, J: Major, L: StaticLayout>(threads: usize) -> Lines {
    let along = if J::IS_K_MAJOR { 1 } else { 0 };
    let count = L::LAYOUT.mode(1 - along).size();
    let vectors = L::LAYOUT.mode(along).size() / W::VALUES as i64;
    let at_a_time = least(threads as i64 / vectors, count);
    assert!(
        at_a_time >= 1 && count % at_a_time == 0,
        "the threads of a block copy a number of lines at a time that divides those of a stage"
    );
    Lines {
        along,
        vectors,
        count,
        at_a_time,
    }
}

const fn least(a: i64, b: i64) -> i64 {
    if a < b { a } else { b }
}

/// The thread-value layout of copies of single elements. A warp has up to 16 elements of a line, so that it reads whole sectors, of
/// two lines or more.
#[derive(Clone, Copy, Debug)]
pub struct ElementCopy<J, L, const THREADS: usize>(PhantomData<(J, L)>);

impl<J: Major, L: StaticLayout, const THREADS: usize> ThreadValue for ElementCopy<J, L, THREADS> {
    type Thr = ElementThreads<J, L, THREADS>;
    type Val = ElementValues<J, L, THREADS>;
    type Width = Width<1>;
}

/// The threads of an [`ElementCopy`].
#[derive(Clone, Copy, Debug)]
pub struct ElementThreads<J, L, const THREADS: usize>(PhantomData<(J, L)>);

impl<J: Major, L: StaticLayout, const THREADS: usize> StaticLayout
    for ElementThreads<J, L, THREADS>
{
    const LAYOUT: Layout = {
        let Lines {
            along,
            vectors,
            at_a_time,
            ..
        } = element_lines::<J, L>(THREADS);
        Layout::concat(&[
            Layout::static_basis_mode(vectors, 1, along),
            Layout::static_basis_mode(at_a_time, 1, 1 - along),
        ])
    };
    type Storage<V: Copy> = [V; THREADS];
}

/// The values of an [`ElementCopy`]. They are never in registers.
#[derive(Clone, Copy, Debug)]
pub struct ElementValues<J, L, const THREADS: usize>(PhantomData<(J, L)>);

impl<J: Major, L: StaticLayout, const THREADS: usize> StaticLayout
    for ElementValues<J, L, THREADS>
{
    const LAYOUT: Layout = {
        let Lines {
            along,
            vectors,
            count,
            at_a_time,
        } = element_lines::<J, L>(THREADS);
        Layout::concat(&[
            Layout::static_basis_mode(L::LAYOUT.mode(along).size() / vectors, vectors, along),
            Layout::static_basis_mode(count / at_a_time, at_a_time, 1 - along),
        ])
    };
    type Storage<V: Copy> = [V; 256];
}

/// The lines of a stage, whose elements are copied one by one: `vectors` of a line at a time.
const fn element_lines<J: Major, L: StaticLayout>(threads: usize) -> Lines {
    let along = if J::IS_K_MAJOR { 1 } else { 0 };
    let count = L::LAYOUT.mode(1 - along).size();
    let length = L::LAYOUT.mode(along).size();
    let vectors = least(if J::IS_K_MAJOR { 16 } else { 32 }, length);
    let at_a_time = least(threads as i64 / vectors, count);
    assert!(
        at_a_time >= 1 && count % at_a_time == 0 && length % vectors == 0,
        "the threads of a block copy a number of lines at a time that divides those of a stage"
    );
    Lines {
        along,
        vectors,
        count,
        at_a_time,
    }
}
