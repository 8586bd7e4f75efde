//! `cutlet bench`: cutlet against the best that NVIDIA's libraries do, checked and timed row by row.

mod canvas;
mod check;
mod compare;
mod dtype;
mod error;
mod family;
mod gather;
mod gemm;
mod machine;
mod nvml;
mod plots;
mod protocol;
mod random;
mod report;
mod results;
mod run;
mod setting;
mod statistics;
mod stopwatch;
mod suite;
mod table;
mod telemetry;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cutlet::Device;
use cutlet_host::Backend as Kind;

use crate::backend::Backend;
pub use check::{Nearest, Number};
use compare::Comparison;
pub use dtype::Dtype;
pub use gemm::Epilogue;
use protocol::{CHOICE, GRAPH_BELOW, Protocol, Sustained};
use results::Results;
use run::{Families, Plan};
pub use statistics::Spread;
use suite::Suite;

/// Measure the kernels against cuBLASLt's best and against copies, and write a report with plots.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// GEMM: C = A·B, against cuBLASLt by the best of its algorithms.
    Gemm(RunArgs),
    /// Gather: rows of a table by an index, against a copy of as many contiguous bytes.
    Gather(RunArgs),
    /// Both.
    All(RunArgs),
    /// Say what got faster or slower between two runs, beyond the noise.
    Compare(CompareArgs),
    /// Write a run's report and plots again, from its results.json.
    Report(ReportArgs),
}

#[derive(Args, Debug)]
struct RunArgs {
    /// A suite by name (headline, square, llm, deepgemm, ragged, rows, middle, unseen, random, majors, skinny-k,
    /// long-k, epilogue, gather, tiny) or file; may be given several times. By default, headline and gather on
    /// a GPU, tiny on the CPU.
    #[arg(long)]
    suite: Vec<String>,
    /// Element types of GEMMs, with commas between. By default, those that cutlet has kernels for.
    #[arg(long, value_enum, value_delimiter = ',')]
    dtype: Vec<Dtype>,
    /// Rounds of each row.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
    /// Measure power-settled too: a second of work before, and samples without a pause.
    #[arg(long)]
    sustained: bool,
    /// Measure the baselines alone.
    #[arg(long)]
    baselines: bool,
    /// Measure cutlet's kernel instances too, but those that a first look finds hopeless: how good was the choice?
    /// Only those whose names have one of NAMES in them, with commas between, if there are any.
    #[arg(
        long,
        value_name = "NAMES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_delimiter = ',',
        value_parser = gemm::part_of_instance,
        conflicts_with = "baselines"
    )]
    instances: Vec<String>,
    /// Where results.json, report.md and the plots go.
    #[arg(long, default_value = "bench-results")]
    out: PathBuf,
    /// Where it runs.
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Seed of the random inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Args, Debug)]
struct CompareArgs {
    /// The earlier run: its folder, or its results.json.
    old: PathBuf,
    /// The later run.
    new: PathBuf,
    /// Exit with 1 if something got slower, or was measured before and is not now.
    #[arg(long)]
    fail: bool,
}

#[derive(Args, Debug)]
struct ReportArgs {
    /// The run: its folder, or its results.json, beside which report and plots go.
    run: PathBuf,
}

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    Ok(match &args.what {
        What::Gemm(args) => measure(args, Families::Gemm)?,
        What::Gather(args) => measure(args, Families::Gather)?,
        What::All(args) => measure(args, Families::All)?,
        What::Compare(args) => compare(args)?,
        What::Report(ReportArgs { run }) => {
            let folder = match run.is_dir() {
                true => Some(run.as_path()),
                false => run.parent(),
            };
            let results = Results::read(run)?;
            println!("{}", table::summary(&results));
            write(&results, folder.unwrap_or(run))?;
            ExitCode::SUCCESS
        }
    })
}

fn measure(args: &RunArgs, families: Families) -> error::Result<ExitCode> {
    let device = args.backend.device()?;
    let on_gpu = device.backend() == Kind::Gpu;
    let suites = suites(args, families, on_gpu)?;
    let failed =
        |found: String| error::Error::file(format!("writing {}", args.out.display()), found);
    std::fs::create_dir_all(&args.out).map_err(|error| failed(error.to_string()))?;
    let keep = |results: &Results| {
        let json =
            serde_json::to_string_pretty(results).map_err(|error| failed(error.to_string()))?;
        put(&args.out, results::FILE, &json)
    };
    let results = run::run(
        &device,
        &Plan {
            suites,
            families,
            dtypes: match args.dtype.as_slice() {
                [] => gemm::dtypes_with_kernels(),
                dtypes => dtypes.to_vec(),
            },
            protocol: protocol(args, &device),
            baselines_only: args.baselines,
            instances: args.instances.clone(),
            seed: args.seed,
        },
        keep,
    )?;
    println!("\n{}", table::summary(&results));
    write(&results, &args.out)?;
    println!("report in {}", args.out.join(report::FILE).display());
    if results.rows.iter().any(|row| row.is_bad()) {
        eprintln!("error: rows are wrong or failed; the table says which");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn suites(args: &RunArgs, families: Families, on_gpu: bool) -> error::Result<Vec<Suite>> {
    let by_default: &[&str] = match families {
        _ if !on_gpu => &["tiny"],
        Families::Gemm => &["headline"],
        Families::Gather => &["gather"],
        Families::All => &["headline", "gather"],
    };
    let names: Vec<&str> = match args.suite.as_slice() {
        [] => by_default.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    let suites = names.iter().map(|name| Suite::load(name));
    Ok(suites.collect::<Result<_, _>>()?)
}

fn protocol(args: &RunArgs, device: &Device) -> Protocol {
    let on_gpu = device.backend() == Kind::Gpu;
    Protocol {
        rounds: args.rounds as usize,
        sample_milliseconds: if on_gpu { 4.0 } else { 0.0 },
        sample_runs: if on_gpu { 32 } else { 1 },
        rest_milliseconds: if on_gpu { 5.0 } else { 0.0 },
        rest_samples: if on_gpu { 2.0 } else { 0.0 },
        scaled_for_activations: true,
        graph_below_microseconds: on_gpu.then_some(GRAPH_BELOW),
        choice: on_gpu.then_some(CHOICE),
        sustained: (args.sustained && on_gpu).then_some(Sustained {
            settle_milliseconds: 1000.0,
            sample_milliseconds: 100.0,
        }),
    }
}

/// Writes report and plots into a folder.
fn write(results: &Results, folder: &Path) -> error::Result<()> {
    let plots = plots::draw(results, folder)?;
    put(folder, report::FILE, &report::report(results, &plots))
}

/// Writes a file, which is there as a whole or as it was before.
fn put(folder: &Path, name: &str, text: &str) -> error::Result<()> {
    let (file, unfinished) = (folder.join(name), folder.join(format!("{name}.part")));
    let failed = |error| error::Error::file(format!("writing {}", file.display()), error);
    std::fs::write(&unfinished, text)
        .and_then(|()| std::fs::rename(&unfinished, &file))
        .map_err(failed)
}

fn compare(args: &CompareArgs) -> error::Result<ExitCode> {
    let comparison = Comparison::new(&Results::read(&args.old)?, &Results::read(&args.new)?);
    println!("{comparison}");
    Ok(match args.fail && comparison.is_worse() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
