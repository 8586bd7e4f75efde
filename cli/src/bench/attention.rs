//! `cutlet bench attention`: attention in bf16, or its gradients, checked against loops, beside PyTorch's where a Python
//! has it; and steps of decoding, beside a copy.

mod backward;
mod decode;
pub mod heads;

use std::process::ExitCode;

use clap::Args;
use cutlet::Device;
use serde::Serialize;

use self::backward::Gradients;
use self::heads::{Call, Check, Heads, PRODUCTS, PRODUCTS_OF_GRADIENTS, Shape};
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

/// Features of all heads of a token.
const WIDTH: usize = 2048;
/// Tokens of all sequences on a GPU, or those of one sequence if it has more.
const TOKENS: usize = 16_384;

/// Attention in bf16, full and causal, beside PyTorch's by cuDNN and by FlashAttention.
///
/// On a GPU, heads have 2048 features together, and sequences 16,384 tokens. On the CPU, there is one head.
#[derive(Args, Debug)]
pub struct AttentionArgs {
    /// Tokens of a sequence, separated by commas. By default, 1024, 4096 and 16384 on a GPU, 200 on the CPU.
    #[arg(long, value_delimiter = ',', value_parser = extent)]
    tokens: Vec<usize>,
    /// Features of a head, separated by commas, of up to 256 each. By default, 64, 128 and 256. With `--backward`, up to
    /// 128 each, and by default, 64 and 128.
    #[arg(long, value_delimiter = ',', value_parser = extent)]
    features: Vec<usize>,
    /// Heads of queries for each head of keys and values.
    #[arg(long, value_parser = extent, default_value_t = 1)]
    group: usize,
    /// The gradients of queries, keys and values instead, on the CPU and on Hopper.
    #[arg(long)]
    backward: bool,
    /// Steps of decoding instead, with contiguous caches and in pages of 16 and of 64 keys, each against a copy of as
    /// many bytes: 16 sequences of 8192 keys, 64 of 4096 and one of 8192, of 32 heads and 8 of keys, of 128 features
    /// unless `--features` says others.
    #[arg(long, conflicts_with_all = ["tokens", "group", "backward"])]
    decode: bool,
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
    rows: Vec<RowReport>,
    pytorch: Option<PyTorch>,
}

/// What was found out about a shape.
#[derive(Serialize)]
struct RowReport {
    #[serde(flatten)]
    shape: Shape,
    microseconds: f64,
    /// Operations of the visible products over that time.
    tflops: f64,
    check: Check,
}

/// Runs the command.
pub fn run(args: &AttentionArgs) -> Result<ExitCode> {
    let device = args.backend.device()?;
    let output = &args.output;
    let setting = Setting {
        progress: args.progress.beside(output),
        ..Setting::new(&device, args.seed)?
    };
    output.say(device.describe())?;
    if let Some(warning) = no_figures(&device) {
        output.say(warning)?;
    }
    if args.decode {
        return steps(args, &device, &setting);
    }
    let mut timer = Timer::new(&setting)?;
    let shapes = shapes(args, setting.on_gpu());
    setting.progress.begin("", shapes.len());
    let mut rows = Vec::new();
    for &shape in &shapes {
        rows.push(row(args, &setting, &mut timer, shape)?);
    }
    let pytorch = setting.on_gpu().then(|| {
        setting.progress.wait("PyTorch");
        PyTorch::of(&for_pytorch(args, &rows))
    });
    setting.progress.end();
    if let Some(pytorch) = &pytorch {
        output.say(format!("\n{pytorch}"))?;
    }
    let all_right = rows.iter().all(|row| row.check.right);
    output.answer(&Report {
        device: RanOn::new(&device),
        rows,
        pytorch,
    })?;
    Ok(verdict(output, all_right))
}

/// The exit code. Says that an output is wrong, if one is.
fn verdict(output: &Output, all_right: bool) -> ExitCode {
    match all_right {
        true => ExitCode::SUCCESS,
        false => {
            output.error("an output is wrong: its check says by how much");
            ExitCode::FAILURE
        }
    }
}

/// The result of the command for steps of decoding.
#[derive(Serialize)]
struct StepsReport {
    device: RanOn,
    steps: Vec<decode::RowReport>,
}

