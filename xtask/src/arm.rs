//! Runs the CPU backend on 64-bit Arm, which qemu emulates: its tests, and a GEMM of the library.
//!
//! The emulator orders accesses to memory as the machine does that it runs on. So a missing fence goes unnoticed.

use crate::{
    debian,
    process::{self, Outcome, is_there},
    rust_std::RustStd,
};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const EMULATOR: &str = "qemu-aarch64-static";
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// The emulator, the linker, and a C library for both.
const DEBIAN_PACKAGES: [&str; 3] = [
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user-static",
];

/// What cargo runs. Tests that start cargo or measure time are left out.
const RUNS: [&str; 4] = [
    "test --package cutlet-simt --lib --tests",
    "test --package cutlet-device --lib --test cpu --test vocabulary",
    "test --package cutlet-host --lib --test host --test no_allocation --test races_off --test shared_streams",
    "run --package cutlet --example 02_gemm",
];

/// Installs what is missing, and runs everything.
pub fn run() -> Outcome {
    if ![EMULATOR, LINKER].into_iter().all(is_there) {
        debian::install(&DEBIAN_PACKAGES)?;
    }
    let std = RustStd::get(&[TARGET])?;
    if std == RustStd::Source {
        return Err(format!(
            "tests need a compiled standard library: run `rustup target add {TARGET}`"
        ));
    }
    for line in RUNS {
        process::run(
            std.cargo(line, &[TARGET])
                .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
                .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR)
                // Tests that start themselves again need it, too.
                .env("CUTLET_TEST_EMULATOR", EMULATOR)
                .env("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu"),
        )?;
    }
    Ok(())
}
