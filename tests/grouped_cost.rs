//! The time of grouped products beside one plain product of as many rows, printed with `--nocapture`. Needs a GPU; build it
//! with `--release`.

use std::time::Duration;

use cutlet::{Buffer, Device, Event, Gemm, Matrix, MatrixBatch, MatrixMut, Order, Result, Stream};
use cutlet_not_run::not_run;
use half::bf16;

/// Launches between two events.
const LAUNCHES: usize = 5;
const ROUNDS: usize = 9;

/// Groups of about `rows` rows each.
struct Case {
    groups: usize,
    rows: usize,
    n: usize,
    k: usize,
    /// How far a group's rows are from the mean at most.
    spread: usize,
}

/// The median time of a launch, by events around several.
fn time(stream: &Stream, mut launch: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
        start.record(stream)?;
        (0..LAUNCHES).try_for_each(|_| launch())?;
        end.record(stream)?;
        times.push(end.elapsed_since(&start)? / LAUNCHES as u32);
    }
    times.sort_unstable();
    Ok(times[ROUNDS / 2])
}

/// Elements that are not all alike, so that the GPU does not save power.
fn elements(stream: &Stream, count: usize) -> Result<Buffer<bf16>> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    let block: Vec<bf16> = (0..1 << 16)
        .map(|_| bf16::from_f32(random.f32() - 0.5))
        .collect();
    let mut all = stream.zeroed::<bf16>(count)?;
    for first in (0..count).step_by(block.len()) {
        let end = count.min(first + block.len());
        stream.copy_from_host(&block[..end - first], all.slice_mut(first..end)?)?;
    }
    Ok(all)
}

#[test]
fn groups_cost_little_more_than_one_product() -> Result<()> {
    let device = Device::auto();
    if device.compute_capability() != Some((9, 0)) {
        not_run("there is no Hopper GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    for case in [
        Case {
            groups: 64,
            rows: 128,
            n: 4096,
            k: 7168,
            spread: 64,
        },
        Case {
            groups: 64,
            rows: 128,
            n: 4096,
            k: 7168,
            spread: 0,
        },
        Case {
            groups: 4,
            rows: 8192,
            n: 4096,
            k: 7168,
            spread: 0,
        },
        Case {
            groups: 8,
            rows: 1024,
            n: 7168,
            k: 2048,
            spread: 300,
        },
        Case {
            groups: 128,
            rows: 512,
            n: 1536,
            k: 2048,
            spread: 200,
        },
        Case {
            groups: 128,
            rows: 512,
            n: 2048,
            k: 768,
            spread: 200,
        },
    ] {
        let Case {
            groups,
            rows,
            n,
            k,
            spread,
        } = case;
        let mut random = fastrand::Rng::with_seed(1);
        let mut end = 0;
        let ends: Vec<i32> = (0..groups)
            .map(|_| {
                end += rows - spread + random.usize(0..=2 * spread);
                end as i32
            })
            .collect();
        let m = end;
        let (a, b) = (
            elements(&stream, m * k)?,
            elements(&stream, groups * k * n)?,
        );
        let mut c = stream.zeroed::<bf16>(m * n)?;
        let ends = stream.upload(&ends)?;
        let (gemm, a) = (Gemm::new(), Matrix::row_major(&a, m, k)?);
        let grouped = time(&stream, || {
            let b = MatrixBatch::packed(&b, groups, k, n, Order::ColMajor)?;
            let c = MatrixMut::row_major(&mut c, m, n)?;
            gemm.run_grouped(&stream, 1.0, a, &ends, b, 0.0, c)
        })?;
        let plain = time(&stream, || {
            let c = MatrixMut::row_major(&mut c, m, n)?;
            gemm.run(&stream, 1.0, a, Matrix::col_major(&b, k, n)?, 0.0, c)
        })?;
        let flops = 2.0 * (m * n * k) as f64;
        println!(
            "{groups} groups of {rows} ± {spread} rows, {n}×{k}: {:.1} µs, {:.0} TFLOP/s, weights at {:.2} TB/s; one product \
             {:.1} µs, {:.0} TFLOP/s",
            grouped.as_secs_f64() * 1e6,
            flops / grouped.as_secs_f64() / 1e12,
            2.0 * (groups * n * k) as f64 / grouped.as_secs_f64() / 1e12,
            plain.as_secs_f64() * 1e6,
            flops / plain.as_secs_f64() / 1e12,
        );
    }
    Ok(())
}
