//! The nested cargo: one package compiled for one target, to one PTX text.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::environment;
use crate::error::BuildError;
use crate::toolchain::Toolchain;

/// The package that is compiled.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its name.
    pub name: String,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// The features that are on.
    pub features: Vec<String>,
}

/// How it is compiled.
#[derive(Debug)]
pub(crate) struct Compilation<'a> {
    /// The compiler.
    pub toolchain: &'a Toolchain,
    /// The package.
    pub package: &'a Package,
    /// The target, as in `sm_90a`.
    pub target: &'a str,
    /// Whether instructions carry their source line.
    pub line_info: bool,
    /// Where the nested cargo keeps what it made, for this target.
    pub folder: PathBuf,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The crate's name in paths.
    pub krate: String,
    /// The text, as rustc wrote it.
    pub ptx: String,
    /// cargo's list of the source files that went in.
    pub dep_info: PathBuf,
}

/// Unrolls the loops over a thread's values, without which their arrays end up in memory rather than in
/// registers. Only the kernels' own crate gets it, which is where their generic code is compiled: the loops
/// of libraries, over the leaves of a layout for example, take minutes when unrolled like that.
const UNROLL: &str = "-Cllvm-args=-unroll-threshold=20000";

/// Settings of the profile, so that those of the user's workspace do not matter.
const PROFILE: [(&str, &str); 9] = [
    ("OPT_LEVEL", "3"),
    ("LTO", "fat"),
    ("CODEGEN_UNITS", "1"),
    ("PANIC", "abort"),
    ("DEBUG_ASSERTIONS", "false"),
    ("OVERFLOW_CHECKS", "false"),
    ("INCREMENTAL", "false"),
    ("STRIP", "none"),
    ("SPLIT_DEBUGINFO", "off"),
];

impl Compilation<'_> {
    /// Runs cargo, which compiles what has changed.
    pub fn run(&self) -> Result<Compiled, BuildError> {
        fs::create_dir_all(&self.folder)
            .map_err(BuildError::io("making the folder", &self.folder))?;
        let ptx = self.folder.join(format!("{:016x}.ptx", self.key()));
        // What the outer build fetched is enough, as a rule; then no connection is needed.
        let mut output = self.cargo(&ptx, true)?;
        if !output.status.success() && mentions_offline(&output.stderr) {
            output = self.cargo(&ptx, false)?;
        }
        if !output.status.success() {
            return Err(BuildError::Compile {
                package: self.package.name.clone(),
                target: self.target.to_owned(),
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        let archive =
            artifact(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| BuildError::Ptx {
                target: self.target.to_owned(),
                why: format!("cargo did not say what it made of `{}`", self.package.name),
            })?;
        let stem = archive.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Compiled {
            krate: stem.strip_prefix("lib").unwrap_or(&stem).to_owned(),
            ptx: fs::read_to_string(&ptx).map_err(BuildError::io("reading", &ptx))?,
            dep_info: archive.with_extension("d"),
        })
    }

    fn cargo(&self, ptx: &Path, offline: bool) -> Result<Output, BuildError> {
        let mut command = Command::new(self.toolchain.cargo());
        environment::scrub(&mut command);
        for (name, value) in PROFILE {
            command.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
        }
        let debug = if self.line_info {
            "line-directives-only"
        } else {
            "none"
        };
        command
            .current_dir(&self.package.folder)
            .env("CARGO_PROFILE_RELEASE_DEBUG", debug)
            .env("CARGO_BUILD_BUILD_DIR", &self.folder)
            .env("RUSTC", self.toolchain.rustc())
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env("RUSTFLAGS", self.rustflags())
            // A static library needs no linker, and link-time optimisation makes it one module.
            .args([
                "rustc",
                "--quiet",
                "--lib",
                "--crate-type",
                "staticlib",
                "--release",
            ])
            .args(["--target", "nvptx64-nvidia-cuda"])
            .arg("--target-dir")
            .arg(&self.folder)
            .arg("--message-format=json-render-diagnostics")
            .arg("--no-default-features")
            .arg(format!("--features={}", self.package.features.join(",")));
        if self.toolchain.core_from_source() {
            command.arg("-Zbuild-std=core");
        }
        if offline {
            command.arg("--offline");
        }
        let mut emit = std::ffi::OsString::from("--emit=asm=");
        emit.push(ptx);
        command.arg("--").arg(emit).arg(UNROLL);
        command
            .output()
            .map_err(BuildError::io("running", self.toolchain.cargo()))
    }

    /// Flags for every crate that the kernels consist of.
    /// For every crate, `core` included.
    fn rustflags(&self) -> String {
        format!("-Ctarget-cpu={}", self.target)
    }

    /// Tells apart the texts that one folder holds; cargo would take one for the other.
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.package.folder.hash(&mut hasher);
        self.package.features.hash(&mut hasher);
        self.toolchain.rustc().hash(&mut hasher);
        self.toolchain.version().hash(&mut hasher);
        self.line_info.hash(&mut hasher);
        self.rustflags().hash(&mut hasher);
        UNROLL.hash(&mut hasher);
        hasher.finish()
    }
}

fn mentions_offline(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("offline")
}

/// The static library among cargo's messages; the package itself is the last one.
fn artifact(messages: &str) -> Option<PathBuf> {
    let message = messages.lines().rev().find(|line| {
        line.contains(r#""reason":"compiler-artifact""#) && line.contains(r#"["staticlib"]"#)
    })?;
    let (_, files) = message.split_once(r#""filenames":["#)?;
    let file = files.strip_prefix('"')?;
    let mut path = String::new();
    let mut escaped = false;
    for c in file.chars() {
        match c {
            _ if escaped => {
                path.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some(PathBuf::from(path)),
            _ => path.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_artifact_is_read_from_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"kind":["lib"]},"filenames":["/t/libcore.rlib"]}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"kind":["staticlib"]},"filenames":["/t/a \"b\"/libmine.a"],"executable":null}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(
            artifact(messages),
            Some(PathBuf::from("/t/a \"b\"/libmine.a"))
        );
        assert_eq!(artifact(r#"{"reason":"build-finished"}"#), None);
    }
}
