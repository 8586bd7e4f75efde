//! The `cutlet` command.

mod backend;
mod bench;
mod deviation;
mod doctor;
mod gather;
mod gemm;
mod host_memory;
mod layout;
mod measure;
mod normal;
mod output;
mod rows;
mod scatter;
mod timed;
mod tune;
mod units;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use output::{OutputError, complain, reader_is_gone};

/// Kernels written in Rust over CuTe layouts, on NVIDIA GPUs or on the CPU.
#[derive(Parser, Debug)]
#[command(name = "cutlet", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Gemm(gemm::GemmArgs),
    Gather(gather::GatherArgs),
    Scatter(scatter::ScatterArgs),
    Bench(bench::BenchArgs),
    Tune(tune::TuneArgs),
    Layout(layout::LayoutArgs),
    Doctor(doctor::DoctorArgs),
}

fn main() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => run(&cli.command),
        Err(error) => explain(&error),
    };
    match result {
        Ok(code) => code,
        Err(error) if reader_is_gone(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format!(
                "error: {}",
                backend::as_an_option(&error.to_string())
            ));
            ExitCode::from(2)
        }
    }
}

fn run(command: &Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match command {
        Command::Gemm(args) => gemm::run(args),
        Command::Gather(args) => gather::run(args),
        Command::Scatter(args) => scatter::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Layout(args) => layout::run(args),
        Command::Doctor(args) => doctor::run(args),
    }
}

/// Prints help or the version where they were asked for, else one line about the wrong argument.
fn explain(error: &clap::Error) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if !error.use_stderr() {
        error.print().map_err(OutputError::from)?;
        return Ok(ExitCode::SUCCESS);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let all = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => "; `--help` lists all",
        _ => "",
    };
    complain(format!("{}{all}", one_line(&error.render().to_string())));
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
