//! The repository's workspace: its target folder, the packages that it publishes, and the profile of its tests.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Outcome, cargo, output, root};

/// The target folder, whether a variable, a configuration file or nothing sets it.
pub fn target_dir() -> Outcome<PathBuf> {
    target_dir_of(&metadata()?)
}

fn target_dir_of(metadata: &Value) -> Outcome<PathBuf> {
    let folder = metadata["target_directory"].as_str();
    Ok(folder
        .ok_or("cargo's metadata names no target folder")?
        .into())
}

/// A published package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The keys of [`DESCRIBED_BY`] that its manifest lacks.
    pub missing: Vec<&'static str>,
    /// What others can use of it.
    pub library: Library,
    /// The names of the published packages that it needs.
    pub needs: Vec<String>,
}

/// What others can use of a package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Library {
    /// Nothing: it has programs only.
    #[default]
    None,
    /// Macros that run in the compiler.
    Macros,
    /// Items to link with.
    Items,
}

impl Library {
    fn of(package: &Value) -> Self {
        let targets = package["targets"].as_array().into_iter().flatten();
        let kinds: Vec<&str> = targets
            .filter_map(|target| target["kind"].as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        match () {
            () if kinds.contains(&"lib") => Self::Items,
            () if kinds.contains(&"proc-macro") => Self::Macros,
            () => Self::None,
        }
    }
}

/// What a registry shows of a package: keys that every manifest must set.
const DESCRIBED_BY: [&str; 7] = [
    "categories",
    "description",
    "documentation",
    "keywords",
    "license",
    "readme",
    "repository",
];

impl Package {
    /// The folder that its archive unpacks to: `cutlet-host-0.1.0`.
    pub fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// The path of its archive, if cargo packages into `packages`.
    pub fn archive(&self, packages: &Path) -> PathBuf {
        packages.join(format!("{}.crate", self.folder()))
    }
}

/// The packages of the workspace that are published. Each comes after those that it needs.
pub fn published() -> Outcome<Vec<Package>> {
    in_order(published_of(&metadata()?)?)
}

/// The packages without `publish = false`, by name.
fn published_of(metadata: &Value) -> Outcome<Vec<Package>> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut published = packages
        .filter(|package| {
            package["publish"]
                .as_array()
                .is_none_or(|to| !to.is_empty())
        })
        .map(|package| {
            Some(Package {
                name: package["name"].as_str()?.to_owned(),
                version: package["version"].as_str()?.to_owned(),
                missing: DESCRIBED_BY
                    .into_iter()
                    .filter(|key| is_empty(&package[key]))
                    .collect(),
                library: Library::of(package),
                needs: needs_of(package),
            })
        })
        .collect::<Option<Vec<_>>>()
        .filter(|published| !published.is_empty())
        .ok_or("cargo's metadata names no packages to publish")?;
    published.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(published)
}

/// The names of a package's dependencies in the workspace. cargo drops those without a version, which are for tests.
fn needs_of(package: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["path"].is_string() && dependency["req"] != "*")
        .filter_map(|dependency| Some(dependency["name"].as_str()?.to_owned()))
        .collect()
}

/// The packages in an order in which each can be published.
fn in_order(mut packages: Vec<Package>) -> Outcome<Vec<Package>> {
    let mut ordered: Vec<Package> = Vec::new();
    while !packages.is_empty() {
        let is_ready = |package: &Package| {
            let mut needs = package.needs.iter();
            needs.all(|need| ordered.iter().any(|before| before.name == *need))
        };
        let Some(next) = packages.iter().position(is_ready) else {
            let names: Vec<&str> = packages.iter().map(|package| &*package.name).collect();
            return Err(format!(
                "{} need each other, or a package that is not published",
                names.join(", ")
            ));
        };
        ordered.push(packages.remove(next));
    }
    Ok(ordered)
}

/// The oldest Rust that the packages are for, as in `1.95`.
pub fn rust_version() -> Outcome<String> {
    let metadata = metadata()?;
    let version = metadata["packages"][0]["rust_version"].as_str();
    Ok(version
        .ok_or("cargo's metadata names no `rust-version`")?
        .to_owned())
}

/// Whether a manifest leaves this value out, or gives an empty one.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        _ => true,
    }
}

fn metadata() -> Outcome<Value> {
    let (metadata, _) = output(&mut cargo("metadata --no-deps --format-version 1"))?;
    serde_json::from_str(&metadata)
        .map_err(|error| format!("cargo's metadata is not JSON: {error}"))
}

/// The profile of tests, as lines of the manifest. With it, a workspace elsewhere reuses the registry's packages that
/// were compiled here, and takes as little disk for its own.
pub fn test_profile() -> Outcome<String> {
    let manifest = root().join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest)
        .map_err(|error| format!("cannot read {}: {error}", manifest.display()))?;
    Ok(test_profile_of(&text))
}

