//! Finds a rustc that can compile for the GPU because it has the source of its own `core`.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::environment;

/// Variable that names the rustc to use.
pub(crate) const RUSTC_VARIABLE: &str = "CUTLET_RUSTC";

/// The oldest release whose PTX is known to be right: 1.95.
const OLDEST: (u32, u32) = (1, 95);

/// From this release on, an installed `core` fits one `target-cpu` only, so it must be compiled.
const TARGET_CPU_FIXES_CORE: (u32, u32) = (1, 97);

/// A rustc and cargo that compile kernels.
///
/// They are looked for in this order, and the first suitable one is taken:
///
/// 1. the rustc that `CUTLET_RUSTC` names; if that is set, nothing else is tried,
/// 2. the toolchain in use,
/// 3. rustup's other toolchains: `stable`, releases from new to old, the rest,
/// 4. Debian's `/usr/bin/rustc`, with the source from the package `rust-web-src` or `rust-src`.
///
/// A toolchain is suitable if it holds the source of its `core` (rustup's component `rust-src`), or, before Rust 1.97,
/// a compiled `core` (rustup's target `nvptx64-nvidia-cuda`).
///
/// ```no_run
/// match cutlet_ptx_builder::Toolchain::find() {
///     Ok(toolchain) => println!("{toolchain}"),
///     Err(none) => eprintln!("{none}"),
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Toolchain {
    rustc: PathBuf,
    cargo: PathBuf,
    version: String,
    core_from_source: bool,
}

impl Toolchain {
    /// The first suitable toolchain.
    ///
    /// # Errors
    /// If there is none. The error lists what was tried, why each one was refused, and the command that fixes it.
    pub fn find() -> Result<Toolchain, NoToolchain> {
        let mut tried = Vec::new();
        if let Some(rustc) = env::var_os(RUSTC_VARIABLE).filter(|rustc| !rustc.is_empty()) {
            let rustc = PathBuf::from(rustc);
            return Toolchain::of(&rustc).map_err(|refusal| {
                tried.push(Tried::new(&format!("{RUSTC_VARIABLE}: "), &rustc, refusal));
                NoToolchain {
                    tried,
                    fix: format!(
                        "set {RUSTC_VARIABLE} to a rustc that has its own source, or unset it"
                    ),
                }
            });
        }
        let in_use = env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        let mut candidates = vec![("the toolchain in use: ", in_use.clone())];
        for rustc in rustup_toolchains() {
            candidates.push(("rustup: ", rustc));
        }
        candidates.push(("Debian: ", PathBuf::from("/usr/bin/rustc")));
        for (kind, rustc) in candidates {
            match Toolchain::of(&rustc) {
                Ok(toolchain) => return Ok(toolchain),
                Err(refusal) => tried.push(Tried::new(kind, &rustc, refusal)),
            }
        }
        let fix = fix(&in_use);
        Err(NoToolchain { tried, fix })
    }

    /// Path of the compiler.
    pub fn rustc(&self) -> &Path {
        &self.rustc
    }

    /// Path of the cargo that goes with it.
    pub fn cargo(&self) -> &Path {
        &self.cargo
    }

    /// What `rustc --version` prints.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether `core` is compiled from source instead of installed.
    pub(crate) fn core_from_source(&self) -> bool {
        self.core_from_source
    }

    /// The toolchain of this rustc, or why it is not suitable.
    fn of(rustc: &Path) -> Result<Toolchain, String> {
        let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"])?);
        let version = ask(rustc, &["--version"])?;
        let release = release(&version).ok_or_else(|| format!("`{version}` names no release"))?;
        if release < OLDEST {
            let (major, minor) = OLDEST;
            return Err(format!("{version} is older than {major}.{minor}"));
        }
        let rustlib = sysroot.join("lib/rustlib");
        let core_from_source = rustlib.join("src/rust/library/core/src/lib.rs").exists();
        if !core_from_source {
            if !holds_core(&rustlib.join("nvptx64-nvidia-cuda/lib")) {
                return Err(format!(
                    "{version} without the source of its core (rust-src)"
                ));
            }
            if release >= TARGET_CPU_FIXES_CORE {
                return Err(format!(
                    "{version} has a compiled core for nvptx64, but from 1.97 on its source is needed \
                     (rust-src)"
                ));
            }
        }
        // A proxy of rustup would set variables for another toolchain, so the programs themselves are used.
        let program = |name: &str| {
            let file = format!("{name}{}", env::consts::EXE_SUFFIX);
            Some(sysroot.join("bin").join(file)).filter(|path| path.exists())
        };
        Ok(Toolchain {
            rustc: program("rustc").unwrap_or_else(|| rustc.to_owned()),
            cargo: program("cargo")
                .or_else(|| env::var_os("CARGO").map(PathBuf::from))
                .unwrap_or_else(|| PathBuf::from("cargo")),
            version,
            core_from_source,
        })
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = if self.core_from_source {
            "core from source"
        } else {
            "core installed"
        };
        write!(f, "{} at {}, {core}", self.version, self.rustc.display())
    }
}

