//! Checks each step, and on a GPU prints its speed beside that of `cutlet::gemm`.

use std::fmt;
use std::time::Duration;

use cutlet::{Matrix, MatrixMut};
use cutlet_host::{Backend, Buffer, Device, Event, Stream};
use gemm_steps::check::{check, product, random};
use gemm_steps::{Operands, STEPS, Step};
use half::bf16;

/// Samples of each kernel, of which the median counts.
const ROUNDS: usize = 11;
/// How long a sample takes at least. Slow kernels are launched once.
const SAMPLE: Duration = Duration::from_millis(20);

/// What the steps are compared with.
const LIBRARY: &str = "cutlet::gemm";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;
    let steps: Vec<&Step> = STEPS.iter().filter(|step| runs(step, &device)).collect();
    for step in &steps {
        check_at_odd_size(&stream, step)?;
    }
    println!("{} steps compute what a loop in f64 does", steps.len());
    if device.backend() == Backend::Cpu {
        println!("Timings on the CPU say nothing about a GPU, so there are none.");
        return Ok(());
    }
    let names = (steps.iter().map(|step| step.name)).chain([LIBRARY]);
    let (at_4096, at_8192) = (
        compare(&stream, &steps, 4096)?,
        compare(&stream, &steps, 8192)?,
    );
    println!("\nmedians of {ROUNDS} samples\n");
    println!("| kernel | 4096³, TFLOP/s | of `{LIBRARY}` | 8192³, TFLOP/s | of `{LIBRARY}` |");
    println!("|---|---|---|---|---|");
    for ((name, at_4096), at_8192) in names.zip(at_4096).zip(at_8192) {
        println!("| {name} | {at_4096} | {at_8192} |");
    }
    Ok(())
}

/// Whether the device runs the step. The CPU backend runs all.
fn runs(step: &Step, device: &Device) -> bool {
    let capability = device.compute_capability();
    !step.needs_hopper || capability.is_none_or(|capability| capability == (9, 0))
}

/// Checks a step at a size that no tile divides, against f64.
fn check_at_odd_size(stream: &Stream, step: &Step) -> Result<()> {
    let [m, n, k] = [150, 296, 200];
    let (a, b) = (random(1, m * k), random(2, n * k));
    let (on_a, on_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut on_c = stream.filled::<bf16>(m * n, 0xFF)?;
    step.gemm(stream, Operands::new([m, n, k], &on_a, &on_b, &mut on_c)?)?;
    let c = stream.download(&on_c)?;
    let result = check([n, k], &c, product([m, n, k], &a, &b));
    result.map_err(|error| format!("step {}, {m}×{n}×{k}: {error}", step.name).into())
}

/// A kernel to compare: a step, or the library's.
enum Candidate<'a> {
    Step(&'a Step),
    Library,
}

impl Candidate<'_> {
    fn name(&self) -> &'static str {
        match self {
            Candidate::Step(step) => step.name,
            Candidate::Library => LIBRARY,
        }
    }
}

/// The operands of a product of equal extents.
struct Problem {
    extent: usize,
    a: Buffer<bf16>,
    b: Buffer<bf16>,
    c: Buffer<bf16>,
}

impl Problem {
    fn new(stream: &Stream, extent: usize) -> Result<Self> {
        let count = extent * extent;
        Ok(Self {
            extent,
            a: stream.upload(&random(1, count))?,
            b: stream.upload(&random(2, count))?,
            c: stream.zeroed(count)?,
        })
    }

    fn launch(&mut self, stream: &Stream, candidate: &Candidate<'_>) -> Result<()> {
        let Self { extent, a, b, c } = self;
        let (a, b) = (&*a, &*b);
        let extent = *extent;
        match candidate {
            Candidate::Step(step) => step.gemm(stream, Operands::new([extent; 3], a, b, c)?)?,
            Candidate::Library => cutlet::gemm(
                stream,
                1.0,
                Matrix::row_major(a, extent, extent)?,
                Matrix::col_major(b, extent, extent)?,
                0.0,
                MatrixMut::row_major(c, extent, extent)?,
            )?,
        }
        Ok(())
    }

    /// The time of a launch, as the mean of `launches`, after one that is not counted.
    fn time(
        &mut self,
        stream: &Stream,
        candidate: &Candidate<'_>,
        launches: u32,
    ) -> Result<Duration> {
        let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
        self.launch(stream, candidate)?;
        start.record(stream)?;
        for _ in 0..launches {
            self.launch(stream, candidate)?;
        }
        end.record(stream)?;
        Ok(end.elapsed_since(&start)? / launches)
    }
}

/// A kernel's speed.
struct Speed {
    teraflops: f64,
    /// The library's time over the kernel's.
    of_library: f64,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} | {:.3}", self.teraflops, self.of_library)
    }
}

/// Checks the steps against the library, then times all of them in turns. Returns their speeds, and the library's.
fn compare(stream: &Stream, steps: &[&Step], extent: usize) -> Result<Vec<Speed>> {
    let mut problem = Problem::new(stream, extent)?;
    let mut candidates: Vec<_> = steps.iter().map(|step| Candidate::Step(step)).collect();
    candidates.push(Candidate::Library);

    problem.launch(stream, &Candidate::Library)?;
    let expected = stream.download(&problem.c)?;
    let mut launches = Vec::new();
    for candidate in &candidates {
        stream.fill_bytes(&mut problem.c, 0xFF)?;
        let once = problem.time(stream, candidate, 1)?;
        launches.push((SAMPLE.as_secs_f64() / once.as_secs_f64()).ceil() as u32);
        let c = stream.download(&problem.c)?;
        let result = check([extent; 2], &c, expected.iter().map(|it| it.to_f64()));
        result.map_err(|error| format!("step {}, {extent}³: {error}", candidate.name()))?;
    }

    let mut samples = vec![Vec::new(); candidates.len()];
    for _ in 0..ROUNDS {
        for (nth, candidate) in candidates.iter().enumerate() {
            samples[nth].push(problem.time(stream, candidate, launches[nth])?);
        }
    }
    let medians: Vec<f64> = samples.into_iter().map(median).collect();
    let speed = |&seconds: &f64| Speed {
        teraflops: 2.0 * (extent as f64).powi(3) / seconds * 1e-12,
        of_library: medians[steps.len()] / seconds,
    };
    Ok(medians.iter().map(speed).collect())
}

/// The median, in seconds.
fn median(mut samples: Vec<Duration>) -> f64 {
    samples.sort();
    samples[samples.len() / 2].as_secs_f64()
}
