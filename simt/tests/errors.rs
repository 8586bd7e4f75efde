//! Errors of a kernel: each names kernel, block and thread.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use cutlet_simt::{
    LaunchSpec, SimtError, WaitKind, barrier_sync, block_idx, in_kernel, launch, map_shared_rank,
    mbarrier_init, mbarrier_wait, polled, shared_bytes, store_shared, sync_threads, sync_warp,
    thread_idx, warp_exchange, yield_until,
};

const SPEC: LaunchSpec<'static> = LaunchSpec {
    kernel: "faulty",
    grid: [4, 1, 1],
    block: [8, 8, 1],
    cluster: 1,
    shared_bytes: 256,
    overlap_previous: false,
};

fn fails(body: impl Fn() + Sync) -> SimtError {
    launch(&SPEC, &body).unwrap_err()
}

/// Whether this is the thread that a test makes fail.
fn chosen() -> bool {
    block_idx() == [2, 0, 0] && thread_idx() == [3, 4, 0]
}

#[track_caller]
fn assert_panic(error: &SimtError, expected: &str) {
    let SimtError::Panic {
        kernel,
        block,
        thread,
        message,
        location,
    } = error
    else {
        panic!("not a panic: {error}");
    };
    assert_eq!(
        (kernel.as_str(), *block, *thread),
        ("faulty", [2, 0, 0], [3, 4, 0])
    );
    assert!(message.contains(expected), "{message}");
    assert!(location.contains("errors.rs:"), "{location}");
}

#[test]
fn a_panic_names_kernel_block_thread_and_place() {
    let error = fails(|| {
        sync_threads();
        if chosen() {
            let three = 3;
            panic!("three is {three}");
        }
        sync_threads();
    });
    assert_panic(&error, "three is 3");
    let text = error.to_string();
    assert!(
        text.contains("`faulty`, block (2, 0, 0), thread (3, 4, 0): three is 3 (at "),
        "{text}"
    );
}

#[test]
fn after_a_panic_the_other_threads_unwind() {
    struct Counted<'a>(&'a AtomicU32);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Relaxed);
            // A destructor may call a function that waits. No thread will come any more.
            sync_threads();
        }
    }
    let alive = AtomicU32::new(0);
    let one_block = LaunchSpec {
        grid: [1, 1, 1],
        ..SPEC
    };
    launch(&one_block, &|| {
        alive.fetch_add(1, Relaxed);
        let _counted = Counted(&alive);
        sync_threads();
        assert!(thread_idx() != [0, 0, 0], "stop");
        sync_threads();
    })
    .unwrap_err();
    assert_eq!(alive.into_inner(), 0);
}

/// The payload of a panic whose destructor panics, with a payload of the same kind.
struct Explosive(u32);

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(
            !in_kernel() || thread_idx()[0] < 8,
            "no thread of this launch"
        );
        if self.0 > 0 {
            panic_any(Explosive(self.0 - 1));
        }
    }
}

/// Whatever a kernel throws, no thread counts as running afterwards.
#[test]
fn payloads_whose_destructors_panic_end_the_launch_as_others_do() {
    let throw = || panic_any(Explosive(3));
    let while_it_unwinds = || {
        if chosen() {
            panic!("stop");
        }
        let _ = catch_unwind(sync_threads);
        throw();
    };
    let in_condition = || {
        yield_until(WaitKind::Cluster, format_args!("waits"), || {
            if chosen() {
                throw();
            }
            false
        });
    };
    let kernels: [&(dyn Fn() + Sync); 3] = [&throw, &while_it_unwinds, &in_condition];
    for kernel in kernels {
        launch(&SPEC, kernel).unwrap_err();
        assert!(!in_kernel());
        assert!(catch_unwind(thread_idx).is_err());
    }
    launch(&SPEC, &sync_threads).unwrap();
}

#[test]
fn a_barrier_that_a_thread_does_not_reach_is_named() {
    let line = line!() + 3;
    let error = fails(|| {
        if !chosen() {
            sync_threads();
        }
    });
    let line = format!("simt/tests/errors.rs:{line}:13");
    assert_eq!(
        error,
        SimtError::BarrierNotReached {
            kernel: "faulty".into(),
            block: [2, 0, 0],
            waiting: [0, 0, 0],
            line: line.clone(),
            missing: [3, 4, 0],
            arrived: 63,
            threads: 64,
        }
    );
    let text = format!(
        "thread (0, 0, 0) waits at sync_threads (at {line}), but thread (3, 4, 0) ended without reaching it"
    );
    assert!(error.to_string().contains(&text), "{error}");
}

