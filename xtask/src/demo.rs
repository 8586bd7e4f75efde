//! What a newcomer sees first: a GEMM and a gather, checked and timed, on whatever backend there is.

use crate::{
    process::{self, Outcome, cargo},
    setup,
};

/// What the command runs with, one line each; its tests do so, too.
const DEMO: &str = include_str!("../../cli/tests/demo.txt");

/// Sets up what is missing, then runs both.
pub fn run() -> Outcome {
    setup::run()?;
    println!(
        "\nBuilding the kernels and the command line. The first build compiles Rust's core library for\n\
         the GPU, which takes a minute or two."
    );
    for arguments in DEMO.lines() {
        process::run(&mut cargo(&format!(
            "run --release --package cutlet-cli -- {arguments}"
        )))?;
    }
    Ok(())
}
