//! The examples: programs of the root package, and packages of their own as a user would have them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    package::Packages,
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
        let profile = test_profile()?;
        copy_package(name, folder, |manifest| {
            format!("{}\n{profile}", absolute_paths(manifest, &root()))
        })?;
        // With the lock file, target folder and profile of the repository, no package of the registry is compiled a
        // second time.
        std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))
            .map_err(|error| format!("cannot copy Cargo.lock to {}: {error}", folder.display()))?;
        Ok(copy)
    }

    /// Copies the example of this name beside the published packages, which it uses as if they came from the registry.
    pub fn of_packages(name: &str, packages: &Packages) -> Outcome<Self> {
        let copy = Self {
            folder: packages.folder().join(name),
            target_dir: packages.folder().join("target"),
        };
        let version = env!("CARGO_PKG_VERSION");
        copy_package(name, &copy.folder, |manifest| {
            format!("{}\n{}", versions(manifest, version), packages.patches())
        })?;
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

/// Copies an example that is a package, with a changed manifest.
fn copy_package(name: &str, to: &Path, manifest: impl Fn(&str) -> String) -> Outcome {
    println!("\ncopying examples/{name} to {}", to.display());
    copy_folder(&root().join("examples").join(name), to, &manifest)
}

fn copy_folder(from: &Path, to: &Path, manifest: &dyn Fn(&str) -> String) -> Outcome {
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
            copy_folder(&path, &to.join(name), manifest)?;
        } else if name == "Cargo.toml" {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            std::fs::write(to.join(name), manifest(&text)).map_err(failed)?;
        } else {
            std::fs::copy(&path, to.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The manifest with `version` in place of every path that leads out of the example.
fn versions(manifest: &str, version: &str) -> String {
    let mut parts = manifest.split("path = \"../..");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.split_once('"').map_or("", |(_, rest)| rest);
        format!("{text}version = \"{version}\"{rest}")
    })
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
    fn paths_of_dependencies_become_versions() {
        assert_eq!(
            versions(
                "cutlet = { path = \"../..\" }\ndevice = { path = \"../../device\", optional = true }\n",
                "0.1.0"
            ),
            "cutlet = { version = \"0.1.0\" }\ndevice = { version = \"0.1.0\", optional = true }\n"
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