/// Packages with a profile of their own that users of cutlet have, too. cargo warns of the others, because a workspace
/// lacks them.
const OF_USERS: [&str; 3] = ["cudarc", "cutlet-kernels", "cutlet-ptx-builder"];

fn test_profile_of(manifest: &str) -> String {
    let mut within = false;
    let lines = manifest.lines().filter(|&line| {
        if line.starts_with('[') {
            within = line == "[profile.dev]"
                || OF_USERS
                    .iter()
                    .any(|package| line == format!("[profile.dev.package.{package}]"));
        }
        within
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
impl Package {
    /// One that lacks nothing.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_folder_is_the_one_that_cargo_names() {
        let metadata = serde_json::json!({"target_directory": "/elsewhere"});
        assert_eq!(target_dir_of(&metadata).unwrap(), Path::new("/elsewhere"));
        target_dir_of(&Value::Null).unwrap_err();
    }

    #[test]
    fn what_says_no_publish_is_left_out() {
        let metadata = serde_json::json!({"packages": [
            {"name": "b", "version": "0.2.0", "publish": null},
            {"name": "tests", "version": "0.1.0", "publish": []},
            {"name": "a", "version": "0.1.0", "publish": ["ours"]},
        ]});
        let published = published_of(&metadata).unwrap();
        let folders: Vec<_> = published.iter().map(Package::folder).collect();
        assert_eq!(folders, ["a-0.1.0", "b-0.2.0"]);
        assert_eq!(
            published[0].archive(Path::new("target/package")),
            Path::new("target/package/a-0.1.0.crate")
        );
        published_of(&serde_json::json!({"packages": []})).unwrap_err();
    }

    #[test]
    fn a_package_comes_after_those_that_it_needs() {
        let package = |name: &str, needs: &[&str]| Package {
            needs: needs.iter().map(|&need| need.to_owned()).collect(),
            ..Package::named(name)
        };
        let packages = vec![
            package("a", &["b", "c"]),
            package("b", &["c"]),
            package("c", &[]),
        ];
        let ordered = in_order(packages).unwrap();
        let names: Vec<&str> = ordered.iter().map(|package| &*package.name).collect();
        assert_eq!(names, ["c", "b", "a"]);
        let error = in_order(vec![package("a", &["b"]), package("b", &["a"])]).unwrap_err();
        assert!(error.starts_with("a, b need each other"), "{error}");
        let last = published().unwrap().pop().unwrap();
        assert_eq!(last.name, "cutlet-cli");
    }

    #[test]
    fn what_a_manifest_lacks_is_listed() {
        let metadata = serde_json::json!({"packages": [{
            "name": "a", "version": "0.1.0", "publish": null, "description": "A.", "documentation": null,
            "keywords": [], "categories": ["science"], "license": "MIT", "readme": "README.md",
        }]});
        let published = published_of(&metadata).unwrap();
        assert_eq!(
            published[0].missing,
            ["documentation", "keywords", "repository"]
        );
    }

    #[test]
    fn the_test_profile_is_that_of_the_published_packages() {
        let manifest = "[lints]\nworkspace = true\n\n[profile.dev]\nopt-level = 1\n\n\
                        [profile.dev.package.cudarc]\nopt-level = 0\n\n\
                        [profile.dev.package.xtask]\nopt-level = 0\n\n[profile.release]\ndebug = 1\n";
        assert_eq!(
            test_profile_of(manifest),
            "[profile.dev]\nopt-level = 1\n\n[profile.dev.package.cudarc]\nopt-level = 0\n\n"
        );
        let ours = test_profile().unwrap();
        assert!(ours.contains("debug = \"line-tables-only\""), "{ours}");
        assert!(
            ours.contains("[profile.dev.package.cutlet-ptx-builder]"),
            "{ours}"
        );
    }

    /// Where a program is made of all tests, cargo does not look for others.
    #[test]
    fn every_file_of_tests_is_part_of_a_program() {
        let metadata = metadata().unwrap();
        let targets = metadata["packages"].as_array().into_iter().flatten();
        let targets = targets.filter_map(|package| package["targets"].as_array());
        let programs: Vec<&Path> = targets
            .flatten()
            .filter_map(|target| target["src_path"].as_str().map(Path::new))
            .collect();
        let of_all = programs.iter().filter(|it| it.ends_with("tests/main.rs"));
        let mut files = 0;
        for main in of_all {
            let modules = std::fs::read_to_string(main).unwrap();
            for entry in main.parent().unwrap().read_dir().unwrap() {
                let file = entry.unwrap().path();
                if file.extension().is_none_or(|it| it != "rs") {
                    continue;
                }
                let name = file.file_stem().unwrap().display();
                let is_module = modules.contains(&format!("mod {name};\n"));
                assert!(
                    is_module || programs.contains(&file.as_path()),
                    "{} is not in {}",
                    file.display(),
                    main.display()
                );
                files += 1;
            }
        }
        assert!(files > 80, "{files}");
    }
}
