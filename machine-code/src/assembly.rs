//! Assembles PTX modules, several at a time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, available_parallelism};

use cutlet_device::for_sm_90;
use cutlet_ptx_builder::BuiltModule;

use crate::{Error, Ptxas, Report};

/// A module, assembled for one GPU.
pub struct Assembled<'a> {
    /// The GPU, as in `sm_86`.
    pub gpu: &'a str,
    /// The machine code, if there was no error.
    pub cubin: PathBuf,
    /// What the assembler reported.
    pub report: Result<Report, Error>,
}

/// Assembles each module for the GPUs that `gpus` names for its target, into files of `folder`. There are as many
/// assemblers at a time as processors. Calls `done` for each module in the order given, as soon as it and the ones
/// before it are assembled.
///
/// # Errors
/// If the folder cannot be made. What the assembler refuses is part of [`Assembled`].
pub fn assemble<'a>(
    ptxas: &Ptxas,
    modules: &'a [BuiltModule],
    gpus: impl Fn(&'a str) -> Vec<&'a str>,
    folder: &Path,
    mut done: impl FnMut(&'a BuiltModule, Vec<Assembled<'a>>),
) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io("making the folder", folder))?;
    let jobs: Vec<_> = modules
        .iter()
        .flat_map(|module| {
            gpus(&module.target)
                .into_iter()
                .map(move |gpu| (module, gpu))
        })
        .collect();
    let open = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            let (jobs, open, sender) = (&jobs, &open, sender.clone());
            scope.spawn(move || {
                loop {
                    let index = open.fetch_add(1, Ordering::Relaxed);
                    let Some(&(module, gpu)) = jobs.get(index) else {
                        break;
                    };
                    let assembled = assemble_module(ptxas, module, gpu, folder);
                    // The receiver is gone only if the main thread panics.
                    let _ = sender.send((index, assembled));
                }
            });
        }
        // The threads have the remaining senders, so that receiving ends if all of them panic.
        drop(sender);
        let mut early = BTreeMap::new();
        let mut result = |wanted| loop {
            if let Some(assembled) = early.remove(&wanted) {
                return assembled;
            }
            let (index, assembled) = receiver.recv().expect("each job sends its result");
            early.insert(index, assembled);
        };
        let mut index = 0..;
        for module in modules {
            let count = gpus(&module.target).len();
            done(
                module,
                index.by_ref().take(count).map(&mut result).collect(),
            );
        }
    });
    Ok(())
}

fn assemble_module<'a>(
    ptxas: &Ptxas,
    module: &BuiltModule,
    gpu: &'a str,
    folder: &Path,
) -> Assembled<'a> {
    let name = module.path.file_name().unwrap_or_default();
    let extension = if gpu == module.target {
        "cubin".to_owned()
    } else {
        format!("{gpu}.cubin")
    };
    let cubin = folder.join(name).with_extension(extension);
    let ptx = for_gpu(module, gpu, &cubin.with_extension("ptx"));
    Assembled {
        gpu,
        report: ptx.and_then(|ptx| ptxas.assemble(&ptx, gpu, &cubin)),
        cubin,
    }
}

/// The PTX that a GPU gets. GPUs from sm_90 on get instructions that PTX for older targets has as comments: that text is
/// written to `newer`.
fn for_gpu(module: &BuiltModule, gpu: &str, newer: &Path) -> Result<PathBuf, Error> {
    if capability(gpu) < 90 {
        return Ok(module.path.clone());
    }
    let text = fs::read_to_string(&module.path).map_err(Error::io("reading", &module.path))?;
    let Some(pieces) = for_sm_90(&text) else {
        return Ok(module.path.clone());
    };
    fs::write(newer, pieces.collect::<String>()).map_err(Error::io("writing", newer))?;
    Ok(newer.to_owned())
}

/// The number of a GPU, as 90 of `sm_90a`.
fn capability(gpu: &str) -> u32 {
    let number = gpu.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
    number.parse().unwrap_or(0)
}

/// Names a module and the GPU for which it was assembled.
pub fn describe(module: &BuiltModule, gpu: &str) -> String {
    let BuiltModule { family, target, .. } = module;
    if gpu == target {
        format!("{family} for {target}")
    } else {
        format!("{family} for {target}, on {gpu}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW_GPUS: &[&str] = &["sm_80", "sm_90", "sm_120"];

    fn module(family: &str, target: &str) -> BuiltModule {
        BuiltModule {
            family: family.to_owned(),
            target: target.to_owned(),
            path: format!("{family}.{target}.ptx").into(),
        }
    }

    #[test]
    fn newer_gpus_get_the_instructions_that_are_comments() {
        let folder = std::env::temp_dir().join(format!("cutlet-for-gpu-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (older, newer) = (folder.join("waits.sm_80.ptx"), folder.join("newer.ptx"));
        fs::write(
            &older,
            ".version 7.0\n.target sm_80\n// cutlet-sm_90 griddepcontrol.wait;\n",
        )
        .unwrap();
        let module = BuiltModule {
            path: older.clone(),
            ..module("waits", "sm_80")
        };
        assert_eq!(for_gpu(&module, "sm_89", &newer).unwrap(), older);
        for gpu in ["sm_90", "sm_120"] {
            assert_eq!(for_gpu(&module, gpu, &newer).unwrap(), newer);
            let text = fs::read_to_string(&newer).unwrap();
            assert_eq!(text, ".version 7.8\n.target sm_90\ngriddepcontrol.wait;\n");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn modules_are_done_in_order_and_for_all_their_gpus() {
        let modules = [
            module("gather", "sm_80"),
            module("gemm", "sm_90a"),
            module("saxpy", "sm_80"),
        ];
        let folder = std::env::temp_dir();
        let mut done = Vec::new();
        let ptxas = Ptxas::at("true".into());
        let gpus = |target| match target {
            "sm_80" => FEW_GPUS.to_vec(),
            other => vec![other],
        };
        assemble(&ptxas, &modules, gpus, &folder, |module, assembled| {
            let gpus: Vec<&str> = assembled.iter().map(|assembled| assembled.gpu).collect();
            done.push((module.family.as_str(), gpus));
        })
        .unwrap();
        assert_eq!(
            done,
            [
                ("gather", FEW_GPUS.to_vec()),
                ("gemm", vec!["sm_90a"]),
                ("saxpy", FEW_GPUS.to_vec()),
            ]
        );
    }

    #[test]
    fn each_gpu_has_its_own_file() {
        let (ptxas, module) = (Ptxas::at("true".into()), module("saxpy", "sm_80"));
        let cubin = |gpu| assemble_module(&ptxas, &module, gpu, Path::new("out")).cubin;
        assert_eq!(cubin("sm_80"), Path::new("out/saxpy.sm_80.cubin"));
        assert_eq!(cubin("sm_120"), Path::new("out/saxpy.sm_80.sm_120.cubin"));
    }

    #[test]
    fn a_later_gpu_is_named_beside_the_target() {
        let module = module("saxpy", "sm_80");
        assert_eq!(describe(&module, "sm_80"), "saxpy for sm_80");
        assert_eq!(describe(&module, "sm_120"), "saxpy for sm_80, on sm_120");
    }
}
