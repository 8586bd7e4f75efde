//! Measures the kernels on a GPU.

use std::error::Error;

use cutlet_host::{Device, Event, Stream};
use half::bf16;
use tiled_kernels::PTX;
use tiled_kernels::attention::attention_bf16;
use tiled_kernels::gemm::gemm_bf16;
use tiled_kernels::rms_norm::rms_norm_by_vector;

/// Launches between two events.
const LAUNCHES: u32 = 20;

/// The least time of a launch, in seconds.
fn time(
    stream: &Stream,
    mut launch: impl FnMut() -> cutlet_host::Result<()>,
) -> cutlet_host::Result<f64> {
    let [start, end] = [Event::new(stream.device())?, Event::new(stream.device())?];
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        start.record(stream)?;
        (0..LAUNCHES).try_for_each(|_| launch())?;
        end.record(stream)?;
        let seconds = end.elapsed_since(&start)?.as_secs_f64();
        best = best.min(seconds / f64::from(LAUNCHES));
    }
    Ok(best)
}

/// Numbers between −1 and 1.
fn numbers(stream: &Stream, count: usize) -> cutlet_host::Result<cutlet_host::Buffer<bf16>> {
    let number = |i: usize| {
        bf16::from_f32((i.wrapping_mul(2654435761) >> 8 & 0xffff) as f32 / 32768.0 - 1.0)
    };
    stream.upload(&(0..count).map(number).collect::<Vec<_>>())
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::auto();
    println!("{}", device.describe());
    if device.compute_capability().is_none() {
        println!(
            "Without a GPU there is nothing to measure: `cargo test` runs the kernels on the CPU."
        );
        return Ok(());
    }
    let stream = device.stream()?;

    let kernel = device.load(&PTX, &rms_norm_by_vector)?;
    let (rows, columns) = (16384, 8192);
    let (x, weight) = (
        numbers(&stream, rows * columns)?,
        numbers(&stream, columns)?,
    );
    let mut y = stream.zeroed::<bf16>(rows * columns)?;
    let seconds = time(&stream, || {
        let args = ([rows as i32, columns as i32], 1e-5f32, &x, &weight, &mut y);
        // SAFETY: the buffers have as many elements as the extents say.
        unsafe { stream.launch(&kernel, rows as u32, args) }
    })?;
    let copied = time(&stream, || stream.copy(&x, &mut y))?;
    let rate = |seconds: f64| 4.0 * (rows * columns) as f64 / seconds / 1e9;
    println!(
        "RMSNorm {rows}×{columns}: {:.0} GB/s, a copy {:.0}",
        rate(seconds),
        rate(copied)
    );

    let kernel = device.load(&PTX, &gemm_bf16)?;
    for size in [1024, 4096, 8192] {
        let (a, b) = (
            numbers(&stream, size * size)?,
            numbers(&stream, size * size)?,
        );
        let mut c = stream.zeroed::<f32>(size * size)?;
        let blocks = size as u32 / 64;
        let seconds = time(&stream, || {
            let args = ([size as i32; 3], &a, &b, &mut c);
            // SAFETY: the buffers have as many elements as the extents say.
            unsafe { stream.launch(&kernel, (blocks, blocks), args) }
        })?;
        println!(
            "GEMM {size}³: {:.0} TFLOP/s",
            2.0 * (size as f64).powi(3) / seconds / 1e12
        );
    }

    let kernel = device.load(&PTX, &attention_bf16)?;
    for tokens in [16384, 65536] {
        let [q, k, v] = [(); 3].map(|()| numbers(&stream, 64 * tokens));
        let (q, k, v) = (q?, k?, v?);
        let mut o = stream.zeroed::<bf16>(64 * tokens)?;
        let seconds = time(&stream, || {
            let args = (
                tokens as i32,
                std::f32::consts::LOG2_E / 8.0,
                &q,
                &k,
                &v,
                &mut o,
            );
            // SAFETY: the buffers have 64 elements for each token.
            unsafe { stream.launch(&kernel, tokens as u32 / 64, args) }
        })?;
        let flops = 2.0 * 64.0 * (tokens as f64).powi(2);
        println!(
            "causal attention of {tokens} tokens: {:.0} TFLOP/s",
            flops / seconds / 1e12
        );
    }
    Ok(())
}
