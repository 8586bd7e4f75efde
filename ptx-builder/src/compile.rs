//! The nested cargo: one package compiled for one target, to PTX texts.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::SystemTime;

use crate::environment;
use crate::error::BuildError;
use crate::sources::Inputs;
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

/// What becomes of the kernels' crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// A text for each of its modules, which holds what this module needs of any crate as far as Rust
    /// can copy it there. Texts are made at the same time, and only those whose code has changed.
    Apart,
    /// One text that everything is linked into, all made anew.
    Together,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Output {
    /// The crate's name in paths.
    pub krate: String,
    /// The texts, as rustc wrote them.
    pub texts: Vec<String>,
    /// What went in.
    pub inputs: Inputs,
}

/// The version of PTX for Hopper, which drivers have known since CUDA 12.1. rustc would take the
/// first that knows the target, 8.0, and that one has no `st.async`.
const HOPPER_ISA: &str = "-Ctarget-feature=+ptx81";

/// Unrolls the loops over a thread's values, without which their arrays end up in memory rather than in
/// registers. Only the kernels' own crate gets it, which is where their generic code is compiled: the loops
/// of libraries, over the leaves of a layout for example, take minutes when unrolled like that.
const UNROLL: &str = "-Cllvm-args=-unroll-threshold=100000";

/// Copies functions of other crates into each text that calls them, as if all were `#[inline]`. Each crate
/// says at its own compilation what may be copied, `core` too.
const COPY: &str = "-Zcross-crate-inline-threshold=always";

/// Has small functions merged while they are generic, once for all their instances. Layouts consist of such
/// functions, and LLVM would merge them for each instance anew.
const MERGE: &str = "-Zinline-mir-threshold=1000 -Zinline-mir-hint-threshold=1000 -Zinline-mir-forwarder-threshold=1000";

/// More modules than a package has: rustc makes a text for each.
const TEXTS: &str = "-Ccodegen-units=4096";

/// Settings of the profile, so that those of the user's workspace do not matter: what it says of single
/// packages, and what changes their code, is overruled by [flags](Compilation::rustflags). With link-time
/// optimisation no machine code is made of the other crates; that the kernels' own crate goes without is said to its rustc
/// alone, so that the others serve either way.
const PROFILE: [(&str, &str); 8] = [
    ("OPT_LEVEL", "3"),
    ("LTO", "fat"),
    ("CODEGEN_UNITS", "1"),
    ("PANIC", "abort"),
    ("DEBUG_ASSERTIONS", "false"),
    ("OVERFLOW_CHECKS", "false"),
    ("STRIP", "none"),
    ("SPLIT_DEBUGINFO", "off"),
];

/// What the user's profile could set for a package of its own, as far as it changes its code.
const ALIKE: &str = "-Copt-level=3 -Cdebug-assertions=off -Coverflow-checks=off";

/// A variable that differs each time a nested cargo compiles the package.
///
/// The package's build script has cargo look at it, so that rustc runs each time: which of the texts in its
/// folder a run has made is known only if the folder was empty before.
pub(crate) fn run_variable(package: &str) -> String {
    format!("CUTLET_PTX_RUN_{package}")
}

