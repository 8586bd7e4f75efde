//! Reductions over lanes and over a block, of numbers of each type.

use cutlet_device::collective::BlockReduce;
use cutlet_device::{
    DeviceData, Global, GlobalMut, LogicalWarp, ReduceElement, ThreadIdx, Threads, kernel,
    thread_idx,
};

/// Threads of the block. They are no power of two.
pub const THREADS: u32 = 352;
/// Lanes that are reduced: each part of a warp. The block follows.
pub const LANES: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Results of a thread: sum, largest and smallest of its lanes and of the block.
pub const RESULTS: usize = 3 * (LANES.len() + 1);

type Block = Threads<THREADS>;

/// Writes the results of a thread.
///
/// # Safety
/// `to` has [`RESULTS`] elements for each thread.
#[inline(always)]
unsafe fn all<T: DeviceData + ReduceElement>(
    thread: ThreadIdx<Block>,
    value: T,
    to: GlobalMut<T>,
    mut block: BlockReduce<T, Block>,
) {
    let to = to.offset(i64::from(thread.get()) * RESULTS as i64);
    macro_rules! results {
        ($($lanes:literal),*) => {[$([
            LogicalWarp::<$lanes>::sum(value),
            LogicalWarp::<$lanes>::max(value),
            LogicalWarp::<$lanes>::min(value),
        ],)* [
            block.sum(thread, value),
            block.max(thread, value),
            block.min(thread, value),
        ]]};
    }
    let results = results!(1, 2, 4, 8, 16, 32);
    for (nth, results) in results.iter().enumerate() {
        for (operation, result) in results.iter().enumerate() {
            // SAFETY: as promised by the caller.
            unsafe { to.store((3 * nth + operation) as i64, *result) };
        }
    }
}

/// Reduces a number of each thread.
///
/// # Safety
/// `numbers` has an element for each thread. The others have [`RESULTS`].
#[kernel(threads = THREADS)]
pub unsafe fn reduce(
    numbers: Global<i32>,
    ints: GlobalMut<i32>,
    words: GlobalMut<u32>,
    floats: GlobalMut<f32>,
    doubles: GlobalMut<f64>,
    #[shared] of_ints: BlockReduce<i32, Block>,
    #[shared] of_words: BlockReduce<u32, Block>,
    #[shared] of_floats: BlockReduce<f32, Block>,
    #[shared] of_doubles: BlockReduce<f64, Block>,
) {
    let thread = thread_idx();
    // SAFETY: as promised by the caller.
    unsafe {
        let number = numbers.load(thread.get().into());
        all(thread, number, ints, of_ints);
        all(thread, number as u32, words, of_words);
        all(thread, number as f32, floats, of_floats);
        all(thread, f64::from(number), doubles, of_doubles);
    }
}
