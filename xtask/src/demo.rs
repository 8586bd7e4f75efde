//! The first thing that a newcomer runs: a GEMM and a gather, checked and timed, on a GPU or on the CPU.

use crate::{
    process::{self, Outcome, cargo},
    setup,
};

/// The arguments of the command, a line for each run. The tests of the command run them as well.
const DEMO: &str = include_str!("../../cli/tests/demo.txt");

/// Sets up what is missing, then runs the command.
pub fn run() -> Outcome {
    setup::run()?;
    println!(
        "\nBuilding the kernels and the command. The first build takes a few minutes: kernels are\n\
         compiled for the GPU and for the processor, and so is Rust's core library."
    );
    for arguments in DEMO.lines() {
        // Kernels for the GPU are the same in all profiles, and the tests use this one.
        process::run(&mut cargo(&format!(
            "run --package cutlet-cli -- {arguments}"
        )))?;
    }
    Ok(())
}
