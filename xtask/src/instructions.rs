//! Assembles every instruction of the device crate. They are texts in the source, so only an assembler finds a mistake
//! in them.

use std::{
    path::Path,
    sync::Mutex,
    thread::{self, available_parallelism},
};

use cutlet_ptx_builder::BuiltModule;

use crate::{kernel_package::INSTRUCTIONS, process::Outcome, ptxas::Ptxas, workspace::target_dir};

/// Compiles the kernels with every instruction, and assembles them. Any complaint is an error.
pub fn assemble(ptxas: &Ptxas) -> Outcome {
    let built = INSTRUCTIONS.build()?;
    let folder = target_dir()?.join("machine-code/instructions");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let open = Mutex::new(built.modules().iter());
    let faults = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let next = || open.lock().unwrap().next();
                while let Some(module) = next() {
                    let found = assemble_module(ptxas, module, &folder);
                    faults.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut faults = faults.into_inner().unwrap();
    faults.sort();
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
fn assemble_module(ptxas: &Ptxas, module: &BuiltModule, folder: &Path) -> Option<String> {
    let BuiltModule {
        family,
        target,
        path,
    } = module;
    let name = path.file_name().unwrap_or_default();
    let fault = match ptxas.assemble(path, target, &folder.join(name).with_extension("cubin")) {
        Err(error) => error,
        Ok(report) if !report.warnings.is_empty() => report.warnings.join("\n"),
        Ok(report) if report.entries.is_empty() => "ptxas saw no entry in it".to_owned(),
        Ok(_) => return None,
    };
    Some(format!("{family} for {target}: {}", shortened(&fault)))
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
