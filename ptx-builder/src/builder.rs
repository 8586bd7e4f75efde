//! [`Builder`]: the settings of a build, and its steps.

use std::env;
use std::path::{Path, PathBuf};

use crate::at_once::at_once;
use crate::built::{Built, file_name};
use crate::compile::{Compilation, Link, Output, Package, run_variable};
use crate::copies::{self, with_copies};
use crate::error::BuildError;
use crate::families::FamilyText;
use crate::packed::pack;
use crate::sources::Inputs;
use crate::toolchain::{RUSTC_VARIABLE, Toolchain};
use crate::{complete, families, leftovers, library, limits, shipped};

/// Variable that asks for line information if it is `1`.
const LINE_INFO_VARIABLE: &str = "CUTLET_LINE_INFO";

/// Variable of the package's own code that names the folder of its PTX.
const FOLDER_VARIABLE: &str = "CUTLET_PTX_FOLDER";

/// The oldest target that all compilers know: that of Rust 1.97.
const OLDEST: u32 = 70;

/// Compiles the kernels of the package whose build script this is.
///
/// ```no_run
/// cutlet_ptx_builder::Builder::new()
///     .target("sm_80")
///     .target("sm_90a")
///     .build();
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    targets: Vec<String>,
    line_info: bool,
    leftovers: Leftovers,
    device_crate: String,
    shipped_by: Option<String>,
}

