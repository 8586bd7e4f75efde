//! `cutlet doctor`: what is installed, what is missing, and the fix for each missing part.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::ExitCode;

use clap::Args;
use cutlet_device::{PtxFamily, PtxLibrary};
use cutlet_host::{Backend, Device};
use cutlet_ptx_builder::Toolchain;
use serde::Serialize;

use crate::output::print_line;
use cutlet_cli::cublas;

/// Check driver, GPUs, kernels, device toolchain and cuBLAS, and name the fix for each that is missing.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command. A missing part is no failure: without a GPU, kernels run on the CPU.
pub fn run(args: &DoctorArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let report = Report::new();
    if args.json {
        print_line(serde_json::to_string(&report)?)?;
    } else {
        print_line(report)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All findings.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    findings: Vec<Finding>,
}

/// A part that is installed or missing.
#[derive(Debug, Serialize)]
struct Finding {
    topic: &'static str,
    found: bool,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Report {
    fn new() -> Report {
        let mut findings = vec![backend(), driver()];
        findings.extend(gpus());
        findings.extend([kernels(&cutlet_kernels::PTX), toolchain(), cublas()]);
        Report {
            version: env!("CARGO_PKG_VERSION"),
            findings,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cutlet {}", self.version)?;
        for Finding {
            topic,
            found,
            what,
            fix,
        } in &self.findings
        {
            let mark = if *found { "found" } else { "missing" };
            write!(f, "\n{topic:<17} {mark:<8} {what}")?;
            if let Some(fix) = fix {
                write!(f, "\n{:26} fix: {fix}", "")?;
            }
        }
        Ok(())
    }
}

impl Finding {
    fn found(topic: &'static str, what: impl fmt::Display) -> Finding {
        Finding {
            topic,
            found: true,
            what: what.to_string(),
            fix: None,
        }
    }

    fn missing(topic: &'static str, what: impl fmt::Display, fix: impl fmt::Display) -> Finding {
        Finding {
            topic,
            found: false,
            what: what.to_string(),
            fix: Some(fix.to_string()),
        }
    }
}

fn backend() -> Finding {
    let device = Device::auto();
    let cores = match device.backend() {
        Backend::Gpu => String::new(),
        Backend::Cpu => format!(", {} cores", device.multiprocessors()),
    };
    Finding::found("backend", format!("{}{cores}", device.describe()))
}

fn driver() -> Finding {
    match cutlet_host::driver_version() {
        Ok((major, minor)) => {
            Finding::found("driver", format!("NVIDIA, supports CUDA {major}.{minor}"))
        }
        Err(cutlet_host::Error::NoDriver { found, .. }) => without_driver(found),
        Err(error) => Finding::missing("driver", error, "reinstall NVIDIA's driver"),
    }
}

fn without_driver(found: String) -> Finding {
    Finding::missing(
        "driver",
        found,
        // The kernels for Hopper are in PTX 8.1, which the driver of CUDA 12.1 is the first to read.
        "install NVIDIA's driver, version 530 or newer (Debian, Ubuntu: `apt-get install \
         nvidia-driver`); kernels run on the CPU until then",
    )
}

fn gpus() -> Vec<Finding> {
    let count = cutlet_host::gpu_count().unwrap_or(0);
    if count == 0 {
        return vec![Finding::missing(
            "gpu",
            "no GPU",
            "kernels run on the CPU; if there is a GPU, check `nvidia-smi` and CUDA_VISIBLE_DEVICES",
        )];
    }
    (0..count).map(gpu).collect()
}

fn gpu(ordinal: usize) -> Finding {
    let looked_at = Device::gpu(ordinal).and_then(|device| Ok((device.memory()?, device)));
    match looked_at {
        Ok((memory, device)) => {
            let (major, minor) = device.compute_capability().unwrap_or_default();
            let gib = memory.map_or(0.0, |(_, total)| total as f64 / f64::from(1 << 30));
            let what = format!(
                "{}, compute capability {major}.{minor}, {} multiprocessors, {gib:.0} GiB",
                device.name(),
                device.multiprocessors()
            );
            with_kernels(&cutlet_kernels::PTX, (major, minor), what)
        }
        Err(error) => Finding::missing("gpu", error, "check `nvidia-smi`"),
    }
}

/// The finding about a GPU of this compute capability, with the kernels that it lacks.
fn with_kernels(library: &PtxLibrary, (major, minor): (u32, u32), what: String) -> Finding {
    let (there, lacking): (Vec<&PtxFamily>, Vec<_>) = library
        .families
        .iter()
        .partition(|family| family.best_for(major, minor).is_some());
    if there.is_empty() {
        return Finding::missing(
            "gpu",
            format!("{what}; no kernel is built for it"),
            "use a GPU of a target that the kernels are built for; they run on the CPU too",
        );
    }
    let mut needed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for family in lacking {
        let targets = family.modules.iter().map(|module| module.target);
        needed
            .entry(topic(family.name))
            .or_default()
            .extend(targets);
    }
    let lacks = needed.into_iter().map(|(topic, targets)| {
        let what = match topic {
            "gemm::sm90" => "GEMM of bf16 and f16",
            other => other,
        };
        let targets: Vec<&str> = targets.into_iter().collect();
        format!("; no {what} here: {topic} needs {}", targets.join(" or "))
    });
    Finding::found("gpu", what + &lacks.collect::<String>())
}

/// The family of kernels that a module belongs to: the first part of its path, or of a GEMM the first two. The other parts
/// name instances.
fn topic(module: &'static str) -> &'static str {
    let parts = if module.starts_with("gemm::") { 2 } else { 1 };
    let end = module.match_indices("::").nth(parts - 1);
    match &module[..end.map_or(module.len(), |(end, _)| end)] {
        // The reduction is of the tensor cores' kernels alone.
        "gemm::split_k_reduce" => "gemm::sm90",
        family => family,
    }
}

fn kernels(library: &PtxLibrary) -> Finding {
    let topics: BTreeSet<&str> = library
        .families
        .iter()
        .map(|family| topic(family.name))
        .collect();
    let topics: Vec<&str> = topics.into_iter().collect();
    let modules = library.families.iter().flat_map(|family| family.modules);
    let targets: BTreeSet<&str> = modules.map(|module| module.target).collect();
    if targets.is_empty() {
        return Finding::missing("kernels' PTX", "none is built in", "reinstall cutlet");
    }
    let targets: Vec<&str> = targets.into_iter().collect();
    Finding::found(
        "kernels' PTX",
        format!("{} for {}", topics.join(", "), targets.join(", ")),
    )
}

fn toolchain() -> Finding {
    match Toolchain::find() {
        Ok(toolchain) => Finding::found("device toolchain", toolchain),
        Err(none) => Finding::missing(
            "device toolchain",
            "no rustc with the source of its own `core` (only needed to build kernels)",
            none.fix(),
        ),
    }
}

fn cublas() -> Finding {
    match cublas::Library::load() {
        Ok(library) => {
            let version = library.version();
            let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
            Finding::found(
                "cuBLAS, cuBLASLt",
                format!("{major}.{minor}.{patch} in {}", library.place),
            )
        }
        Err(cublas::CublasError::Missing { found }) => Finding::missing(
            "cuBLAS, cuBLASLt",
            format!("{found} (only the comparison with it is left out)"),
            "`pip install nvidia-cublas`, or set CUTLET_CUBLAS to the folder that holds it",
        ),
        Err(error) => Finding::missing("cuBLAS, cuBLASLt", error, "reinstall it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The finding about a GPU of this compute capability.
    fn of_capability(capability: (u32, u32)) -> Finding {
        with_kernels(&cutlet_kernels::PTX, capability, "a GPU".to_string())
    }

    #[test]
    fn a_gpu_that_some_kernels_are_built_for_is_found() {
        for capability in [(8, 0), (8, 9), (12, 0)] {
            let Finding { found, what, .. } = of_capability(capability);
            assert!(found, "{capability:?}: {what}");
            assert_eq!(
                what,
                "a GPU; no GEMM of bf16 and f16 here: gemm::sm90 needs sm_90a"
            );
        }
        let hopper = of_capability((9, 0));
        assert!(hopper.found);
        assert_eq!(hopper.what, "a GPU");
        let turing = of_capability((7, 5));
        assert!(!turing.found && turing.fix.is_some());
    }

    #[test]
    fn the_driver_in_the_fix_reads_the_kernels_ptx() {
        let driver = without_driver("there is none".to_string());
        assert!(driver.fix.is_some_and(|fix| fix.contains("version 530")));
        for module in cutlet_kernels::PTX
            .families
            .iter()
            .flat_map(|family| family.modules)
        {
            let mut lines = module.ptx.lines();
            let version = lines.find_map(|line| line.strip_prefix(".version "));
            // PTX 8.1 came with CUDA 12.1 and its driver 530.
            assert!(matches!(version, Some("7.0" | "8.1")), "{version:?}");
        }
    }
}
