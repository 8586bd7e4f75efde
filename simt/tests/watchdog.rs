//! Launches without progress end, and a panic that ends the process names its thread.

use std::hint::black_box;
use std::panic::catch_unwind;
use std::process::Output;
use std::sync::Mutex;

use crate::apart::{self, assert_aborted};
use cutlet_simt::{
    LaunchSpec, MemoryAccess, Running, SimtError, Stopped, access_shared, barrier_sync, block_idx,
    launch, mbarrier_init, mbarrier_wait, sync_threads, sync_warp, thread_idx,
};

const SPEC: LaunchSpec<'static> = LaunchSpec {
    kernel: "stuck",
    grid: [3, 1, 1],
    block: [8, 1, 1],
    cluster: 1,
    shared_bytes: 16,
    overlap_previous: false,
};

/// Runs the given test again in a process of its own, with a short limit.
fn run_apart(test: &str) -> Option<Output> {
    apart::run_apart(
        &format!("watchdog::{test}"),
        &[("CUTLET_SIMT_WATCHDOG_SECONDS", "0.3")],
    )
}

fn chosen() -> bool {
    block_idx() == [1, 0, 0] && thread_idx() == [5, 0, 0]
}

#[test]
fn an_endless_loop_is_named() {
    match run_apart("an_endless_loop_is_named") {
        Some(output) => {
            let thread = "block (1, 0, 0) thread (5, 0, 0) runs";
            assert_aborted(&output, &["kernel `stuck`: no progress", thread]);
        }
        None => {
            let _ = launch(&SPEC, &|| {
                while chosen() {
                    black_box(());
                }
                sync_threads();
            });
        }
    }
}

/// Programs with debug assertions have line tables. On 64-bit Arm, the line is not always found.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", debug_assertions))]
fn the_line_of_an_endless_loop_is_named() {
    let Some(output) = run_apart("the_line_of_an_endless_loop_is_named") else {
        let _ = launch(&SPEC, &|| {
            if chosen() {
                let mut rounds = 0u32;
                loop {
                    rounds = black_box(rounds).wrapping_add(1); // the loop
                }
            }
            sync_threads();
        });
        return;
    };
    let source = include_str!("watchdog.rs");
    let lines = (1..).zip(source.lines());
    let (line, _) = lines
        .filter(|(_, text)| text.ends_with("// the loop"))
        .last()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let at = |line| format!("block (1, 0, 0) thread (5, 0, 0) runs at tests/watchdog.rs:{line}:");
    // The loop's own line, or that of its head.
    let is_named = [line - 1, line]
        .into_iter()
        .any(|line| text.contains(&at(line)));
    assert!(is_named, "{} is not in: {text}", at(line));
}

