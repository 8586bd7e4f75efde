//! `cutlet bench moe`: a layer of a mixture of experts in bf16, step by step and as one graph, checked against a plain
//! reference, beside PyTorch's where a Python has it.

mod expected;
mod layer;

use std::process::ExitCode;

use clap::Args;
use cutlet_host::Backend as Kind;

use self::layer::{Layer, Shape, Step};
use super::error::Result;
use super::pytorch;
use crate::backend::Backend;
use crate::measure::setting::Setting;
use crate::measure::statistics::Spread;
use crate::measure::timer::Timer;
use crate::output::{complain, print_line};
use crate::timed::extent;

/// A layer of a GPU: 128 experts, of which each token takes eight.
const ON_GPU: Shape = Shape {
    tokens: 8192,
    width: 2048,
    experts: 128,
    top_k: 8,
    inner: 768,
};
/// A layer that the CPU backend computes in seconds.
const ON_CPU: Shape = Shape {
    tokens: 96,
    width: 64,
    experts: 8,
    top_k: 2,
    inner: 48,
};

/// Measure a layer of a mixture of experts in bf16: 128 experts of 768 inner features, of which each token of 2048
/// features takes eight. On the CPU, a small one.
#[derive(Args, Debug)]
pub struct MoeArgs {
    /// Numbers of tokens, separated by commas. By default, 1024, 8192 and 16384 on a GPU, 96 on the CPU.
    #[arg(long, value_delimiter = ',', value_parser = extent)]
    tokens: Vec<usize>,
    /// Rounds of each time.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
    /// The device.
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Seed of the random inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub fn run(args: &MoeArgs) -> Result<ExitCode> {
    let device = args.backend.device()?;
    let on_gpu = device.backend() == Kind::Gpu;
    let setting = Setting::new(&device, args.seed)?;
    let mut timer = Timer::new(&setting)?;
    let shapes = shapes(args, on_gpu);
    print_line(device.describe())?;
    let mut all_right = true;
    for &shape in &shapes {
        let mut layer = Layer::new(shape, &setting)?;
        print_line(format!("\n{shape}"))?;
        for step in Step::ALL {
            let time = time(&mut timer, &setting, args.rounds, &mut layer, &[step])?;
            print_line(format!("  {:<15} {:>10.1} us", step.name(), time.median))?;
        }
        let time = time(&mut timer, &setting, args.rounds, &mut layer, &Step::ALL)?;
        let speed = shape.operations() / time.median / 1e6;
        print_line(format!(
            "  {:<15} {:>10.1} us, {speed:.1} TFLOP/s in the experts' products",
            "the layer", time.median
        ))?;
        let check = expected::check(&mut layer, &setting.stream)?;
        print_line(format!("  {check}"))?;
        all_right &= check.is_right();
    }
    if on_gpu {
        print_line("")?;
        let problems = shapes.iter().map(|shape| shape.for_pytorch(args.rounds));
        for line in pytorch::lines(&problems.collect::<Vec<_>>()) {
            print_line(line)?;
        }
    }
    if !all_right {
        complain("error: a layer's results are wrong; the lines say which");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The layers that are measured.
fn shapes(args: &MoeArgs, on_gpu: bool) -> Vec<Shape> {
    let (shape, by_default): (_, &[usize]) = match on_gpu {
        true => (ON_GPU, &[1024, 8192, 16384]),
        false => (ON_CPU, &[96]),
    };
    let tokens = match args.tokens.as_slice() {
        [] => by_default,
        tokens => tokens,
    };
    let of_tokens = |&tokens| Shape { tokens, ..shape };
    tokens.iter().map(of_tokens).collect()
}

/// Runs of a graph, so that its launch does not decide.
const GRAPH_RUNS: usize = 8;

/// Microseconds of some steps in a graph, or one by one on the CPU.
fn time(
    timer: &mut Timer,
    setting: &Setting,
    rounds: u32,
    layer: &mut Layer,
    steps: &[Step],
) -> Result<Spread> {
    let rounds = rounds as usize;
    if !setting.on_gpu() {
        return Ok(timer.time(rounds, |stream| layer.enqueue(stream, steps))?);
    }
    // The kernels are loaded before the capture, and the device does not report errors in it.
    layer.enqueue(&setting.stream, steps)?;
    let graph = setting
        .stream
        .device()
        .capture(|stream| (0..GRAPH_RUNS).try_for_each(|_| layer.enqueue(stream, steps)))?;
    // SAFETY: the layer owns all memory, and lives until the last launch was waited for.
    let times = timer.time(rounds, |stream| Ok(unsafe { graph.launch(stream) }?))?;
    Ok(times.over(GRAPH_RUNS as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutlet::Device;

    #[test]
    fn a_layer_is_right_and_a_wrong_result_is_found() {
        let setting = Setting::new(&Device::cpu(), 3).unwrap();
        let mut layer = Layer::new(ON_CPU, &setting).unwrap();
        layer.enqueue(&setting.stream, &Step::ALL).unwrap();
        let check = expected::check(&mut layer, &setting.stream).unwrap();
        assert!(check.is_right(), "{check}");

        layer.spoil(&setting.stream).unwrap();
        let check = expected::compare(&layer, &setting.stream).unwrap();
        assert!(!check.is_right(), "{check}");
    }
}