#[test]
fn threads_at_different_barriers_are_a_deadlock() {
    let [named, whole] = [line!() + 3, line!() + 5];
    let error = fails(|| {
        if chosen() {
            barrier_sync(1, 64);
        } else {
            sync_threads();
        }
    });
    let SimtError::Deadlock {
        kernel,
        block,
        waiting,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (kernel.as_str(), *block, waiting.len()),
        ("faulty", [2, 0, 0], 2)
    );
    assert_eq!((waiting[0].thread, waiting[0].count), ([0, 0, 0], 63));
    assert_eq!(waiting[0].what, "waits at sync_threads");
    assert_eq!((waiting[1].thread, waiting[1].count), ([3, 4, 0], 1));
    assert_eq!(
        waiting[1].what,
        "waits at barrier 1 for 64 threads, of which 1 are there"
    );
    for (group, line) in [(0, whole), (1, named)] {
        let line = format!("simt/tests/errors.rs:{line}:13");
        assert_eq!(waiting[group].line, line);
        assert!(error.to_string().contains(&line), "{error}");
    }
}

#[test]
fn a_missing_lane_is_a_deadlock_that_names_it() {
    let error = fails(|| {
        if !chosen() {
            sync_warp();
        }
    });
    let SimtError::Deadlock { waiting, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].count, 31);
    // Thread (3, 4) of 8 by 8 is number 35: lane 3 of warp 1.
    assert_eq!(
        waiting[0].what,
        "waits in sync_warp for lanes of its warp (mask 0x00000008)"
    );
}

#[test]
fn lanes_in_different_collectives_are_reported() {
    let error = fails(|| {
        warp_exchange(if chosen() { "shfl" } else { "ballot" }, 0);
    });
    assert_panic(
        &error,
        "calls shfl while lane 0 of its warp waits in ballot",
    );
}