/// What the build does when kernels call functions, keep arrays in local memory or convert numbers in software.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// It fails.
    Deny,
    /// It shows a warning.
    #[default]
    Warn,
    /// It accepts them.
    Allow,
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Builder {
    /// A builder without targets.
    pub fn new() -> Builder {
        Builder {
            targets: Vec::new(),
            line_info: line_info_is_asked_for(),
            leftovers: Leftovers::default(),
            device_crate: "::cutlet_device".to_owned(),
            shipped_by: None,
        }
    }

    /// Adds a target. `sm_80` is for compute capability 8.0 and all later ones. `sm_90a` is for Hopper alone, with the
    /// instructions that only Hopper has.
    #[must_use]
    pub fn target(mut self, target: &str) -> Builder {
        if !self.targets.iter().any(|known| known == target) {
            self.targets.push(target.to_owned());
        }
        self
    }

    /// Sets whether instructions carry their source lines, for profilers. By default they do if the environment
    /// variable `CUTLET_LINE_INFO` is `1`.
    #[must_use]
    pub fn line_info(mut self, line_info: bool) -> Builder {
        self.line_info = line_info;
        self
    }

    /// Sets what the build does when kernels call functions, keep arrays in local memory or convert numbers in software,
    /// which makes them slow. The default is a warning.
    #[must_use]
    pub fn leftovers(mut self, leftovers: Leftovers) -> Builder {
        self.leftovers = leftovers;
        self
    }

    /// Sets the path of cutlet-device, for a package in which it is not `::cutlet_device`.
    #[must_use]
    pub fn device_crate(mut self, path: &str) -> Builder {
        path.clone_into(&mut self.device_crate);
        self
    }

    /// Requires the published package to carry its PTX, which `command` puts into the folder `ptx/`.
    ///
    /// A package without it does not build, so that `cargo package` and `cargo publish` end with an error that names
    /// the command. Unless this is called, such a package compiles its kernels on the machine of its user.
    #[must_use]
    pub fn shipped_by(mut self, command: &str) -> Builder {
        self.shipped_by = Some(command.to_owned());
        self
    }

    /// Builds the kernels. On failure, has cargo show the error, and ends the build script.
    ///
    /// In the nested build, where this build script runs for the GPU, this does nothing.
    pub fn build(self) -> Built {
        self.try_build().unwrap_or_else(|error| end(&error))
    }

    /// Like [`build`](Builder::build), but returns the error, for a build script that has more to do.
    ///
    /// # Errors
    /// - There is no device toolchain.
    /// - The kernels do not compile, or need what a target does not have.
    /// - They hold [leftovers](Builder::leftovers) that are denied.
    /// - A published package lacks PTX that it [must carry](Builder::shipped_by).
    pub fn try_build(self) -> Result<Built, BuildError> {
        println!("cargo::rerun-if-changed=build.rs");
        let name = variable("CARGO_PKG_NAME")?;
        if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "nvptx64") {
            println!("cargo::rerun-if-env-changed={}", run_variable(&name));
            return Ok(Built::default());
        }
        let out = PathBuf::from(variable("OUT_DIR")?);
        let package = Package {
            name,
            folder: PathBuf::from(variable("CARGO_MANIFEST_DIR")?),
            features: env::var("CARGO_CFG_FEATURE")
                .unwrap_or_default()
                .split(',')
                .filter(|feature| !feature.is_empty())
                .map(str::to_owned)
                .collect(),
        };
        let shipped = shipped::folder(&package.folder, self.shipped_by.is_some());
        let files = match &shipped {
            Some(folder) => read_shipped(folder, &package.name)?,
            None => self.compile(&package, &out)?,
        };
        let folder = out.join("ptx");
        library::write_folder(&folder, &files)?;
        let built = Built::read(&folder)?;
        if let (Some(_), Some(command)) = (shipped, &self.shipped_by) {
            shipped::check(&built, &package.name, &self.targets, command)?;
        }
        // `cutlet ptx` reads it from cargo's messages, and `cargo build -vv` shows it.
        if !built.modules().is_empty() {
            println!("cargo::rustc-env={FOLDER_VARIABLE}={}", folder.display());
        }
        let packed = pack(&built, &out.join("packed"))?;
        let source = library::source(&built, &packed, &self.device_crate);
        library::write_if_changed(&out.join("ptx.rs"), &source)?;
        Ok(built)
    }

    /// Names and texts of the files: the PTX, and the list of copies.
    fn compile(&self, package: &Package, out: &Path) -> Result<Vec<(String, String)>, BuildError> {
        self.check_targets()?;
        let toolchain = Toolchain::find()?;
        let root = target_root(out, &variable("TARGET")?).join("cutlet-ptx");
        let compilations: Vec<Compilation<'_>> = self
            .targets
            .iter()
            .map(|target| Compilation {
                toolchain: &toolchain,
                package,
                target,
                line_info: self.line_info,
                folder: root.join(target),
            })
            .collect();
        let mut files = Vec::new();
        let mut list = String::new();
        let mut found = Vec::new();
        let mut inputs = Inputs::default();
        let mut together = Vec::new();
        // The first error is enough: a mistake in a kernel is the same for every target.
        let all = at_once(&compilations, compile)?;
        for (target, compiled) in self.targets.iter().zip(all) {
            let find = |find: fn(&FamilyText, &str) -> Result<Vec<String>, String>| {
                let all = at_once(&compiled.families, |family| find(family, target));
                let all = all.map_err(|why| not_ptx(target, why))?;
                Ok::<_, BuildError>(all.into_iter().flatten().collect::<Vec<_>>())
            };
            let exceeded = find(limits::exceeded)?;
            if !exceeded.is_empty() {
                return Err(BuildError::Limits(exceeded));
            }
            found.extend(find(leftovers::find)?);
            list += &copies::lines(&compiled.families, target);
            let texts = compiled.families.into_iter();
            files.extend(texts.map(|text| (file_name(&text.family, target), text.ptx)));
            inputs.extend(compiled.inputs);
            together.extend(compiled.together.map(|why| (target, why)));
        }
        self.report(found)?;
        for (target, why) in together {
            println!(
                "cargo::warning=for {target} all modules are compiled together, each time one is edited: {why}"
            );
        }
        if !list.is_empty() {
            files.push((copies::LIST.to_owned(), list));
        }
        for file in inputs.files {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        let own = [RUSTC_VARIABLE, LINE_INFO_VARIABLE].map(str::to_owned);
        for name in inputs.variables.into_iter().chain(own) {
            println!("cargo::rerun-if-env-changed={name}");
        }
        Ok(files)
    }

    fn check_targets(&self) -> Result<(), BuildError> {
        if self.targets.is_empty() {
            return Err(BuildError::Setting(
                "a Builder without targets compiles nothing: add `.target(\"sm_80\")`".to_owned(),
            ));
        }
        for target in &self.targets {
            let digits = target
                .strip_prefix("sm_")
                .map(|rest| rest.strip_suffix(['a', 'f']).unwrap_or(rest));
            let Some(number) = digits.and_then(|digits| digits.parse::<u32>().ok()) else {
                return Err(BuildError::Setting(format!(
                    "`{target}` is not a PTX target: write it as in `sm_80` or `sm_90a`"
                )));
            };
            if number < OLDEST {
                return Err(BuildError::Setting(format!(
                    "rustc compiles for `{target}` no more: the oldest target of Rust 1.97 is sm_{OLDEST}"
                )));
            }
        }
        Ok(())
    }

    fn report(&self, found: Vec<String>) -> Result<(), BuildError> {
        match self.leftovers {
            Leftovers::Deny if !found.is_empty() => return Err(BuildError::Leftovers(found)),
            Leftovers::Warn => {
                for line in found {
                    println!("cargo::warning={line}");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Names and texts of the files that the package carries, and of those made of them.
fn read_shipped(folder: &Path, package: &str) -> Result<Vec<(String, String)>, BuildError> {
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-env-changed={LINE_INFO_VARIABLE}");
    if line_info_is_asked_for() {
        println!(
            "cargo::warning=the PTX that `{package}` ships has no source lines: depend on its repository to have them"
        );
    }
    shipped::files(folder)
}

/// Ends the build script with an error.
///
/// cargo shows these lines first, and then ends the build. After an exit code it would first say that it failed to run
/// a command, and show everything that the script printed.
fn end(error: &BuildError) -> ! {
    for line in error.to_string().lines() {
        println!("cargo::error={line}");
    }
    std::process::exit(0)
}

/// The compiled kernels of one target.
struct Compiled {
    families: Vec<FamilyText>,
    inputs: Inputs,
    /// Why the modules could not be compiled apart, if the builder tried.
    together: Option<String>,
}

/// Compiles the modules of the crate apart. If one of them needs code that only another module or crate has, compiles
/// all of them together.
fn compile(compilation: &Compilation<'_>) -> Result<Compiled, BuildError> {
    let target = compilation.target;
    let not_ptx = |why| not_ptx(target, why);
    let mut together = None;
    if compilation.can_be_apart() {
        let Output {
            krate,
            texts,
            inputs,
        } = compilation.run(Link::Apart)?;
        match families::of(&texts, &krate, target).and_then(complete::complete) {
            Ok(families) => {
                return Ok(Compiled {
                    families: with_copies(families).map_err(not_ptx)?,
                    inputs,
                    together: None,
                });
            }
            Err(why) => together = Some(why),
        }
    }
    let Output {
        krate,
        texts,
        inputs,
    } = compilation.run(Link::Together)?;
    Ok(Compiled {
        families: families::of(&texts, &krate, target)
            .and_then(with_copies)
            .map_err(not_ptx)?,
        inputs,
        together,
    })
}

fn not_ptx(target: &str, why: String) -> BuildError {
    BuildError::Ptx {
        target: target.to_owned(),
        why,
    }
}

/// The target directory of the outer build. All its profiles share it, so that they share the results of nested builds.
///
/// `out` is at `<target>/<profile>/build/<package>/out` or one folder deeper. If a target was named to cargo, a folder
/// of that name lies between. If `out` is elsewhere, the result is `out` itself.
fn target_root<'a>(out: &'a Path, triple: &str) -> &'a Path {
    let root = out
        .ancestors()
        .take(4)
        .find(|folder| folder.ends_with("build"))
        .and_then(|build| build.ancestors().nth(2));
    match root {
        Some(root) if root.ends_with(triple) => root.parent().unwrap_or(root),
        root => root.unwrap_or(out),
    }
}

fn line_info_is_asked_for() -> bool {
    env::var(LINE_INFO_VARIABLE).is_ok_and(|value| value == "1")
}

fn variable(name: &str) -> Result<String, BuildError> {
    env::var(name).map_err(|_| {
        BuildError::Setting(format!(
            "`{name}` is not set: a Builder runs in a build script, where cargo sets it"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_checked() {
        assert!(
            Builder::new()
                .target("sm_80")
                .target("sm_90a")
                .check_targets()
                .is_ok()
        );
        let error = Builder::new().target("hopper").check_targets().unwrap_err();
        assert!(
            error.to_string().contains("`hopper` is not a PTX target"),
            "{error}"
        );
        let error = Builder::new().target("sm_61").check_targets().unwrap_err();
        assert!(error.to_string().contains("is sm_70"), "{error}");
        let error = Builder::new().check_targets().unwrap_err();
        assert!(error.to_string().contains("without targets"), "{error}");
    }

    #[test]
    fn profiles_share_the_target_folder() {
        for (out, root) in [
            ("/t/debug/build/mine-01/out", "/t"),
            ("/t/x86_64/release/build/mine-01/out", "/t"),
            ("/build/t/debug/build/build-01/out", "/build/t"),
            ("/t/debug/build/mine/01/out", "/t"),
            ("/build/a/b/c/out", "/build/a/b/c/out"),
        ] {
            assert_eq!(target_root(Path::new(out), "x86_64"), Path::new(root));
        }
    }

    #[test]
    fn outside_a_build_script_the_error_says_so() {
        let error = variable("CUTLET_NO_SUCH_VARIABLE").unwrap_err();
        assert!(
            error.to_string().contains("runs in a build script"),
            "{error}"
        );
    }
}
