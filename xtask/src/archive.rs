//! Checks that the archive of every published package has its licences and a README, and that its manifest describes
//! it.

use std::{path::Path, process::Command};

use crate::{
    process::{Outcome, output},
    workspace::Package,
};

/// Files at the top of every archive.
const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Returns an error that lists everything that the archives and manifests of the packages lack.
pub fn check(published: &[Package], folder: &Path) -> Outcome {
    let mut faults = Vec::new();
    for package in published {
        let archive = package.archive(folder);
        let (entries, _) = output(Command::new("tar").arg("-tzf").arg(&archive))?;
        let missing = FILES
            .into_iter()
            .filter(|file| !holds(&entries, &package.folder(), file))
            .map(|file| format!("{}: no {file} in {}", package.name, archive.display()));
        faults.extend(missing);
        let missing = package
            .missing
            .iter()
            .map(|key| format!("{}: no `{key}` in its manifest", package.name));
        faults.extend(missing);
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("packages are incomplete:\n{}", faults.join("\n")))
    }
}

/// Whether the listing of an archive that unpacks to `folder` has the file.
fn holds(entries: &str, folder: &str, file: &str) -> bool {
    entries.lines().any(|entry| {
        entry
            .strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/'))
            == Some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{process::root, workspace::published};

    #[test]
    fn only_a_file_at_the_top_counts() {
        let entries = "a-0.1.0/README.md\na-0.1.0/fonts/LICENSE-MIT\n";
        assert!(holds(entries, "a-0.1.0", "README.md"));
        assert!(!holds(entries, "a-0.1.0", "LICENSE-MIT"));
        assert!(!holds(entries, "b-0.1.0", "README.md"));
    }

    #[test]
    fn the_readme_of_every_package_is_tested() {
        let tested = std::fs::read_to_string(root().join("xtask/readmes/src/lib.rs")).unwrap();
        for Package { name, .. } in published().unwrap() {
            // The README of the library is the repository's, and shows a kernel of cutlet-kernels.
            let Some(folder) = name.strip_prefix("cutlet-") else {
                continue;
            };
            let library = root().join(folder).join("src/lib.rs");
            let library = std::fs::read_to_string(library).unwrap();
            // A library whose documentation it is tests it itself.
            let tests_itself = library.contains("#![doc = include_str!(\"../README.md\")]");
            let is_tested = tested.contains(&format!("/{folder}/README.md\""));
            assert!(tests_itself || is_tested, "{name}");
        }
    }
}
