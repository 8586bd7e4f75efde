//! `cutlet doctor`: what is installed, what is missing, and the fix for each missing part.

mod finding;
mod nccl;
mod ptx_version;
mod pytorch;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use clap::Args;
use cutlet::{Gemm, Tuning};
use cutlet_device::{PtxFamily, PtxLibrary, PtxText};
use cutlet_host::{Backend, Device};
use cutlet_ptx_builder::Toolchain;
use serde::Serialize;

use crate::host_system::{operating_system, processor};
use crate::measure::nvml;
use crate::output::Output;
use cutlet_cli::cublas;
use finding::Finding;
use ptx_version::PtxVersion;
use pytorch::Asked;

/// Check what this machine has for kernels, name the fix for each part that is missing, and print what to paste into a
/// bug report.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub output: Output,
}

/// Runs the command. A missing part is no failure: without a GPU, kernels run on the CPU. A GPU whose driver is too old
/// for its kernels is one.
pub fn run(args: &DoctorArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let report = Report::new();
    args.output.result(&report)?;
    match report.findings.iter().any(|finding| finding.fails) {
        true => Ok(ExitCode::FAILURE),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// All findings.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    /// How the program was built: its target, and what of the library it has.
    build: String,
    system: String,
    processor: String,
    /// Variables that change what the command does.
    variables: BTreeMap<String, String>,
    findings: Vec<Finding>,
}

impl Report {
    fn new() -> Report {
        // Python takes the longest. The other parts are looked for meanwhile.
        let python = Asked::start();
        let mut findings = vec![backend(), driver()];
        findings.extend(gpus());
        findings.push(kernels(&cutlet_kernels::PTX));
        findings.extend(gemm(&Device::auto()));
        findings.extend([tuning(&Device::auto()), toolchain(), cublas(), nccl::nccl()]);
        findings.push(python.finding());
        Report {
            version: env!("CARGO_PKG_VERSION"),
            build: build(),
            system: operating_system(),
            processor: processor(),
            variables: variables(env::vars_os()),
            findings,
        }
    }

    /// What to paste into a bug report: a block of Markdown with everything but fixes.
    fn block(&self) -> String {
        let mut lines = vec![
            format!("cutlet {}, {}", self.version, self.build),
            format!("system: {}", self.system),
            format!("processor: {}", self.processor),
        ];
        let findings = self.findings.iter();
        lines.extend(findings.map(|finding| match finding.found {
            true => format!("{}: {}", finding.topic, finding.what),
            false => format!("{}: {}: {}", finding.topic, finding.mark(), finding.what),
        }));
        let variables = self.variables.iter();
        lines.extend(variables.map(|(name, value)| format!("{name}={value}")));
        format!("```text\n{}\n```", lines.join("\n"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cutlet {}", self.version)?;
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        write!(f, "\nTo paste into a bug report:\n\n{}", self.block())
    }
}

/// The target of this program, and its features.
fn build() -> String {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let features = [
        ("ampere", cfg!(feature = "ampere")),
        ("attention", cfg!(feature = "attention")),
        ("cpu", cfg!(feature = "cpu")),
        ("gather", cfg!(feature = "gather")),
        ("hopper", cfg!(feature = "hopper")),
        ("rows", cfg!(feature = "rows")),
        ("simt", cfg!(feature = "simt")),
    ];
    let features = features.iter().filter(|(_, is_on)| *is_on);
    let features: Vec<&str> = features.map(|(name, _)| *name).collect();
    format!(
        "{profile} build for {}-{}, features {}",
        env::consts::ARCH,
        env::consts::OS,
        features.join(" ")
    )
}

/// The variables among these that change what the command does.
fn variables(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    const OTHERS: [&str; 4] = [
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH",
    ];
    all.map(|(name, value)| [name, value].map(|it| it.to_string_lossy().into_owned()))
        .filter(|[name, _]| name.starts_with("CUTLET_") || OTHERS.contains(&name.as_str()))
        .map(|[name, value]| (name, value))
        .collect()
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
            let ptx = PtxVersion::read_by((major, minor));
            let reads = ptx.map_or(String::new(), |ptx| format!(", reads {ptx}"));
            let version = nvml::driver().map_or(String::new(), |version| format!(" {version}"));
            Finding::found(
                "driver",
                format!("NVIDIA{version}, supports CUDA {major}.{minor}{reads}"),
            )
        }
        Err(cutlet_host::Error::NoDriver { found, .. }) => without_driver(found),
        Err(error) => Finding::missing("driver", error, "reinstall NVIDIA's driver"),
    }
}

fn without_driver(found: String) -> Finding {
    let first = match PtxVersion::highest(&cutlet_kernels::PTX) {
        Some(ptx) => ptx.first_driver(),
        None => "the latest version".to_string(),
    };
    Finding::missing(
        "driver",
        found,
        format!(
            "install NVIDIA's driver, {first} (Debian, Ubuntu: `apt-get install nvidia-driver`); kernels run on the CPU \
             until then"
        ),
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
                "{}, compute capability {major}.{minor}, {} multiprocessors{}, {gib:.0} GiB",
                device.name(),
                device.multiprocessors(),
                clusters(&device)
            );
            let finding = with_kernels(&cutlet_kernels::PTX, (major, minor), what);
            let cuda = cutlet_host::driver_version().unwrap_or_default();
            with_ptx(&cutlet_kernels::PTX, (major, minor), cuda, finding)
        }
        Err(error) => Finding::missing("gpu", error, "check `nvidia-smi`"),
    }
}

