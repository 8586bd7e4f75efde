//! How an operand's k-tiles lie in shared memory, and which thread copies which of their elements there.

use core::marker::PhantomData;

use super::config::StageTile;
use super::instance::Read;
use cutlet_device::sm80::{cp_async, cp_async_zfill};
use cutlet_device::sm90::{KMajor, Major, MnMajor};
use cutlet_device::{DeviceData, Global, Shared, ThreadIdx};
use cutlet_layout_core::{
    AccessWidth, ColMajor, Coord, Layout, MatrixInner, NoSwizzle, Partition, RowMajor,
    StaticLayout, StaticSwizzle, Strided, ThreadValue, Tv, Width, each,
};
use half::{bf16, f16};

/// How an operand goes through shared memory. Coordinates are (mn, k).
pub trait Staging: core::marker::Copy + 'static {
    /// The operand's elements.
    type Element: DeviceData;
    /// Which coordinate is consecutive in shared memory.
    type Major: Major;
    /// The operand in global memory.
    type Matrix: MatrixInner;
    /// From (mn, k) to an index in a stage, before the swizzle.
    type Layout: StaticLayout;
    /// The swizzle of a stage.
    type Swizzle: StaticSwizzle;
    /// Thread-value layout by which threads copy a k-tile.
    type Copy: ThreadValue;
    /// What the host knows of it.
    const READ: Read;

    /// The operand of `extent` = (mn, k), with the strides of both.
    fn matrix(extent: Coord, strides: [i64; 2]) -> Self::Matrix;

    /// What a thread holds of a k-tile on its way through registers: `()` if it goes directly.
    type Held: core::marker::Copy;

    /// Holds nothing.
    fn nothing() -> Self::Held;

    /// Reads the thread's part of a k-tile into registers, if it goes through them: those `from` accesses of which
    /// `holds` is true for the first value.
    ///
    /// # Safety
    /// The elements must exist and be aligned for the accesses.
    unsafe fn fetch(from: &Accesses<Self>, holds: impl Fn(usize) -> bool) -> Self::Held;

    /// Writes what the thread holds to its part of a stage, or starts to copy the k-tile there: accesses of which `holds`
    /// is true for the first value, and zeros in place of the others.
    ///
    /// # Safety
    /// As [`fetch`](Self::fetch). No thread may use the stage.
    unsafe fn put(
        held: Self::Held,
        from: &Accesses<Self>,
        holds: impl Fn(usize) -> bool,
        to: StageTile<Self>,
        thread: ThreadIdx,
    );

    /// [`put`](Self::put) of the part of a k-tile that is in the matrix, and zeros beyond.
    ///
    /// # Safety
    /// As [`put`](Self::put).
    unsafe fn put_part(
        held: Self::Held,
        from: &Accesses<Self>,
        to: StageTile<Self>,
        thread: ThreadIdx,
    );
}

/// A thread's accesses to a k-tile in global memory.
pub type Accesses<S> =
    Partition<Global<<S as Staging>::Element>, <S as Staging>::Matrix, <S as Staging>::Copy>;

/// Copies of `BYTES` bytes, 16, 8 or 4, along the operand's major direction `J`, by `THREADS` threads, to a stage of
/// layout `L` and swizzle `W`.
pub type Vectors<const BYTES: usize, T, J, L, W, const THREADS: usize> =
    Direct<OfBytes<BYTES>, T, J, L, W, THREADS>;

/// Copies of single elements, of 4 bytes or more, of an operand whose major direction is `J`, with any alignment, by
/// `THREADS` threads, to a stage of layout `L` and swizzle `W`.
pub type Elements<T, J, L, W, const THREADS: usize> = Direct<OfElements, T, J, L, W, THREADS>;

/// The most elements that a thread holds of a k-tile.
const MOST_LOADS: usize = 32;

