//! Builds the wheel of the Python package, installs it into a fresh virtual environment, and runs its tests there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::{
    process::{self, Outcome, root},
    setup,
    workspace::target_dir,
};

/// What builds a wheel.
const MATURIN: &str = "maturin==1.16.0";

/// The version of zig, which links for a version of glibc that is older than the machine's.
const ZIG: &str = "0.17.1";

/// The glibc that the wheel needs, as distributions from 2019 on have it.
const GLIBC: &str = "2.28";

/// What the tests need besides the wheel. Tests that need another framework are skipped without it.
const TESTS: &[&str] = &["ml_dtypes", "numpy", "pytest"];

/// The largest wheel in bytes.
const LARGEST: u64 = 20_000_000;

/// Builds, installs and tests the wheel that users get.
pub fn run() -> Outcome {
    setup::run()?;
    let folder = target_dir()?.join("python");
    let wheel = build(&folder, &["--release"])?;
    let bytes = fs::metadata(&wheel).map_or(0, |it| it.len());
    println!("\n{} has {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    if bytes > LARGEST {
        return Err(format!(
            "the wheel has {bytes} bytes, and the most are {LARGEST}"
        ));
    }
    test(&folder, &wheel)
}

/// The same of a wheel whose kernels are compiled as for other tests, so that they need not be compiled once more.
pub fn check() -> Outcome {
    let folder = target_dir()?.join("python");
    let wheel = build(&folder, &["--strip"])?;
    test(&folder, &wheel)
}

/// Builds the wheel that users get, and makes the folder of it from which Hugging Face's `kernels` loads the package.
pub fn hub() -> Outcome {
    setup::run()?;
    let folder = target_dir()?.join("python");
    let wheel = build(&folder, &["--release"])?;
    process::run(
        Command::new(interpreter(&folder.join("tools")))
            .arg(root().join("python/kernel_hub.py"))
            .arg(wheel)
            .arg(folder.join("hub")),
    )
}

/// Installs a wheel into a fresh virtual environment, and runs the tests there.
fn test(folder: &Path, wheel: &Path) -> Outcome {
    let environment = folder.join("environment");
    let python = fresh(&environment)?;
    process::run(install(&python, TESTS).arg(wheel))?;
    // Not from the repository's root, where the package's folder would be imported without its library.
    process::run(
        Command::new(&python)
            .args(["-m", "pytest", "-q", "-ra", "--import-mode=importlib"])
            .arg("-p")
            .arg("no:cacheprovider")
            .arg(root().join("python/tests"))
            .current_dir(&environment),
    )
}

/// Builds the wheel with these options, and returns its path.
fn build(folder: &Path, options: &[&str]) -> Outcome<PathBuf> {
    let tools = folder.join("tools");
    let python = match interpreter(&tools) {
        python if python.exists() => python,
        _ => fresh(&tools)?,
    };
    process::run(&mut install(
        &python,
        &[MATURIN, &format!("ziglang=={ZIG}")],
    ))?;
    let wheels = folder.join("wheels");
    // Those of earlier versions.
    let _ = fs::remove_dir_all(&wheels);
    let linker = linker(&tools)?;
    let started = Instant::now();
    process::run(
        Command::new(python.with_file_name("maturin"))
            .args(["build", "--locked"])
            .args(options)
            .args(["--manifest-path", "python/Cargo.toml"])
            .arg("--compatibility")
            .arg(format!("manylinux_{}", GLIBC.replace('.', "_")))
            .arg("--interpreter")
            .arg(&python)
            .arg("--out")
            .arg(&wheels)
            .args(["--", "-C"])
            .arg(format!("linker={}", linker.display()))
            .current_dir(root()),
    )?;
    println!("\nbuilt in {:.0} s", started.elapsed().as_secs_f64());
    let found = fs::read_dir(&wheels)
        .ok()
        .and_then(|mut entries| entries.next())
        .and_then(Result::ok);
    found
        .map(|entry| entry.path())
        .ok_or_else(|| format!("maturin left no wheel in {}", wheels.display()))
}

/// Writes the program that links the library, and returns its path. maturin itself would compile all kernels once more,
/// for a target of zig's.
fn linker(tools: &Path) -> Outcome<PathBuf> {
    // rustc takes a program of this name for a C compiler.
    let program = tools.join("bin/zigcc");
    let python = interpreter(tools);
    let script = format!(
        "#!/bin/sh\n\
         export CARGO_ZIGBUILD_ZIG_VERSION={ZIG}\n\
         export CARGO_ZIGBUILD_ZIG_COMMAND='{}'\n\
         export CARGO_ZIGBUILD_ZIG_COMMAND_ARGS='-m ziglang'\n\
         exec '{}' zig cc -- -g -fno-sanitize=all -target {}-linux-gnu.{GLIBC} \"$@\"\n",
        python.display(),
        python.with_file_name("maturin").display(),
        std::env::consts::ARCH,
    );
    let written = fs::write(&program, script)
        .and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("cannot write {}: {error}", program.display()))?;
    Ok(program)
}

/// Makes a new virtual environment, and returns its interpreter.
fn fresh(environment: &Path) -> Outcome<PathBuf> {
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(environment),
    )?;
    Ok(interpreter(environment))
}

fn interpreter(environment: &Path) -> PathBuf {
    environment.join("bin/python")
}

/// The command that installs packages, which others can follow.
fn install(python: &Path, packages: &[&str]) -> Command {
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    pip.args(packages);
    pip
}
