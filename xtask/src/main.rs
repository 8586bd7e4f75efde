//! Set-up, tests, and everything else that CI runs.
//!
//! `cargo xtask demo` and `cargo xtask test` work in a fresh clone: they set up what is missing.

mod archive;
mod arm;
mod barriers;
mod book;
mod ci;
mod combinations;
mod cuda_toolkit;
mod debian;
mod demo;
mod examples;
mod fetched;
mod first_program;
mod gpus;
mod hot_loop;
mod instructions;
mod kernel_package;
mod licences;
mod lint_kernels;
mod nightly;
mod package;
mod playground;
mod process;
mod ptx;
mod python;
mod release;
mod rust_releases;
mod rust_std;
mod sanitizers;
mod setup;
mod test;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  demo          sets up what is missing, then runs a GEMM and a gather, on the GPU if there is one
  test          sets up what is missing, then runs every test
  setup         finds a toolchain that compiles kernels to PTX, or installs one
  ci            checks formatting, clippy and documentation, then runs the five tasks below
    lint-kernels  no index arithmetic in kernels/src: layouts do it
    ptx           assembles every instruction of the device crate, and the PTX of every compiled kernel for every target
                  and, if it runs on later GPUs, for two of these; no spills, calls or local memory, no memory barrier in
                  a loop with wgmma, and no more barriers than in xtask/barriers.txt
    playground    builds the page that calculates with layouts into target/page, and tests it in node and Chromium if
                  they are there
    cuda-toolkit  checks cutlet beside packages that need a CUDA toolkit, with a stand-in for it: candle, and a cudarc that
                  links NVIDIA's libraries
    release --check
                  packages every published crate as for a registry, with PTX, checks licences, and compiles the packages
                  outside of the repository, for 64-bit Arm and Windows as well
  release --dry-run
                all that comes before a release: the same with more features and with the newest Rust that is installed,
                documentation, the README's program and an own kernel made from the packages; lists what to publish
  book          makes a book of the guide, with mdBook, in target/book/html, and the playground beside its pages
  ptx --record  writes xtask/barriers.txt, after someone has looked at the kernels' barriers
  nightly       what takes longer: assembles all kernels for all GPUs, compiles those for f16 and e5m2 and compares them
                with those made of the text for bf16 and e4m3, runs `arm`, and judges the fit of the choice of a kernel
  python        builds the wheel of the Python package, installs it into a fresh virtual environment and runs its tests
                there; needs python3 with pip, which fetches maturin, NumPy and pytest
  python --hub  builds the wheel, and makes the folder in target/python/hub that Hugging Face's `kernels` loads
  arm           runs the tests of the CPU backend and a GEMM on 64-bit Arm, which qemu emulates; installs qemu on Debian
  miri          runs the tests of layouts, and those of the host without kernels, under Miri; needs a nightly toolchain
  tsan          runs the host's tests of several threads under ThreadSanitizer; needs a nightly toolchain
  measured <results.csv>...
                adds times of instances from results to the table of their device, and fits the choice of a kernel
                to all times
  measured --fit
                fits it to the tables as they are, after a change of the model or of the kernels
  measured --check
                fits it to half of the tables' problems, and prints what choices lose there and at the other half";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if cuda_toolkit::stands_in_for_nvcc() {
        return ended("nvcc", cuda_toolkit::nvcc(&arguments));
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["demo"] => demo::run(),
        ["test"] => test::run(),
        ["setup"] => setup::run(),
        ["ci"] => ci::run(),
        ["nightly"] => nightly::run(),
        ["lint-kernels"] => lint_kernels::run(),
        ["ptx"] => ptx::run(),
        ["ptx", "--record"] => ptx::record(),
        ["release", "--check"] => release::check(),
        ["release", "--dry-run"] => release::dry_run(),
        ["playground"] => playground::run(),
        ["book"] => book::run(),
        ["cuda-toolkit"] => cuda_toolkit::run(),
        ["python"] => python::run(),
        ["python", "--hub"] => python::hub(),
        ["arm"] => arm::run(),
        ["miri"] => sanitizers::miri(),
        ["tsan"] => sanitizers::tsan(),
        ["measured", files @ ..] if !files.is_empty() => measured(files),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    ended(words[0], outcome)
}

/// The program's exit code. An error is printed.
fn ended(task: &str, outcome: process::Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask {task}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Adds times to the tables of the package `cutlet-fitting`, if there are some, and runs its fit.
fn measured(arguments: &[&str]) -> process::Outcome {
    let fitting = |arguments: &[&str]| {
        let mut cargo = process::cargo("run --quiet --package cutlet-fitting --");
        process::run(cargo.args(arguments))
    };
    fitting(arguments)?;
    match arguments {
        [option] if option.starts_with("--") => Ok(()),
        // Tables are part of the program, which is compiled again with the new times.
        _ => fitting(&["--fit"]),
    }
}
