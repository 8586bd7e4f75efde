//! A stack overflow ends the process, and names kernel, block and thread.

use std::hint::black_box;
use std::process::Output;

use crate::apart;
use cutlet_simt::{LaunchSpec, block_idx, launch, sync_threads, thread_idx};

const SPEC: LaunchSpec<'static> = LaunchSpec {
    kernel: "deep",
    grid: [4, 1, 1],
    block: [8, 8, 1],
    cluster: 1,
    shared_bytes: 0,
    overlap_previous: false,
};

/// Runs the given test again in a process of its own, in which its kernel overflows the stack.
fn run_apart(test: &str) -> Option<Output> {
    apart::run_apart(&format!("overflow::{test}"), &[])
}

#[track_caller]
fn assert_overflow(output: &Output) {
    let expected = "kernel `deep`, block (2, 0, 0), thread (3, 4, 0): stack overflow";
    apart::assert_aborted(output, &[expected, "CUTLET_SIMT_STACK_KIB"]);
}

/// Calls `recurse` in one thread. The others wait for it.
fn overflow(recurse: fn(u64) -> u64) {
    let _ = launch(&SPEC, &|| {
        if block_idx() == [2, 0, 0] && thread_idx() == [3, 4, 0] {
            black_box(recurse(0));
        }
        sync_threads();
    });
}

#[test]
fn endless_recursion_is_named() {
    fn recurse(depth: u64) -> u64 {
        let local = [depth; 16];
        match black_box(depth) {
            u64::MAX => 0,
            _ => recurse(depth + 1) + local[depth as usize % 16],
        }
    }
    match run_apart("endless_recursion_is_named") {
        Some(output) => assert_overflow(&output),
        None => overflow(recurse),
    }
}

/// The overflow can happen while the allocator holds its lock.
#[test]
fn recursion_that_allocates_is_named() {
    fn recurse(depth: u64) -> u64 {
        let local = black_box(vec![depth; 3 + depth as usize % 500]);
        match depth {
            u64::MAX => 0,
            _ => recurse(depth + 1) + local[0],
        }
    }
    match run_apart("recursion_that_allocates_is_named") {
        Some(output) => assert_overflow(&output),
        None => overflow(recurse),
    }
}

/// No thread of a scope goes on with references into frames that are gone: the process ends.
#[test]
fn an_overflow_in_a_scope_of_threads_is_named() {
    fn recurse(depth: u64) -> u64 {
        match black_box(depth) {
            u64::MAX => 0,
            _ => recurse(depth + 1) + black_box(depth),
        }
    }
    fn in_scope(_: u64) -> u64 {
        let mut words = [0u64; 64];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                loop {
                    words
                        .iter_mut()
                        .for_each(|word| *word = black_box(*word + 1));
                }
            });
            recurse(0)
        })
    }
    match run_apart("an_overflow_in_a_scope_of_threads_is_named") {
        Some(output) => assert_overflow(&output),
        None => overflow(in_scope),
    }
}
