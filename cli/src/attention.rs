//! `cutlet attention`: one call of attention on random heads, timed and checked.

use std::fmt;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use cutlet::AttentionKernels;
use serde::Serialize;

use crate::backend::RanOn;
use crate::bench::attention::heads::{Call, Check, Heads, PRODUCTS, Shape};
use crate::measure::setting::Setting;
use crate::timed::{TimedArgs, extent};
use crate::units;

/// Attend with random queries to random keys and values in bf16, and time it: softmax(Q·Kᵀ/√features)·V.
#[derive(Args, Clone, Debug)]
pub struct AttentionArgs {
    /// Sequences.
    #[arg(long, value_parser = extent, default_value_t = 1)]
    sequences: usize,
    /// Tokens of a sequence: 4096 on a GPU and 200 on the CPU unless given.
    #[arg(long, value_parser = extent)]
    tokens: Option<usize>,
    /// Heads of queries: 16 on a GPU and 2 on the CPU unless given.
    #[arg(long, value_parser = extent)]
    heads: Option<usize>,
    /// Heads of queries for each head of keys and values. It divides the heads.
    #[arg(long, value_parser = extent, default_value_t = 1)]
    group: usize,
    /// Features of a head: up to 256, a multiple of 8.
    #[arg(long, value_parser = extent, default_value_t = 128)]
    features: usize,
    /// A query sees its own key and those before.
    #[arg(long)]
    causal: bool,
    /// The kernels, instead of those for the device.
    #[arg(long, value_enum)]
    kernels: Option<Kernels>,
    /// Compare the outputs of some queries with loops in f64.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    pub timed: TimedArgs,
}

/// Kernels of attention.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kernels {
    /// By mma.sync, for GPUs since Ampere.
    Sm80,
    /// By wgmma, for Hopper.
    Sm90,
}

impl From<Kernels> for AttentionKernels {
    fn from(kernels: Kernels) -> Self {
        match kernels {
            Kernels::Sm80 => AttentionKernels::Sm80,
            Kernels::Sm90 => AttentionKernels::Sm90,
        }
    }
}

/// The report of a run.
#[derive(Serialize)]
struct Report {
    device: RanOn,
    #[serde(flatten)]
    shape: Shape,
    microseconds: f64,
    /// Operations of the visible products over that time.
    tflops: f64,
    check: Option<Check>,
}

/// Runs the command.
pub fn run(args: &AttentionArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let output = &args.timed.output;
    let progress = &args.timed.progress();
    let setting = Setting::new(args.timed.stream()?.device(), args.timed.seed)?;
    let heads = args.heads.unwrap_or(if setting.on_gpu() { 16 } else { 2 });
    if !heads.is_multiple_of(args.group) {
        let group = args.group;
        return Err(format!("{heads} heads are no groups of {group}; give a divisor").into());
    }
    let shape = Shape {
        sequences: args.sequences,
        tokens: args
            .tokens
            .unwrap_or(if setting.on_gpu() { 4096 } else { 200 }),
        heads,
        heads_of_keys: heads / args.group,
        features: args.features,
        causal: args.causal,
    };
    progress.wait("random heads");
    let mut heads = Heads::new(shape, &setting)?.by(args.kernels.map(AttentionKernels::from));
    let again = || heads.enqueue(&setting.stream);
    let time = args
        .timed
        .median(&setting.stream, progress, "attention", again)?;
    progress.wait("comparison");
    let check = args.check.then(|| heads.check(&setting.stream));
    progress.end();
    let report = Report {
        device: RanOn::new(setting.stream.device()),
        shape,
        microseconds: time.as_secs_f64() * 1e6,
        tflops: shape.operations_of(PRODUCTS) / time.as_secs_f64() / 1e12,
        check: check.transpose()?,
    };
    output.result(&report)?;
    match report.check {
        Some(check) if !check.right => {
            output.error("the output is wrong: the check says by how much");
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "device   {}", self.device)?;
        writeln!(f, "problem  {}", self.shape)?;
        let speed = units::speed(self.tflops * 1e12, "FLOP/s");
        write!(f, "time     {}, {speed}", units::time(self.microseconds))?;
        match &self.check {
            Some(check) => write!(f, "\ncheck    {check}"),
            None => Ok(()),
        }
    }
}
