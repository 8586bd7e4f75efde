//! What `cutlet ptx` prints.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use cutlet_machine_code::assembly::{self, Assembled};
use cutlet_machine_code::listing::{self, Entry};
use cutlet_machine_code::ptx;
use cutlet_machine_code::{Nvdisasm, Ptxas};
use cutlet_ptx_builder::BuiltModule;
use serde::Serialize;

use crate::output::Output;

/// The kernels of all modules.
#[derive(Debug, Serialize)]
pub struct Report {
    ptxas: Assembler,
    kernels: Vec<KernelReport>,
    failed: Vec<Failure>,
    /// The files that were read and written.
    files: Vec<Files>,
    #[serde(skip)]
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Assembler {
    program: PathBuf,
    version: String,
}

/// A kernel on a GPU.
#[derive(Debug, Serialize)]
struct KernelReport {
    kernel: String,
    /// What its PTX is for.
    target: String,
    /// What it was assembled for.
    gpu: String,
    threads: Option<u32>,
    registers: u32,
    spill_store_bytes: u32,
    spill_load_bytes: u32,
    /// Shared memory of a block.
    shared_bytes: u32,
    /// Local memory of a thread.
    local_bytes: u32,
    instructions: usize,
    /// None if the kernel has no loop.
    hot_loop: Option<HotLoop>,
}

/// The innermost loop with most instructions.
#[derive(Debug, Serialize)]
struct HotLoop {
    instructions: usize,
    /// Its first line in the listing.
    line: usize,
}

/// A module that the assembler refused.
#[derive(Debug, Serialize)]
struct Failure {
    ptx: PathBuf,
    gpu: String,
    error: String,
}

/// The files of a module for a GPU.
#[derive(Debug, Serialize)]
struct Files {
    ptx: PathBuf,
    gpu: String,
    sass: PathBuf,
}

impl Report {
    /// A report without kernels yet.
    pub fn of(ptxas: &Ptxas) -> Result<Report, cutlet_machine_code::Error> {
        Ok(Report {
            ptxas: Assembler {
                program: ptxas.program().to_path_buf(),
                version: ptxas.version()?,
            },
            kernels: Vec::new(),
            failed: Vec::new(),
            files: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// Adds the kernels of a module for a GPU, and writes their listing.
    pub fn add(
        &mut self,
        module: &BuiltModule,
        assembled: Assembled<'_>,
        nvdisasm: &Nvdisasm,
    ) -> Result<(), Box<dyn Error>> {
        let Assembled { gpu, cubin, report } = assembled;
        let ptx = module.path.clone();
        match report {
            Ok(report) => {
                let sass = cubin.with_extension("sass");
                let listing = nvdisasm.list(&cubin)?;
                fs::write(&sass, &listing)
                    .map_err(|error| format!("writing {}: {error}", sass.display()))?;
                self.add_kernels(module, gpu, &report, &listing)?;
                let gpu = gpu.to_string();
                self.files.push(Files { ptx, gpu, sass });
            }
            Err(error) => self.failed.push(Failure {
                ptx,
                gpu: gpu.to_string(),
                error: error.to_string(),
            }),
        }
        Ok(())
    }

    fn add_kernels(
        &mut self,
        module: &BuiltModule,
        gpu: &str,
        report: &cutlet_machine_code::Report,
        listing: &str,
    ) -> Result<(), Box<dyn Error>> {
        let described = assembly::describe(module, gpu);
        let warnings = report.warnings.iter();
        self.warnings
            .extend(warnings.map(|warning| format!("{described}: {warning}")));
        let text = fs::read_to_string(&module.path)
            .map_err(|error| format!("reading {}: {error}", module.path.display()))?;
        let code = listing::read(listing);
        for kernel in ptx::kernels(&text) {
            let usage = report.entries.get(&kernel.name);
            let entry = code.iter().find(|entry| entry.name() == kernel.name);
            let (Some(usage), Some(entry)) = (usage, entry) else {
                let kernel = &kernel.name;
                let warning = format!("{described}: the machine code has no {kernel}");
                self.warnings.push(warning);
                continue;
            };
            let hot_loop = self.hot_loop(&described, entry);
            self.kernels.push(KernelReport {
                target: module.target.clone(),
                gpu: gpu.to_string(),
                threads: kernel.threads,
                registers: usage.registers,
                spill_store_bytes: usage.spill_stores,
                spill_load_bytes: usage.spill_loads,
                shared_bytes: usage.shared + kernel.launch_shared.unwrap_or(0),
                local_bytes: usage.stack,
                instructions: entry.code().len(),
                hot_loop,
                kernel: kernel.name,
            });
        }
        Ok(())
    }

    /// The hot loop of a kernel. A warning says if its code is not understood.
    fn hot_loop(&mut self, module: &str, entry: &Entry<'_>) -> Option<HotLoop> {
        let hot = entry.hot_loop().unwrap_or_else(|error| {
            let kernel = entry.name();
            let warning = format!("{module}: no loops are found in {kernel}: {error}");
            self.warnings.push(warning);
            None
        })?;
        Some(HotLoop {
            instructions: hot.code.len(),
            line: hot.code.first()?.line,
        })
    }

    /// Prints warnings, and why modules failed.
    pub fn complain(&self, output: &Output) {
        for warning in &self.warnings {
            output.warning(warning);
        }
        for Failure { ptx, gpu, error } in &self.failed {
            output.error(format!("{} for {gpu}: {error}", ptx.display()));
        }
    }

    /// That of a failure if a module was refused.
    pub fn exit_code(&self) -> ExitCode {
        match self.failed.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Assembler { program, version } = &self.ptxas;
        writeln!(f, "ptxas {version}, {}\n", program.display())?;
        let names = self.kernels.iter().map(|it| it.kernel.len());
        let width = names.max().unwrap_or(0).max("kernel".len());
        writeln!(
            f,
            "{:<width$}  {:<16} {:>9} {:>8} {:>7} {:>6} {:>13}  hot loop",
            "kernel", "target", "registers", "spilled", "shared", "local", "instructions"
        )?;
        for kernel in &self.kernels {
            writeln!(f, "{:<width$}  {kernel}", kernel.kernel)?;
        }
        let mut last = None;
        for Files { ptx, sass, .. } in &self.files {
            if last.replace(ptx) != Some(ptx) {
                write!(f, "\nPTX   {}", ptx.display())?;
            }
            write!(f, "\nSASS  {}", sass.display())?;
        }
        Ok(())
    }
}

/// The columns of a kernel behind its name.
impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.gpu == self.target {
            true => self.target.clone(),
            false => format!("{} on {}", self.target, self.gpu),
        };
        let hot_loop = match &self.hot_loop {
            Some(HotLoop { instructions, line }) => format!("{instructions}, line {line}"),
            None => "none".to_string(),
        };
        write!(
            f,
            "{target:<16} {:>9} {:>8} {:>7} {:>6} {:>13}  {hot_loop}",
            self.registers,
            self.spill_store_bytes + self.spill_load_bytes,
            self.shared_bytes,
            self.local_bytes,
            self.instructions,
        )
    }
}
