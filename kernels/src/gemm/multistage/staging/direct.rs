//! Asynchronous copies to a stage by `cp.async`, which hold nothing in registers.

use core::marker::PhantomData;

use cutlet_device::cp_async::{cp_async, cp_async_zfill};
use cutlet_device::{Global, Shared, ThreadIdx};
use cutlet_layout_core::{AccessWidth, StaticSwizzle, ThreadValue, TileShape, Width};
use half::{bf16, f16};

use super::threads::LineCopy;
use super::{
    Accesses, CopyThreads, GlobalMajor, Read, StageLayout, StageTile, StagedElement, Staging,
};

/// Copies of `BYTES` bytes, 16, 8 or 4, along the operand's major direction `J`, by `THREADS` threads, to a stage of
/// layout `L` and swizzle `W`.
pub type Vectors<const BYTES: usize, T, J, L, W, const THREADS: usize> =
    Direct<OfBytes<BYTES>, T, J, L, W, THREADS>;

/// Copies of single elements, of 4 bytes or more, of an operand whose major direction is `J`, with any alignment, by
/// `THREADS` threads, to a stage of layout `L` and swizzle `W`.
pub type Elements<T, J, L, W, const THREADS: usize> = Direct<OfElements, T, J, L, W, THREADS>;

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
    type Source = J;
    type Layout = L;
    type Swizzle = W;
    type Copy = P::Threads<J, L, THREADS>;
    const READ: Read = Read {
        k_major: J::IS_K_MAJOR,
        bytes: P::BYTES,
        in_whole_vectors: !J::IS_K_MAJOR && P::BYTES > size_of::<T>(),
    };

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
        thread: ThreadIdx<CopyThreads<Self>>,
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
    unsafe fn put_part(
        (): (),
        from: &Accesses<Self>,
        to: StageTile<Self>,
        thread: ThreadIdx<CopyThreads<Self>>,
    ) {
        from.each_access(&to.partition::<Self::Copy>(thread), |from, to, count| {
            // SAFETY: as promised by the caller.
            unsafe { P::copy_part(to, from, count) }
        });
    }
}

/// What one copy of [`Direct`] moves.
pub trait Copies<T>: core::marker::Copy + 'static {
    /// Thread-value layout by which threads copy a k-tile.
    type Threads<J: GlobalMajor, L: TileShape, const THREADS: usize>: ThreadValue;
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
            type Threads<J: GlobalMajor, L: TileShape, const THREADS: usize> =
                LineCopy<Width<{ $bytes / size_of::<$element>() }>, J, L, THREADS>;
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
            type Threads<J: GlobalMajor, L: TileShape, const THREADS: usize> =
                LineCopy<Width<1>, J, L, THREADS>;
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
