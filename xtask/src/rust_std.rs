//! Rust's standard library for other targets than the machine's own.

use std::{path::Path, process::Command, time::Duration};

use crate::process::{self, Outcome, cargo, run_within};

/// rustup's own retries would hide that its server is unreachable.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);

/// Where the library for some targets comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RustStd {
    /// The compiler has it.
    Installed,
    /// It is compiled from the toolchain's own source, as kernels are.
    Source,
}

impl RustStd {
    /// Finds the library for these targets, installs it with rustup, or else finds its source.
    pub fn get(targets: &[&str]) -> Outcome<Self> {
        let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?.0;
        let rustlib = Path::new(sysroot.trim()).join("lib/rustlib");
        if targets.iter().all(|target| rustlib.join(target).exists()) {
            return Ok(Self::Installed);
        }
        let added = run_within(
            Command::new("rustup")
                .args(["target", "add"])
                .args(targets)
                .env("RUSTUP_MAX_RETRIES", "0"),
            RUSTUP_LIMIT,
        );
        match added {
            Ok(()) => Ok(Self::Installed),
            Err(_) if rustlib.join("src/rust/library/std").exists() => Ok(Self::Source),
            Err(error) => Err(format!(
                "{error}\nthere is no standard library for {}: run `rustup target add {}`",
                targets.join(" and "),
                targets.join(" ")
            )),
        }
    }

    /// cargo with the arguments of `line`, for these targets.
    pub fn cargo(self, line: &str, targets: &[&str]) -> Command {
        let mut command = cargo(line);
        for target in targets {
            command.args(["--target", target]);
        }
        if self == Self::Source {
            command
                .arg("-Zbuild-std=std,panic_abort")
                .env("RUSTC_BOOTSTRAP", "1");
        }
        command
    }
}