/// Copies of single elements through registers. They are those of elements of less than 4 bytes, which `cp.async` cannot
/// copy.
#[derive(Clone, Copy, Debug)]
pub struct Loads<T, J, L, W, const THREADS: usize>(PhantomData<(T, J, L, W)>);

impl<T, J, L, W, const THREADS: usize> Staging for Loads<T, J, L, W, THREADS>
where
    T: DeviceData + Default,
    J: GlobalMajor,
    L: StageLayout,
    W: StaticSwizzle,
{
    type Element = T;
    type Major = L::Major;
    type Matrix = J::Matrix;
    type Layout = L;
    type Swizzle = W;
    type Copy = ElementCopy<J, L, THREADS>;
    const READ: Read = Read {
        k_major: J::IS_K_MAJOR,
        bytes: size_of::<T>(),
        in_whole_vectors: false,
    };

    #[inline(always)]
    fn matrix(extent: Coord, strides: [i64; 2]) -> J::Matrix {
        J::matrix(extent, strides)
    }

    type Held = [T; MOST_LOADS];

    #[inline(always)]
    fn nothing() -> Self::Held {
        [T::default(); MOST_LOADS]
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn fetch(from: &Accesses<Self>, holds: impl Fn(usize) -> bool) -> Self::Held {
        const {
            assert!(
                ElementValues::<J, L, THREADS>::SIZE <= MOST_LOADS,
                "a thread holds at most 32 elements of a k-tile: use more threads, or a smaller tile"
            );
        }
        let mut held = Self::nothing();
        each::<ElementValues<J, L, THREADS>>(|v| {
            // SAFETY: as promised by the caller.
            held[v] = unsafe { from.engine_at(v).load_if(0, holds(v)) };
        });
        held
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put(
        held: Self::Held,
        from: &Accesses<Self>,
        _: impl Fn(usize) -> bool,
        to: StageTile<Self>,
        thread: ThreadIdx,
    ) {
        // SAFETY: as promised by the caller. What the thread holds is zero where it has read nothing.
        unsafe { Self::put_part(held, from, to, thread) };
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put_part(
        held: Self::Held,
        _: &Accesses<Self>,
        to: StageTile<Self>,
        thread: ThreadIdx,
    ) {
        to.partition::<Self::Copy>(thread).store_with(|v| held[v]);
    }
}

/// Copies `P` of an operand whose major direction is `J`, which hold nothing in registers, by `THREADS` threads, to a
/// stage of layout `L` and swizzle `W`.
#[derive(Clone, Copy, Debug)]
pub struct Direct<P, T, J, L, W, const THREADS: usize>(PhantomData<(P, T, J, L, W)>);

impl<P, T, J, L, W, const THREADS: usize> Staging for Direct<P, T, J, L, W, THREADS>
where
    P: Copies<T>,
    T: StagedElement,
    J: GlobalMajor,
    L: StageLayout,
    W: StaticSwizzle,
{
    type Element = T;
    type Major = L::Major;
    type Matrix = J::Matrix;
    type Layout = L;
    type Swizzle = W;
    type Copy = P::Threads<J, L, THREADS>;
    const READ: Read = Read {
        k_major: J::IS_K_MAJOR,
        bytes: P::BYTES,
        in_whole_vectors: !J::IS_K_MAJOR && P::BYTES > size_of::<T>(),
    };

    #[inline(always)]
    fn matrix(extent: Coord, strides: [i64; 2]) -> J::Matrix {
        J::matrix(extent, strides)
    }

    type Held = ();

    #[inline(always)]
    fn nothing() {}

    #[inline(always)]
    unsafe fn fetch(_: &Accesses<Self>, _: impl Fn(usize) -> bool) {}

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put(
        (): (),
        from: &Accesses<Self>,
        holds: impl Fn(usize) -> bool,
        to: StageTile<Self>,
        thread: ThreadIdx,
    ) {
        let mut values = (0..).step_by(const { <Self::Copy as ThreadValue>::Width::VALUES });
        from.each_access(&to.partition::<Self::Copy>(thread), |from, to, _| {
            let holds = values.next().is_some_and(&holds);
            // SAFETY: as promised by the caller.
            unsafe { P::copy(to, from, holds) }
        });
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put_part((): (), from: &Accesses<Self>, to: StageTile<Self>, thread: ThreadIdx) {
        from.each_access(&to.partition::<Self::Copy>(thread), |from, to, count| {
            // SAFETY: as promised by the caller.
            unsafe { P::copy_part(to, from, count) }
        });
    }
}

/// What one copy of [`Direct`] moves.
pub trait Copies<T>: core::marker::Copy + 'static {
    /// Thread-value layout by which threads copy a k-tile.
    type Threads<J: Major, L: StaticLayout, const THREADS: usize>: ThreadValue;
    /// The bytes that it moves.
    const BYTES: usize;

    /// Copies all of it if `condition` holds, else zeros.
    ///
    /// # Safety
    /// As [`Staging::put`].
    unsafe fn copy(to: Shared<T>, from: Global<T>, condition: bool);

    /// Copies its first `count` elements, and zeros for the others.
    ///
    /// # Safety
    /// As [`Staging::put`].
    unsafe fn copy_part(to: Shared<T>, from: Global<T>, count: u32);
}

/// `BYTES` bytes.
#[derive(Clone, Copy, Debug)]
pub struct OfBytes<const BYTES: usize>;

macro_rules! of_bytes {
    ($($bytes:literal: $($element:ty)*;)+) => {$($(
        impl Copies<$element> for OfBytes<$bytes> {
            type Threads<J: Major, L: StaticLayout, const THREADS: usize> =
                VectorCopy<Width<{ $bytes / size_of::<$element>() }>, J, L, THREADS>;
            const BYTES: usize = $bytes;

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn copy(to: Shared<$element>, from: Global<$element>, condition: bool) {
                // SAFETY: as promised by the caller.
                unsafe { cp_async_zfill::<_, { $bytes / size_of::<$element>() }>(to, from, condition) };
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn copy_part(to: Shared<$element>, from: Global<$element>, count: u32) {
                // SAFETY: as promised by the caller.
                unsafe { cp_async::<_, { $bytes / size_of::<$element>() }>(to, from, count) };
            }
        }
    )*)+};
}
of_bytes! {
    16: f64 f32 bf16 f16 i8;
    8: bf16 f16 i8;
    4: bf16 f16 i8;
}

/// One element.
#[derive(Clone, Copy, Debug)]
pub struct OfElements;

macro_rules! of_elements {
    ($($element:ty)*) => {$(
        impl Copies<$element> for OfElements {
            type Threads<J: Major, L: StaticLayout, const THREADS: usize> =
                ElementCopy<J, L, THREADS>;
            const BYTES: usize = size_of::<$element>();

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn copy(to: Shared<$element>, from: Global<$element>, condition: bool) {
                // SAFETY: as promised by the caller.
                unsafe { cp_async_zfill::<_, 1>(to, from, condition) };
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn copy_part(to: Shared<$element>, from: Global<$element>, count: u32) {
                // SAFETY: as promised by the caller.
                unsafe { cp_async_zfill::<_, 1>(to, from, count > 0) };
            }
        }
    )*};
}
of_elements! { f64 f32 }

/// Copies of a K-major operand of f32 to a stage of layout `L` in which mn is consecutive, by `THREADS` threads. They go
/// through registers: a thread reads 16 bytes along k, and writes four elements. k must be a multiple of four.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<L, const THREADS: usize>(PhantomData<L>);

/// The most vectors that a thread holds of a k-tile.
const MOST_HELD: usize = 8;

impl<L: StaticLayout, const THREADS: usize> Staging for Transposed<L, THREADS> {
    type Element = f32;
    type Major = MnMajor;
    type Matrix = RowMajor;
    type Layout = L;
    type Swizzle = NoSwizzle;
    type Copy = VectorCopy<Width<4>, KMajor, L, THREADS>;
    const READ: Read = Read {
        k_major: true,
        bytes: 16,
        in_whole_vectors: true,
    };

    #[inline(always)]
    fn matrix(extent: Coord, strides: [i64; 2]) -> RowMajor {
        KMajor::matrix(extent, strides)
    }

    type Held = [[f32; 4]; MOST_HELD];

    #[inline(always)]
    fn nothing() -> Self::Held {
        [[0.0; 4]; MOST_HELD]
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn fetch(from: &Accesses<Self>, holds: impl Fn(usize) -> bool) -> Self::Held {
        const {
            assert!(
                VectorValues::<Width<4>, KMajor, L, THREADS>::SIZE <= 4 * MOST_HELD,
                "a thread holds at most 8 vectors of a k-tile: use more threads, or a smaller tile"
            );
        }
        let mut held = Self::nothing();
        let mut vectors = held.iter_mut().enumerate();
        from.each_access(from, |from, _, _| {
            if let Some((nth, vector)) = vectors.next()
                && holds(4 * nth)
            {
                // SAFETY: as promised by the caller. k is whole vectors.
                *vector = unsafe { from.load_vec(0) };
            }
        });
        held
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put(
        held: Self::Held,
        from: &Accesses<Self>,
        _: impl Fn(usize) -> bool,
        to: StageTile<Self>,
        thread: ThreadIdx,
    ) {
        // SAFETY: as promised by the caller. What the thread holds is zero where it has read nothing.
        unsafe { Self::put_part(held, from, to, thread) };
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put_part(
        held: Self::Held,
        _: &Accesses<Self>,
        to: StageTile<Self>,
        thread: ThreadIdx,
    ) {
        to.partition::<Tv<
            VectorThreads<Width<4>, KMajor, L, THREADS>,
            VectorValues<Width<4>, KMajor, L, THREADS>,
        >>(thread)
            .store_with(|v| held[v / 4][v % 4]);
    }
}

/// A stage's layout, which says what is consecutive.
pub trait StageLayout: StaticLayout {
    /// Which coordinate is consecutive.
    type Major: Major;
}

/// A [`Major`], and the matrix that has it in global memory.
pub trait GlobalMajor: Major {
    /// The matrix: (mn, k) with one of the strides 1.
    type Matrix: MatrixInner;

    /// The operand of `extent` = (mn, k), with the strides of both.
    fn matrix(extent: Coord, strides: [i64; 2]) -> Self::Matrix;
}

macro_rules! global_major {
    ($major:ident: $matrix:ident, ld $ld:literal) => {
        impl GlobalMajor for $major {
            type Matrix = $matrix;

            #[inline(always)]
            fn matrix(extent: Coord, strides: [i64; 2]) -> $matrix {
                Strided::new(extent, strides[$ld])
            }
        }
    };
}
global_major!(KMajor: RowMajor, ld 0);
global_major!(MnMajor: ColMajor, ld 1);

/// An element type that threads copy to shared memory.
pub trait StagedElement: DeviceData {
    /// How single elements are copied.
    type Elements<J: GlobalMajor, L: StageLayout, W: StaticSwizzle, const THREADS: usize>: Staging<
        Element = Self,
    >;
}

macro_rules! staged_element {
    ($($element:ty: $staging:ident;)+) => {$(
        impl StagedElement for $element {
            type Elements<J: GlobalMajor, L: StageLayout, W: StaticSwizzle, const THREADS: usize> =
                $staging<Self, J, L, W, THREADS>;
        }
    )+};
}
staged_element! {
    f64: Elements;
    f32: Elements;
    bf16: Loads;
    f16: Loads;
    i8: Loads;
}

/// The thread-value layout of [`Vectors`]: threads go along a line, then to the next line.
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

/// The thread-value layout of [`Elements`]. A warp has up to 16 elements of a line, so that it reads whole sectors, of
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
