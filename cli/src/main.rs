//! The `cutlet` command.

mod doctor;

use std::process::ExitCode;

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
    Doctor(doctor::DoctorArgs),
}

fn main() -> ExitCode {
    let result = match &Cli::parse().command {
        Command::Doctor(args) => doctor::run(args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
