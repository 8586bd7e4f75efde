//! `cutlet bench`: cutlet against the best that NVIDIA's libraries do, checked and timed row by row.

pub mod attention;
mod cells;
mod compare;
mod contract;
mod error;
pub mod family;
mod fresh;
mod gather;
pub mod gemm;
mod machine;
mod moe;
mod movement;
mod page;
mod pytorch;
pub mod quantized;
mod results;
mod row;
mod rows;
mod run;
pub mod suite;
mod table;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cutlet::Device;
use cutlet_host::Backend as Kind;
use serde::Serialize;

use crate::backend::Backend;
use crate::measure::dtype::Dtype;
use crate::measure::protocol::{Protocol, Sustained};
use crate::output::Output;
use crate::progress::ProgressArgs;
use compare::Comparison;
use error::{Error, Result};
use pytorch::PyTorch;
use results::{Results, RowResult, Summary};
use run::{Families, Plan};
use suite::Suite;

/// Measure the kernels against cuBLASLt's best and against copies, and write a page with tables and plots.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// GEMM: C = A·B, against the fastest of cuBLASLt's algorithms.
    Gemm(RunArgs),
    /// Gather: rows of a table by an index, against a copy of as many contiguous bytes.
    Gather(RunArgs),
    /// Scatter, scatter-add, embedding bags, elements by an index, transposes and a mixture of experts' rows, each
    /// against a copy of as many contiguous bytes.
    Movement(RunArgs),
    Moe(moe::MoeArgs),
    Attention(attention::AttentionArgs),
    Rows(rows::RowsArgs),
    Quantized(quantized::QuantizedArgs),
    /// Contractions in einsum's notation, against cuBLASLt's product of packed matrices with as many elements.
    Contract(RunArgs),
    /// GEMM, gather, movement and contractions.
    All(RunArgs),
    /// Say which rows got faster or slower between two runs, beyond the noise.
    Compare(CompareArgs),
    /// Write the page of results again.
    Report(ReportArgs),
}

#[derive(Args, Debug)]
struct RunArgs {
    #[arg(long, value_name = "SUITE", help = suite::help())]
    suite: Vec<String>,
    /// Measure GEMMs of random shapes too, drawn by this seed: aligned ones, odd ones and layers of models. Without
    /// --suite, only these.
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// How many random shapes.
    #[arg(long, requires = "random", default_value_t = 60, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    count: usize,
    /// Element types of GEMMs and contractions, separated by commas. By default, all that cutlet has kernels for.
    #[arg(long, value_name = "TYPES", value_enum, value_delimiter = ',')]
    dtype: Vec<Dtype>,
    /// Rounds of each row.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
    /// Measure power-settled too: after a second of work, in samples without a pause.
    #[arg(long)]
    sustained: bool,
    /// Measure the baselines alone.
    #[arg(long)]
    baselines: bool,
    /// Measure cutlet's kernel instances too. Slow ones are not timed in rounds: results have the time of a screening
    /// at each. With NAMES, separated by commas, only instances whose names contain one of them.
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
    /// The folder for results.csv and report.html.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    out: PathBuf,
    /// The device.
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Seed of the random inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    progress: ProgressArgs,
}

#[derive(Args, Debug)]
struct CompareArgs {
    /// The earlier run: its folder, or its results as a CSV file.
    old: PathBuf,
    /// The later run.
    new: PathBuf,
    /// Exit with 1 if a row got slower, or was measured only in the earlier run.
    #[arg(long)]
    fail: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Args, Debug)]
struct ReportArgs {
    /// Results as CSV files, or folders of runs. The page of NAME.csv is NAME.html, and that of results.csv report.html.
    #[arg(required = true, value_name = "FILE")]
    runs: Vec<PathBuf>,
    /// The folder for the pages; that of each file by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl BenchArgs {
    /// How the command prints.
    pub fn output(&self) -> &Output {
        match &self.what {
            What::Gemm(args)
            | What::Gather(args)
            | What::Movement(args)
            | What::Contract(args)
            | What::All(args) => &args.output,
            What::Moe(args) => &args.output,
            What::Attention(args) => &args.output,
            What::Rows(args) => &args.output,
            What::Quantized(args) => &args.output,
            What::Compare(args) => &args.output,
            What::Report(args) => &args.output,
        }
    }
}

