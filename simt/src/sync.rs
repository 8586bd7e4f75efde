//! How the threads of a warp, a block and a cluster synchronise: barriers and warp collectives.

use std::fmt::{self, Display};

use crate::barrier::{Barrier, ClusterBarrier};
use crate::context::{BARRIERS, Thread, current};
use crate::shown_wait::Awaited;
use crate::suspend::wait_for;
use crate::vector_clock::Orders;
use crate::wait::WaitKind;
use crate::warp::{Lanes, WARP_SIZE, Warp};

/// Waits until all threads of the block have called it.
///
/// # Panics
/// Outside of a kernel.
#[inline]
#[track_caller]
pub fn sync_threads() {
    let thread = current();
    let block = thread.block();
    let barrier = &block.barriers[0];
    let phase = barrier.arrive(&thread.clock.borrow(), 1, 0, block.threads);
    wait_for(
        WaitKind::BlockBarrier,
        Awaited::Block,
        format_args!("waits at sync_threads"),
        || barrier.has_ended(phase),
    );
    thread.acquire(&barrier.clock);
}

/// Waits at barrier `id` until `threads` threads of the block, this one included, have called [`barrier_sync`] or
/// [`barrier_arrive`] for it.
///
/// Whole warps are counted, also for the block's last warp if it has fewer threads.
///
/// # Panics
/// If `id` is not below 16, if `threads` is zero, not a multiple of the warp size or more than the block's warps have,
/// or if a thread that has arrived gave another number.
#[track_caller]
pub fn barrier_sync(id: u32, threads: u32) {
    let thread = current();
    let (barrier, counts) = named_barrier(thread, id, threads);
    let phase = barrier.arrive(&thread.clock.borrow(), counts, id, threads);
    wait_for(
        WaitKind::Cluster,
        Awaited::Barrier { id, threads },
        format_args!(
            "waits at barrier {id} for {threads} threads, of which {} are there",
            // Read when the message is written, not when the wait begins.
            fmt::from_fn(|f| barrier.arrived().fmt(f))
        ),
        || barrier.has_ended(phase),
    );
    thread.acquire(&barrier.clock);
}

/// Counts the thread at barrier `id` without waiting. Arguments and panics are those of [`barrier_sync`].
#[track_caller]
pub fn barrier_arrive(id: u32, threads: u32) {
    let thread = current();
    let (barrier, counts) = named_barrier(thread, id, threads);
    barrier.arrive(&thread.clock.borrow(), counts, id, threads);
}

/// The barrier, and how many threads this one counts as. The block's last thread also counts for the threads that its
/// warp lacks.
#[track_caller]
fn named_barrier(thread: &Thread, id: u32, threads: u32) -> (&Barrier, u32) {
    let block = thread.block();
    assert!(
        (id as usize) < BARRIERS,
        "barrier {id} does not exist: a block has barriers 0 to 15"
    );
    let whole_warps = block.threads.next_multiple_of(WARP_SIZE as u32);
    assert!(
        threads > 0 && threads.is_multiple_of(WARP_SIZE as u32) && threads <= whole_warps,
        "barrier {id} is called for {threads} threads: the number must be a multiple of 32, and at most the \
         {whole_warps} threads of the block's warps"
    );
    let counts = match thread.linear + 1 == block.threads {
        true => 1 + whole_warps - block.threads,
        false => 1,
    };
    (&block.barriers[id as usize], counts)
}

/// Shows `value` to the other lanes of the warp. Returns the values of all lanes once all have called it.
///
/// The lanes learn of copies that other lanes have waited for. Their own accesses to memory are not ordered.
///
/// `operation` names the collective (such as `shfl`), so that lanes in different collectives are told apart.
///
/// # Panics
/// Outside of a kernel, or if lanes that have arrived called another operation.
#[track_caller]
pub fn warp_exchange(operation: &'static str, value: u32) -> Lanes {
    exchange(operation, value, Orders::Events)
}

#[track_caller]
fn exchange(operation: &'static str, value: u32, orders: Orders) -> Lanes {
    let thread = current();
    let warp = thread.warp();
    let lane = thread.lane();
    let phase = warp.arrive(lane, operation, value, orders, &thread.clock.borrow());
    wait_for_warp(warp, operation, phase);
    thread.acquire(&warp.clock);
    warp.lanes(phase, lane)
}