#[test]
fn waiting_for_an_event_that_never_comes_is_a_deadlock() {
    let error = fails(|| {
        let stage = thread_idx()[0];
        yield_until(
            WaitKind::Cluster,
            format_args!("waits for stage {stage}"),
            || false,
        );
    });
    let SimtError::Deadlock { waiting, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(waiting.len(), 8);
    assert_eq!(
        (waiting[5].what.as_str(), waiting[5].count),
        ("waits for stage 5", 8)
    );
}

#[test]
fn blocks_that_wait_for_each_other_for_ever_are_a_deadlock() {
    let never = AtomicBool::new(false);
    let error = fails(|| {
        if block_idx()[0] >= 2 {
            yield_until(WaitKind::Grid, format_args!("waits for a flag"), || {
                never.load(Relaxed)
            });
        }
    });
    let SimtError::Deadlock { waiting, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (waiting[0].what.as_str(), waiting[0].count),
        ("waits for a flag", 64)
    );
}

/// The threads of a block that wait at different lines for the same event are told apart.
#[test]
fn each_line_of_a_deadlock_is_named() {
    let error = fails(|| {
        let wait = |stage| {
            yield_until(
                WaitKind::Cluster,
                format_args!("waits for stage {stage}"),
                || false,
            );
        };
        match thread_idx()[0] {
            0 => wait(1),
            1 => yield_until(WaitKind::Cluster, format_args!("waits for stage 1"), || {
                false
            }),
            _ => {}
        }
    });
    let SimtError::Deadlock { waiting, .. } = &error else {
        panic!("{error}")
    };
    let [first, second] = waiting.as_slice() else {
        panic!("{error}")
    };
    assert_eq!((first.count, second.count), (8, 8));
    assert_eq!(first.what, second.what);
    assert_ne!(first.line, second.line);
}

/// A thread overwrites the mbarrier that another thread waits at, and panics. The error is that panic, and the next
/// launch works.
#[test]
fn a_wait_whose_mbarrier_is_overwritten_does_not_hide_the_panic() {
    let spec = LaunchSpec {
        grid: [1, 1, 1],
        block: [2, 1, 1],
        ..SPEC
    };
    let error = launch(&spec, &|| {
        if thread_idx()[0] == 0 {
            mbarrier_init(0, 2);
            mbarrier_wait(0, 0);
        } else {
            // SAFETY: 8 bytes are there, and the other thread is suspended.
            unsafe { shared_bytes(0, 8, 8).cast::<u64>().write(0) };
            panic!("stop");
        }
    })
    .unwrap_err();
    assert!(error.to_string().contains("stop"), "{error}");
    assert!(!in_kernel());
    launch(&SPEC, &sync_threads).unwrap();
}

#[test]
fn spinning_for_ever_is_a_deadlock() {
    let never = AtomicU32::new(0);
    let error = fails(|| {
        while never.load(Relaxed) == 0 {
            polled(never.as_ptr().addr(), 0, || never.load(Relaxed) != 0);
        }
    });
    let SimtError::Deadlock { waiting, .. } = &error else {
        panic!("{error}")
    };
    assert!(
        waiting[0].what.contains("which no thread changes"),
        "{waiting:?}"
    );
}

#[test]
fn a_panicking_condition_names_its_thread() {
    let error = fails(|| {
        let polls = AtomicU32::new(0);
        let chosen = chosen();
        yield_until(WaitKind::Cluster, format_args!("waits"), || {
            let polls = polls.fetch_add(1, Relaxed);
            assert!(!chosen || polls < 3, "polled too often");
            polls > 10
        });
    });
    // All threads wait: the deadlock may be reported first.
    match &error {
        SimtError::Panic { .. } => assert_panic(&error, "polled too often"),
        error => assert!(matches!(error, SimtError::Deadlock { .. })),
    }
}

#[test]
fn a_condition_that_waits_is_an_error() {
    let error = fails(|| {
        let polls = AtomicU32::new(0);
        yield_until(WaitKind::Cluster, format_args!("waits"), || {
            if chosen() && polls.fetch_add(1, Relaxed) > 0 {
                sync_threads();
            }
            !chosen()
        });
    });
    assert_panic(&error, "must not wait itself");
}

#[test]
fn shared_memory_is_checked() {
    for (address, bytes, align, expected) in [
        (
            256,
            1,
            1,
            "access to 1 bytes at offset 256 of shared memory, but the block has 256 bytes",
        ),
        (244, 16, 4, "access to 16 bytes at offset 244"),
        (4, 8, 8, "at offset 4, which is not a multiple of 8 bytes"),
        (u32::MAX, 4, 1, "is not an address in shared memory"),
    ] {
        let error = fails(|| {
            if chosen() {
                shared_bytes(address, bytes, align);
            }
        });
        assert_panic(&error, expected);
    }
    // The lower 32 bits of the length are 4. The pages are never touched.
    let long = vec![0; (1 << 32) + 4];
    let error = fails(|| {
        if chosen() {
            store_shared(0, 4, &long);
        }
    });
    assert_panic(&error, "a store of 4294967300 bytes to shared memory, but");
    let error = fails(|| {
        if chosen() {
            map_shared_rank(0, 1);
        }
    });
    assert_panic(&error, "there is no block 1 in a cluster of 1 blocks");
}

#[test]
fn wrong_arguments_of_barriers_are_reported() {
    for (id, threads, expected) in [
        (16, 64, "barrier 16 does not exist"),
        (1, 0, "must be a multiple of 32"),
        (1, 48, "must be a multiple of 32"),
        (1, 96, "at most the 64 threads of the block's warps"),
    ] {
        let error = fails(|| {
            if chosen() {
                barrier_sync(id, threads);
            }
        });
        assert_panic(&error, expected);
    }
    let error = fails(|| {
        if thread_idx() == [0, 0, 0] {
            barrier_sync(1, 64);
        } else if chosen() {
            barrier_sync(1, 32);
        }
        if block_idx()[0] != 2 {
            barrier_sync(1, 64);
        }
    });
    assert!(
        matches!(error, SimtError::Panic { .. } | SimtError::Deadlock { .. }),
        "{error}"
    );
}

#[test]
fn impossible_launches_are_refused() {
    let cases = [
        (
            LaunchSpec {
                block: [1025, 1, 1],
                ..SPEC
            },
            "a block of [1025, 1, 1] threads",
        ),
        (
            LaunchSpec {
                block: [64, 32, 1],
                ..SPEC
            },
            "a block of [64, 32, 1] threads",
        ),
        (
            LaunchSpec {
                block: [0, 1, 1],
                ..SPEC
            },
            "a block of [0, 1, 1] threads",
        ),
        (
            LaunchSpec {
                grid: [0, 1, 1],
                ..SPEC
            },
            "a grid of [0, 1, 1] blocks",
        ),
        (
            LaunchSpec {
                grid: [1, 65_536, 1],
                ..SPEC
            },
            "a grid of [1, 65536, 1] blocks",
        ),
        (
            LaunchSpec {
                cluster: 17,
                ..SPEC
            },
            "a cluster of 17 blocks",
        ),
        (
            LaunchSpec { cluster: 3, ..SPEC },
            "do not divide into clusters of 3",
        ),
        (
            LaunchSpec {
                shared_bytes: 300_000,
                ..SPEC
            },
            "300000 bytes of shared memory",
        ),
    ];
    for (spec, expected) in cases {
        let error = launch(&spec, &|| panic!("must not run")).unwrap_err();
        assert!(matches!(error, SimtError::InvalidLaunch { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = fails(|| {
        if chosen() {
            panic!("{}", launch(&SPEC, &|| ()).unwrap_err());
        }
    });
    assert_panic(&error, "a kernel cannot launch another one");
}

#[test]
fn thread_idx_outside_of_a_kernel_panics() {
    let panic = std::panic::catch_unwind(AssertUnwindSafe(thread_idx)).unwrap_err();
    assert!(
        panic
            .downcast_ref::<&str>()
            .unwrap()
            .contains("only be called while a kernel")
    );
}
