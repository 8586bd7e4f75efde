//! Reductions over a block, several of them with the same memory.

use cutlet_device::collective::BlockReduce;
use cutlet_device::{SharedMemory, Threads, thread_idx};

use crate::fixture::{failure, launch, says};

/// Reduces over blocks of `THREADS` threads, again and again without barriers between.
fn check<const THREADS: u32>() {
    launch(THREADS, 2, 1, || {
        let mut shared = SharedMemory::new();
        let mut floats: BlockReduce<f32, Threads<THREADS>> = shared.take_storage();
        let mut ints: BlockReduce<i32, Threads<THREADS>> = shared.take_storage();
        let mut doubles: BlockReduce<f64, Threads<THREADS>> = shared.take_storage();
        let thread = thread_idx().of_block::<Threads<THREADS>>();
        let own = thread.get() as i32;
        let last = THREADS as i32 - 1;
        for round in 0..5 {
            let value = own + round;
            let sum = (0..=last).map(|thread| thread + round).sum::<i32>();
            assert_eq!(floats.sum(thread, value as f32), sum as f32);
            assert_eq!(floats.max(thread, -value as f32), -round as f32);
            assert_eq!(floats.min(thread, -value as f32), -(last + round) as f32);
            assert_eq!(ints.sum(thread, value), sum);
            assert_eq!(ints.max(thread, value), last + round);
            assert_eq!(ints.min(thread, value), round);
            let largest =
                doubles.reduce(thread, f64::from(value), |a, b| if a < b { b } else { a });
            assert_eq!(largest, f64::from(last + round));
        }
    })
    .unwrap();
}

#[test]
fn every_thread_of_a_block_gets_the_result() {
    check::<32>();
    check::<64>();
    check::<96>();
    check::<256>();
    check::<352>();
    check::<1024>();
}

#[test]
fn a_thread_that_leaves_is_noticed() {
    let result = launch(64, 1, 1, || {
        let mut sums: BlockReduce<f32, Threads<64>> = SharedMemory::new().take_storage();
        let thread = thread_idx().of_block::<Threads<64>>();
        if thread.get() < 32 {
            sums.sum(thread, 1.0);
        }
    });
    says(&failure(result), &["sync_threads", "block_reduce.rs:"]);
}
