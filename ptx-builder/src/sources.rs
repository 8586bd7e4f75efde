//! The files and variables that make the kernels stale when they change.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::environment;
use crate::error::BuildError;

/// The inputs of a compilation.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Sources, the manifests above them, and the lock files above the package.
    pub files: BTreeSet<PathBuf>,
    /// Variables of the environment that sources mention.
    pub variables: BTreeSet<String>,
}

impl Inputs {
    /// Reads the files from cargo's dep-info file, and the variables from those of rustc, which are in `folder`, the
    /// target directory of the nested build.
    pub fn read(dep_info: &Path, package: &Path, folder: &Path) -> Result<Inputs, BuildError> {
        let text = fs::read_to_string(dep_info).map_err(BuildError::io("reading", dep_info))?;
        let mut files: BTreeSet<PathBuf> = dependencies(&text)
            .into_iter()
            .map(|file| package.join(file))
            .collect();
        if files.is_empty() {
            let error = io::Error::new(io::ErrorKind::InvalidData, "it names no source");
            return Err(BuildError::io("reading", dep_info)(error));
        }
        // Files that the nested build generates are always newer than the start of the build script.
        files.retain(|file| !file.starts_with(folder));
        let manifest = package.join("Cargo.toml");
        let manifests = above(files.iter().chain([&manifest]), "Cargo.toml");
        files.extend(manifests);
        // Only cargo knows which of them is the workspace's.
        files.extend(above([&manifest], "Cargo.lock"));
        let mut variables = BTreeSet::new();
        add_variables(folder, &mut variables)?;
        Ok(Inputs { files, variables })
    }

    /// Adds those of another compilation.
    pub fn extend(&mut self, other: Inputs) {
        self.files.extend(other.files);
        self.variables.extend(other.variables);
    }
}

/// The files after the `:` of a rule as `make` writes it, with a backslash before each space in a name.
fn dependencies(dep_info: &str) -> Vec<String> {
    let Some((_, list)) = dep_info
        .lines()
        .next()
        .and_then(|line| line.split_once(": "))
    else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut file = String::new();
    let mut chars = list.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&' ') => {
                chars.next();
                file.push(' ');
            }
            ' ' => files.push(std::mem::take(&mut file)),
            _ => file.push(c),
        }
    }
    files.push(file);
    files.retain(|file| !file.is_empty());
    files
}

/// The files of this name in all folders above. Missing ones are left out: cargo would run the build script each time
/// for them.
fn above<'a>(files: impl IntoIterator<Item = &'a PathBuf>, name: &str) -> BTreeSet<PathBuf> {
    let folders: BTreeSet<&Path> = files
        .into_iter()
        .flat_map(|file| file.ancestors().skip(1))
        .collect();
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .filter(|path| path.exists())
        .collect()
}

/// Adds the variables that rustc lists in the dep-info files of all crates, in this folder and below.
fn add_variables(folder: &Path, variables: &mut BTreeSet<String>) -> Result<(), BuildError> {
    for entry in folder
        .read_dir()
        .map_err(BuildError::io("reading", folder))?
    {
        let path = entry.map_err(BuildError::io("reading", folder))?.path();
        if path.is_dir() {
            add_variables(&path, variables)?;
        } else if path.extension().is_some_and(|extension| extension == "d") {
            let text = fs::read(&path).map_err(BuildError::io("reading", &path))?;
            variables.extend(mentioned(&String::from_utf8_lossy(&text)).map(str::to_owned));
        }
    }
    Ok(())
}

/// The variables in a dep-info file of rustc, without those that cargo sets.
fn mentioned(dep_info: &str) -> impl Iterator<Item = &str> {
    dep_info
        .lines()
        .filter_map(|line| line.strip_prefix("# env-dep:"))
        .map(|variable| variable.split_once('=').map_or(variable, |(name, _)| name))
        .filter(|name| !environment::is_outer(name) && *name != "OUT_DIR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read() {
        assert_eq!(
            dependencies("/t/libmine.a: /a/src/lib.rs /with\\ space/x.rs\n"),
            ["/a/src/lib.rs", "/with space/x.rs"]
        );
        assert!(dependencies("").is_empty());
        assert!(dependencies("/t/libmine.a: \n").is_empty());
    }

    #[test]
    fn variables_are_read_without_those_that_cargo_sets() {
        let text = "/t/mine.d: src/lib.rs\n\n# env-dep:CARGO_PKG_NAME=mine\n# env-dep:OUT_DIR=/t/out\n\
            # env-dep:ROWS=a=b\n# env-dep:UNSET\n";
        assert_eq!(mentioned(text).collect::<Vec<_>>(), ["ROWS", "UNSET"]);
    }

    /// A folder with these files, and what is read there of the package `workspace/mine`.
    fn read(name: &str, files: &[(&str, &str)]) -> (PathBuf, Result<Inputs, BuildError>) {
        let root =
            std::env::temp_dir().join(format!("cutlet-sources-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("ROOT", &root.display().to_string())).unwrap();
        }
        let package = root.join("workspace/mine");
        let folder = root.join("nested");
        let inputs = Inputs::read(&folder.join("release/libmine.d"), &package, &folder);
        fs::remove_dir_all(&root).unwrap();
        (root, inputs)
    }

    #[test]
    fn manifests_and_lock_files_above_are_among_the_files_and_generated_ones_are_not() {
        let (root, inputs) = read(
            "files",
            &[
                ("workspace/Cargo.toml", ""),
                ("workspace/Cargo.lock", ""),
                ("workspace/mine/Cargo.toml", ""),
                ("workspace/mine/Cargo.lock", ""),
                ("theirs/Cargo.toml", ""),
                ("theirs/Cargo.lock", ""),
                ("theirs/part/Cargo.toml", ""),
                (
                    "nested/release/libmine.d",
                    "/t/libmine.a: ROOT/workspace/mine/src/lib.rs ROOT/nested/out/table.rs \
                     ROOT/theirs/part/src/lib.rs\n",
                ),
                (
                    "nested/release/deps/mine-0123.d",
                    "mine.d: src/lib.rs\n# env-dep:ROWS=4\n",
                ),
            ],
        );
        let inputs = inputs.unwrap();
        let files: Vec<_> = inputs
            .files
            .iter()
            .filter_map(|file| file.strip_prefix(&root).ok()?.to_str())
            .collect();
        assert_eq!(
            files,
            [
                "theirs/Cargo.toml",
                "theirs/part/Cargo.toml",
                "theirs/part/src/lib.rs",
                "workspace/Cargo.lock",
                "workspace/Cargo.toml",
                "workspace/mine/Cargo.lock",
                "workspace/mine/Cargo.toml",
                "workspace/mine/src/lib.rs",
            ]
        );
        assert_eq!(inputs.variables, BTreeSet::from(["ROWS".to_owned()]));
    }

    #[test]
    fn a_list_without_sources_is_an_error() {
        let (_, inputs) = read("empty", &[("nested/release/libmine.d", "")]);
        let error = inputs.unwrap_err().to_string();
        assert!(error.ends_with("libmine.d: it names no source"), "{error}");
    }
}
