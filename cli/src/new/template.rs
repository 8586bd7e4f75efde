//! The files of a new package: those of `examples/own-kernel`, with another name and other dependencies.

use std::path::{Path, PathBuf};

/// The name of the example, in manifests and in code.
const NAME: [&str; 2] = ["own-kernel", "own_kernel"];

/// How the example's manifest begins the path of one of cutlet's packages.
const PATH: &str = "path = \"../..";

/// A file of the template.
pub struct File {
    /// Its path in the package.
    pub path: &'static str,
    text: &'static str,
}

/// All files. Those in the folder `template` are links to the example.
pub const FILES: [File; 10] = [
    file("Cargo.toml", include_str!("../../template/manifest.toml")),
    file("build.rs", include_str!("../../template/build.rs")),
    file("src/lib.rs", include_str!("../../template/lib.rs")),
    file("src/host.rs", include_str!("../../template/host.rs")),
    file("src/main.rs", include_str!("../../template/main.rs")),
    file("tests/cpu.rs", include_str!("../../template/test.rs")),
    file("benches/copy.rs", include_str!("../../template/bench.rs")),
    file("README.md", include_str!("../../template/README.md")),
    file(".gitignore", include_str!("../../template/gitignore")),
    file(
        ".github/workflows/ci.yml",
        include_str!("../../template/ci.yml"),
    ),
];

const fn file(path: &'static str, text: &'static str) -> File {
    File { path, text }
}

/// Where cutlet's packages come from.
pub enum Origin {
    /// The registry, in the version of this program.
    Registry,
    /// A checkout of the repository.
    Checkout(PathBuf),
}

/// The whole path of a checkout.
pub fn checkout(folder: &Path) -> Result<PathBuf, String> {
    let is_one = folder.join("device/Cargo.toml").is_file();
    match folder.canonicalize() {
        Ok(folder) if is_one => Ok(folder),
        _ => Err(format!(
            "{} is no checkout of cutlet's repository: it has no device/Cargo.toml",
            folder.display()
        )),
    }
}

impl File {
    /// The text in a package of this name.
    pub fn text(&self, name: &str, origin: &Origin) -> String {
        let [as_package, as_crate] = NAME;
        let text = self
            .text
            .replace(as_package, name)
            .replace(as_crate, &name.replace('-', "_"));
        match (self.path, origin) {
            ("Cargo.toml", Origin::Registry) => with_versions(&text),
            ("Cargo.toml", Origin::Checkout(root)) => {
                let root = root.display().to_string().replace('\\', "/");
                text.replace(PATH, &format!("path = \"{root}"))
            }
            _ => text,
        }
    }
}

/// The manifest with this program's version in place of every path.
fn with_versions(manifest: &str) -> String {
    let mut parts = manifest.split(PATH);
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| {
        let rest = part.split_once('"').map_or("", |(_, rest)| rest);
        format!("{text}version = \"{}\"{rest}", env!("CARGO_PKG_VERSION"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(origin: &Origin) -> toml::Table {
        let file = FILES.iter().find(|file| file.path == "Cargo.toml");
        let text = file.expect("there is a manifest").text("mine-2", origin);
        text.parse().expect("it is TOML")
    }

    #[test]
    fn dependencies_are_the_registrys_or_those_of_a_checkout() {
        let version = env!("CARGO_PKG_VERSION");
        let from_registry = manifest(&Origin::Registry);
        assert_eq!(from_registry["package"]["name"].as_str(), Some("mine-2"));
        let builder = &from_registry["build-dependencies"]["cutlet-ptx-builder"];
        assert_eq!(builder["version"].as_str(), Some(version));
        assert!(builder.get("path").is_none());
        let from_checkout = manifest(&Origin::Checkout("/house".into()));
        let device = &from_checkout["dependencies"]["cutlet-device"];
        assert_eq!(device["path"].as_str(), Some("/house/device"));
        let profile = &from_checkout["profile"]["dev"]["package"]["mine-2"];
        assert_eq!(profile["opt-level"].as_integer(), Some(1));
    }

    #[test]
    fn no_file_keeps_the_examples_name() {
        for file in &FILES {
            let text = file.text("mine-2", &Origin::Registry);
            assert!(
                !NAME.iter().any(|name| text.contains(name)),
                "{}",
                file.path
            );
        }
    }
}
