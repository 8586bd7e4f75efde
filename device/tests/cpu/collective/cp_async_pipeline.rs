//! The pipeline over `cp.async`: stages arrive in order, and calls in a wrong order are noticed.

use cutlet_device::collective::{CpAsyncPipeline, StageIdx, Stages};
use cutlet_device::cp_async::cp_async;
use cutlet_device::{Global, SharedMemory, thread_idx};

use crate::fixture::{failure, launch, says};

/// Threads of a block.
const THREADS: u32 = 64;

/// Reads `tiles` tiles of a word for each thread through `STAGES` stages. Each thread reads the word of another one.
fn check<const STAGES: usize>(tiles: u32) {
    let words: Vec<u32> = (0..tiles * THREADS).collect();
    launch(THREADS, 1, 1, || {
        let stages = SharedMemory::new().take::<u32>(STAGES * THREADS as usize);
        let own = thread_idx().get();
        let word =
            |stage: StageIdx, thread: u32| stages.offset(i64::from(THREADS * stage.get() + thread));
        let load = |tile: u32, stage: StageIdx| {
            let from = Global::from_ptr(words.as_ptr()).offset(i64::from(THREADS * tile + own));
            // SAFETY: the word exists if it is read. The stage is free.
            unsafe { cp_async::<u32, 1>(word(stage, own), from, u32::from(tile < tiles)) };
        };
        let ahead = CpAsyncPipeline::<Stages<STAGES>>::AHEAD;
        let mut pipeline = CpAsyncPipeline::<Stages<STAGES>>::new();
        for tile in 0..ahead {
            load(tile, pipeline.acquire());
            pipeline.commit();
        }
        for tile in 0..tiles {
            let full = pipeline.wait();
            let other = THREADS - 1 - own;
            // The free stage may be filled before the full one is read, and after it.
            if tile % 2 == 0 {
                load(tile + ahead, pipeline.acquire());
                pipeline.commit();
            }
            // SAFETY: the stage is full.
            let found = unsafe { word(full, other).load(0) };
            assert_eq!(found, THREADS * tile + other, "tile {tile} of {tiles}");
            if tile % 2 == 1 {
                load(tile + ahead, pipeline.acquire());
                pipeline.commit();
            }
        }
        pipeline.drain();
        // SAFETY: no thread uses the stages.
        unsafe { stages.store(own.into(), 0) };
    })
    .unwrap();
}

#[test]
fn stages_are_read_in_order() {
    for tiles in [0, 1, 2, 7, 8, 20] {
        check::<2>(tiles);
        check::<3>(tiles);
        check::<4>(tiles);
        check::<8>(tiles);
    }
}

/// The message of a launch whose threads call these functions of a pipeline of three stages.
fn message(calls: fn(&mut CpAsyncPipeline<Stages<3>>)) -> String {
    failure(launch(32, 1, 1, || calls(&mut CpAsyncPipeline::new())))
}

#[test]
fn a_wrong_order_of_calls_is_noticed() {
    let fill = |pipeline: &mut CpAsyncPipeline<_>| {
        pipeline.acquire();
        pipeline.commit();
    };
    says(
        &message(|pipeline| {
            pipeline.acquire();
            pipeline.acquire();
        }),
        &["call commit after its copies", "cp_async_pipeline.rs:"],
    );
    says(
        &message(|pipeline| pipeline.commit()),
        &["commit: no stage was acquired"],
    );
    says(
        &message(|pipeline| {
            pipeline.acquire();
            pipeline.commit();
            pipeline.wait();
        }),
        &["1 stages are filled, and a wait needs 2"],
    );
    let overfull = launch(32, 1, 1, || {
        let mut pipeline = CpAsyncPipeline::<Stages<3>>::new();
        (0..2).for_each(|_| fill(&mut pipeline));
        for _ in 0..4 {
            pipeline.wait();
            fill(&mut pipeline);
        }
        fill(&mut pipeline);
    });
    says(
        &failure(overfull),
        &["no stage is free: fill 2 stages before the first wait"],
    );
}
