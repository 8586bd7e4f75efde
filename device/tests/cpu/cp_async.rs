//! `cp.async`: what it copies, and accesses that are too early.

use cutlet_device::cp_async::{cp_async, cp_async_commit, cp_async_wait, cp_async_zfill};
use cutlet_device::{
    Global, Shared, SharedMemory, barrier_arrive, barrier_sync, sync_threads, sync_warp, thread_idx,
};
use cutlet_simt::SimtError;

use crate::fixture::{early, failure, launch, says};

/// Elements in global memory that launches read.
struct Source(Vec<u32>);

impl Source {
    fn new() -> Self {
        Self((0..4096).map(|i| 1000 + i).collect())
    }

    fn at(&self, index: usize) -> Global<u32> {
        Global::from_ptr(&raw const self.0[index])
    }
}

/// Copies four elements to `to`.
fn copy(source: &Source, to: Shared<u32>) {
    // SAFETY: the elements are there, and tests write to `to` too early on purpose alone.
    unsafe { cp_async::<_, 4>(to, source.at(0), 4) };
}

/// Reads the first element.
fn first(of: Shared<u32>) -> u32 {
    // SAFETY: shared memory is initialised.
    unsafe { of.load(0) }
}

#[test]
fn a_copy_whose_condition_fails_writes_zeros_and_reads_nothing() {
    let source = Source::new();
    launch(64, 1, 1, || {
        let to: Shared<u32> = SharedMemory::new().take(64 * 4);
        let thread = thread_idx().get() as usize;
        let to = to.offset(4 * thread as i64);
        let copied = thread.is_multiple_of(3);
        let from = match copied {
            true => source.at(4 * thread),
            false => Global::from_ptr(std::ptr::without_provenance(3)),
        };
        // SAFETY: the elements are there if they are copied, and each thread has its own.
        unsafe {
            cp_async_zfill::<_, 4>(to, from, copied);
            cp_async_commit();
            cp_async_wait::<0>();
            for i in 0..4 {
                let expected = if copied { source.0[4 * thread + i] } else { 0 };
                assert_eq!(to.load(i as i64), expected);
            }
        }
    })
    .unwrap();
}

#[test]
fn copies_fill_up_with_zeros() {
    fn check<const N: usize>(source: &Source) {
        launch(64, 1, 1, || {
            let to: Shared<u32> = SharedMemory::new().take(64 * N);
            let thread = thread_idx().get() as usize;
            let to = to.offset((thread * N) as i64);
            for count in 0..=N as u32 {
                let from = match count {
                    // Nothing is read.
                    0 => Global::from_ptr(std::ptr::without_provenance(3)),
                    _ => source.at(thread * N),
                };
                // SAFETY: the elements are there, and each thread has its own.
                unsafe {
                    cp_async::<_, N>(to, from, count);
                    cp_async_commit();
                    cp_async_wait::<0>();
                    for i in 0..N {
                        let expected = if i < count as usize {
                            source.0[thread * N + i]
                        } else {
                            0
                        };
                        assert_eq!(to.load(i as i64), expected);
                    }
                }
            }
        })
        .unwrap();
    }
    let source = Source::new();
    check::<1>(&source);
    check::<2>(&source);
    check::<4>(&source);
}

#[test]
fn a_ring_of_stages_overlaps_copies_and_reads() {
    const STAGES: usize = 4;
    const TILES: usize = 32;
    let source = Source::new();
    launch(128, 2, 1, || {
        let stages: Shared<u32> = SharedMemory::new().take(STAGES * 128);
        let thread = thread_idx().get() as usize;
        let load = |tile: usize| {
            if tile < TILES && thread < 32 {
                let to = stages.offset((tile % STAGES * 128 + 4 * thread) as i64);
                // SAFETY: the elements are there, and the stage was read before the last barrier.
                unsafe { cp_async::<_, 4>(to, source.at(tile * 128 + 4 * thread), 4) };
            }
            cp_async_commit();
        };
        for tile in 0..STAGES - 1 {
            load(tile);
        }
        for tile in 0..TILES {
            cp_async_wait::<{ STAGES as u32 - 2 }>();
            sync_threads();
            load(tile + STAGES - 1);
            // SAFETY: the tile has arrived.
            let value = unsafe { stages.load((tile % STAGES * 128 + thread) as i64) };
            assert_eq!(value, source.0[tile * 128 + thread]);
        }
        cp_async_wait::<0>();
    })
    .unwrap();
}

