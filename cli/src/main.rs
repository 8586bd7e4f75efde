//! The `cutlet` command.

mod attention;
mod backend;
mod bench;
mod completions;
mod contract;
mod deviation;
mod doctor;
mod gather;
mod gemm;
mod host_memory;
mod host_system;
mod layout;
mod man;
mod measure;
mod new;
mod normal;
mod output;
mod progress;
mod ptx;
mod python;
mod rows;
mod scatter;
mod timed;
mod tune;
mod units;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use output::{Output, OutputError, reader_is_gone};

/// Kernels written in Rust over CuTe layouts, on NVIDIA GPUs or on the CPU.
#[derive(Parser, Debug)]
#[command(name = "cutlet", version, after_help = MORE)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What the help of the command ends with.
const MORE: &str = "\
Examples:
  cutlet doctor                                   what this machine has, and what it lacks
  cutlet gemm --m 512 --n 512 --k 512 --check     a product, timed and compared with f64
  cutlet contract 'ij,jk->ik' --extents i=8,j=4,k=8 --explain
  cutlet bench gemm --suite square --dtype bf16   against cuBLASLt, as a page with plots
  cutlet layout 'zipped_divide((_8,_6):(_1,_8), <_4,_2>)'
  cutlet new my-kernels                           a package with a kernel, its test and its benchmark
  cutlet ptx                                      in a package with kernels: their registers, spills and hot loops

Without a GPU, kernels run on the CPU: results are right, and times say nothing about a GPU.

Environment variables:
  CUDA_VISIBLE_DEVICES           the GPUs that the driver offers
  CUTLET_CUBLAS                  the folder of cuBLAS and cuBLASLt
  CUTLET_PYTHON                  the Python whose PyTorch is compared; python3 by default
  CUTLET_TUNING                  a file of `cutlet tune`, which decides between kernels
  CUTLET_RECORD                  a file for the GEMMs that a program runs; `cutlet tune --recorded` reads it
  CUTLET_RUSTC                   the rustc that compiles kernels
  CUTLET_PTXAS, CUTLET_NVDISASM  the programs that `cutlet ptx` assembles and disassembles with
  CUTLET_LINE_INFO               1: kernels are compiled with source lines, which `cutlet ptx` lists
  CUTLET_SIMT_WATCHDOG_SECONDS   when a kernel without progress ends on the CPU; 60 by default, 0 is never
  CUTLET_SIMT_RACES              whether races are looked for on the CPU: 0 or 1
  NO_COLOR                       no progress is drawn

Exit codes: 0 if all is right, 1 if a result is wrong or a part failed, 2 if the command cannot be run.";

#[derive(Subcommand, Debug)]
enum Command {
    Gemm(gemm::GemmArgs),
    Gather(gather::GatherArgs),
    Scatter(scatter::ScatterArgs),
    // Its layouts take thousands of bytes.
    Contract(Box<contract::ContractArgs>),
    Attention(attention::AttentionArgs),
    Bench(bench::BenchArgs),
    Tune(tune::TuneArgs),
    Layout(layout::LayoutArgs),
    New(new::NewArgs),
    Ptx(ptx::PtxArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    /// How the command prints.
    fn output(&self) -> Output {
        match self {
            Command::Gemm(args) => args.timed.output,
            Command::Gather(args) => args.rows.timed.output,
            Command::Scatter(args) => args.rows.timed.output,
            Command::Contract(args) => args.timed.output,
            Command::Attention(args) => args.timed.output,
            Command::Bench(args) => *args.output(),
            Command::Tune(args) => args.output,
            Command::Layout(args) => args.output,
            Command::New(args) => args.output,
            Command::Ptx(args) => args.output,
            Command::Doctor(args) => args.output,
            Command::Completions(_) | Command::Man(_) => Output::default(),
        }
    }
}

fn main() -> ExitCode {
    let (output, result) = match Cli::try_parse() {
        Ok(cli) => (cli.command.output(), run(&cli.command)),
        Err(error) => {
            // Arguments that cannot be read may still ask for JSON.
            let json = std::env::args_os().any(|argument| argument == "--json");
            let output = Output { json };
            (output, explain(&error, output))
        }
    };
    match result {
        Ok(code) => code,
        Err(error) if reader_is_gone(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(backend::as_an_option(&error.to_string()));
            ExitCode::from(2)
        }
    }
}

fn run(command: &Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match command {
        Command::Gemm(args) => gemm::run(args),
        Command::Gather(args) => gather::run(args),
        Command::Scatter(args) => scatter::run(args),
        Command::Contract(args) => contract::run(args),
        Command::Attention(args) => attention::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Layout(args) => layout::run(args),
        Command::New(args) => new::run(args),
        Command::Ptx(args) => ptx::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
    }
}

/// Prints help or the version where they were asked for, else one line about the wrong argument.
fn explain(error: &clap::Error, output: Output) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if !error.use_stderr() {
        error.print().map_err(OutputError::from)?;
        return Ok(ExitCode::SUCCESS);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !output.json {
        error.exit();
    }
    let all = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => "; `--help` lists all",
        _ => "",
    };
    let line = one_line(&error.render().to_string());
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    output.error(format!("{line}{all}"));
    Ok(ExitCode::from(2))
}

/// clap's message in one line, without the usage: the mistake, missing arguments, possible values and tips.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let helpful = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty());
    helpful.fold(String::new(), |all, line| match line {
        first if all.is_empty() => first.to_string(),
        tip if tip.starts_with("tip:") => format!("{all}; {tip}"),
        more => format!("{all} {more}"),
    })
}
