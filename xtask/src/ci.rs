//! Everything that must hold before a change is merged, besides the tests.

use crate::{
    cuda_toolkit,
    examples::{Examples, UsersPackage},
    lint_kernels, playground,
    process::{self, Outcome, cargo},
    ptx, python, release, setup,
};

/// Runs every check, cheapest first.
pub fn run() -> Outcome {
    let Examples { packages, .. } = Examples::find()?;
    process::run(&mut cargo("fmt --all --check"))?;
    for package in &packages {
        let manifest = format!("examples/{package}/Cargo.toml");
        process::run(&mut cargo(&format!(
            "fmt --check --manifest-path {manifest}"
        )))?;
    }
    lint_kernels::run()?;
    setup::run()?;
    process::run(&mut cargo(
        "clippy --workspace --all-targets --features cutlet/dlpack,cutlet-layout-core/serde -- --deny warnings",
    ))?;
    cuda_toolkit::run()?;
    for package in &packages {
        let package = UsersPackage::copy_of(package)?;
        process::run(&mut package.cargo("clippy --all-targets -- --deny warnings"))?;
    }
    // Two packages have a target called `cutlet`, so only libraries are documented.
    let doc = "doc --workspace --no-deps --lib --features cutlet/dlpack";
    process::run(cargo(doc).env("RUSTDOCFLAGS", "--deny warnings"))?;
    // This also shows that layout-core and device need no std: nvptx64 has none.
    ptx::run()?;
    playground::run()?;
    python::check()?;
    release::check()
}
