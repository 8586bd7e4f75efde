//! Measures the executor: a launch, a thread, a barrier, a shuffle, and the instructions of a main loop. Run it with
//! `--release`.

use std::hint::black_box;
use std::time::Instant;

use cutlet_simt::{
    LaunchSpec, MemoryAccess, MmaOperand, MmaShape, MmaSums, access_shared, cp_async,
    cp_async_commit, cp_async_wait, global_bytes, launch, ldmatrix, linear_thread_idx, mma_sync,
    store_global, store_shared, sync_threads, warp_exchange,
};

/// Seconds of the fastest of `runs` runs, after one to warm up.
fn fastest(runs: u32, mut work: impl FnMut()) -> f64 {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    work();
    (0..runs)
        .map(|_| time(&mut work))
        .fold(f64::INFINITY, f64::min)
}

fn run(blocks: u32, threads: u32, body: &(dyn Fn() + Sync)) {
    let spec = LaunchSpec {
        kernel: "cost",
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: 1,
        shared_bytes: 32 * 1024,
        overlap_previous: false,
    };
    launch(&spec, body).expect("the kernel runs");
}

fn main() {
    const STEPS: u32 = 100;
    let empty_1 = fastest(1000, || run(1, 256, &|| {}));
    println!(
        "launch of 1 block of 256 empty threads:      {:8.1} us",
        empty_1 * 1e6
    );
    let empty = fastest(100, || run(1000, 256, &|| {}));
    println!(
        "launch of 1000 such blocks, per thread:      {:8.1} ns",
        empty / 256e3 * 1e9
    );
    for threads in [32, 256, 1024] {
        let barriers = fastest(100, || {
            run(1, threads, &|| {
                for _ in 0..STEPS {
                    sync_threads();
                }
            });
        });
        let switches = f64::from(threads * STEPS);
        println!(
            "a barrier of {threads:4} threads, per thread:        {:8.1} ns",
            barriers / switches * 1e9
        );
    }
    let shuffles = fastest(100, || {
        run(1, 256, &|| {
            for _ in 0..STEPS {
                warp_exchange("cost", 1);
            }
        });
    });
    println!(
        "a shuffle, per thread:                       {:8.1} ns",
        shuffles / f64::from(256 * STEPS) * 1e9
    );
    memory();
    main_loop();
}

/// Measures a store with a load after it, in shared and in global memory.
fn memory() {
    const STEPS: u32 = 100;
    const THREADS: u32 = 256;
    let per_step = |seconds: f64| seconds / f64::from(THREADS * STEPS) * 1e9;
    let shared = fastest(100, || {
        run(1, THREADS, &|| {
            for step in 0..STEPS {
                let at = linear_thread_idx() * 16;
                store_shared(at, 16, &[step as u8; 16]);
                black_box(access_shared(at, 16, 16, MemoryAccess::Load));
            }
        });
    });
    println!(
        "16 bytes to shared memory and back:          {:8.1} ns",
        per_step(shared)
    );
    let buffer = vec![0u128; THREADS as usize];
    let to = buffer.as_ptr().expose_provenance();
    let global = fastest(100, || {
        run(1, THREADS, &|| {
            let to = to + linear_thread_idx() as usize * 16;
            let at = std::ptr::with_exposed_provenance_mut::<u8>(to);
            for step in 0..STEPS {
                // SAFETY: the buffer has an element for each thread.
                unsafe { store_global(at, 4, &[step as u8; 16]) };
                black_box(global_bytes(at, 16, 16, MemoryAccess::Load));
            }
        });
    });
    println!(
        "16 bytes to global memory and back:          {:8.1} ns",
        per_step(global)
    );
}

/// Measures a main loop that copies tiles to three stages, with and without its copies.
fn main_loop() {
    const TILES: u32 = 64;
    const COPIES: u32 = 8;
    let source = [1u128; COPIES as usize];
    for threads in [128, 256] {
        let time = |copies: u32| {
            fastest(20, || {
                run(1, threads, &|| {
                    let source: *const u128 = source.as_ptr();
                    let load = |tile: u32| {
                        for copy in 0..copies {
                            let stage = (tile % 3 * COPIES + copy) * threads;
                            let to = (stage + linear_thread_idx()) * 4;
                            // SAFETY: the source has an element for each copy.
                            unsafe { cp_async(to, source.add(copy as usize).cast(), 4, 4) };
                        }
                        cp_async_commit();
                    };
                    load(0);
                    load(1);
                    for tile in 0..TILES {
                        cp_async_wait(1);
                        sync_threads();
                        load(tile + 2);
                    }
                    cp_async_wait(0);
                });
            })
        };
        println!(
            "a cp.async of {threads} threads, waited for:       {:8.1} ns",
            (time(COPIES) - time(0)) / f64::from(threads * TILES * COPIES) * 1e9
        );
    }
    const STEPS: u32 = 100;
    let shape = MmaShape {
        m: 16,
        k: 16,
        operand: MmaOperand {
            element_bytes: 2,
            number: |bits| f32::from_bits((bits as u32) << 16).into(),
        },
        sums: MmaSums::F32,
    };
    let products = fastest(20, || {
        run(1, 256, &|| {
            let mut sums = [0; 4];
            for _ in 0..STEPS {
                mma_sync(&shape, &[1; 4], &[1; 2], &mut sums);
            }
        });
    });
    println!(
        "an mma.sync of m16n8k16, per thread:         {:8.1} ns",
        products / f64::from(256 * STEPS) * 1e9
    );
    let loads = fastest(20, || {
        run(1, 256, &|| {
            store_shared(linear_thread_idx() * 16, 16, &[0; 16]);
            for _ in 0..STEPS {
                ldmatrix(linear_thread_idx() * 16, &mut [0; 4], false);
            }
        });
    });
    println!(
        "an ldmatrix of 4 matrices, per thread:       {:8.1} ns",
        loads / f64::from(256 * STEPS) * 1e9
    );
}
