//! `cutlet ptx`: what the assembler makes of a package's kernels.

mod programs;
mod report;
mod source;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cutlet_machine_code::assembly::{Assembled, assemble};
use cutlet_ptx_builder::BuiltModule;

use crate::output::Output;
use crate::progress::ProgressArgs;
use programs::Programs;
use report::Report;

/// Assemble the kernels of a package, and print their registers, spills, memory and hot loops.
///
/// Builds the package, takes the PTX that its build script made, assembles it with NVIDIA's ptxas
/// and disassembles the result. ptxas is the one that CUTLET_PTXAS names, else that of an installed CUDA toolkit, else
/// one that is fetched with pip.
///
/// The hot loop is the innermost loop with most instructions. Options for cargo follow `--`:
/// `cutlet ptx -- --package mine --features more`.
#[derive(Args, Debug)]
pub struct PtxArgs {
    /// The folder of a package, a folder of PTX files, or a file. By default, the package of the current folder.
    path: Option<PathBuf>,

    /// The GPUs for which PTX for older ones is assembled, as the driver does: sm_90,sm_120. By default, PTX is
    /// assembled for its target.
    #[arg(long, value_name = "GPUS", value_delimiter = ',', value_parser = gpu)]
    gpu: Vec<String>,

    /// The folder for machine code and its listings. By default, it is in the target folder, or beside the PTX.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Options for cargo.
    #[arg(last = true, value_name = "CARGO_OPTIONS")]
    cargo: Vec<String>,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    progress: ProgressArgs,
}

/// Runs the command. It fails if the assembler refuses PTX.
pub fn run(args: &PtxArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let progress = args.progress.beside(&args.output);
    let sources = source::find(args.path.as_deref(), &args.cargo, &args.output)?;
    let Programs { ptxas, nvdisasm } = Programs::find(&progress)?;
    let mut report = Report::of(&ptxas)?;
    let modules = sources.iter().map(|source| source.modules.len()).sum();
    progress.begin("assembling", modules);
    for source in &sources {
        let folder = args.out.as_ref().unwrap_or(&source.machine_code);
        let gpus = |target| gpus(target, &args.gpu);
        let mut all: Vec<(&BuiltModule, Vec<Assembled<'_>>)> = Vec::new();
        assemble(
            &ptxas,
            &source.modules,
            gpus,
            folder,
            |module, assembled| {
                progress.advance(1);
                all.push((module, assembled));
            },
        )?;
        for (module, assembled) in all {
            for one in assembled {
                report.add(module, one, &nvdisasm)?;
            }
        }
    }
    progress.end();
    report.complain(&args.output);
    args.output.result(&report)?;
    Ok(report.exit_code())
}

/// Reads the name of a GPU.
fn gpu(name: &str) -> Result<String, String> {
    let number = name.strip_prefix("sm_").unwrap_or_default();
    let number = number.trim_end_matches(|last: char| last.is_ascii_lowercase());
    match number.parse::<u32>() {
        Ok(_) => Ok(name.to_string()),
        Err(_) => Err("a GPU is written as in sm_90".to_string()),
    }
}

/// The GPUs that PTX for a target is assembled for. PTX for a target with a letter runs on no other GPU.
fn gpus<'a>(target: &'a str, asked: &'a [String]) -> Vec<&'a str> {
    let is_portable = target.ends_with(|last: char| last.is_ascii_digit());
    match is_portable && !asked.is_empty() {
        true => asked.iter().map(String::as_str).collect(),
        false => vec![target],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_gpus_are_for_ptx_that_runs_on_them() {
        let asked = ["sm_90".to_string(), "sm_120".to_string()];
        assert_eq!(gpus("sm_80", &asked), ["sm_90", "sm_120"]);
        assert_eq!(gpus("sm_90a", &asked), ["sm_90a"]);
        assert_eq!(gpus("sm_80", &[]), ["sm_80"]);
    }

    #[test]
    fn a_gpu_has_a_number() {
        assert_eq!(gpu("sm_100a"), Ok("sm_100a".to_string()));
        for wrong in ["hopper", "90", "sm_", "sm_a"] {
            assert!(gpu(wrong).is_err(), "{wrong}");
        }
    }
}
