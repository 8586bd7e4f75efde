//! Launches that overlap the kernel before them, and the election of a lane.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cutlet_device::mbarrier::Mbarrier;
use cutlet_device::tile::KMajorTile;
use cutlet_device::tma::LoadOptions;
use cutlet_device::{
    GlobalMut, SharedMemory, atomic_add, atomic_count, atomic_load, atomic_store, elect_one,
    grid_dependency_wait, launch_dependents, thread_idx,
};
use cutlet_simt::LaunchSpec;

use crate::fixture::{Matrix, early, failure, launch, says, spec};

#[test]
fn a_launch_that_may_begin_early_waits_before_it_uses_global_memory() {
    let mut words = [1u32, 2];
    let words = GlobalMut::from_ptr(words.as_mut_ptr());
    let run = |spec: &LaunchSpec, waits: bool| {
        cutlet_simt::launch(spec, &|| {
            // A prefetch is allowed before the wait.
            // SAFETY: the word is there.
            unsafe { words.as_global().prefetch(0) };
            if waits {
                grid_dependency_wait();
            }
            if thread_idx().is_first() {
                // SAFETY: there are two words, and one thread uses them.
                unsafe { words.store(1, words.load(0)) };
            }
        })
    };
    run(&spec(32, 1, 1), false).unwrap();
    run(&early(), true).unwrap();
    says(
        &failure(run(&early(), false)),
        &["before grid_dependency_wait", "overlap_previous"],
    );
}

#[test]
fn a_launch_that_may_begin_early_waits_before_it_uses_atomics() {
    let mut word = [0u32];
    let word = GlobalMut::from_ptr(word.as_mut_ptr());
    let run = |waits: bool, operation: fn(GlobalMut<u32>)| {
        cutlet_simt::launch(&early(), &|| {
            if waits {
                grid_dependency_wait();
            }
            operation(word);
        })
    };
    // SAFETY: the word is there.
    let operations: [fn(GlobalMut<u32>); 4] = unsafe {
        [
            |word| {
                atomic_add(word, 0, 1);
            },
            |word| {
                atomic_count(word, 0, 1);
            },
            |word| {
                atomic_load(word, 0);
            },
            |word| atomic_store(word, 0, 1),
        ]
    };
    for operation in operations {
        run(true, operation).unwrap();
        says(
            &failure(run(false, operation)),
            &["before grid_dependency_wait"],
        );
    }
}

#[test]
fn a_launch_that_may_begin_early_waits_before_it_loads_boxes() {
    type Tile = KMajorTile<f32, 8, 8, 32>;
    let source = Matrix::<f32>::new(8, 8, 4);
    let map = source.map(Tile::tile_box(1));
    let result = cutlet_simt::launch(&early(), &|| {
        let mut shared = SharedMemory::new();
        let tile = Tile::take(&mut shared);
        let barrier = Mbarrier::take(&mut shared);
        if thread_idx().is_first() {
            // SAFETY: this thread alone uses barrier and tile; the map is of this tile.
            unsafe {
                barrier.init(1);
                barrier.arrive_expect_tx(Tile::BYTES);
                tile.load(&map, [0, 0], barrier, LoadOptions::DEFAULT);
            }
        }
    });
    says(&failure(result), &["before grid_dependency_wait"]);
}

#[test]
fn one_lane_of_a_warp_is_elected() {
    let elected = AtomicU32::new(0);
    launch(96, 2, 1, || {
        if elect_one() {
            elected.fetch_add(1, Relaxed);
        }
        grid_dependency_wait();
        launch_dependents();
    })
    .unwrap();
    assert_eq!(elected.into_inner(), 6);
}
