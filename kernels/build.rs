//! Compiles the kernels for the GPU.

use std::env;

use cutlet_ptx_builder::{Builder, Leftovers};

/// Set to `1`, has those kernels compiled, too, whose PTX can be made of others': the builder compares them.
const EACH_FORMAT_VARIABLE: &str = "CUTLET_EACH_FORMAT";

fn main() {
    println!("cargo::rerun-if-env-changed={EACH_FORMAT_VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(each_format)");
    if env::var(EACH_FORMAT_VARIABLE).is_ok_and(|value| value == "1") {
        println!("cargo::rustc-cfg=each_format");
    }
    Builder::new()
        .target("sm_80")
        .target("sm_90a")
        .leftovers(Leftovers::Deny)
        .shipped_by("cargo xtask release --dry-run")
        .build();
}
