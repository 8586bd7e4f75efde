//! Why a benchmark did not run.

use cutlet_cli::cublas::CublasError;

use super::suite::SuiteError;
use crate::host_memory::TooLittle;

/// The result of everything in the benchmark that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark did not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library failed.
    #[error(transparent)]
    Cutlet(#[from] cutlet::Error),
    /// The device failed.
    #[error(transparent)]
    Host(#[from] cutlet_host::Error),
    /// The baseline failed.
    #[error(transparent)]
    Cublas(#[from] CublasError),
    /// One of those that solve a problem did not run.
    #[error("{name} did not run: {found}")]
    Contestant {
        /// Its name.
        name: String,
        /// Why.
        found: Box<Error>,
    },
    /// The host has too little memory.
    #[error(transparent)]
    Memory(#[from] TooLittle),
    /// There is no such suite.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// A file could not be read or written.
    #[error("{doing}: {found}")]
    File {
        /// What was being done, and to which file.
        doing: String,
        /// What went wrong.
        found: String,
    },
    /// A plot could not be drawn.
    #[error("drawing {file}: {found}")]
    Plot {
        /// The file.
        file: String,
        /// What went wrong.
        found: String,
    },
}

impl Error {
    /// Of a file operation.
    pub fn file(doing: impl Into<String>, found: impl ToString) -> Error {
        Error::File {
            doing: doing.into(),
            found: found.to_string(),
        }
    }
}
