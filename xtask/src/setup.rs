//! Finds or installs a device toolchain: a rustc with the source of its `core`, which compiles kernels to PTX.
//!
//! If there is none, two ways to install one are tried in turn: rustup's component `rust-src` for the toolchain in use,
//! and Debian's packages of a compiler with its source.

use std::{process::Command, time::Duration};

use cutlet_ptx_builder::Toolchain;

use crate::{
    debian,
    process::{Outcome, run_within},
};

/// Variable that names the only way to take (`rustup` or `debian`), even if there is a toolchain already.
const ROUTE: &str = "CUTLET_SETUP";

/// Debian's compiler and its source.
const DEBIAN_PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// The component is a few megabytes. Whoever waits longer has no connection.
const RUSTUP_LIMIT: Duration = Duration::from_secs(60);

/// A way to install a device toolchain: its name in [`ROUTE`], and the function that does it.
type Route = (&'static str, fn() -> Outcome);

/// All ways, in the order of trial.
const ROUTES: [Route; 2] = [
    ("rustup", rustup),
    ("debian", || debian::install(&DEBIAN_PACKAGES)),
];

/// Finds a device toolchain or installs one, and prints what it does.
pub fn run() -> Outcome {
    let chosen = std::env::var(ROUTE).unwrap_or_default();
    if chosen.is_empty() {
        if let Ok(toolchain) = Toolchain::find() {
            println!("device toolchain: {toolchain}");
            return Ok(());
        }
        println!(
            "No compiler here has the source of its `core`, which compiling for the GPU needs."
        );
    }
    let routes = ROUTES
        .iter()
        .filter(|(name, _)| chosen.is_empty() || chosen == *name);
    let mut refusals = Vec::new();
    for (name, install) in routes {
        let found = install().and_then(|()| Toolchain::find().map_err(|error| error.to_string()));
        match found {
            Ok(toolchain) => {
                println!("device toolchain: {toolchain}");
                return Ok(());
            }
            Err(refusal) => {
                println!("{refusal}");
                refusals.push(format!("{name}: {refusal}"));
            }
        }
    }
    if refusals.is_empty() {
        return Err(format!(
            "{ROUTE} is `{chosen}`, but must be `rustup` or `debian`"
        ));
    }
    Err(format!(
        "no device toolchain could be installed:\n{}",
        refusals.join("\n")
    ))
}

fn rustup() -> Outcome {
    // With retries of its own, rustup would take longer to notice that its server is unreachable.
    run_within(
        Command::new("rustup")
            .args(["component", "add", "rust-src"])
            .env("RUSTUP_MAX_RETRIES", "0")
            .env_remove("RUST_BACKTRACE"),
        RUSTUP_LIMIT,
    )
}
