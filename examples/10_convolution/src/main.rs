//! Checks the convolution, and on a GPU prints its speed.

use std::time::Duration;

use convolution::Convolution;
use convolution::check::{Operands, check};
use cutlet_host::{Backend, Device, Event, Stream};
use half::bf16;

/// Samples of each convolution, of which the median counts.
const ROUNDS: usize = 21;
/// How long a sample takes at least.
const SAMPLE: Duration = Duration::from_millis(10);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Filters of 3×3 taps.
const fn of(input: [u64; 4], filters: u64, stride: u64, tile: [i64; 3]) -> Convolution {
    Convolution {
        input,
        filters: [filters, 3, 3],
        stride,
        dilation: 1,
        padding: 1,
        tile,
    }
}

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;
    for (stride, dilation, padding) in [(1, 1, 0), (1, 2, 2), (2, 1, 1), (2, 2, 2), (3, 1, 2)] {
        let odd = Convolution {
            dilation,
            padding,
            ..of([3, 13, 18, 72], 264, stride, [8, 8, 2])
        };
        println!("A by coordinates (c, w, h, n): {}", odd.windows());
        check(&stream, &odd, usize::MAX)??;
    }
    println!("the outputs are what loops in f64 compute");
    if std::env::args().any(|argument| argument == "--check") {
        return Ok(());
    }
    if device.backend() == Backend::Cpu {
        println!("Timings on the CPU say nothing about a GPU, so there are none.");
        return Ok(());
    }
    println!("\nmedians of {ROUNDS} samples, filters of 3×3 taps, padding 1\n");
    println!("| input (n, h, w, c) | filters | stride | tile (q, p, n) | µs | TFLOP/s |");
    println!("|---|---|---|---|---|---|");
    for of in [
        of([64, 56, 56, 128], 256, 1, [8, 8, 2]),
        of([64, 56, 56, 256], 256, 1, [8, 8, 2]),
        of([64, 56, 56, 256], 512, 2, [4, 4, 8]),
        of([64, 28, 28, 512], 512, 1, [4, 4, 8]),
        of([256, 14, 14, 512], 512, 1, [2, 2, 32]),
    ] {
        check(&stream, &of, 2000)??;
        let seconds = time(&stream, &of)?.as_secs_f64();
        let ([n, h, w, c], [k, r, s], [q, p, images]) = (of.input, of.filters, of.tile);
        let products = of.output().iter().product::<u64>() * r * s * c;
        let (microseconds, teraflops) = (seconds * 1e6, 2e-12 * products as f64 / seconds);
        println!(
            "| {n}×{h}×{w}×{c} | {k} | {} | {q}×{p}×{images} | {microseconds:.1} | {teraflops:.0} |",
            of.stride
        );
    }
    Ok(())
}

/// The median time of a launch.
fn time(stream: &Stream, of: &Convolution) -> Result<Duration> {
    let operands = Operands::random(of);
    let (input, filters) = (
        stream.upload(&operands.input)?,
        stream.upload(&operands.filters)?,
    );
    let count: u64 = of.output().iter().product();
    let mut output = stream.zeroed::<bf16>(count as usize)?;
    let mut sample = |launches: u32| -> Result<Duration> {
        let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
        start.record(stream)?;
        for _ in 0..launches {
            of.run(stream, (&input, &filters, &mut output))?;
        }
        end.record(stream)?;
        Ok(end.elapsed_since(&start)? / launches)
    };
    sample(1)?;
    let launches = (SAMPLE.as_secs_f64() / sample(1)?.as_secs_f64()).ceil() as u32;
    let mut samples = (0..ROUNDS)
        .map(|_| sample(launches))
        .collect::<Result<Vec<_>>>()?;
    samples.sort();
    Ok(samples[ROUNDS / 2])
}
