//! `cutlet doctor`: what is installed, what is missing, and the fix for each missing thing.

use std::collections::BTreeSet;
use std::fmt;
use std::process::ExitCode;

use clap::Args;
use cutlet_device::PtxLibrary;
use cutlet_host::{Backend, Device};
use cutlet_ptx_builder::Toolchain;
use serde::Serialize;

use cutlet_cli::cublas;

/// Say what is installed: driver, GPUs, kernels, device toolchain, cuBLAS; and how to fix what is
/// missing.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command. It succeeds whatever is missing: without a GPU, kernels run on the CPU.
pub fn run(args: &DoctorArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let report = Report::new();
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that was looked at.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    findings: Vec<Finding>,
}

/// One thing that is there or missing.
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
        Err(cutlet_host::Error::NoDriver { found, .. }) => Finding::missing(
            "driver",
            found,
            "install NVIDIA's driver, version 525 or newer (Debian, Ubuntu: `apt-get install \
             nvidia-driver`); kernels run on the CPU until then",
        ),
        Err(error) => Finding::missing("driver", error, "reinstall NVIDIA's driver"),
    }
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
            if let Some(family) = unsupported(&cutlet_kernels::PTX, (major, minor)) {
                return Finding::missing(
                    "gpu",
                    format!(
                        "{} has compute capability {major}.{minor}, and {family} is not built for it",
                        device.name()
                    ),
                    "use a GPU of a target that the kernels are built for; they run on the CPU too",
                );
            }
            let gib = memory.map_or(0.0, |(_, total)| total as f64 / f64::from(1 << 30));
            Finding::found(
                "gpu",
                format!(
                    "{}, compute capability {major}.{minor}, {} multiprocessors, {gib:.0} GiB",
                    device.name(),
                    device.multiprocessors()
                ),
            )
        }
        Err(error) => Finding::missing("gpu", error, "check `nvidia-smi`"),
    }
}

/// A family without PTX that runs on this compute capability.
fn unsupported(library: &PtxLibrary, (major, minor): (u32, u32)) -> Option<&'static str> {
    let mut families = library.families.iter();
    families
        .find(|family| family.best_for(major, minor).is_none())
        .map(|family| family.name)
}

fn kernels(library: &PtxLibrary) -> Finding {
    // The first part of a module's path says what it is for; the others are its instances.
    let topic = |name: &'static str| name.split_once("::").map_or(name, |(topic, _)| topic);
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
