//! The threads of a row, which combine what each of them found in it.

use core::marker::PhantomData;

use cutlet_device::collective::BlockReduce;
use cutlet_device::{DeviceData, SharedStorage, Shuffle, ThreadIdx, Threads, warp_reduce};

use super::THREADS;

/// The threads of a row. A `T` is what they combine.
pub trait Team<T> {
    /// The values of all threads of the row, combined by `combine`, which is associative and commutative. All threads of
    /// the block call it.
    fn reduce(
        &mut self,
        thread: ThreadIdx<Threads<THREADS>>,
        value: T,
        combine: impl Fn(T, T) -> T + Copy,
    ) -> T;
}

/// A block has a row.
pub type OfBlock<T> = BlockReduce<T, Threads<THREADS>>;

impl<T: DeviceData + Shuffle> Team<T> for OfBlock<T> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn reduce(
        &mut self,
        thread: ThreadIdx<Threads<THREADS>>,
        value: T,
        combine: impl Fn(T, T) -> T + Copy,
    ) -> T {
        OfBlock::reduce(self, thread, value, combine)
    }
}

/// A warp has a row. It needs no shared memory.
#[derive(Debug)]
pub struct OfWarp<T>(PhantomData<T>);

impl<T> SharedStorage for OfWarp<T> {
    const BYTES: u32 = 0;
    const ALIGN: u32 = 16;

    #[inline(always)]
    fn at(_: u32) -> Self {
        OfWarp(PhantomData)
    }
}

impl<T: Shuffle> Team<T> for OfWarp<T> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn reduce(
        &mut self,
        _: ThreadIdx<Threads<THREADS>>,
        value: T,
        combine: impl Fn(T, T) -> T + Copy,
    ) -> T {
        warp_reduce(value, combine)
    }
}
