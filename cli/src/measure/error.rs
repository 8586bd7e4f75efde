//! Why a measurement failed.

use cutlet_cli::cublas::CublasError;

use crate::host_memory::TooLittle;

/// The result of a fallible part of a measurement.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a measurement failed.
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
}
