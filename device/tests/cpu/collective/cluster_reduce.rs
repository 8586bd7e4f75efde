//! Reductions between two blocks over distributed shared memory.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cutlet_device::cluster::{cluster_arrive_relaxed, cluster_wait};
use cutlet_device::collective::*;
use cutlet_device::warpgroup::{warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::{SharedMemory, cluster_rank, thread_idx};
use cutlet_layout_core::{Fragment, L, StaticLayout, each};

use crate::fixture::{failure, launch, says};

/// A buffer that all blocks of the cluster have prepared.
fn prepared_buffer<L: StaticLayout>() -> DsmemBuffer<L> {
    let buffer = DsmemBuffer::take(&mut SharedMemory::new());
    if thread_idx().get() == 0 {
        // SAFETY: no thread uses the barriers before the cluster's barrier.
        unsafe { buffer.init() };
    }
    cluster_arrive_relaxed();
    cluster_wait();
    buffer
}

#[test]
fn a_buffer_keeps_a_fragment_until_it_is_received() {
    type Values = L!((2, 4):(4, 1));
    let wrong = AtomicU32::new(0);
    launch(256, 4, 2, || {
        let buffer = prepared_buffer::<Values>();
        let (rank, thread) = (cluster_rank().get(), warpgroup_thread_idx());
        let number = |rank: u32, round: u32, v: usize| {
            (1000 * (100 * rank + round) + 8 * thread.get()) as f32 + v as f32
        };
        if warpgroup_idx().is_first() {
            // SAFETY: the blocks have met, and the other one receives each fragment.
            let mut sender = unsafe { buffer.sender(1 - rank) };
            for round in 0..5 {
                sender.send(thread, &Fragment::from_fn(|v| number(rank, round, v)));
            }
            sender.drain();
        } else {
            let mut receiver = buffer.receiver(1 - rank);
            for round in 0..5 {
                let found: Fragment<f32, Values> = receiver.receive(thread);
                each::<Values>(|v| {
                    let same = found.get(v) == number(1 - rank, round, v);
                    wrong.fetch_add(u32::from(!same), Relaxed);
                });
            }
        }
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn two_blocks_add_their_accumulators() {
    type Values = L!(8:1);
    let wrong = AtomicU32::new(0);
    launch(256, 2, 2, || {
        let buffer = prepared_buffer::<Values>();
        let (rank, warpgroup) = (cluster_rank().get(), warpgroup_idx());
        // SAFETY: the two blocks have met, and both warpgroups of each add equally often.
        let mut reduce = unsafe { buffer.cluster_reduce(warpgroup) };
        for round in 1..4 {
            let own = (10 * round + rank) as f32;
            let mut accumulators = Fragment::<f32, Values>::filled(own);
            let complete = reduce.add(warpgroup_thread_idx(), &mut accumulators);
            let expected = if complete {
                (20 * round + 1) as f32
            } else {
                own
            };
            let right = complete == (warpgroup.get() == rank) && accumulators.get(7) == expected;
            wrong.fetch_add(u32::from(!right), Relaxed);
        }
        reduce.drain();
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn a_sender_that_does_not_drain_is_reported() {
    type Values = L!(4:1);
    let message = failure(launch(128, 2, 2, || {
        let buffer = prepared_buffer::<Values>();
        if cluster_rank().get() == 0 {
            // SAFETY: the block ends too early on purpose. The CPU backend reports it.
            let mut sender = unsafe { buffer.sender(1) };
            sender.send(warpgroup_thread_idx(), &Fragment::filled(1.0));
        } else {
            let mut receiver = buffer.receiver(0);
            let _: Fragment<f32, Values> = receiver.receive(warpgroup_thread_idx());
        }
    }));
    says(&message, &["block 0 of the cluster has ended"]);
}
