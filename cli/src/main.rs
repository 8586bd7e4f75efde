//! The `cutlet` command.

mod backend;
mod bench;
mod deviation;
mod doctor;
mod gather;
mod gemm;
mod host_memory;
mod layout;
mod normal;
mod timed;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

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
    Bench(bench::BenchArgs),
    Layout(layout::LayoutArgs),
    Doctor(doctor::DoctorArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let result = match &cli.command {
        Command::Gemm(args) => gemm::run(args),
        Command::Gather(args) => gather::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Layout(args) => layout::run(args),
        Command::Doctor(args) => doctor::run(args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {}", backend::as_an_option(&error.to_string()));
        ExitCode::from(2)
    })
}

/// Prints what was asked for (help, version), or in one line what is wrong with the arguments.
fn explain(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let all = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => "; `--help` lists all",
        _ => "",
    };
    eprintln!("{}{all}", one_line(&error.render().to_string()));
    ExitCode::from(2)
}

/// clap's complaint without how the command is used: what is wrong, with the arguments that are
/// missing, the values that there are and the tips that it puts on lines of their own.
fn one_line(complaint: &str) -> String {
    let lines = complaint.lines().map(str::trim);
    let helpful = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty());
    helpful.fold(String::new(), |all, line| match line {
        first if all.is_empty() => first.to_string(),
        tip if tip.starts_with("tip:") => format!("{all}; {tip}"),
        more => format!("{all} {more}"),
    })
}
