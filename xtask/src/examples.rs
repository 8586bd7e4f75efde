//! The examples: programs of the root package, and packages of their own as a user would have them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    process::{Outcome, cargo, root},
    workspace::{target_dir, test_profile},
};

/// The names of all examples, each list in order.
pub struct Examples {
    /// The numbered programs.
    pub programs: Vec<String>,
    /// The packages.
    pub packages: Vec<String>,
}

impl Examples {
    /// Finds them.
    pub fn find() -> Outcome<Self> {
        let folder = root().join("examples");
        let (mut programs, mut packages) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(&folder)
            .map_err(|error| format!("cannot read {}: {error}", folder.display()))?
        {
            let Ok(name) = entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
            else {
                continue;
            };
            if let Some(name) = name.strip_suffix(".rs") {
                programs.push(name.to_owned());
            } else if folder.join(&name).join("Cargo.toml").exists() {
                packages.push(name);
            }
        }
        programs.sort();
        packages.sort();
        Ok(Self { programs, packages })
    }
}

/// A package outside the repository, as its user would have it. The value removes its folder when it is dropped.
pub struct UsersPackage {
    folder: PathBuf,
    target_dir: PathBuf,
}

impl UsersPackage {
    /// Copies the example of this name.
    pub fn copy_of(name: &str) -> Outcome<Self> {
        let copy = Self {
            folder: std::env::temp_dir().join(format!("cutlet-{name}-{}", std::process::id())),
            target_dir: target_dir()?,
        };
        let folder = &copy.folder;
        println!("\ncopying examples/{name} to {}", folder.display());
        copy_package(
            &root().join("examples").join(name),
            folder,
            &test_profile()?,
        )?;
        // With the lock file, target folder and profile of the repository, no package of the registry is compiled a
        // second time.
        std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))
            .map_err(|error| format!("cannot copy Cargo.lock to {}: {error}", folder.display()))?;
        Ok(copy)
    }

    /// cargo, started in the copy with the arguments of `line`.
    pub fn cargo(&self, line: &str) -> Command {
        let mut command = cargo(line);
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target_dir);
        command
    }
}

impl Drop for UsersPackage {
    fn drop(&mut self) {
        // The copy holds nothing of value. If it cannot be removed, the system clears it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Copies a package. In the copied manifest, paths of dependencies are absolute, so that they still lead to the
/// repository, and the profile is added.
fn copy_package(from: &Path, to: &Path, profile: &str) -> Outcome {
    let failed = |error| {
        format!(
            "cannot copy {} to {}: {error}",
            from.display(),
            to.display()
        )
    };
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if name == "target" {
            continue;
        }
        if path.is_dir() {
            copy_package(&path, &to.join(name), profile)?;
        } else if name == "Cargo.toml" {
            let manifest = std::fs::read_to_string(&path).map_err(failed)?;
            let manifest = absolute_paths(&manifest, &root());
            std::fs::write(to.join(name), format!("{manifest}\n{profile}")).map_err(failed)?;
        } else {
            std::fs::copy(&path, to.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The manifest with `root` in place of `../..` in every `path`.
fn absolute_paths(manifest: &str, root: &Path) -> String {
    manifest.replace("path = \"../..", &format!("path = \"{}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_dependencies_become_absolute() {
        assert_eq!(
            absolute_paths(
                "cutlet = { path = \"../..\" }\ndevice = { path = \"../../device\" }\n",
                Path::new("/house")
            ),
            "cutlet = { path = \"/house\" }\ndevice = { path = \"/house/device\" }\n"
        );
    }

    #[test]
    fn a_copy_is_compiled_as_the_repository_is_and_ends_with_its_value() {
        let copy = UsersPackage::copy_of("own-kernel").unwrap();
        let folder = copy.folder.clone();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.ends_with(&test_profile().unwrap()), "{manifest}");
        drop(copy);
        assert!(!folder.exists());
    }
}
