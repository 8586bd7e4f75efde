//! The files that a change of which makes the kernels stale.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::BuildError;

/// The sources in cargo's dep-info file, the manifests of their packages, and the workspace's
/// manifest and lock file.
pub(crate) fn of(dep_info: &Path, package: &Path) -> Result<BTreeSet<PathBuf>, BuildError> {
    let text = fs::read_to_string(dep_info).map_err(BuildError::io("reading", dep_info))?;
    let mut files: BTreeSet<PathBuf> = dependencies(&text)
        .into_iter()
        .map(|file| package.join(file))
        .collect();
    let manifests: BTreeSet<PathBuf> = files
        .iter()
        .filter_map(|file| nearest(file, "Cargo.toml"))
        .collect();
    files.extend(manifests);
    files.insert(package.join("Cargo.toml"));
    if let Some(lock) = nearest(&package.join("Cargo.toml"), "Cargo.lock") {
        files.insert(lock.with_file_name("Cargo.toml"));
        files.insert(lock);
    }
    Ok(files)
}

/// The files after the `:` of a rule as `make` writes it; a space in a name follows a backslash.
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
    files
}

/// The file of this name in the nearest folder above.
fn nearest(file: &Path, name: &str) -> Option<PathBuf> {
    file.ancestors()
        .skip(1)
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
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
    }

    #[test]
    fn manifests_are_among_the_files() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dep_info =
            std::env::temp_dir().join(format!("cutlet-sources-{}.d", std::process::id()));
        let source = package.join("src/lib.rs");
        fs::write(&dep_info, format!("/t/libmine.a: {}\n", source.display())).unwrap();
        let files = of(&dep_info, package);
        fs::remove_file(&dep_info).unwrap();
        let files = files.unwrap();
        assert!(files.contains(&source));
        assert!(files.contains(&package.join("Cargo.toml")));
    }
}
