//! The executor: every thread runs once, barriers and warps synchronise, blocks make progress together.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use cutlet_simt::{
    LaunchSpec, WaitKind, barrier_arrive, barrier_sync, block_dim, block_idx, cluster_rank,
    cluster_size, grid_dim, in_kernel, lane, launch, linear_thread_idx, map_shared_rank, polled,
    shared_bytes, shared_size, sync_threads, sync_warp, thread_idx, warp, warp_exchange,
    yield_until,
};

fn spec(grid: [u32; 3], block: [u32; 3]) -> LaunchSpec<'static> {
    LaunchSpec {
        kernel: "test",
        grid,
        block,
        cluster: 1,
        shared_bytes: 1024,
        overlap_previous: false,
    }
}

#[test]
fn every_thread_of_a_3d_grid_runs_once_with_its_index() {
    let (grid, block) = ([3, 2, 5], [4, 3, 2]);
    let seen: Vec<AtomicU32> = (0..30 * 24).map(|_| AtomicU32::new(0)).collect();
    launch(&spec(grid, block), &|| {
        assert_eq!((grid_dim(), block_dim()), (grid, block));
        let ([bx, by, bz], [tx, ty, tz]) = (block_idx(), thread_idx());
        assert!(bx < 3 && by < 2 && bz < 5 && tx < 4 && ty < 3 && tz < 2);
        let thread = tx + 4 * (ty + 3 * tz);
        assert_eq!(linear_thread_idx(), thread);
        assert_eq!((warp(), lane()), (thread / 32, thread % 32));
        assert!(in_kernel());
        let block = bx + 3 * (by + 2 * bz);
        seen[(block * 24 + thread) as usize].fetch_add(1, Relaxed);
    })
    .unwrap();
    assert!(seen.iter().all(|count| count.load(Relaxed) == 1));
    assert!(!in_kernel());
}

#[test]
fn a_barrier_orders_writes_and_reads() {
    launch(&spec([8, 1, 1], [256, 1, 1]), &|| {
        let me = thread_idx()[0];
        for round in 0..10 {
            let at = |thread: u32| shared_bytes(thread * 4, 4, 4).cast::<u32>();
            // SAFETY: every thread writes its own word, and reads another thread's word only between barriers.
            unsafe {
                at(me).write(me * 100 + round);
                sync_threads();
                let other = (me * 7 + 13) % 256;
                assert_eq!(at(other).read(), other * 100 + round);
                sync_threads();
            }
        }
    })
    .unwrap();
}

#[test]
fn shared_memory_starts_as_nan_in_every_block() {
    launch(&spec([64, 1, 1], [32, 1, 1]), &|| {
        assert_eq!(shared_size(), 1024);
        // SAFETY: each thread has its own bytes.
        unsafe {
            let mine = shared_bytes(thread_idx()[0] * 32, 16, 16).cast::<f32>();
            assert!((0..4).all(|i| mine.add(i).read().is_nan()));
            mine.write(1.0);
        }
    })
    .unwrap();
}

#[test]
fn named_barriers_join_producers_and_consumers() {
    let order = AtomicU32::new(0);
    launch(&spec([1, 1, 1], [128, 1, 1]), &|| {
        if warp() < 2 {
            barrier_sync(1, 128);
            assert_eq!(order.load(Relaxed), 64);
        } else {
            order.fetch_add(1, Relaxed);
            barrier_arrive(1, 128);
        }
        // A barrier of two of the warps, several times.
        if warp().is_multiple_of(2) {
            for _ in 0..5 {
                barrier_sync(2, 64);
            }
        }
    })
    .unwrap();
}

#[test]
fn a_warp_with_few_threads_counts_as_a_whole_one_at_a_named_barrier() {
    launch(&spec([2, 1, 1], [40, 1, 1]), &|| {
        for _ in 0..3 {
            barrier_sync(1, 64);
        }
        if warp() == 1 {
            barrier_sync(2, 32);
        }
        sync_threads();
    })
    .unwrap();
}

#[test]
fn lanes_of_a_warp_see_each_others_values() {
    launch(&spec([2, 1, 1], [80, 1, 1]), &|| {
        let first = warp() * 32;
        let members = if warp() == 2 { 0xFFFF } else { u32::MAX };
        for round in 0..4 {
            let lanes = warp_exchange("exchange", thread_idx()[0] + round);
            assert_eq!(lanes.members(), members);
            assert_eq!(lanes.lane(), lane());
            for other in 0..32 {
                let expected = (members >> other & 1 == 1).then_some(first + other + round);
                assert_eq!(lanes.get(other), expected);
            }
            assert_eq!(lanes.get(32), None);
        }
        assert_eq!(
            warp_exchange("odd", lane() & 1).non_zero(),
            members & 0xAAAA_AAAA
        );
        sync_warp();
    })
    .unwrap();
}

