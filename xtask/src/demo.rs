//! What a newcomer sees first: a GEMM and a gather, checked and timed, on whatever backend there is.

use crate::{
    process::{self, Outcome, cargo},
    setup,
};

/// Sets up what is missing, then runs both.
pub fn run() -> Outcome {
    setup::run()?;
    println!(
        "\nBuilding the kernels and the command line. The first build compiles Rust's core library for\n\
         the GPU, which takes a minute or two."
    );
    for arguments in ["gemm --m 512 --n 512 --k 512 --check", "gather --check"] {
        process::run(&mut cargo(&format!(
            "run --release --package cutlet-cli -- {arguments}"
        )))?;
    }
    Ok(())
}
