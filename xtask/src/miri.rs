//! Runs tests under Miri, which finds undefined behaviour and data races. It needs a nightly toolchain, so CI does not
//! run it.
//!
//! Miri switches no stacks and loads no libraries. So it runs no kernels and no driver: only layouts, and the host's
//! CPU backend as far as copies, fills, captures, replays and memory.

use std::process::Command;

use crate::process::{self, Outcome, root};

/// The tests that Miri can run. Tests of these targets that launch kernels are ignored under Miri.
const TESTS: [(&str, &[&str]); 2] = [
    ("cutlet-layout-core", &["--lib"]),
    (
        "cutlet-host",
        &[
            "--lib",
            "--test=bound_memory",
            "--test=capture",
            "--test=memory",
            "--test=tensor_map",
        ],
    ),
];

/// Tests of several threads, each run with several schedules.
const THREADS: (&str, &[&str]) = ("cutlet-host", &["--test=threads"]);
/// Schedules.
const SEEDS: u32 = 16;

/// The host keeps addresses as numbers, as a GPU's memory has no pointers. Events read the clock.
const FLAGS: &str = "-Zmiri-permissive-provenance -Zmiri-disable-isolation";

/// Runs all of them.
pub fn run() -> Outcome {
    for tests in TESTS {
        miri(tests, FLAGS)?;
    }
    miri(THREADS, &format!("{FLAGS} -Zmiri-many-seeds=0..{SEEDS}"))
}

fn miri((package, targets): (&str, &[&str]), flags: &str) -> Outcome {
    let mut command = Command::new("rustup");
    command
        .args([
            "run",
            "nightly",
            "cargo",
            "miri",
            "test",
            "--package",
            package,
        ])
        .args(targets)
        // Builds for Miri are of no use to other tasks.
        .args(["--target-dir", "target/miri"])
        .env("MIRIFLAGS", flags)
        // cargo names the toolchain that runs xtask in these variables.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .current_dir(root());
    process::run(&mut command).map_err(|error| {
        format!("{error}\nIf Miri is missing: rustup toolchain install nightly --component miri,rust-src")
    })
}
