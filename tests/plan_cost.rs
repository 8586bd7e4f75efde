//! The host's time for a GEMM, with and without a plan, printed with `--nocapture`. Needs a GPU; build it with
//! `--release`.

use std::time::{Duration, Instant};

use cutlet::{Device, Gemm, Matrix, MatrixMut, Result, Stream, gemm};
use cutlet_not_run::not_run;
use half::bf16;

/// Calls between two waits: few enough that the driver's queue of launches is never full.
const CALLS: u32 = 50;
const BATCHES: usize = 51;

/// The median host times of calls of two kinds, whose batches take turns: what slows the host down slows both.
fn costs(stream: &Stream, mut call: impl FnMut(Kind) -> Result<()>) -> Result<[Duration; 2]> {
    let mut batch = |kind| {
        let start = Instant::now();
        (0..CALLS).try_for_each(|_| call(kind))?;
        let time = start.elapsed() / CALLS;
        stream.synchronize()?;
        Ok::<_, cutlet::Error>(time)
    };
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..BATCHES {
        times[0].push(batch(Kind::Planned)?);
        times[1].push(batch(Kind::Unplanned)?);
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[BATCHES / 2]
    }))
}

#[derive(Clone, Copy)]
enum Kind {
    Planned,
    Unplanned,
}

#[test]
fn a_planned_gemm_costs_the_host_less() -> Result<()> {
    let device = Device::auto();
    if device.compute_capability() != Some((9, 0)) {
        not_run("there is no Hopper GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    for [m, n, k] in [
        [64, 64, 64],
        [1, 4096, 4096],
        [512, 512, 512],
        [128, 128, 8192],
        [300, 300, 300],
    ] {
        let (a, b) = (stream.zeroed::<bf16>(m * k)?, stream.zeroed::<bf16>(k * n)?);
        let mut c = stream.zeroed::<bf16>(m * n)?;
        let (a, b) = (Matrix::row_major(&a, m, k)?, Matrix::col_major(&b, k, n)?);
        let plan = Gemm::new(a, b, MatrixMut::row_major(&mut c, m, n)?).plan(&stream)?;
        let [planned, unplanned] = costs(&stream, |kind| {
            let c = MatrixMut::row_major(&mut c, m, n)?;
            match kind {
                Kind::Planned => plan.run(&stream, &mut Gemm::new(a, b, c)),
                Kind::Unplanned => gemm(&stream, 1.0, a, b, 0.0, c),
            }
        })?;
        println!(
            "{m}×{n}×{k}: {} ns planned, {} ns else",
            planned.as_nanos(),
            unplanned.as_nanos()
        );
        assert!(planned < unplanned + Duration::from_micros(2));
    }
    Ok(())
}