#[test]
fn an_endless_loop_with_accesses_ends_with_an_error() {
    let Some(output) = run_apart("an_endless_loop_with_accesses_ends_with_an_error") else {
        let error = launch(&SPEC, &|| {
            while chosen() {
                black_box(access_shared(0, 4, 4, MemoryAccess::Load));
            }
            sync_threads();
        });
        let of_thread = |x| Running {
            block: [1, 0, 0],
            thread: [x, 0, 0],
            line: None,
        };
        let Err(SimtError::NoProgress {
            running, waiting, ..
        }) = error
        else {
            panic!("{error:?}");
        };
        let [runs] = running.as_slice() else {
            panic!("{running:?}");
        };
        let line = runs.line.clone().unwrap_or_default();
        assert!(line.starts_with("simt/tests/watchdog.rs:"), "{line}");
        assert_eq!((runs.block, runs.thread), ([1, 0, 0], [5, 0, 0]));
        // Threads 6 and 7 have not begun.
        let [
            Stopped {
                threads: 5,
                example,
                what,
                line,
            },
        ] = waiting.as_slice()
        else {
            panic!("{waiting:?}");
        };
        assert_eq!(
            (example.clone(), what.as_str()),
            (of_thread(0), "at sync_threads")
        );
        assert!(line.starts_with("simt/tests/watchdog.rs:"), "{line}");
        // The cores can be used again.
        launch(&SPEC, &sync_threads).unwrap();
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Each warp waits for another kind of event. Thread 126 never comes. It runs after all others have begun to wait.
#[test]
fn threads_that_wait_are_listed_by_what_they_wait_for() {
    let Some(output) = run_apart("threads_that_wait_are_listed_by_what_they_wait_for") else {
        let spec = LaunchSpec {
            grid: [1, 1, 1],
            block: [128, 1, 1],
            ..SPEC
        };
        let _ = launch(&spec, &|| {
            let [x, ..] = thread_idx();
            if x == 0 {
                mbarrier_init(8, 1);
            }
            sync_threads();
            match x {
                0..32 => sync_threads(),
                32..64 => barrier_sync(1, 64),
                64..96 => mbarrier_wait(8, 0),
                126 => loop {
                    black_box(());
                },
                _ => sync_warp(),
            }
        });
        return;
    };
    let parts = [
        "thread (126, 0, 0) runs",
        "32 threads wait at sync_threads (at simt/tests/watchdog.rs:",
        "32 threads wait at barrier 1 for 64 threads (at simt/tests/watchdog.rs:",
        "32 threads wait for the phase of parity 0 of the mbarrier at shared address 8 (at simt/tests/watchdog.rs:",
        "31 threads wait for lanes of their warp (at simt/tests/watchdog.rs:",
        "one of them block (0, 0, 0) thread (96, 0, 0)",
    ];
    assert_aborted(&output, &parts);
}

#[test]
fn a_lock_held_across_a_barrier_is_named() {
    match run_apart("a_lock_held_across_a_barrier_is_named") {
        Some(output) => {
            let parts = [
                "no progress",
                "thread (1, 0, 0) runs",
                "a lock that a waiting thread holds",
            ];
            assert_aborted(&output, &parts);
        }
        None => {
            let lock = Mutex::new(());
            let _ = launch(&SPEC, &|| {
                let _held = lock.lock();
                sync_threads();
            });
        }
    }
}

#[test]
fn a_loop_that_catches_panics_is_named() {
    match run_apart("a_loop_that_catches_panics_is_named") {
        Some(output) => {
            assert_aborted(
                &output,
                &["no progress", "block (1, 0, 0) thread (5, 0, 0) runs"],
            );
        }
        None => {
            let _ = launch(&SPEC, &|| {
                while chosen() {
                    let _ = catch_unwind(|| access_shared(64, 4, 4, MemoryAccess::Load));
                }
                sync_threads();
            });
        }
    }
}

/// A waiting thread that catches the panic by which it should end.
#[test]
fn a_loop_that_catches_the_end_of_a_launch_is_named() {
    match run_apart("a_loop_that_catches_the_end_of_a_launch_is_named") {
        Some(output) => assert_aborted(&output, &["kernel `stuck`"]),
        None => {
            let _ = launch(&SPEC, &|| {
                if chosen() {
                    panic!("the launch fails");
                }
                while block_idx() == [1, 0, 0] {
                    let _ = catch_unwind(sync_threads);
                }
            });
        }
    }
}

#[test]
fn a_panic_in_a_destructor_names_its_thread() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the destructor panics");
        }
    }
    match run_apart("a_panic_in_a_destructor_names_its_thread") {
        Some(output) => {
            let thread = "kernel `stuck`, block (1, 0, 0), thread (5, 0, 0): panic in a destructor";
            assert_aborted(
                &output,
                &[thread, "because of a panic at simt/tests/watchdog.rs"],
            );
        }
        None => {
            let _ = launch(&SPEC, &|| {
                if chosen() {
                    let _panics = Panics;
                    panic!("the kernel panics");
                }
            });
        }
    }
}

/// Each thread takes a while, and all of them take longer than the limit.
#[test]
fn threads_that_take_their_time_are_no_hang() {
    let Some(output) = run_apart("threads_that_take_their_time_are_no_hang") else {
        launch(&SPEC, &|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
        })
        .unwrap();
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
