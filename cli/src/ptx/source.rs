//! Where the PTX comes from: the build of a package, or files.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cutlet_machine_code::{cargo, ptx};
use cutlet_ptx_builder::{Built, BuiltModule};
use serde_json::Value;

use crate::output::Output;

/// PTX files that belong together.
pub struct Source {
    pub modules: Vec<BuiltModule>,
    /// The folder for their machine code, unless another one is asked for.
    pub machine_code: PathBuf,
}

/// The PTX of the package in a folder, that in a folder, or that in a file.
pub fn find(
    path: Option<&Path>,
    options: &[String],
    output: &Output,
) -> Result<Vec<Source>, Box<dyn Error>> {
    let path = path.unwrap_or(Path::new("."));
    if path.is_dir() && ptx_files(path)?.is_empty() {
        return of_packages(path, options, output);
    }
    if !options.is_empty() {
        return Err(format!("{} is no package: cargo does not build it", path.display()).into());
    }
    Ok(vec![of_files(path)?])
}

/// The PTX files in a folder, or the one file, in the order of their names.
fn ptx_files(path: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let failed = |error| format!("reading {}: {error}", path.display());
    let entries = fs::read_dir(path).map_err(failed)?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    files.sort();
    Ok(files)
}

fn of_files(path: &Path) -> Result<Source, Box<dyn Error>> {
    let modules = ptx_files(path)?.into_iter().map(module);
    let folder = match path.is_dir() {
        true => path,
        false => path.parent().unwrap_or(Path::new("")),
    };
    Ok(Source {
        modules: modules.collect::<Result<_, _>>()?,
        machine_code: folder.join("machine-code"),
    })
}

/// The module in a file of any name.
fn module(path: PathBuf) -> Result<BuiltModule, Box<dyn Error>> {
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("reading {}: {error}", path.display()))?;
    let target = ptx::target(&text).ok_or_else(|| {
        format!(
            "{} has no line with `.target`: it is no PTX",
            path.display()
        )
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(BuiltModule {
        family: name.split('.').next().unwrap_or_default().to_string(),
        target: target.to_string(),
        path,
    })
}

/// The PTX of the packages of a workspace that cargo builds in this folder.
fn of_packages(
    folder: &Path,
    options: &[String],
    output: &Output,
) -> Result<Vec<Source>, Box<dyn Error>> {
    let workspace = Workspace::around(folder)?;
    let messages = build(folder, options, output)?;
    let mut sources = Vec::new();
    for package in cargo::packages_with_ptx(&messages) {
        if let Some(name) = workspace.name_of(&package.id) {
            sources.push(Source {
                modules: Built::read(&package.folder)?.modules().to_vec(),
                machine_code: workspace.target.join("machine-code").join(name),
            });
        }
    }
    match sources.is_empty() {
        false => Ok(sources),
        true => Err(format!(
            "cargo built no kernels in {}: a package with kernels has a build script that calls cutlet-ptx-builder, as \
             `cutlet new` makes it",
            folder.display()
        )
        .into()),
    }
}

/// Has cargo build, and returns its messages. It prints its progress and the compiler's errors,
/// except beside JSON.
fn build(folder: &Path, options: &[String], output: &Output) -> Result<String, Box<dyn Error>> {
    let mut command = cargo::cargo();
    command
        .args(["build", "--message-format", "json-render-diagnostics"])
        .args(options)
        .current_dir(folder)
        .stdin(Stdio::null());
    if !output.json {
        command.stderr(Stdio::inherit());
    }
    printed(&mut command)
}

/// What the command prints, if it succeeds.
fn printed(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let task = command.get_args().next().unwrap_or_default();
        let task = task.to_string_lossy();
        let failed = format!("`cargo {task}` failed\n{complaint}");
        return Err(failed.trim_end().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A workspace of cargo.
struct Workspace {
    target: PathBuf,
    /// cargo's names of the packages, and their own.
    packages: Vec<(String, String)>,
}

impl Workspace {
    fn around(folder: &Path) -> Result<Workspace, Box<dyn Error>> {
        let mut command = cargo::cargo();
        command
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(folder);
        Workspace::read(&printed(&mut command)?)
    }

    fn read(metadata: &str) -> Result<Workspace, Box<dyn Error>> {
        let metadata: Value = serde_json::from_str(metadata)?;
        let text = |value: &Value| value.as_str().map(str::to_string);
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let packages = packages.filter_map(|it| Some((text(&it["id"])?, text(&it["name"])?)));
        Ok(Workspace {
            packages: packages.collect(),
            target: text(&metadata["target_directory"])
                .ok_or("cargo's metadata names no target folder")?
                .into(),
        })
    }

    /// The name of a package that cargo calls so, if it is in the workspace.
    fn name_of(&self, id: &str) -> Option<&str> {
        let mut packages = self.packages.iter();
        let (_, name) = packages.find(|(known, _)| known == id)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_workspace_are_told_from_others() {
        let metadata =
            r#"{"packages":[{"id":"path+file:///a#0.1.0","name":"a"}],"target_directory":"/t"}"#;
        let workspace = Workspace::read(metadata).unwrap();
        assert_eq!(workspace.name_of("path+file:///a#0.1.0"), Some("a"));
        assert_eq!(workspace.name_of("registry+b#0.1.0"), None);
        assert_eq!(workspace.target, Path::new("/t"));
    }
}
