//! The first thing that a newcomer runs: a GEMM and a gather, checked and timed, on a GPU or on the CPU.

use crate::{
    process::{self, Outcome, cargo},
    setup,
};

/// The arguments of the command, a line for each run. The tests of the command run them as well.
const DEMO: &str = include_str!("../../cli/tests/demo.txt");

/// The families of kernels that it runs. Compiling the others would take longer than everything else.
const FAMILIES: &str = "gather,gemm-simt";

/// Sets up what is missing, then runs the command.
pub fn run() -> Outcome {
    setup::run()?;
    println!(
        "\nBuilding the kernels and the command. The first build takes a minute or two: it also compiles Rust's core\n\
         library for the GPU."
    );
    for arguments in DEMO.lines() {
        process::run(
            cargo(&format!(
                "run --release --package cutlet-cli -- {arguments}"
            ))
            .env("CUTLET_FAMILIES", FAMILIES),
        )?;
    }
    Ok(())
}