/// Runs `body` in a block of 64 threads after thread 3 copied 16 bytes to address 0, in its group 1.
fn after_copy(body: impl Fn(Shared<u32>) + Sync) -> Result<(), SimtError> {
    let source = Source::new();
    launch(64, 1, 1, || {
        let to: Shared<u32> = SharedMemory::new().take(4);
        if thread_idx().get() == 3 {
            cp_async_commit();
            copy(&source, to);
            cp_async_commit();
        }
        sync_threads();
        body(to);
        if thread_idx().get() == 3 {
            cp_async_wait::<0>();
        }
    })
}

/// Runs `body` in one thread.
fn by(thread: u32, body: impl FnOnce()) {
    if thread_idx().get() == thread {
        body();
    }
}

const OWN: &[&str] = &[
    "thread (3, 0, 0) copies to it by cp.async in its group 1 (counted from 0), and has not waited for that group",
    "commit the group, and wait for it by cp_async_wait before the access",
];

const OTHERS: &[&str] = &[
    "thread (3, 0, 0) copies to it by cp.async in its group 1 (counted from 0), and thread (",
    "has not synchronised with a thread that knows the group to be complete",
    "let the issuing thread wait for the group by cp_async_wait, and let the threads meet at a barrier",
];

#[test]
fn copies_must_be_waited_for() {
    let fails = |parts: &[&str], what: &str, body: &(dyn Fn(Shared<u32>) + Sync)| {
        let message = failure(after_copy(body));
        says(&message, &["shared memory at address 0", what]);
        says(&message, parts);
    };
    // By the issuing thread: read, written, copied to again, or after a wait that does not cover the group.
    fails(OWN, "is used too early", &|to| {
        by(3, || {
            first(to);
        });
    });
    fails(OWN, "is used too early", &|to| {
        // SAFETY: the element is written too early on purpose.
        by(3, || unsafe { to.store(0, 1) });
    });
    let source = Source::new();
    fails(OWN, "is overwritten too early", &|to| {
        by(3, || copy(&source, to));
    });
    fails(OWN, "is used too early", &|to| {
        by(3, || {
            cp_async_wait::<1>();
            first(to);
        });
    });
    // By others: before the wait, after a wait of their own, and after the wait without a barrier.
    fails(OTHERS, "is used too early", &|to| {
        by(40, || {
            first(to);
        });
    });
    fails(OTHERS, "is used too early", &|to| {
        by(40, || {
            cp_async_commit();
            cp_async_wait::<0>();
            first(to);
        });
    });
    fails(OTHERS, "is used too early", &|to| {
        by(3, || {
            cp_async_wait::<0>();
            first(to);
        });
        by(40, || {
            first(to);
        });
    });
    fails(OTHERS, "is overwritten too early", &|to| {
        by(40, || copy(&source, to));
    });
    // A barrier before the wait says nothing, nor does one of another warp.
    fails(OTHERS, "is used too early", &|to| {
        sync_threads();
        by(3, || cp_async_wait::<0>());
        by(40, || {
            first(to);
        });
    });
    fails(OTHERS, "is used too early", &|to| {
        by(3, || cp_async_wait::<0>());
        sync_warp();
        by(5, || {
            assert_eq!(first(to), 1000);
        });
        by(40, || {
            first(to);
        });
    });
}

