//! Packages every crate as for a registry, with the kernels' PTX inside, and builds what was packaged.

use std::{path::Path, process::Command};

use crate::{
    kernel_package::KERNELS,
    process::{self, Outcome, cargo, output, root, target_dir},
};

/// Packages, unpacks and builds.
pub fn run() -> Outcome {
    ship_ptx()?;
    // Archives of an earlier version would be taken for today's.
    remove_folder(&target_dir().join("package"))?;
    // `--allow-dirty`, as what is shipped (the PTX) is not what is tracked.
    let mut package = cargo("package --workspace --no-verify --allow-dirty");
    for name in unpublished()? {
        package.args(["--exclude", &name]);
    }
    process::run(&mut package)?;
    verify()
}

/// The packages of the workspace that say `publish = false`.
fn unpublished() -> Outcome<Vec<String>> {
    let (metadata, _) = output(&mut cargo("metadata --no-deps --format-version 1"))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)
        .map_err(|error| format!("cargo's metadata is not JSON: {error}"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    Ok(packages
        .filter(|package| package["publish"].as_array().is_some_and(Vec::is_empty))
        .filter_map(|package| Some(package["name"].as_str()?.to_owned()))
        .collect())
}

/// Fills `kernels/ptx`, from which a published kernels package takes its PTX; in the repository, nothing does.
fn ship_ptx() -> Outcome {
    let folder = root().join("kernels/ptx");
    remove_folder(&folder)?;
    std::fs::create_dir(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    for module in KERNELS.build()?.modules() {
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

/// Builds every package from its archive.
///
/// `cargo package` verifies too, but it unpacks the packages into cargo's home folder by name and version, and
/// on its next run builds against what it finds there, however old. So the archives are unpacked side by side
/// here, in a workspace where they stand in for the registry's.
fn verify() -> Outcome {
    let packages = target_dir().join("package");
    let house = packages.join("unpacked");
    let failed = |error: std::io::Error| format!("cannot fill {}: {error}", house.display());
    std::fs::create_dir_all(&house).map_err(failed)?;

    let mut names = Vec::new();
    for entry in std::fs::read_dir(&packages).map_err(failed)? {
        let archive = entry.map_err(failed)?.path();
        if archive
            .extension()
            .is_some_and(|extension| extension == "crate")
        {
            output(
                // Archives carry a fixed date; files as old as the last run's would not be compiled anew.
                Command::new("tar")
                    .arg("-xzmf")
                    .arg(&archive)
                    .arg("-C")
                    .arg(&house),
            )?;
            names.extend(package_name(&archive));
        }
    }
    names.sort();

    std::fs::write(house.join("Cargo.toml"), workspace_manifest(&names)).map_err(failed)?;
    std::fs::copy(root().join("Cargo.lock"), house.join("Cargo.lock")).map_err(failed)?;
    for (name, _) in &names {
        // One at a time, so that no package profits from a feature that only another one asks for.
        process::run(
            cargo(&format!("build --package {name}"))
                .current_dir(&house)
                .env("CARGO_TARGET_DIR", target_dir())
                // No compiler is there, so a package that lacks its PTX fails here.
                .env("CUTLET_RUSTC", house.join("no-device-toolchain")),
        )?;
    }
    println!("{} packages build from their archives", names.len());
    Ok(())
}

/// `cutlet-host` and its folder `cutlet-host-0.1.0`, from the archive's name.
fn package_name(archive: &Path) -> Option<(String, String)> {
    let folder = archive.file_stem()?.to_str()?;
    let (name, _version) = folder.rsplit_once('-')?;
    Some((name.to_owned(), folder.to_owned()))
}

fn workspace_manifest(names: &[(String, String)]) -> String {
    let members: Vec<String> = names
        .iter()
        .map(|(_, folder)| format!("{folder:?}"))
        .collect();
    let patches: String = names
        .iter()
        .map(|(name, folder)| format!("{name} = {{ path = {folder:?} }}\n"))
        .collect();
    // The same optimisation as the repository's tests, so that no dependency is compiled twice.
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n[patch.crates-io]\n{patches}\n\
         [profile.dev]\nopt-level = 1\n",
        members.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_become_members_that_replace_the_registry() {
        let names: Vec<_> = ["a/cutlet-0.1.0.crate", "a/cutlet-layout-core-0.1.0.crate"]
            .iter()
            .filter_map(|archive| package_name(Path::new(archive)))
            .collect();
        let manifest = workspace_manifest(&names);
        assert!(
            manifest.contains("members = [\"cutlet-0.1.0\", \"cutlet-layout-core-0.1.0\"]"),
            "{manifest}"
        );
        assert!(
            manifest.contains("cutlet-layout-core = { path = \"cutlet-layout-core-0.1.0\" }"),
            "{manifest}"
        );
    }
}