#[test]
fn blocks_of_a_cluster_run_together_and_reach_each_others_shared_memory() {
    let clustered = LaunchSpec {
        cluster: 4,
        ..spec([8, 2, 1], [64, 1, 1])
    };
    let arrived: Vec<AtomicU32> = (0..4).map(|_| AtomicU32::new(0)).collect();
    launch(&clustered, &|| {
        let rank = cluster_rank();
        assert_eq!(cluster_size(), 4);
        assert_eq!(block_idx()[0] % 4, rank);
        let mine = thread_idx()[0] * 4;
        // SAFETY: every thread writes its own word, and reads another thread's word after all have written.
        unsafe {
            shared_bytes(mine, 4, 4)
                .cast::<u32>()
                .write(rank * 1000 + mine);
            let cluster = (block_idx()[1] * 2 + block_idx()[0] / 4) as usize;
            arrived[cluster].fetch_add(1, Relaxed);
            yield_until(
                WaitKind::Cluster,
                format_args!("waits for its cluster"),
                || arrived[cluster].load(Relaxed) == 4 * 64,
            );
            let next = (rank + 1) % 4;
            let theirs = shared_bytes(map_shared_rank(mine, next), 4, 4).cast::<u32>();
            assert_eq!(theirs.read(), next * 1000 + mine);
        }
    })
    .unwrap();
}

#[test]
fn a_block_can_wait_for_a_block_that_starts_later() {
    // Each block waits for the next one, and there are more blocks than cores: the launch ends only if waiting blocks
    // let others start.
    let flags: Vec<AtomicBool> = (0..65).map(|_| AtomicBool::new(false)).collect();
    flags[64].store(true, Relaxed);
    launch(&spec([64, 1, 1], [32, 1, 1]), &|| {
        let block = block_idx()[0] as usize;
        yield_until(
            WaitKind::Grid,
            format_args!("waits for the next block"),
            || flags[block + 1].load(Relaxed),
        );
        sync_threads();
        flags[block].store(true, Relaxed);
    })
    .unwrap();
    assert!(flags[0].load(Relaxed));
}

#[test]
fn polling_often_is_not_spinning() {
    let (value, polls) = (AtomicU32::new(7), AtomicU32::new(0));
    let poll = || {
        let found = value.load(Relaxed);
        polled(value.as_ptr().addr(), found.into(), || {
            value.load(Relaxed) != found
        });
        found
    };
    launch(&spec([3, 1, 1], [64, 1, 1]), &|| {
        // Polls of a value that may still change.
        for _ in 0..5000 {
            assert_eq!(poll(), 7);
            polls.fetch_add(1, Relaxed);
        }
        // Waits that succeed at once do not count as spinning.
        for _ in 0..200_000 / 64 {
            yield_until(WaitKind::Grid, format_args!("waits for 7"), || poll() == 7);
        }
    })
    .unwrap();
    assert_eq!(polls.into_inner(), 3 * 64 * 5000);
}

#[test]
fn polling_two_flags_in_turn_lets_other_threads_run() {
    let flags = [AtomicU32::new(0), AtomicU32::new(0)];
    launch(&spec([4, 1, 1], [32, 1, 1]), &|| {
        let last = block_idx()[0] == 3 && thread_idx()[0] == 31;
        if last {
            flags[1].store(1, Relaxed);
        }
        let is_set = |flag: &AtomicU32| {
            let found = flag.load(Relaxed);
            polled(flag.as_ptr().addr(), found.into(), || {
                flag.load(Relaxed) != found
            });
            found != 0
        };
        while !flags.iter().any(is_set) {}
    })
    .unwrap();
}

#[test]
fn a_destructor_of_a_thread_that_panics_can_launch() {
    struct Launches<'a>(&'a AtomicU32);
    impl Drop for Launches<'_> {
        fn drop(&mut self) {
            launch(&spec([1, 1, 1], [64, 1, 1]), &|| {
                self.0.fetch_add(1, Relaxed);
                sync_threads();
                assert_eq!(self.0.load(Relaxed), 64);
            })
            .unwrap();
        }
    }
    let arrived = AtomicU32::new(0);
    std::panic::catch_unwind(|| {
        let _launches = Launches(&arrived);
        std::panic::resume_unwind(Box::new("stop"));
    })
    .unwrap_err();
    assert_eq!(arrived.into_inner(), 64);
}

#[test]
fn blocks_run_on_several_cores_at_the_same_time() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let threads = std::sync::Mutex::new(std::collections::HashSet::new());
    launch(&spec([2, 1, 1], [1, 1, 1]), &|| {
        threads.lock().unwrap().insert(std::thread::current().id());
        // Keeps the OS thread busy, so that the other block needs another core. That can take long, because the
        // launches of other tests and other processes use the cores, too.
        let start = std::time::Instant::now();
        while threads.lock().unwrap().len() < 2 && start.elapsed().as_secs() < 300 {
            std::thread::yield_now();
        }
    })
    .unwrap();
    assert_eq!(threads.into_inner().unwrap().len(), 2);
}

#[test]
fn launches_from_several_threads_do_not_disturb_each_other() {
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    launch(&spec([5, 1, 1], [64, 1, 1]), &|| {
                        sync_threads();
                        total.fetch_add(1, Relaxed);
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 4 * 20 * 5 * 64);
}

#[test]
fn large_blocks_and_large_grids_work() {
    let total = AtomicU64::new(0);
    launch(&spec([3, 1, 1], [1024, 1, 1]), &|| {
        for _ in 0..3 {
            sync_threads();
        }
        total.fetch_add(1, Relaxed);
    })
    .unwrap();
    launch(&spec([100_000, 1, 1], [1, 1, 1]), &|| {
        total.fetch_add(1, Relaxed);
    })
    .unwrap();
    assert_eq!(total.into_inner(), 3 * 1024 + 100_000);
}
