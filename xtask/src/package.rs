//! Packages every published crate as for a registry, with the PTX of the kernels inside, and compiles the packages.

use std::{path::Path, process::Command};

use crate::{
    archive,
    kernel_package::{Formats, KERNELS},
    process::{self, Outcome, cargo, output, root},
    workspace::{self, Package, target_dir},
};

/// Packages, unpacks and builds.
pub fn run() -> Outcome {
    ship_ptx()?;
    let target_dir = target_dir()?;
    let folder = target_dir.join("package");
    // An archive of an earlier version would be mistaken for a new one.
    remove_folder(&folder)?;
    let published = workspace::published()?;
    // `--allow-dirty`, because git does not track the PTX that is shipped.
    let mut package = cargo("package --no-verify --allow-dirty");
    for Package { name, .. } in &published {
        package.args(["--package", name]);
    }
    process::run(&mut package)?;
    archive::check(&published, &folder)?;
    verify(&published, &folder, &target_dir)
}

/// Fills `kernels/ptx`. Only a published package takes its PTX from there, not the repository.
fn ship_ptx() -> Outcome {
    let folder = root().join("kernels/ptx");
    remove_folder(&folder)?;
    std::fs::create_dir(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    for module in KERNELS.build(Formats::Derived)?.modules() {
        let name = module.path.file_name().unwrap_or_default();
        std::fs::copy(&module.path, folder.join(name))
            .map_err(|error| format!("cannot copy {}: {error}", module.path.display()))?;
    }
    Ok(())
}

fn remove_folder(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Builds every package from its archive in `folder`, into the repository's target folder.
///
/// `cargo package` can verify packages as well. But it unpacks them into cargo's home folder by name and version, and
/// its next run builds against what it finds there, however old. So the archives are unpacked side by side here, in a
/// workspace that uses them instead of the registry's.
fn verify(published: &[Package], folder: &Path, target_dir: &Path) -> Outcome {
    let house = folder.join("unpacked");
    let failed = |error: std::io::Error| format!("cannot fill {}: {error}", house.display());
    std::fs::create_dir_all(&house).map_err(failed)?;
    for package in published {
        output(
            // Archives carry a fixed date. Files that look as old as those of the last run would not be compiled again.
            Command::new("tar")
                .arg("-xzmf")
                .arg(package.archive(folder))
                .arg("-C")
                .arg(&house),
        )?;
    }
    let manifest = workspace_manifest(published, &workspace::test_profile()?);
    std::fs::write(house.join("Cargo.toml"), manifest).map_err(failed)?;
    std::fs::copy(root().join("Cargo.lock"), house.join("Cargo.lock")).map_err(failed)?;
    for Package { name, .. } in published {
        // One at a time, so that no package uses a feature that only another one asks for. What an archive may lack is
        // found without machine code.
        process::run(
            cargo(&format!("check --package {name}"))
                .current_dir(&house)
                .env("CARGO_TARGET_DIR", target_dir)
                // This path names no compiler, so a package without its PTX fails here.
                .env("CUTLET_RUSTC", house.join("no-device-toolchain")),
        )?;
    }
    println!("{} packages compile from their archives", published.len());
    Ok(())
}

/// The manifest of a workspace of the unpacked packages, with the profile of the repository.
fn workspace_manifest(published: &[Package], profile: &str) -> String {
    let members: Vec<String> = published
        .iter()
        .map(|package| format!("{:?}", package.folder()))
        .collect();
    let patches: String = published
        .iter()
        .map(|package| format!("{} = {{ path = {:?} }}\n", package.name, package.folder()))
        .collect();
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n[patch.crates-io]\n{patches}\n{profile}",
        members.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_become_members_that_replace_the_registry() {
        let published: Vec<_> = ["cutlet", "cutlet-layout-core"]
            .map(|name| Package {
                name: name.to_owned(),
                version: "0.1.0".to_owned(),
                missing: Vec::new(),
            })
            .into();
        let manifest = workspace_manifest(&published, "[profile.dev]\nopt-level = 1\n");
        assert!(
            manifest.contains("members = [\"cutlet-0.1.0\", \"cutlet-layout-core-0.1.0\"]"),
            "{manifest}"
        );
        assert!(
            manifest.contains("cutlet-layout-core = { path = \"cutlet-layout-core-0.1.0\" }"),
            "{manifest}"
        );
        assert!(
            manifest.ends_with("[profile.dev]\nopt-level = 1\n"),
            "{manifest}"
        );
    }
}