#[test]
fn a_copy_that_is_not_committed_does_not_complete() {
    let source = Source::new();
    let message = failure(launch(32, 1, 1, || {
        let to: Shared<u32> = SharedMemory::new().take(4);
        by(3, || {
            copy(&source, to);
            cp_async_wait::<0>();
            first(to);
        });
    }));
    says(&message, &["is used too early", "in its group 0"]);
}

#[test]
fn a_wait_covers_threads_that_synchronise_after_it() {
    let check = |to| assert_eq!(first(to), 1000);
    after_copy(|to| {
        by(3, || {
            cp_async_wait::<0>();
            check(to);
        });
        sync_threads();
        check(to);
        sync_threads();
        // SAFETY: each thread has synchronised with the copy, and one writes.
        by(40, || unsafe { to.store(0, 1) });
    })
    .unwrap();
    // At a named barrier at which the issuing thread's warp does not wait.
    after_copy(|to| {
        if thread_idx().get() < 32 {
            by(3, || cp_async_wait::<0>());
            barrier_arrive(1, 64);
        } else {
            barrier_sync(1, 64);
            check(to);
        }
    })
    .unwrap();
    // By way of a third thread.
    after_copy(|to| {
        by(3, || cp_async_wait::<0>());
        sync_warp();
        if thread_idx().get() < 32 {
            barrier_arrive(2, 64);
        } else {
            barrier_sync(2, 64);
            check(to);
        }
    })
    .unwrap();
}

#[test]
fn a_thread_waits_for_its_copies_before_it_ends() {
    let source = Source::new();
    let run = |commits: bool| {
        failure(launch(32, 1, 1, || {
            let to: Shared<u32> = SharedMemory::new().take(4 * 32);
            by(3, || {
                copy(&source, to);
                if commits {
                    cp_async_commit();
                }
            });
        }))
    };
    says(
        &run(false),
        &[
            "thread (3, 0, 0)",
            "ends with cp.async copies that it has not committed",
        ],
    );
    says(
        &run(true),
        &[
            "thread (3, 0, 0)",
            "ends with cp.async copies that it has not waited for",
        ],
    );
}

#[test]
fn wrong_copies_are_errors() {
    let source = Source::new();
    let run = |address: u32, index: usize, count: u32| {
        failure(launch(32, 1, 1, || {
            // SAFETY: the copy fails.
            unsafe { cp_async::<_, 4>(Shared::from_address(address), source.at(index), count) };
        }))
    };
    let aligned = (0..4)
        .find(|&i| source.at(i).as_ptr().addr().is_multiple_of(16))
        .unwrap();
    says(
        &run(8, aligned, 4),
        &["at offset 8, which is not a multiple of 16"],
    );
    says(
        &run(0, aligned + 1, 4),
        &["a load of 16 bytes", "misaligned", "not a multiple of 16"],
    );
    says(&run(0, aligned, 5), &["cp.async reads 20 bytes to fill 16"]);
    // The lower 32 bits of its bytes are 0.
    says(&run(0, aligned, 1 << 30), &["bytes to fill 16"]);
    says(
        &run(200 * 1024, aligned, 4),
        &["the block has 204800 bytes"],
    );
}

#[test]
fn a_copy_in_a_dependent_launch_waits_for_the_kernels_before() {
    let source = Source::new();
    let run = |waits: bool, count: u32| {
        cutlet_simt::launch(&early(), &|| {
            let to: Shared<u32> = SharedMemory::new().take(32);
            if waits {
                cutlet_device::grid_dependency_wait();
            }
            let thread = thread_idx().get();
            // SAFETY: the element is there, and each thread has its own.
            unsafe { cp_async::<_, 1>(to.offset(thread.into()), source.at(0), count) };
            cp_async_commit();
            cp_async_wait::<0>();
        })
    };
    run(true, 1).unwrap();
    run(false, 0).unwrap();
    says(&failure(run(false, 1)), &["grid_dependency_wait"]);
}