/// A run as JSON.
#[derive(Serialize)]
struct RunAnswer<'a> {
    #[serde(flatten)]
    facts: &'a Results,
    rows: &'a [RowResult],
    summaries: Vec<Summary>,
    pytorch: Option<PyTorch>,
    /// The file with the results.
    file: &'a Path,
    /// The page with tables and plots.
    page: &'a Path,
}

/// Pages that were written, as JSON.
#[derive(Serialize)]
struct ReportAnswer {
    pages: Vec<PageAnswer>,
}

#[derive(Serialize)]
struct PageAnswer {
    /// The file or folder of the run.
    run: PathBuf,
    page: PathBuf,
    summaries: Vec<Summary>,
}

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    Ok(match &args.what {
        What::Gemm(args) => measure(args, Families::Gemm)?,
        What::Gather(args) => measure(args, Families::Gather)?,
        What::Movement(args) => measure(args, Families::Movement)?,
        What::Moe(args) => moe::run(args)?,
        What::Attention(args) => attention::run(args)?,
        What::Rows(args) => rows::run(args)?,
        What::Quantized(args) => quantized::run(args)?,
        What::Contract(args) => measure(args, Families::Contract)?,
        What::All(args) => measure(args, Families::All)?,
        What::Compare(args) => compare(args)?,
        What::Report(args) => report_again(args)?,
    })
}

