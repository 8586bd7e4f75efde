//! [`BuildError`]: why kernels were not built. Users read its messages below those of cargo.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::toolchain::NoToolchain;

/// Why kernels were not built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// No toolchain on this machine compiles for the GPU.
    NoToolchain(NoToolchain),
    /// A file could not be read or written, or a program not started.
    Io {
        /// What was being done, as in `reading`.
        doing: &'static str,
        /// The file or program.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// rustc refused the kernels.
    Compile {
        /// The package.
        package: String,
        /// The target, as in `sm_90a`.
        target: String,
        /// What cargo and rustc printed.
        output: String,
    },
    /// The compiled PTX is not what the builder expects.
    Ptx {
        /// The target.
        target: String,
        /// What was expected and found.
        why: String,
    },
    /// Kernels need what the GPUs of a target do not have: a line for each.
    Limits(Vec<String>),
    /// Kernels call functions, keep arrays in local memory or convert numbers in software: a line for each finding.
    Leftovers(Vec<String>),
    /// A package that must carry its PTX does not.
    NotShipped {
        /// The package.
        package: String,
        /// A target that it has no PTX for.
        target: String,
        /// The command that fills its folder of PTX.
        command: String,
    },
    /// A setting of the build is invalid or missing.
    Setting(String),
}

impl BuildError {
    pub(crate) fn io(
        doing: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        move |error| BuildError::Io {
            doing,
            path: path.as_ref().to_owned(),
            error,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoToolchain(error) => write!(f, "{error}"),
            BuildError::Io { doing, path, error } => {
                write!(f, "{doing} {}: {error}", path.display())
            }
            BuildError::Compile {
                package,
                target,
                output,
            } => write!(
                f,
                "{}\nthe kernels of `{package}` do not compile for {target}: see above",
                output.trim_end()
            ),
            BuildError::Ptx { target, why } => write!(f, "the PTX for {target}: {why}"),
            BuildError::Limits(lines) | BuildError::Leftovers(lines) => {
                write!(f, "{}", lines.join("\n"))
            }
            BuildError::NotShipped {
                package,
                target,
                command,
            } => write!(
                f,
                "the package `{package}` carries no PTX for {target}: run `{command}` in its repository, which fills \
                 its folder `ptx`"
            ),
            BuildError::Setting(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::NoToolchain(error) => Some(error),
            BuildError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<NoToolchain> for BuildError {
    fn from(error: NoToolchain) -> Self {
        BuildError::NoToolchain(error)
    }
}
