//! Fits the choice of a Hopper kernel to the times that kernels took. `cargo xtask measured` runs it.
//!
//! The [tables](times) have the times of kernels at some problems, on some devices. [Results](results) of
//! `cutlet bench gemm --instances` are added to them. The [fit](fit) makes the correction of the library's cost model of
//! them, and the table of the fastest kernels.

mod fit;
mod results;
mod times;

use std::fs;
use std::process::ExitCode;

/// The folder of the library that has what is fitted.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/gemm/choice");

/// The result of a step. An error is a text for the user.
type Outcome<T = ()> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// With `--check`, prints what choices lose at problems that were not fitted. With `--fit`, fits. With files, adds their
/// times to the tables: the next run with `--fit` reads them, because tables are part of this program.
fn run(arguments: &[String]) -> Outcome {
    match arguments {
        [only] if only == "--check" => fit::check(),
        [only] if only == "--fit" => {
            let path = format!("{LIBRARY}/trees.txt");
            fs::write(&path, fit::fit_all().text()).map_err(|error| format!("{path}: {error}"))?;
            times::write_fastest(&format!("{LIBRARY}/fastest"))?;
        }
        paths => results::add_all(paths)?,
    }
    Ok(())
}
