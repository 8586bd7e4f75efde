//! Everything that must hold before a change lands, besides the tests.

use crate::{
    lint_kernels, package,
    process::{self, Outcome, cargo},
    ptx, setup,
};

/// Runs every check, cheapest first.
pub fn run() -> Outcome {
    process::run(&mut cargo("fmt --all --check"))?;
    lint_kernels::run()?;
    setup::run()?;
    process::run(&mut cargo(
        "clippy --workspace --all-targets --features cutlet-layout-core/serde -- --deny warnings",
    ))?;
    // The command and the library are both called `cutlet`, so only libraries are documented.
    process::run(cargo("doc --workspace --no-deps --lib").env("RUSTDOCFLAGS", "--deny warnings"))?;
    // Compiling the kernels for nvptx64 also shows that layout-core and device need no std: it has none.
    ptx::run()?;
    package::run()
}
