//! Why a benchmark did not run.

use super::suite::SuiteError;
use crate::backend::NeedsGpu;
use crate::measure;
use crate::output::OutputError;

/// The result of a fallible part of the benchmark.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark did not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A measurement failed.
    #[error(transparent)]
    Measure(#[from] measure::error::Error),
    /// A suite cannot be measured.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// A problem would take the CPU backend long.
    #[error(transparent)]
    NeedsGpu(#[from] NeedsGpu),
    /// The CPU backend has no power-settled figures.
    #[error(
        "--sustained was asked for, which needs a GPU, but this would run on {device}; leave it out"
    )]
    SustainedOnCpu {
        /// The device that would run it.
        device: String,
    },
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
}

impl From<cutlet::Error> for Error {
    fn from(error: cutlet::Error) -> Self {
        Error::Measure(error.into())
    }
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

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::*;
    use crate::output::reader_is_gone;

    #[test]
    fn a_closed_pipe_ends_a_run_as_one() {
        let output = OutputError::from(io::Error::from(ErrorKind::BrokenPipe));
        assert!(reader_is_gone(&Error::from(output)));
    }
}