/// Times and checks steps of decoding.
fn steps(args: &AttentionArgs, device: &Device, setting: &Setting) -> Result<ExitCode> {
    let (output, progress) = (&args.output, &setting.progress);
    let (all, heads, heads_of_keys, by_default): (&[_], _, _, &[_]) = match setting.on_gpu() {
        true => (&[(16, 8192), (64, 4096), (1, 8192)], 32, 8, &[128]),
        false => (&[(2, 192)], 4, 2, &[64]),
    };
    let features = match args.features.as_slice() {
        [] => by_default,
        features => features,
    };
    let shapes = features.iter().flat_map(|&features| {
        all.iter().map(move |&(sequences, keys)| decode::Shape {
            sequences,
            keys,
            heads,
            heads_of_keys,
            features,
        })
    });
    progress.begin("", features.len() * all.len());
    let mut steps = Vec::new();
    for shape in shapes {
        progress.now(&shape.to_string());
        for row in decode::rows(shape, args.rounds, setting)? {
            progress.above(|| output.say(&row))?;
            steps.push(row);
        }
        progress.advance(1);
    }
    progress.end();
    let all_right = steps.iter().all(|row| row.check.right);
    output.answer(&StepsReport {
        device: RanOn::new(device),
        steps,
    })?;
    Ok(verdict(output, all_right))
}

/// Times and checks a shape.
fn row(
    args: &AttentionArgs,
    setting: &Setting,
    timer: &mut Timer,
    shape: Shape,
) -> Result<RowReport> {
    let progress = &setting.progress;
    progress.now(&shape.to_string());
    progress.step("inputs");
    let mut call: Box<dyn Call> = match args.backward {
        true => Box::new(Gradients::new(shape, setting)?),
        false => Box::new(Heads::new(shape, setting)?),
    };
    progress.step("timing");
    let time = time(timer, setting, args.rounds, call.as_mut())?;
    let products = match args.backward {
        true => PRODUCTS_OF_GRADIENTS,
        false => PRODUCTS,
    };
    let operations = shape.operations_of(products);
    let per_second = operations / time.median * 1e6;
    progress.step("checking");
    let check = call.check(&setting.stream)?;
    let line = format!(
        "{:>10.1} us  {}  {shape}: {check}",
        time.median,
        units::speed(per_second, "FLOP/s")
    );
    progress.above(|| args.output.say(line))?;
    progress.advance(1);
    Ok(RowReport {
        shape,
        microseconds: time.median,
        tflops: per_second / 1e12,
        check,
    })
}

/// The shapes as PyTorch is asked to compute them.
fn for_pytorch(args: &AttentionArgs, rows: &[RowReport]) -> Vec<Compared> {
    let operation = match args.backward {
        true => "attention_backward",
        false => "attention",
    };
    let compared = rows.iter().map(|row| Compared {
        id: row.shape.to_string(),
        problem: row.shape.for_pytorch(operation, args.rounds),
        ours: Some(row.microseconds),
    });
    compared.collect()
}

/// The shapes that are measured.
fn shapes(args: &AttentionArgs, on_gpu: bool) -> Vec<Shape> {
    let by_default: &[usize] = if on_gpu {
        &[1024, 4096, 16_384]
    } else {
        &[200]
    };
    let tokens = match args.tokens.as_slice() {
        [] => by_default,
        tokens => tokens,
    };
    let features: &[usize] = match (args.features.as_slice(), args.backward) {
        ([], true) => &[64, 128],
        ([], false) => &[64, 128, 256],
        (features, _) => features,
    };
    let of_features = |&features: &usize| {
        let heads = if on_gpu { (WIDTH / features).max(1) } else { 1 };
        let heads = heads.next_multiple_of(args.group);
        let of_tokens = move |&tokens: &usize| {
            let sequences = if on_gpu { (TOKENS / tokens).max(1) } else { 1 };
            [false, true].map(|causal| Shape {
                sequences,
                tokens,
                heads,
                heads_of_keys: heads / args.group,
                features,
                causal,
            })
        };
        tokens.iter().flat_map(of_tokens)
    };
    features.iter().flat_map(of_features).collect()
}

/// Runs of a graph, so that its launch does not decide.
const GRAPH_RUNS: usize = 8;

/// Microseconds of a call, in a graph on a GPU.
fn time(timer: &mut Timer, setting: &Setting, rounds: u32, call: &mut dyn Call) -> Result<Spread> {
    let rounds = rounds as usize;
    if !setting.on_gpu() {
        return Ok(timer.time(rounds, |stream| call.enqueue(stream))?);
    }
    // The kernel is loaded before the capture.
    call.enqueue(&setting.stream)?;
    let graph = setting
        .stream
        .device()
        .capture(|stream| (0..GRAPH_RUNS).try_for_each(|_| call.enqueue(stream)))?;
    // SAFETY: the tensors live until the last launch was waited for.
    let times = timer.time(rounds, |stream| Ok(unsafe { graph.launch(stream) }?))?;
    Ok(times.over(GRAPH_RUNS as f64))
}