/// The clusters that a GPU has room for: GPUs of the same name differ in that. Nothing for a GPU without clusters.
fn clusters(device: &Device) -> String {
    let at_a_time = |blocks| device.clusters_at_a_time(blocks).ok();
    match (device.compute_capability(), at_a_time(4), at_a_time(8)) {
        (Some((9.., _)), Some(of_four), Some(of_eight)) => {
            format!(" ({of_four} clusters of 4 at a time, {of_eight} of 8)")
        }
        _ => String::new(),
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
    // A topic with some instances for the GPU runs there: they do what the others do. The reduction alone does not.
    let instances = there.iter().filter(|family| family.name != REDUCTION);
    let runs: BTreeSet<&str> = instances.map(|family| topic(family.name)).collect();
    let lacking = lacking
        .into_iter()
        .filter(|family| !runs.contains(topic(family.name)));
    let mut needed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for family in lacking {
        let targets = family.modules.iter().map(|module| module.target);
        needed
            .entry(topic(family.name))
            .or_default()
            .extend(targets);
    }
    let lacks = needed.into_iter().map(|(topic, targets)| {
        let targets: Vec<&str> = targets.into_iter().collect();
        format!("; {topic} needs {}", targets.join(" or "))
    });
    Finding::found("gpu", what + &lacks.collect::<String>())
}

/// The finding about a GPU of this compute capability, which fails if a driver of this CUDA is too old for the GPU's
/// kernels.
fn with_ptx(
    library: &PtxLibrary,
    capability: (u32, u32),
    cuda: (u32, u32),
    finding: Finding,
) -> Finding {
    let (needed, read) = (
        PtxVersion::loaded_by(library, capability),
        PtxVersion::read_by(cuda),
    );
    match needed {
        Some(needed) if read.is_none_or(|read| read < needed) => {
            let reads = read.map_or("none of it".to_string(), |read| format!("up to {read}"));
            let what = finding.what;
            Finding {
                fails: true,
                ..Finding::missing(
                    "gpu",
                    format!("{what}; its kernels are in {needed}, and the driver reads {reads}"),
                    format!("install NVIDIA's driver, {}", needed.first_driver()),
                )
            }
        }
        Some(needed) => Finding {
            what: format!("{}; its kernels are in {needed}", finding.what),
            ..finding
        },
        None => finding,
    }
}

/// A family of kernels: its name, and why the device does not run it.
type FamilyHere = (&'static str, Option<String>);

/// The families of GEMM kernels, each with its types, on the device that commands use.
fn gemm(device: &Device) -> Vec<Finding> {
    let mut families: BTreeMap<FamilyHere, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for family in Gemm::families(device) {
        let types = families.entry((family.name, family.refusal)).or_default();
        let of_c: &mut Vec<&str> = types.entry(family.operands).or_default();
        // A family of several precisions has its types several times.
        if !of_c.contains(&family.c) {
            of_c.push(family.c);
        }
    }
    let findings = families.into_iter().map(|((name, refusal), types)| {
        let types = types.into_iter();
        let types = types.map(|(operands, c)| format!("{operands} into {}", c.join(", ")));
        let what = format!("{name}: {}", types.collect::<Vec<_>>().join("; "));
        match refusal {
            None => Finding::found("GEMM", what),
            Some(why) => Finding::missing("GEMM", what, why),
        }
    });
    findings.collect()
}

/// The tuning file of the environment, and whether its entries count on the device that commands use.
fn tuning(device: &Device) -> Finding {
    let topic = "tuning file";
    let variable = Tuning::VARIABLE;
    let Some(path) = Tuning::path_in_environment() else {
        return Finding::none(
            topic,
            format!("{variable} is not set: kernels are chosen by estimates"),
            format!("`cutlet tune --out FILE`, then {variable}=FILE, if a shape is slow"),
        );
    };
    let tuning = match Tuning::load(&path) {
        Ok(tuning) => tuning,
        Err(error) => return Finding::missing(topic, error, format!("correct {variable}")),
    };
    match tuning.mismatch(device) {
        Some(mismatch) => Finding::missing(
            topic,
            format!("{}: {mismatch}", path.display()),
            "tune on this device, with this version",
        ),
        None => {
            let count = tuning.entries().len();
            Finding::found(topic, format!("{} has {count} entries", path.display()))
        }
    }
}

/// The reduction of split-K, which is compiled for every GPU.
const REDUCTION: &str = "gemm::split_k_reduce";

/// The family of kernels that a module belongs to: the first part of its path, or of a GEMM the first two. The other
/// parts name instances.
fn topic(module: &'static str) -> &'static str {
    let parts = if module.starts_with("gemm::") { 2 } else { 1 };
    let end = module.match_indices("::").nth(parts - 1);
    match &module[..end.map_or(module.len(), |(end, _)| end)] {
        // The reduction is of the tensor cores' kernels alone.
        REDUCTION => "gemm::sm90",
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
    let mut versions: BTreeMap<&str, Option<PtxVersion>> = BTreeMap::new();
    for module in modules {
        let version = versions.entry(module.target).or_default();
        *version = PtxVersion::of(module).max(*version);
    }
    if versions.is_empty() {
        return Finding::missing("kernels' PTX", "none is built in", "reinstall cutlet");
    }
    let targets = versions.into_iter().map(|(target, version)| match version {
        Some(version) => format!("{target} ({version})"),
        None => target.to_string(),
    });
    let targets: Vec<String> = targets.collect();
    let (modules, bytes) = size(library);
    Finding::found(
        "kernels' PTX",
        format!(
            "{} for {}; {modules} modules in {:.1} MB",
            topics.join(", "),
            targets.join(", "),
            bytes as f64 / 1e6
        ),
    )
}

/// The modules of a library, and the bytes that they take in the program.
fn size(library: &PtxLibrary) -> (usize, usize) {
    let modules = || library.families.iter().flat_map(|family| family.modules);
    let bytes = modules().map(|module| match module.ptx {
        PtxText::Plain(text) => text.len(),
        PtxText::Zlib(zlib) => zlib.len(),
        // They are counted where they are compiled.
        PtxText::Replaced { .. } => 0,
    });
    (modules().count(), bytes.sum())
}

fn toolchain() -> Finding {
    match Toolchain::find() {
        Ok(toolchain) => Finding::found("device toolchain", toolchain),
        Err(none) => Finding::none(
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
        Err(cublas::CublasError::Missing { found }) => Finding::none(
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
            assert_eq!(what, "a GPU; gemm::sm90 needs sm_90a");
        }
        let hopper = of_capability((9, 0));
        assert!(hopper.found);
        assert_eq!(hopper.what, "a GPU");
        let turing = of_capability((7, 5));
        assert!(!turing.found && turing.fix.is_some());
    }

    #[test]
    fn a_driver_that_is_too_old_for_a_gpus_kernels_is_a_failure() {
        let library = &cutlet_kernels::PTX;
        let of = |capability, cuda| with_ptx(library, capability, cuda, of_capability(capability));
        for capability in [(8, 0), (9, 0)] {
            let new = of(capability, (13, 0));
            assert!(new.found && !new.fails);
            assert!(
                new.what.contains("; its kernels are in PTX "),
                "{}",
                new.what
            );
            let old = of(capability, (10, 2));
            assert!(!old.found && old.fails);
            assert!(
                old.what.ends_with("and the driver reads none of it"),
                "{}",
                old.what
            );
            let first = PtxVersion::loaded_by(library, capability).map(PtxVersion::first_driver);
            let fix = format!("install NVIDIA's driver, {}", first.unwrap());
            assert_eq!(old.fix, Some(fix));
        }
        let hopper = of((9, 0), (11, 0));
        assert!(hopper.fails && hopper.what.ends_with("the driver reads up to PTX 7.0"));
        assert!(!of((7, 5), (13, 0)).fails);
    }

    #[test]
    fn the_driver_in_the_fix_reads_the_kernels_ptx() {
        let driver = without_driver("there is none".to_string());
        let highest = PtxVersion::highest(&cutlet_kernels::PTX).unwrap();
        let fix = driver.fix.unwrap();
        assert!(fix.contains(&highest.first_driver()), "{fix}");
    }

    #[test]
    fn the_block_has_everything_but_fixes() {
        let report = Report {
            version: "0.1.0",
            build: "a build".to_string(),
            system: "Linux".to_string(),
            processor: "a chip".to_string(),
            variables: variables(
                [("CUTLET_TUNING", "file"), ("HOME", "/root")]
                    .map(|(name, value)| (name.into(), value.into()))
                    .into_iter(),
            ),
            findings: vec![
                Finding::found("backend", "cpu"),
                Finding::missing("gpu", "no GPU", "buy one"),
            ],
        };
        let expected = "```text\ncutlet 0.1.0, a build\nsystem: Linux\nprocessor: a chip\nbackend: cpu\n\
                        gpu: missing: no GPU\nCUTLET_TUNING=file\n```";
        assert_eq!(report.block(), expected);
        let printed = report.to_string();
        assert!(
            printed.contains("fix: buy one") && printed.ends_with(expected),
            "{printed}"
        );
    }

    #[test]
    fn every_gemm_family_is_listed_with_its_types() {
        let findings = gemm(&Device::cpu());
        assert!(findings.iter().all(|finding| finding.found));
        let listed = |line: &str| findings.iter().any(|finding| finding.what == line);
        assert!(listed("gemm-simt: f32 into f32, bf16, f16"));
        for family in Gemm::families(&Device::cpu()) {
            let name = format!("{}: ", family.name);
            let found = findings.iter().find(|it| it.what.starts_with(&name));
            let found = &found.expect("the family is listed").what;
            assert!(
                found.contains(&format!("{} into ", family.operands)),
                "{found}"
            );
        }
    }
}