/// [`warp_exchange`] at an instruction that orders no memory: the lanes do not learn what other lanes have waited for.
/// All 32 lanes call it. `by_last` is called once all have, before any of them goes on.
#[track_caller]
pub(crate) fn warp_meet(operation: &'static str, value: u32, by_last: impl FnOnce()) -> Lanes {
    let thread = current();
    let warp = thread.warp();
    let lane = thread.lane();
    assert!(
        warp.members() == u32::MAX,
        "{operation} is called by a warp of {} threads: launch blocks of a multiple of {WARP_SIZE} threads",
        warp.members().count_ones()
    );
    let phase = warp.arrive(
        lane,
        operation,
        value,
        Orders::Nothing,
        &thread.clock.borrow(),
    );
    if warp.has_ended(phase) {
        by_last();
    }
    wait_for_warp(warp, operation, phase);
    warp.lanes(phase, lane)
}

/// Waits until all lanes have arrived in a phase of the collective `operation`.
#[track_caller]
fn wait_for_warp(warp: &Warp, operation: &'static str, phase: u32) {
    if !warp.has_ended(phase) {
        wait_for(
            WaitKind::Cluster,
            Awaited::Warp,
            format_args!(
                "waits in {operation} for lanes of its warp (mask {})",
                // Read when the message is written, not when the wait begins.
                fmt::from_fn(|f| write!(f, "{:#010x}", warp.missing()))
            ),
            || warp.has_ended(phase),
        );
    }
}

/// Waits until all lanes of the warp have called it.
///
/// # Panics
/// As for [`warp_exchange`].
#[inline]
#[track_caller]
pub fn sync_warp() {
    exchange("sync_warp", 0, Orders::Memory);
}

/// The barrier of a thread's cluster, and the cluster's number of threads.
fn cluster_barrier(thread: &Thread) -> (&ClusterBarrier, u32) {
    let block = thread.block();
    let barrier = &block.first_of_cluster().cluster_barrier;
    (barrier, block.threads * block.dims.cluster)
}

/// Counts the thread at the barrier of its cluster, without waiting.
///
/// # Panics
/// If the thread has not waited since it last arrived, or outside of a kernel.
#[track_caller]
pub fn cluster_arrive() {
    arrive_at_cluster(Orders::Memory);
}

/// [`cluster_arrive`] that does not order the thread's accesses to memory before the barrier.
///
/// # Panics
/// As [`cluster_arrive`].
#[track_caller]
pub fn cluster_arrive_relaxed() {
    arrive_at_cluster(Orders::Events);
}

#[track_caller]
fn arrive_at_cluster(orders: Orders) {
    let thread = current();
    let (barrier, threads) = cluster_barrier(thread);
    assert!(
        thread
            .cluster_arrival
            .replace(Some(barrier.phase()))
            .is_none(),
        "the thread calls cluster_arrive twice: call cluster_wait in between"
    );
    barrier.arrive(&thread.clock.borrow(), orders, threads);
}

/// Waits until all threads of the cluster that have not ended have arrived.
///
/// # Panics
/// If the thread has not arrived, or outside of a kernel.
#[track_caller]
pub fn cluster_wait() {
    let thread = current();
    let (barrier, threads) = cluster_barrier(thread);
    let Some(phase) = thread.cluster_arrival.take() else {
        panic!("the thread calls cluster_wait without cluster_arrive before it");
    };
    wait_for(
        WaitKind::Cluster,
        Awaited::ClusterBarrier,
        format_args!(
            "waits at the cluster's barrier for {threads} threads, of which {} are there",
            // Read when the message is written, not when the wait begins.
            fmt::from_fn(|f| barrier.arrived().fmt(f))
        ),
        || barrier.phase() != phase,
    );
    thread.acquire(&barrier.clock);
}

/// To be called by a thread when its kernel body returns.
///
/// # Panics
/// If the thread has arrived at the cluster's barrier and not waited.
pub(crate) fn thread_ends(thread: &Thread) {
    assert!(
        thread.cluster_arrival.get().is_none(),
        "the thread ended between cluster_arrive and cluster_wait: wait before the kernel ends"
    );
    let (barrier, threads) = cluster_barrier(thread);
    barrier.thread_ends(threads);
}