impl Compilation<'_> {
    /// Whether the texts of modules can stand on their own: what is called of an installed `core` is
    /// not copied.
    pub fn can_be_apart(&self) -> bool {
        self.toolchain.core_from_source()
    }

    /// Runs cargo, which compiles what has changed.
    pub fn run(&self, link: Link) -> Result<Output, BuildError> {
        fs::create_dir_all(&self.folder)
            .map_err(BuildError::io("making the folder", &self.folder))?;
        // Builds with different profiles may run at the same time, and each reads what cargo made after it is done.
        let lock = self.folder.join("lock");
        let lock = File::create(&lock)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(BuildError::io("locking", &lock))?;
        let texts = self.folder.join("texts");
        check_emit(&texts)?;
        // A build that was ended early has left texts.
        if texts.exists() {
            fs::remove_dir_all(&texts).map_err(BuildError::io("removing", &texts))?;
        }
        fs::create_dir(&texts).map_err(BuildError::io("making the folder", &texts))?;
        let compiled = self.compile(link, &texts);
        fs::remove_dir_all(&texts).map_err(BuildError::io("removing", &texts))?;
        drop(lock);
        compiled
    }

    fn compile(&self, link: Link, texts: &Path) -> Result<Output, BuildError> {
        // What has been fetched is enough, except that building `core` takes what all of std depends on,
        // which no outer build fetches: the first nested one does.
        let mut output = self.cargo(link, texts, true)?;
        if !output.status.success() && wants_to_fetch(&String::from_utf8_lossy(&output.stderr)) {
            output = self.cargo(link, texts, false)?;
        }
        if !output.status.success() {
            return Err(BuildError::Compile {
                package: self.package.name.clone(),
                target: self.target.to_owned(),
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        let broken = |why| BuildError::Ptx {
            target: self.target.to_owned(),
            why,
        };
        let name = &self.package.name;
        let archive = artifact(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| broken(format!("cargo did not say what it made of `{name}`")))?;
        let texts = read(texts)?;
        if texts.is_empty() {
            return Err(broken(format!(
                "cargo did not run rustc: does the build script of `{name}` come to its `Builder` \
                 for nvptx64 too?"
            )));
        }
        let stem = archive.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Output {
            krate: stem.strip_prefix("lib").unwrap_or(&stem).to_owned(),
            texts,
            inputs: Inputs::read(
                &archive.with_extension("d"),
                &self.package.folder,
                &self.folder,
            )?,
        })
    }

    fn cargo(
        &self,
        link: Link,
        texts: &Path,
        offline: bool,
    ) -> Result<process::Output, BuildError> {
        let mut command = Command::new(self.toolchain.cargo());
        environment::scrub(&mut command);
        for (name, value) in PROFILE {
            command.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
        }
        let run = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        command
            .current_dir(&self.package.folder)
            .env("CARGO_PROFILE_RELEASE_DEBUG", self.debug())
            // Stronger than the profile, where `[build] incremental` is.
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_BUILD_BUILD_DIR", &self.folder)
            .env("RUSTC", self.toolchain.rustc())
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC_WRAPPER", no_wrapper())
            .env("RUSTC_WORKSPACE_WRAPPER", no_wrapper())
            .env("RUSTFLAGS", self.rustflags())
            .env(run_variable(&self.package.name), run.as_nanos().to_string())
            // A static library needs no linker.
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
        // Where rustc writes must not differ between runs, or it takes nothing from the run before.
        command
            .arg("--")
            .args([option("--emit=asm=", &texts.join("one.s")), UNROLL.into()]);
        if link == Link::Apart {
            // Where there is more than one text, they stay where rustc's temporary files are.
            command.args([
                "-Clto=off".into(),
                TEXTS.into(),
                option("-Ztemps-dir=", texts),
                option("-Cincremental=", &self.folder.join("incremental")),
            ]);
        }
        command
            .output()
            .map_err(BuildError::io("running", self.toolchain.cargo()))
    }

    /// How much of the source the PTX shows.
    fn debug(&self) -> &'static str {
        if self.line_info {
            "line-directives-only"
        } else {
            "none"
        }
    }

    /// Flags for every crate that the kernels consist of, `core` included. They come after those of the
    /// profile.
    fn rustflags(&self) -> String {
        let mut flags = format!(
            "-Ctarget-cpu={} {ALIKE} -Cdebuginfo={} {MERGE}",
            self.target,
            self.debug()
        );
        if self.target == "sm_90a" {
            flags = format!("{flags} {HOPPER_ISA}");
        }
        if self.can_be_apart() {
            flags = format!("{flags} {COPY}");
        }
        flags
    }
}

/// In place of a wrapper around rustc that the user may have set: `env`, which does nothing. With an empty name, cargo
/// does not remember what rustc says of itself, and asks it each time.
fn no_wrapper() -> &'static str {
    let paths = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&paths).any(|folder| folder.join("env").is_file());
    if found { "env" } else { "" }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

/// Whether rustc can be told to write into the folder.
fn check_emit(folder: &Path) -> Result<(), BuildError> {
    if folder.to_string_lossy().contains(',') {
        return Err(BuildError::Setting(format!(
            "PTX would be written into {}, but for rustc's `--emit` a comma ends a path: choose a target \
             folder without one, by CARGO_TARGET_DIR for example",
            folder.display()
        )));
    }
    Ok(())
}

/// The texts in the folder.
fn read(folder: &Path) -> Result<Vec<String>, BuildError> {
    let mut texts = Vec::new();
    for entry in folder
        .read_dir()
        .map_err(BuildError::io("reading", folder))?
    {
        let path = entry.map_err(BuildError::io("reading", folder))?.path();
        if path.extension().is_some_and(|extension| extension == "s") {
            texts.push(fs::read_to_string(&path).map_err(BuildError::io("reading", &path))?);
        }
    }
    Ok(texts)
}

/// Whether cargo says that it failed as it might not fetch.
fn wants_to_fetch(stderr: &str) -> bool {
    // The words around it differ between versions of cargo.
    stderr.contains("--offline")
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
    fn a_comma_in_the_target_folder_is_refused() {
        assert!(check_emit(Path::new("/home/me/target/cutlet-ptx/sm_80/texts")).is_ok());
        let error = check_emit(Path::new("/home/you, me/target/texts")).unwrap_err();
        assert!(error.to_string().contains("without one"), "{error}");
    }

    #[test]
    fn cargo_is_asked_again_only_if_it_might_not_fetch() {
        assert!(wants_to_fetch(
            "error: no matching package named `cfg-if` found\n\
             As a reminder, you're using offline mode (--offline) which can sometimes cause"
        ));
        assert!(wants_to_fetch(
            "error: no matching package named `cfg-if` found\n\
             note: offline mode (via `--offline`) can sometimes cause surprising resolution failures"
        ));
        assert!(wants_to_fetch(
            "  attempting to make an HTTP request, but --offline was specified"
        ));
        assert!(!wants_to_fetch(
            "error: expected `;`\n --> /home/me/offline-rl/src/lib.rs:3:5"
        ));
    }

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
