//! Why a benchmark did not run.

use cutlet_cli::cublas::CublasError;

use super::suite::SuiteError;
use crate::host_memory::TooLittle;
use crate::output::OutputError;

/// The result of a fallible part of the benchmark.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark did not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// cutlet failed.
    #[error(transparent)]
    Cutlet(#[from] cutlet::Error),
    /// The device failed.
    #[error(transparent)]
    Host(#[from] cutlet_host::Error),
    /// The baseline failed.
    #[error(transparent)]
    Cublas(#[from] CublasError),
    /// A contestant did not run.
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
    /// A suite cannot be measured.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// Standard output could not be written to.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A file could not be read or written.
    #[error("{doing}: {found}")]
    File {
        /// The operation and its file.
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
    /// The error of a file operation.
    pub fn file(doing: impl Into<String>, found: impl ToString) -> Error {
        Error::File {
            doing: doing.into(),
            found: found.to_string(),
        }
    }
}
