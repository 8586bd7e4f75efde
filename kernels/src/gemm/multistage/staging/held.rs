//! Copies to a stage through registers: a thread reads its part of a k-tile while the one before is multiplied, and
//! writes it to the stage later.

use core::marker::PhantomData;

use cutlet_device::tile::{KMajor, MnMajor};
use cutlet_device::{DeviceData, ThreadIdx};
use cutlet_layout_core::{NoSwizzle, StaticLayout, StaticSwizzle, Tv, Width, each};

use super::threads::{LineCopy, LineThreads, LineValues};
use super::{Accesses, CopyThreads, GlobalMajor, Read, StageLayout, StageTile, Staging};

/// The most elements that a thread holds of a k-tile.
const MOST_LOADS: usize = 32;

/// Copies of single elements through registers. They are those of elements of less than 4 bytes, which `cp.async`
/// cannot copy.
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
    type Source = J;
    type Layout = L;
    type Swizzle = W;
    type Copy = LineCopy<Width<1>, J, L, THREADS>;
    const READ: Read = Read {
        k_major: J::IS_K_MAJOR,
        bytes: size_of::<T>(),
        in_whole_vectors: false,
    };

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
                LineValues::<Width<1>, J, L, THREADS>::SIZE <= MOST_LOADS,
                "a thread holds at most 32 elements of a k-tile: use more threads, or a smaller tile"
            );
        }
        let mut held = Self::nothing();
        each::<LineValues<Width<1>, J, L, THREADS>>(|v| {
            // SAFETY: as promised by the caller.
            held[v] = unsafe { from.engine_at(v).load_if(0, holds(v)) };
        });
        held
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put_part(
        held: Self::Held,
        _: &Accesses<Self>,
        to: StageTile<Self>,
        thread: ThreadIdx<CopyThreads<Self>>,
    ) {
        to.partition::<Self::Copy>(thread).store_with(|v| held[v]);
    }
}

/// Copies of a K-major operand of f32 to a stage of layout `L` in which mn is consecutive, by `THREADS` threads. They
/// go through registers: a thread reads 16 bytes along k, and writes four elements. k must be a multiple of four.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<L, const THREADS: usize>(PhantomData<L>);

/// The most vectors that a thread holds of a k-tile.
const MOST_HELD: usize = 8;

impl<L: StageLayout, const THREADS: usize> Staging for Transposed<L, THREADS> {
    type Element = f32;
    type Major = MnMajor;
    type Source = KMajor;
    type Layout = L;
    type Swizzle = NoSwizzle;
    type Copy = LineCopy<Width<4>, KMajor, L, THREADS>;
    const READ: Read = Read {
        k_major: true,
        bytes: 16,
        in_whole_vectors: true,
    };

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
                LineValues::<Width<4>, KMajor, L, THREADS>::SIZE <= 4 * MOST_HELD,
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
    unsafe fn put_part(
        held: Self::Held,
        _: &Accesses<Self>,
        to: StageTile<Self>,
        thread: ThreadIdx<CopyThreads<Self>>,
    ) {
        to.partition::<Tv<
            LineThreads<Width<4>, KMajor, L, THREADS>,
            LineValues<Width<4>, KMajor, L, THREADS>,
        >>(thread)
            .store_with(|v| held[v / 4][v % 4]);
    }
}
