//! The kernel's time beside that of a copy of as many bytes, which is as fast as its memory allows: `cargo bench`.

use std::time::Duration;

use cutlet_host::{Backend, Device, Event, Result, Stream};

use own_kernel::{PTX, blocks, rms_norm};

/// Timed rounds, of which the median counts.
const ROUNDS: usize = 9;
/// Launches in a round.
const RUNS: u32 = 20;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let (rows, columns) = match device.backend() {
        Backend::Gpu => (8192usize, 4096usize),
        Backend::Cpu => (8, 512), // so that it ends: times on the CPU say nothing about a GPU
    };
    let stream = device.stream()?;
    let function = device.load(&PTX, &rms_norm)?;
    let x = stream.upload(&vec![1.5f32; rows * columns])?;
    let weight = stream.upload(&vec![2.0f32; columns])?;
    let mut y = stream.zeroed::<f32>(rows * columns)?;
    let bytes = 2 * rows * columns * size_of::<f32>();

    let copy = time(&stream, || stream.copy(&x, &mut y))?;
    let norm = time(&stream, || {
        let args = (rows as i32, columns as i32, 1e-6f32, &weight, &x, &mut y);
        // SAFETY: the buffers have as many elements as the extents require.
        unsafe { stream.launch(&function, blocks(rows), args) }
    })?;
    for (name, time) in [("copy", copy), ("rms_norm", norm)] {
        let rate = bytes as f64 / time.as_secs_f64() / 1e9;
        println!(
            "{name:<10} {:>10.1} µs {rate:>8.1} GB/s",
            time.as_secs_f64() * 1e6
        );
    }
    println!("{:.2} of a copy", copy.as_secs_f64() / norm.as_secs_f64());
    Ok(())
}

/// The median time of a run, by the device's clock.
fn time(stream: &Stream, mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
    let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
    run()?; // the first run takes longer
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        start.record(stream)?;
        for _ in 0..RUNS {
            run()?;
        }
        end.record(stream)?;
        times.push(end.elapsed_since(&start)? / RUNS);
    }
    times.sort();
    Ok(times[ROUNDS / 2])
}
