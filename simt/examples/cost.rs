//! Measures the executor: a launch, a thread, a barrier, a shuffle. Run it with `--release`.

use std::time::Instant;

use cutlet_simt::{LaunchSpec, launch, sync_threads, warp_exchange};

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
}
