//! Assembles every instruction of the device crate. They are texts in the source, so only an assembler finds a mistake
//! in them.

use cutlet_machine_code::{
    Ptxas,
    assembly::{self, Assembled},
};
use cutlet_ptx_builder::BuiltModule;

use crate::{
    gpus::{self, FEW_GPUS},
    kernel_package::{Formats, INSTRUCTIONS},
    process::Outcome,
    workspace::target_dir,
};

/// Compiles the kernels with every instruction, and assembles them. Any complaint is an error.
pub fn assemble(ptxas: &Ptxas) -> Outcome {
    let built = INSTRUCTIONS.build(Formats::Derived)?;
    let folder = target_dir()?.join("machine-code/instructions");
    let mut faults = Vec::new();
    assembly::assemble(
        ptxas,
        built.modules(),
        |target| gpus::of(target, FEW_GPUS),
        &folder,
        |module, assembled| {
            let found = assembled.iter().filter_map(|one| complaint(module, one));
            faults.extend(found);
        },
    )
    .map_err(|error| error.to_string())?;
    if faults.is_empty() {
        println!(
            "\n{} modules with every instruction of the device crate: no errors, no warnings",
            built.modules().len()
        );
        Ok(())
    } else {
        Err(format!(
            "ptxas refuses instructions of the device crate, whose text is in device/src. It names lines of the \
             PTX:\n{}",
            faults.join("\n")
        ))
    }
}

/// Lines of a fault that are shown: one mistake may be in hundreds of instructions.
const SHOWN: usize = 6;

/// The assembler's complaint about a module.
fn complaint(module: &BuiltModule, assembled: &Assembled<'_>) -> Option<String> {
    let fault = match &assembled.report {
        Err(error) => error.to_string(),
        Ok(report) if !report.warnings.is_empty() => report.warnings.join("\n"),
        Ok(report) if report.entries.is_empty() => "ptxas saw no entry in it".to_owned(),
        Ok(_) => return None,
    };
    let module = assembly::describe(module, assembled.gpu);
    Some(format!("{module}: {}", shortened(&fault)))
}

/// The first lines of a fault, and how many more there are.
fn shortened(fault: &str) -> String {
    let lines: Vec<&str> = fault.lines().collect();
    match lines.get(..SHOWN) {
        Some(first) if lines.len() > SHOWN => {
            format!(
                "{}\n… and {} lines more",
                first.join("\n"),
                lines.len() - SHOWN
            )
        }
        _ => fault.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_fault_is_shortened() {
        assert_eq!(shortened("1\n2\n3\n4\n5\n6"), "1\n2\n3\n4\n5\n6");
        assert_eq!(
            shortened("1\n2\n3\n4\n5\n6\n7\n8"),
            "1\n2\n3\n4\n5\n6\n… and 2 lines more"
        );
    }
}
