//! The Rust releases that are installed besides the one in use: the oldest that the packages are for, and the newest.

use std::{path::PathBuf, process::Command};

use crate::{
    process::{Outcome, output},
    workspace::rust_version,
};

/// An installed release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustRelease {
    /// rustup's name for it.
    toolchain: String,
    /// Its number: `1.95.0`.
    version: String,
}

impl RustRelease {
    /// The oldest release that the packages are for and the newest one, as far as rustup has them and they are not in
    /// use. Prints what is not there.
    pub fn others() -> Outcome<Vec<Self>> {
        let in_use = version(&mut Command::new("rustc")).unwrap_or_default();
        let installed = installed();
        let oldest = rust_version()?;
        let is_oldest = |version: &str| is_of(version, &oldest);
        let mut others: Vec<Self> = Vec::new();
        match installed.iter().find(|release| is_oldest(&release.version)) {
            _ if is_oldest(&in_use) => {}
            Some(release) => others.push(release.clone()),
            None => {
                println!("Rust {oldest}, the oldest that the packages are for, is not installed")
            }
        }
        let newest = installed
            .into_iter()
            .max_by_key(|release| numbers(&release.version));
        match newest.filter(|newest| numbers(&newest.version) > numbers(&in_use)) {
            Some(newest) => others.push(newest),
            None => println!("no Rust is installed that is newer than {in_use}, the one in use"),
        }
        Ok(others)
    }

    /// Its number: `1.95.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its cargo, with the arguments of `line`.
    pub fn cargo(&self, line: &str) -> Command {
        let mut command = Command::new("rustup");
        command
            .args(["run", &self.toolchain, "cargo"])
            .args(line.split_whitespace())
            // cargo names the toolchain that runs xtask in these variables.
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .env_remove("RUSTC");
        command
    }

    /// The path of its compiler if it has the source of its `core`, so that it compiles kernels.
    pub fn device_compiler(&self) -> Outcome<Option<PathBuf>> {
        let mut rustup = Command::new("rustup");
        let (path, _) = output(rustup.args(["which", "--toolchain", &self.toolchain, "rustc"]))?;
        let rustc = PathBuf::from(path.trim());
        let sysroot = rustc.ancestors().nth(2);
        let has_source = sysroot.is_some_and(|it| it.join("lib/rustlib/src/rust/library").exists());
        Ok(has_source.then_some(rustc))
    }
}

/// The releases of rustup's toolchains, without betas and nightlies.
fn installed() -> Vec<RustRelease> {
    let listed = output(Command::new("rustup").args(["toolchain", "list", "--quiet"]));
    let (names, _) = listed.unwrap_or_default();
    names
        .lines()
        .filter_map(|name| {
            let version = version(Command::new("rustup").args(["run", name, "rustc"]))?;
            Some(RustRelease {
                toolchain: name.to_owned(),
                version,
            })
        })
        .collect()
}

/// The number of a compiler's release; none of a beta or a nightly.
fn version(rustc: &mut Command) -> Option<String> {
    let (printed, _) = output(rustc.arg("--version")).ok()?;
    release(&printed)
}

fn release(printed: &str) -> Option<String> {
    let version = printed.split_whitespace().nth(1)?;
    (numbers(version).len() == 3).then(|| version.to_owned())
}

fn numbers(version: &str) -> Vec<u32> {
    version
        .split('.')
        .map_while(|number| number.parse().ok())
        .collect()
}

/// Whether a release is of this minor version: `1.95.1` is of `1.95`.
fn is_of(version: &str, minor: &str) -> bool {
    numbers(version).starts_with(&numbers(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_from_nightlies() {
        assert_eq!(
            release("rustc 1.95.0 (59807616e 2026-04-14)").as_deref(),
            Some("1.95.0")
        );
        assert_eq!(release("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)"), None);
        assert_eq!(release("gcc"), None);
    }

    #[test]
    fn releases_are_compared_by_numbers() {
        assert!(numbers("1.100.0") > numbers("1.99.1"));
        assert!(is_of("1.95.1", "1.95") && !is_of("1.9.5", "1.95") && !is_of("", "1.95"));
    }
}
