//! `cutlet bench moe`: a layer of a mixture of experts in bf16, step by step and as one graph, checked against a plain
//! reference, beside PyTorch's where a Python has it.

mod expected;
mod layer;

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use self::expected::Check;
use self::layer::{Layer, Shape, Step};
use super::error::Result;
use super::pytorch::{Compared, PyTorch};
use crate::backend::{Backend, RanOn, no_figures};
use crate::measure::setting::Setting;
use crate::measure::statistics::Spread;
use crate::measure::timer::Timer;
use crate::output::Output;
use crate::progress::ProgressArgs;
use crate::timed::extent;
use crate::units;

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

/// A layer of a mixture of experts in bf16, step by step, beside PyTorch's.
///
/// On a GPU, 128 experts have 768 inner features, and each token of 2048 features takes eight of them. On the CPU, the
/// layer is a small one.
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
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// The result of the command.
#[derive(Serialize)]
struct Report {
    device: RanOn,
    layers: Vec<LayerReport>,
    pytorch: Option<PyTorch>,
}

/// What was found out about a layer.
#[derive(Serialize)]
struct LayerReport {
    #[serde(flatten)]
    shape: Shape,
    steps: Vec<StepReport>,
    /// Of all steps together.
    microseconds: f64,
    /// Operations of the experts' products over that time.
    tflops: f64,
    check: Check,
}

#[derive(Serialize)]
struct StepReport {
    name: &'static str,
    microseconds: f64,
}

/// Runs the command.
pub fn run(args: &MoeArgs) -> Result<ExitCode> {
    let device = args.backend.device()?;
    let output = &args.output;
    let setting = Setting {
        progress: args.progress.beside(output),
        ..Setting::new(&device, args.seed)?
    };
    let mut timer = Timer::new(&setting)?;
    let shapes = shapes(args, setting.on_gpu());
    output.say(device.describe())?;
    if let Some(warning) = no_figures(&device) {
        output.say(warning)?;
    }
    let mut layers = Vec::new();
    let times_of_a_layer = Step::ALL.len() + 1;
    setting.progress.begin("", shapes.len() * times_of_a_layer);
    for &shape in &shapes {
        layers.push(layer(args, &setting, &mut timer, shape)?);
    }
    let pytorch = setting.on_gpu().then(|| {
        setting.progress.wait("PyTorch");
        PyTorch::of(&for_pytorch(&shapes, args.rounds))
    });
    setting.progress.end();
    if let Some(pytorch) = &pytorch {
        output.say(format!("\n{pytorch}"))?;
    }
    let all_right = layers.iter().all(|layer| layer.check.right);
    output.answer(&Report {
        device: RanOn::new(&device),
        layers,
        pytorch,
    })?;
    if !all_right {
        output.error("a layer's results are wrong: its check says by how much");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Times and checks a layer.
fn layer(
    args: &MoeArgs,
    setting: &Setting,
    timer: &mut Timer,
    shape: Shape,
) -> Result<LayerReport> {
    let progress = &setting.progress;
    let say = |line: String| progress.above(|| args.output.say(line));
    progress.now(&format!("{} tokens", shape.tokens));
    progress.step("inputs");
    let mut layer = Layer::new(shape, setting)?;
    say(format!("\n{shape}"))?;
    let mut steps = Vec::new();
    for step in Step::ALL {
        progress.step(step.name());
        let time = time(timer, setting, args.rounds, &mut layer, &[step])?;
        say(format!("  {:<15} {:>10.1} us", step.name(), time.median))?;
        steps.push(StepReport {
            name: step.name(),
            microseconds: time.median,
        });
        progress.advance(1);
    }
    progress.step("the layer");
    let time = time(timer, setting, args.rounds, &mut layer, &Step::ALL)?;
    let per_second = shape.operations() / time.median * 1e6;
    say(format!(
        "  {:<15} {:>10.1} us, {} in the experts' products",
        "the layer",
        time.median,
        units::speed(per_second, "FLOP/s")
    ))?;
    progress.step("checking");
    let check = expected::check(&mut layer, &setting.stream)?;
    say(format!("  {check}"))?;
    progress.advance(1);
    Ok(LayerReport {
        shape,
        steps,
        microseconds: time.median,
        tflops: per_second / 1e12,
        check,
    })
}

/// The layers as PyTorch is asked to compute them.
fn for_pytorch(shapes: &[Shape], rounds: u32) -> Vec<Compared> {
    let layers = shapes.iter().map(|shape| Compared {
        id: shape.to_string(),
        problem: shape.for_pytorch(rounds),
        ours: None,
    });
    layers.collect()
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
        assert!(check.right, "{check}");

        layer.spoil(&setting.stream).unwrap();
        let check = expected::compare(&layer, &setting.stream).unwrap();
        assert!(!check.right, "{check}");
    }
}