fn measure(args: &RunArgs, families: Families) -> Result<ExitCode> {
    let (device, output) = (args.backend.device()?, &args.output);
    let on_gpu = device.backend() == Kind::Gpu;
    let plan = Plan {
        suites: suites(args, families, on_gpu)?,
        families,
        dtypes: match args.dtype.as_slice() {
            [] => gemm::dtypes_with_kernels(&device),
            dtypes => dtypes.to_vec(),
        },
        protocol: protocol(args, &device)?,
        baselines_only: args.baselines,
        instances: args.instances.clone(),
        seed: args.seed,
        on_any_device: args.backend.is_named(),
        output: *output,
        progress: args.progress.beside(output),
    };
    make(&args.out)?;
    let file = args.out.join(results::FILE);
    let keep = |results: &Results| {
        let text = results.to_csv();
        text.map_err(|error| Error::file(format!("writing {}", file.display()), error))
            .and_then(|text| put(&file, &text))
    };
    run::run(&device, &plan, keep)?;
    // The page is that of the file, whose numbers are rounded.
    let results = Results::read(&file)?;
    let page = page_of(&file, None);
    put(&page, &page::page(&results))?;
    output.say(format!("\n{}", table::summary(&results)))?;
    let (results_in, page_in) = (file.display(), page.display());
    output.say(format!("results in {results_in}, page in {page_in}"))?;
    let pytorch = match on_gpu {
        true => beside_pytorch(&results, &plan)?,
        false => None,
    };
    output.answer(&RunAnswer {
        facts: &results,
        rows: &results.rows,
        summaries: results.summaries(),
        pytorch,
        file: &file,
        page: &page,
    })?;
    if results.rows.iter().any(|row| row.is_bad()) {
        output.error("rows are wrong or failed; the results say which");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Has PyTorch solve the same problems, and prints its times.
fn beside_pytorch(results: &Results, plan: &Plan) -> Result<Option<PyTorch>> {
    plan.progress.wait("PyTorch");
    let pytorch = PyTorch::beside(results);
    plan.progress.end();
    if let Some(pytorch) = &pytorch {
        plan.output.say(pytorch)?;
    }
    Ok(pytorch)
}

fn suites(args: &RunArgs, families: Families, on_gpu: bool) -> Result<Vec<Suite>> {
    let by_default: &[&str] = match families {
        _ if !on_gpu => &["tiny"],
        Families::Gemm => &["headline"],
        Families::Gather => &["gather"],
        Families::Movement => &["movement"],
        Families::Contract => &["contract"],
        Families::All => &["headline", "gather", "movement", "contract"],
    };
    let names: Vec<&str> = match args.suite.as_slice() {
        [] if args.random.is_some() => Vec::new(),
        [] => by_default.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    let named = names.iter().map(|name| Suite::load(name));
    let random = args.random.map(|seed| fresh::suite(seed, args.count));
    Ok(named.chain(random).collect::<Result<_, _>>()?)
}

fn protocol(args: &RunArgs, device: &Device) -> Result<Protocol> {
    let on_gpu = device.backend() == Kind::Gpu;
    if args.sustained && !on_gpu {
        let device = device.describe().to_string();
        return Err(Error::SustainedOnCpu { device });
    }
    Ok(Protocol {
        sustained: args.sustained.then_some(Sustained {
            settle_milliseconds: 1000.0,
            sample_milliseconds: 100.0,
        }),
        ..Protocol::bursts(args.rounds as usize, on_gpu)
    })
}

/// Makes a folder.
fn make(folder: &Path) -> Result<()> {
    let failed = |error| Error::file(format!("making the folder {}", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(failed)
}

/// The file of the page for the results in a file, or in a run's folder. Without another folder, it is in theirs.
fn page_of(run: &Path, folder: Option<&Path>) -> PathBuf {
    let (own, stem) = match run.is_dir() {
        true => (Some(run), None),
        false => (run.parent(), run.file_stem()),
    };
    let stem = match stem.map(|stem| stem.to_string_lossy()) {
        Some(stem) if stem != "results" => stem.into_owned(),
        _ => "report".to_string(),
    };
    folder.or(own).unwrap_or(run).join(format!("{stem}.html"))
}

fn report_again(args: &ReportArgs) -> Result<ExitCode> {
    let files = args.runs.iter();
    let files = files.map(|run| page_of(run, args.out.as_deref()));
    let files: Vec<PathBuf> = files.collect();
    if files.iter().collect::<HashSet<_>>().len() < files.len() {
        return Err(Error::file(
            "writing pages",
            "two of them have the same folder and name; write them one by one",
        ));
    }
    if let Some(folder) = &args.out {
        make(folder)?;
    }
    let mut pages = Vec::new();
    for (run, page) in args.runs.iter().zip(files) {
        let results = Results::read(run)?;
        put(&page, &page::page(&results))?;
        args.output.say(table::summary(&results))?;
        args.output.say(format!("page in {}", page.display()))?;
        pages.push(PageAnswer {
            run: run.clone(),
            page,
            summaries: results.summaries(),
        });
    }
    args.output.answer(&ReportAnswer { pages })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a file. An interrupted write leaves the file as it was before.
fn put(file: &Path, text: &str) -> Result<()> {
    let unfinished = file.with_added_extension("part");
    let failed = |error| Error::file(format!("writing {}", file.display()), error);
    std::fs::write(&unfinished, text)
        .and_then(|()| std::fs::rename(&unfinished, file))
        .map_err(failed)
}

fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let comparison = Comparison::new(&Results::read(&args.old)?, &Results::read(&args.new)?);
    args.output.result(&comparison)?;
    Ok(match args.fail && comparison.is_worse() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_several_results_have_different_names() {
        let page = |run: &str, out: Option<&str>| page_of(Path::new(run), out.map(Path::new));
        let of_run = page("monday/results.csv", None);
        assert_eq!(of_run, Path::new("monday/report.html"));
        let of_file = page("docs/gemm-bf16.csv", None);
        assert_eq!(of_file, Path::new("docs/gemm-bf16.html"));
        let elsewhere = page("docs/gemm-bf16.csv", Some("other"));
        assert_eq!(elsewhere, Path::new("other/gemm-bf16.html"));
    }
}
