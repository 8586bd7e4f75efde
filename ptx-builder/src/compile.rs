//! Runs the nested cargo, which compiles one package for one target to PTX texts.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::SystemTime;

use crate::environment;
use crate::error::BuildError;
use crate::flags::{self, Flags};
use crate::sources::Inputs;
use crate::toolchain::Toolchain;

/// The package to compile.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its name.
    pub name: String,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// The features that are on.
    pub features: Vec<String>,
}

/// One compilation of a package.
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
    /// The target directory of the nested cargo, for this target only.
    pub folder: PathBuf,
}

/// How many texts are made of the kernels' crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// A text for each module. A text holds all code that its module needs, as far as Rust can copy it there from other
    /// crates. rustc makes the texts at the same time, and only those whose code has changed.
    Apart,
    /// One text, into which everything is linked. It is made anew each time.
    Together,
}

/// The result of a compilation.
#[derive(Debug)]
pub(crate) struct Output {
    /// The crate's name in paths.
    pub krate: String,
    /// The texts, as rustc wrote them.
    pub texts: Vec<String>,
    /// What the result depends on.
    pub inputs: Inputs,
}

/// A variable with another value for each nested build of the package.
///
/// The package's build script tells cargo to watch it, so that rustc runs each time. The folder of texts is empty
/// before, so that the texts in it are those of this run.
pub(crate) fn run_variable(package: &str) -> String {
    format!("CUTLET_PTX_RUN_{package}")
}

impl Compilation<'_> {
    /// Whether modules can be compiled apart: functions of an installed `core` are not copied.
    pub fn can_be_apart(&self) -> bool {
        self.toolchain.core_from_source()
    }

    /// Runs cargo, which compiles what has changed.
    pub fn run(&self, link: Link) -> Result<Output, BuildError> {
        fs::create_dir_all(&self.folder)
            .map_err(BuildError::io("making the folder", &self.folder))?;
        // Builds with different profiles may run at the same time. Each reads what cargo made before the next one
        // starts.
        let lock = self.folder.join("lock");
        let lock = File::create(&lock)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(BuildError::io("locking", &lock))?;
        let texts = self.folder.join("texts");
        check_emit(&texts)?;
        // A build that was interrupted leaves texts.
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
        // The packages that the outer build fetched are enough, except for `core`: building it takes all that std
        // depends on. The first nested build fetches those packages.
        let mut output = self.cargo(link, texts, true)?;
        if !output.status.success() && wants_to_fetch(&String::from_utf8_lossy(&output.stderr)) {
            output = self.cargo(link, texts, false)?;
        }
        if !output.status.success() {
            return Err(BuildError::Compile {
                package: self.package.name.clone(),
                target: self.target.to_owned(),
                output: errors(&String::from_utf8_lossy(&output.stderr)),
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
                "cargo did not run rustc: does the build script of `{name}` call its `Builder` \
                 for nvptx64, too?"
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
        self.flags().set(&mut command);
        let run = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        command
            .current_dir(&self.package.folder)
            .env("CARGO_BUILD_BUILD_DIR", &self.folder)
            .env("RUSTC", self.toolchain.rustc())
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC_WRAPPER", no_wrapper())
            .env("RUSTC_WORKSPACE_WRAPPER", no_wrapper())
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
        // rustc reuses what the run before made only if it writes to the same path.
        command
            .arg("--")
            .arg(option("--emit=asm=", &texts.join("one.s")))
            .args(flags::of_kernels(link));
        if link == Link::Apart {
            // If there are several texts, rustc leaves them among its temporary files.
            command.args([
                option("-Ztemps-dir=", texts),
                option("-Cincremental=", &self.folder.join("incremental")),
            ]);
        }
        command
            .output()
            .map_err(BuildError::io("running", self.toolchain.cargo()))
    }

    fn flags(&self) -> Flags<'_> {
        Flags {
            target: self.target,
            line_info: self.line_info,
            copies: self.can_be_apart(),
        }
    }
}

/// Stands in place of a wrapper around rustc that the user may have set: `env` runs rustc unchanged. With an empty
/// name, cargo would not remember the answers of rustc about itself, and would ask each time.
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
            "PTX would be written into {}, but a comma ends a path in rustc's `--emit`: choose a target \
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

/// Whether cargo failed because it might not fetch.
fn wants_to_fetch(stderr: &str) -> bool {
    // The words around it differ between versions of cargo.
    stderr.contains("--offline")
}

/// What cargo and rustc printed, without warnings and what belongs to them. The build for the host shows those.
fn errors(output: &str) -> String {
    let mut shown = String::new();
    let mut is_warning = false;
    for line in output.lines() {
        if line.starts_with("warning") {
            is_warning = true;
        } else if line.starts_with("error") {
            is_warning = false;
        }
        if !is_warning {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    shown
}

/// The path of the static library in cargo's messages. The package itself is the last one.
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
    fn errors_are_shown_without_warnings() {
        let output = "warning: unused import\n --> a.rs:1:5\n\nerror[E0308]: mismatched types\n --> a.rs:2:5\n\n\
                      note: of the error\n\nwarning: unused variable\n\n  help: of the warning\n\n\
                      error: could not compile `mine`\n";
        assert_eq!(
            errors(output),
            "error[E0308]: mismatched types\n --> a.rs:2:5\n\nnote: of the error\n\nerror: could not compile `mine`\n"
        );
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
