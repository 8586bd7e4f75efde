//! Runs tests under Miri, which finds undefined behaviour and data races, and under ThreadSanitizer, which finds data
//! races of many more calls. Both need a nightly toolchain, so CI does not run them.
//!
//! Neither follows the stacks of a kernel's coroutines, and Miri loads no driver. So they check layouts, and the host's
//! copies, fills, captures, replays and memory.

use std::process::Command;

use crate::process::{self, Outcome, root};

/// The tests that Miri can run. The one of them that launches a kernel is ignored under Miri.
const TESTS: [(&str, &[&str]); 3] = [
    ("cutlet-layout-core", &["--lib"]),
    ("cutlet-host", &["--features=dlpack", "--lib"]),
    (
        "cutlet-host",
        &[
            "--features=dlpack",
            "--test=host",
            "--",
            "bound_memory::",
            "capture::",
            "dlpack::",
            "memory::",
            "tensor_map::",
        ],
    ),
];

/// Tests of several threads.
const THREADS: (&str, &[&str]) = ("cutlet-host", &["--test=shared_streams"]);
/// Schedules of the threads' tests under Miri.
const SEEDS: u32 = 16;

/// The host keeps addresses as numbers, as a GPU's memory has no pointers. Events read the clock.
const MIRI_FLAGS: &str = "-Zmiri-permissive-provenance -Zmiri-disable-isolation";

/// Runs the tests under Miri, those of several threads in several schedules.
pub fn miri() -> Outcome {
    for tests in TESTS {
        run(nightly("miri test", tests).env("MIRIFLAGS", MIRI_FLAGS))?;
    }
    let flags = format!("{MIRI_FLAGS} -Zmiri-many-seeds=0..{SEEDS}");
    run(nightly("miri test", THREADS).env("MIRIFLAGS", flags))
}

/// Runs the tests of several threads under ThreadSanitizer, which needs a standard library built for it.
pub fn tsan() -> Outcome {
    // For another target than the host's, so that build scripts and macros are built without it.
    let target = format!(
        "test -Zbuild-std --target {}-unknown-linux-gnu",
        std::env::consts::ARCH
    );
    run(nightly(&target, THREADS).env("RUSTFLAGS", "-Zsanitizer=thread"))
}

/// A nightly cargo with the arguments of `line`, for these tests of a package.
fn nightly(line: &str, (package, tests): (&str, &[&str])) -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo"])
        .args(line.split_whitespace())
        .args(["--package", package])
        // These builds are of no use to other tasks.
        .args(["--target-dir", "target/nightly"])
        // These may end with names of tests, which cargo hands to the test program.
        .args(tests)
        // cargo names the toolchain that runs xtask in these variables.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .current_dir(root());
    command
}

fn run(command: &mut Command) -> Outcome {
    process::run(command).map_err(|error| {
        format!(
            "{error}\nIf the toolchain is missing: rustup toolchain install nightly --component miri,rust-src"
        )
    })
}
