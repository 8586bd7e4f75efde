//! NVIDIA's assembler, and what it reports about a PTX module.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::output;
use crate::{Error, Lookup, Wheel};

const WHEEL: Wheel = Wheel {
    package: "nvidia-cuda-nvcc==13.0.88",
    sha256: [
        "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
    ],
    program: "nvidia/cu13/bin/ptxas",
    instead: "CUTLET_PTXAS",
};

/// What `ptxas -v` reports about one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of stack per thread.
    pub stack: u32,
    /// Bytes that a thread stores to memory because it has too few registers.
    pub spill_stores: u32,
    /// Bytes of these that a thread loads back.
    pub spill_loads: u32,
    /// Bytes of statically sized shared memory per block.
    pub shared: u32,
}

impl Usage {
    /// The larger of each figure.
    #[must_use]
    pub fn worst(&self, other: &Usage) -> Usage {
        Usage {
            registers: self.registers.max(other.registers),
            stack: self.stack.max(other.stack),
            spill_stores: self.spill_stores.max(other.spill_stores),
            spill_loads: self.spill_loads.max(other.spill_loads),
            shared: self.shared.max(other.shared),
        }
    }
}

/// What `ptxas -v` reports about a module.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The entries, by name.
    pub entries: BTreeMap<String, Usage>,
    /// Lines with a warning or with a note on lost performance.
    pub warnings: Vec<String>,
}

/// The assembler.
pub struct Ptxas {
    program: PathBuf,
}

impl Ptxas {
    /// Finds the assembler, or fetches it. The variable `CUTLET_PTXAS` names another one.
    ///
    /// # Errors
    /// If it has to be fetched and cannot be.
    pub fn get(lookup: &Lookup<'_>) -> Result<Self, Error> {
        Ok(Self::at(lookup.find(&WHEEL)?))
    }

    /// The assembler in this file.
    pub fn at(program: PathBuf) -> Self {
        Self { program }
    }

    /// The assembler's file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The assembler's version, as in `13.0.88`.
    ///
    /// # Errors
    /// If the assembler does not run.
    pub fn version(&self) -> Result<String, Error> {
        let (printed, _) = output(Command::new(&self.program).arg("--version"))?;
        Ok(read_version(&printed).to_owned())
    }

    /// Assembles the PTX file for `gpu` (such as `sm_90a`) into a cubin, and returns the report.
    ///
    /// # Errors
    /// If the assembler does not run, or refuses the file.
    pub fn assemble(&self, ptx: &Path, gpu: &str, cubin: &Path) -> Result<Report, Error> {
        let (printed, complained) = output(
            Command::new(&self.program)
                .args(["-v", &format!("-arch={gpu}"), "-o"])
                .args([cubin, ptx]),
        )?;
        Ok(read_report(&format!("{printed}{complained}")))
    }
}

/// The version in `Cuda compilation tools, release 13.0, V13.0.88`.
fn read_version(printed: &str) -> &str {
    let version = printed.split_once(", V").map(|(_, rest)| rest);
    let version = version.and_then(|rest| rest.split_whitespace().next());
    version.unwrap_or("of an unknown version")
}

fn read_report(text: &str) -> Report {
    let mut report = Report::default();
    let mut compiling = None;
    let mut described = None;
    for line in text.lines() {
        // A `C75…` note ("Potential Performance Loss") is not marked as a warning.
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
            // Functions that are not entries are described as well, but are not part of the report.
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

/// The number right before `unit`, or 0 if the line does not have the unit.
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
    fn the_version_is_read() {
        let printed = "ptxas: NVIDIA (R) Ptx optimizing assembler\nBuilt on Wed_Aug_20_01:53:56_PM_PDT_2025\n\
                       Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n";
        assert_eq!(read_version(printed), "13.0.88");
        assert_eq!(read_version("v1"), "of an unknown version");
    }

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
    fn the_worst_usage_has_the_larger_of_each_figure() {
        let usage = |registers, stack, spill_stores, spill_loads, shared| Usage {
            registers,
            stack,
            spill_stores,
            spill_loads,
            shared,
        };
        assert_eq!(
            usage(168, 0, 4, 0, 48).worst(&usage(128, 16, 0, 8, 0)),
            usage(168, 16, 4, 8, 48)
        );
    }

    #[test]
    fn warnings_and_performance_notes_are_kept() {
        let warnings = read_report(PRINTED).warnings;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("C7509"));
    }
}
