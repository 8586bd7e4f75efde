//! Packages every published crate as for a registry, with the PTX of the kernels inside, and unpacks the packages
//! outside of the repository.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    archive,
    kernel_package::{Formats, KERNELS},
    process::{self, Outcome, cargo, root},
    workspace::{self, Package, target_dir},
};

/// The published packages, unpacked side by side in a folder of the system for temporary files. Nothing above it is a
/// package. The value removes the folder when it is dropped.
///
/// `cargo package` can verify packages as well. But it unpacks them into cargo's home folder by name and version, and
/// its next run builds against what it finds there, however old.
pub struct Packages {
    folder: PathBuf,
    published: Vec<Package>,
}

impl Packages {
    /// Packages and unpacks them. Each is checked for what a registry asks for.
    pub fn make() -> Outcome<Self> {
        ship_ptx()?;
        let archives = target_dir()?.join("package");
        // An archive of an earlier version would be mistaken for a new one.
        remove_folder(&archives)?;
        let published = workspace::published()?;
        // `--allow-dirty`, because git does not track the PTX that is shipped.
        let mut package = cargo("package --no-verify --allow-dirty");
        for Package { name, .. } in &published {
            package.args(["--package", name]);
        }
        process::run(&mut package)?;
        let packages = Self {
            folder: empty_folder()?,
            published,
        };
        packages.unpack(&archives)?;
        Ok(packages)
    }

    fn unpack(&self, archives: &Path) -> Outcome {
        let workspace = self.workspace();
        let failed =
            |error: std::io::Error| format!("cannot fill {}: {error}", workspace.display());
        std::fs::create_dir(&workspace).map_err(failed)?;
        archive::unpack(&self.published, archives, &workspace)?;
        let manifest = workspace_manifest(&self.published, &workspace::test_profile()?);
        std::fs::write(workspace.join("Cargo.toml"), manifest).map_err(failed)?;
        std::fs::copy(root().join("Cargo.lock"), workspace.join("Cargo.lock")).map_err(failed)?;
        Ok(())
    }

    /// The folder. Besides the packages it is empty.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The packages, in an order in which they can be published.
    pub fn published(&self) -> &[Package] {
        &self.published
    }

    /// A workspace of all packages, which use each other instead of the registry's.
    fn workspace(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// Has a command run in the workspace of the packages, with the repository's target folder and without a device
    /// toolchain. A package that lacks its PTX does not build there.
    pub fn enter(&self, command: &mut Command) -> Outcome {
        command
            .current_dir(self.workspace())
            .env("CARGO_TARGET_DIR", target_dir()?);
        self.hide_device_toolchain(command);
        Ok(())
    }

    /// Names a compiler for kernels that is not there.
    pub fn hide_device_toolchain(&self, command: &mut Command) {
        command.env("CUTLET_RUSTC", self.folder.join("no-device-toolchain"));
    }

    /// Lines of a manifest by which the packages take the place of the registry's.
    pub fn patches(&self) -> String {
        patches(&self.published, &self.workspace())
    }
}

impl Drop for Packages {
    fn drop(&mut self) {
        // The folder holds nothing of value. If it cannot be removed, the system clears it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Fills `kernels/ptx`. Only a published package takes its PTX from there, not the repository.
fn ship_ptx() -> Outcome {
    let folder = root().join("kernels/ptx");
    remove_folder(&folder)?;
    std::fs::create_dir(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    for file in KERNELS.build(Formats::Derived)?.shipped() {
        let name = file.file_name().unwrap_or_default();
        std::fs::read_to_string(&file)
            .and_then(|text| std::fs::write(folder.join(name), compact(&text)))
            .map_err(|error| format!("cannot copy {}: {error}", file.display()))?;
    }
    Ok(())
}

/// PTX without indentation and without the marks of inline assembly: 3 % of an archive.
fn compact(ptx: &str) -> String {
    let is_mark = |line: &&str| matches!(*line, "// begin inline asm" | "// end inline asm");
    let lines = ptx.lines().map(str::trim_start);
    lines
        .filter(|line| !is_mark(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}

fn remove_folder(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Makes an empty folder that no manifest is above.
fn empty_folder() -> Outcome<PathBuf> {
    let folder = std::env::temp_dir().join(format!("cutlet-packages-{}", std::process::id()));
    remove_folder(&folder)?;
    if let Some(above) = folder
        .ancestors()
        .find(|above| above.join("Cargo.toml").exists())
    {
        return Err(format!(
            "{} has a Cargo.toml, in whose workspace the packages would be: set TMPDIR to another folder",
            above.display()
        ));
    }
    std::fs::create_dir(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    Ok(folder)
}

/// The manifest of a workspace of the unpacked packages, with the profile of the repository.
fn workspace_manifest(published: &[Package], profile: &str) -> String {
    let members: Vec<String> = published
        .iter()
        .map(|package| format!("{:?}", package.folder()))
        .collect();
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n{}\n{profile}",
        members.join(", "),
        patches(published, Path::new(""))
    )
}

fn patches(published: &[Package], folder: &Path) -> String {
    let lines = published.iter().map(|package| {
        let path = folder.join(package.folder());
        format!("{} = {{ path = {path:?} }}\n", package.name)
    });
    format!("[patch.crates-io]\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_ptx_keeps_instructions_and_what_the_build_needs() {
        let ptx = "// cutlet-shared 64\n{\n\t// begin inline asm\n\tgriddepcontrol.wait;\n\t// end inline asm\n\tret;\n}";
        assert_eq!(
            compact(ptx),
            "// cutlet-shared 64\n{\ngriddepcontrol.wait;\nret;\n}\n"
        );
    }

    #[test]
    fn archives_become_members_that_replace_the_registry() {
        let published = ["cutlet", "cutlet-layout-core"].map(Package::named);
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
