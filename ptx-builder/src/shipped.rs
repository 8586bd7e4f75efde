//! The PTX that a published package carries in its folder `ptx/`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::built::Built;
use crate::copies;
use crate::error::BuildError;

/// The folder, if this is a published package that has one, or that must have one.
///
/// `cargo package` leaves the manifest as it was written in `Cargo.toml.orig`. In a working copy the
/// folder is only what the next package will carry, and may be older than the kernels.
pub(crate) fn folder(package: &Path, must: bool) -> Option<PathBuf> {
    let folder = package.join("ptx");
    let is_published = package.join("Cargo.toml.orig").exists();
    (is_published && (must || folder.is_dir())).then_some(folder)
}

/// Names and texts of the files in the folder, and of the copies that it lists. None if the folder is missing.
pub(crate) fn files(folder: &Path) -> Result<Vec<(String, String)>, BuildError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let text = |path: PathBuf| fs::read_to_string(&path).map_err(BuildError::io("reading", path));
    let mut files = Vec::new();
    for entry in folder
        .read_dir()
        .map_err(BuildError::io("reading", folder))?
    {
        let path = entry.map_err(BuildError::io("reading", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == copies::LIST || name.ends_with(".ptx") {
            files.push((name.into_owned(), text(path)?));
        }
    }
    for copy in copies::read(folder)? {
        // A package may carry copies as well.
        if files.iter().all(|(name, _)| *name != copy.file) {
            let of = text(folder.join(&copy.of))?;
            files.push((copy.file.clone(), copy.text(&of)));
        }
    }
    Ok(files)
}

/// Returns an error unless the package carries PTX for each target; `command` is what fills its folder.
pub(crate) fn check(
    built: &Built,
    package: &str,
    targets: &[String],
    command: &str,
) -> Result<(), BuildError> {
    let has = |target: &String| {
        built
            .modules()
            .iter()
            .any(|module| module.target == *target)
    };
    match targets.iter().find(|target| !has(target)) {
        None => Ok(()),
        Some(target) => Err(BuildError::NotShipped {
            package: package.to_owned(),
            target: target.clone(),
            command: command.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built::BuiltModule;

    #[test]
    fn a_package_without_ptx_for_a_target_is_refused() {
        let [sm_80, sm_90a] = ["sm_80", "sm_90a"].map(str::to_owned);
        let built = Built::from_iter([BuiltModule {
            family: "gemm".to_owned(),
            target: sm_80.clone(),
            path: PathBuf::from("ptx/gemm.sm_80.ptx"),
        }]);
        check(&built, "mine", std::slice::from_ref(&sm_80), "make ptx").unwrap();
        let error = check(&built, "mine", &[sm_80, sm_90a], "make ptx").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the package `mine` carries no PTX for sm_90a: run `make ptx` in its repository, which fills its folder `ptx`"
        );
    }
}
