//! Compiles the kernels for the GPU.

use std::env;

use cutlet_ptx_builder::{Builder, Leftovers};

/// Set to `1`, has those kernels compiled, too, whose PTX can be made of others': the builder compares them.
const EACH_FORMAT_VARIABLE: &str = "CUTLET_EACH_FORMAT";

/// Names the families of kernels to compile, separated by commas: all of [`FAMILIES`] if it is not set. It shortens the
/// build of whoever works on one family, or runs only one.
const FAMILIES_VARIABLE: &str = "CUTLET_FAMILIES";
/// The families that can be left out, each with the `cfg` that its kernels are compiled under. Others are small.
const FAMILIES: [(&str, &str); 4] = [
    ("gather", "gather"),
    ("gemm-simt", "gemm_simt"),
    ("gemm-sm80", "gemm_sm80"),
    ("gemm-sm90", "gemm_sm90"),
];

fn main() {
    choose_families();
    println!("cargo::rerun-if-env-changed={EACH_FORMAT_VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(each_format)");
    if env::var(EACH_FORMAT_VARIABLE).is_ok_and(|value| value == "1") {
        println!("cargo::rustc-cfg=each_format");
    }
    Builder::new()
        .target("sm_80")
        .target("sm_90a")
        .leftovers(Leftovers::Deny)
        .shipped_by("cargo xtask package")
        .build();
}

/// Sets the `cfg` of each family to compile.
fn choose_families() {
    println!("cargo::rerun-if-env-changed={FAMILIES_VARIABLE}");
    let chosen = env::var(FAMILIES_VARIABLE).unwrap_or_default();
    let chosen: Vec<&str> = chosen.split(',').filter(|name| !name.is_empty()).collect();
    for name in &chosen {
        if !FAMILIES.iter().any(|(family, _)| family == name) {
            println!(
                "cargo::error={FAMILIES_VARIABLE} names the family `{name}`, which does not exist; name some of {}",
                FAMILIES.map(|(family, _)| family).join(", ")
            );
            // cargo shows the line, and ends the build.
            std::process::exit(0);
        }
    }
    for (family, cfg) in FAMILIES {
        println!("cargo::rustc-check-cfg=cfg({cfg})");
        if chosen.is_empty() || chosen.contains(&family) {
            println!("cargo::rustc-cfg={cfg}");
        }
    }
}
