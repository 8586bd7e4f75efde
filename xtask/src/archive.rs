//! The archives of the published packages: unpacks them, and checks what is inside and how large they are.

use std::{fs::File, path::Path};

use flate2::read::GzDecoder;
use tar::Archive;

use crate::{process::Outcome, workspace::Package};

/// Files at the top of every archive.
const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// The most bytes of an archive. A registry refuses a larger one.
const LARGEST: u64 = 10_000_000;

/// Unpacks the archives of the packages, which are in `archives`, side by side into `folder`. Prints their sizes, and
/// returns an error that lists all that they lack.
pub fn unpack(published: &[Package], archives: &Path, folder: &Path) -> Outcome {
    println!(
        "\n{:<24} {:>6} {:>9} {:>9}",
        "package", "files", "kB", "unpacked"
    );
    let mut faults = Vec::new();
    for package in published {
        let archive = package.archive(archives);
        let size = unpack_one(&archive, folder)
            .map_err(|error| format!("cannot unpack {}: {error}", archive.display()))?;
        println!(
            "{:<24} {:>6} {:>9} {:>9}",
            package.name,
            size.files,
            size.compressed / 1000,
            size.unpacked / 1000
        );
        faults.extend(faults_of(package, &size, &folder.join(package.folder())));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("packages are incomplete:\n{}", faults.join("\n")))
    }
}

/// How large an archive is, in bytes.
struct Size {
    files: usize,
    compressed: u64,
    unpacked: u64,
}

fn unpack_one(archive: &Path, folder: &Path) -> std::io::Result<Size> {
    let file = File::open(archive)?;
    let mut size = Size {
        files: 0,
        compressed: file.metadata()?.len(),
        unpacked: 0,
    };
    let mut archive = Archive::new(GzDecoder::new(file));
    // Archives carry a fixed date. Files that look as old as those of the last run would not be compiled again.
    archive.set_preserve_mtime(false);
    for entry in archive.entries()? {
        let mut entry = entry?;
        size.files += 1;
        size.unpacked += entry.size();
        entry.unpack_in(folder)?;
    }
    Ok(size)
}

/// What a package lacks that is unpacked in `folder`.
fn faults_of(package: &Package, size: &Size, folder: &Path) -> Vec<String> {
    let Package { name, missing, .. } = package;
    let files = FILES
        .into_iter()
        .filter(|file| !folder.join(file).is_file());
    let mut faults: Vec<String> = files
        .map(|file| format!("{name}: no {file} in its archive"))
        .chain(
            missing
                .iter()
                .map(|key| format!("{name}: no `{key}` in its manifest")),
        )
        .collect();
    if size.compressed > LARGEST {
        faults.push(format!(
            "{name}: its archive has {} bytes; the most are {LARGEST}",
            size.compressed
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{process::root, workspace::published};

    #[test]
    fn what_a_package_lacks_is_listed() {
        let folder = std::env::temp_dir().join(format!("cutlet-archive-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("fonts/LICENSE-MIT")).unwrap();
        std::fs::write(folder.join("README.md"), "").unwrap();
        std::fs::write(folder.join("LICENSE-APACHE"), "").unwrap();
        let package = Package {
            missing: vec!["license"],
            ..Package::named("a")
        };
        let size = Size {
            files: 3,
            compressed: LARGEST + 1,
            unpacked: 1,
        };
        let faults = faults_of(&package, &size, &folder);
        assert_eq!(
            faults,
            [
                "a: no LICENSE-MIT in its archive",
                "a: no `license` in its manifest",
                "a: its archive has 10000001 bytes; the most are 10000000",
            ]
        );
        std::fs::remove_dir_all(folder).unwrap();
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
