//! The examples: programs of the root package, and packages of their own as a user would have them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    package::Packages,
    process::{self, Outcome, cargo, root},
    workspace::{target_dir, test_profile},
};

/// The example that `cutlet new` makes under another name.
pub const TEMPLATE: &str = "own-kernel";

/// The name of the package that `cutlet new` is asked for here.
const NEW: &str = "my-kernels";

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
        let package = Self::in_temporary_folder(name)?;
        println!("\ncopying examples/{name} to {}", package.folder.display());
        copy_folder(&root().join("examples").join(name), &package.folder)?;
        package.change_manifest(|manifest| absolute_paths(manifest, &root()))?;
        package.share_builds()?;
        Ok(package)
    }

    /// Has `cutlet new` make a package that depends on the repository.
    pub fn made_by(mut cutlet: Command) -> Outcome<Self> {
        let package = Self::in_temporary_folder(NEW)?;
        cutlet.arg("new").arg(&package.folder);
        process::run(cutlet.arg("--path").arg(root()))?;
        package.share_builds()?;
        Ok(package)
    }

    /// Has `cutlet new` make a package beside the published ones, which it uses as if they came from the registry.
    pub fn made_beside(packages: &Packages) -> Outcome<Self> {
        let package = Self {
            folder: packages.folder().join(NEW),
            target_dir: packages.folder().join("target"),
        };
        let mut cutlet = cargo("run --quiet --package cutlet-cli -- new");
        process::run(cutlet.arg(&package.folder))?;
        package.change_manifest(|manifest| format!("{manifest}\n{}", packages.patches()))?;
        Ok(package)
    }

    /// A package that will be outside of the repository, and built in its target folder.
    fn in_temporary_folder(name: &str) -> Outcome<Self> {
        let folder = format!("cutlet-{name}-{}", std::process::id());
        Ok(Self {
            folder: std::env::temp_dir().join(folder),
            target_dir: target_dir()?,
        })
    }

    /// With the lock file, target folder and profile of the repository, no package of the registry is compiled a second
    /// time.
    fn share_builds(&self) -> Outcome {
        let profile = test_profile()?;
        self.change_manifest(|manifest| format!("{manifest}\n{profile}"))?;
        let lock = self.folder.join("Cargo.lock");
        std::fs::copy(root().join("Cargo.lock"), &lock)
            .map_err(|error| format!("cannot copy {}: {error}", lock.display()))?;
        Ok(())
    }

    fn change_manifest(&self, change: impl Fn(&str) -> String) -> Outcome {
        let file = self.folder.join("Cargo.toml");
        std::fs::read_to_string(&file)
            .and_then(|text| std::fs::write(&file, change(&text)))
            .map_err(|error| format!("cannot change {}: {error}", file.display()))
    }

    /// Whether the package has this file or folder.
    pub fn has(&self, path: &str) -> bool {
        self.folder.join(path).exists()
    }

    /// cargo, started in the package with the arguments of `line`.
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

fn copy_folder(from: &Path, to: &Path) -> Outcome {
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
        if name == "target" || name == "Cargo.lock" {
            continue;
        }
        if path.is_dir() {
            copy_folder(&path, &to.join(name))?;
        } else {
            std::fs::copy(&path, to.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The manifest with `root` in place of `../..` in every `path`, so that paths still lead to the repository.
fn absolute_paths(manifest: &str, root: &Path) -> String {
    let root = root.display().to_string().replace('\\', "/");
    manifest.replace("path = \"../..", &format!("path = \"{root}"))
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
        let copy = UsersPackage::copy_of("own-epilogue").unwrap();
        let folder = copy.folder.clone();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.ends_with(&test_profile().unwrap()), "{manifest}");
        drop(copy);
        assert!(!folder.exists());
    }
}