/// No toolchain on this machine can compile kernels.
#[derive(Clone, Debug)]
pub struct NoToolchain {
    tried: Vec<Tried>,
    fix: String,
}

#[derive(Clone, Debug)]
struct Tried {
    what: String,
    refusal: String,
}

impl Tried {
    fn new(kind: &str, rustc: &Path, refusal: String) -> Tried {
        Tried {
            what: format!("{kind}{}", rustc.display()),
            refusal,
        }
    }
}

impl NoToolchain {
    /// The command that installs what is missing.
    pub fn fix(&self) -> &str {
        &self.fix
    }
}

impl fmt::Display for NoToolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "compiling kernels needs a rustc with the source of its own `core`, and none was found:"
        )?;
        for Tried { what, refusal } in &self.tried {
            writeln!(f, "  {what}: {refusal}")?;
        }
        write!(f, "this fixes it: {}", self.fix)
    }
}

impl std::error::Error for NoToolchain {}

fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(rustc);
    environment::scrub(&mut command);
    let output = command
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot be run ({error})"))?;
    if !output.status.success() {
        return Err(format!("{} with {}", output.status, arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Major and minor number in a line such as `rustc 1.96.0 (ac68faa20 2026-05-25)`.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split_whitespace().nth(1)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn holds_core(library: &Path) -> bool {
    library.read_dir().is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
        })
    })
}

/// The compilers of rustup's toolchains, in the order in which they are tried.
fn rustup_toolchains() -> Vec<PathBuf> {
    let Some(toolchains) = rustup_home().map(|home| home.join("toolchains")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = toolchains
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_by_key(|name| rank(name));
    names
        .iter()
        .map(|name| toolchains.join(name).join("bin").join("rustc"))
        .collect()
}

/// Sorts `stable` first, then releases from new to old, then the others by name.
fn rank(name: &str) -> (u32, std::cmp::Reverse<(u32, u32)>, String) {
    let mut numbers = name.split(['.', '-']).map(str::parse);
    let (class, release) = match (numbers.next(), numbers.next()) {
        _ if name.starts_with("stable") => (0, (0, 0)),
        (Some(Ok(major)), Some(Ok(minor))) => (1, (major, minor)),
        _ => (2, (0, 0)),
    };
    (class, std::cmp::Reverse(release), name.to_owned())
}

fn rustup_home() -> Option<PathBuf> {
    env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".rustup")))
}

/// The command that gives this machine a device toolchain.
fn fix(in_use: &Path) -> String {
    let rustup = rustup_home().map(|home| home.join("toolchains"));
    let sysroot = ask(in_use, &["--print", "sysroot"]).map(PathBuf::from);
    if let (Some(rustup), Ok(sysroot)) = (rustup, sysroot)
        && let Ok(name) = sysroot.strip_prefix(&rustup)
    {
        return format!(
            "rustup component add rust-src --toolchain {}",
            name.display()
        );
    }
    if Path::new("/usr/bin/apt-get").exists() {
        "apt-get install -y --no-install-recommends rustc-web rust-web-src".to_owned()
    } else {
        "install Rust with rustup (https://rustup.rs), then `rustup component add rust-src`"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(
            release("rustc 1.96.0 (ac68faa20 2026-05-25)"),
            Some((1, 96))
        );
        assert_eq!(
            release("rustc 1.98.0-nightly (abc 2026-06-01)"),
            Some((1, 98))
        );
        assert_eq!(release("gcc"), None);
    }

    #[test]
    fn toolchains_are_tried_from_stable_to_nightly() {
        let mut names = [
            "nightly-x86",
            "1.9.0-x86",
            "1.96.0-x86",
            "beta-x86",
            "stable-x86",
        ];
        names.sort_by_key(|name| rank(name));
        assert_eq!(
            names,
            [
                "stable-x86",
                "1.96.0-x86",
                "1.9.0-x86",
                "beta-x86",
                "nightly-x86"
            ]
        );
    }

    #[test]
    fn a_program_that_is_not_rustc_is_refused() {
        let refusal = Toolchain::of(Path::new("/nonexistent/rustc")).unwrap_err();
        assert!(refusal.starts_with("cannot be run"), "{refusal}");
    }

    #[test]
    fn the_error_lists_what_was_tried_and_ends_with_the_fix() {
        let error = NoToolchain {
            tried: vec![Tried::new(
                "Debian: ",
                Path::new("/usr/bin/rustc"),
                "too old".to_owned(),
            )],
            fix: "rustup component add rust-src".to_owned(),
        };
        let text = error.to_string();
        assert!(
            text.contains("  Debian: /usr/bin/rustc: too old\n"),
            "{text}"
        );
        assert!(
            text.ends_with("this fixes it: rustup component add rust-src"),
            "{text}"
        );
    }
}
