//! Errors of the library as exceptions of Python.

use cutlet::{Error, HostError};
use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};

use crate::words;

/// Why a call failed: an error of the library, or an exception.
pub enum Failure {
    /// Of the library.
    Library(Error),
    /// Of this module, or of a framework.
    Exception(PyErr),
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Failure::Library(Error::Host(error))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Exception(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Library(error) => raised(error),
            Failure::Exception(error) => error,
        }
    }
}

/// A `ValueError`.
pub fn wrong_value<T>(message: String) -> Result<T> {
    Err(PyValueError::new_err(message).into())
}

/// A `TypeError`.
pub fn wrong_type<T>(message: String) -> Result<T> {
    Err(PyTypeError::new_err(message).into())
}

/// What to pass instead of an index that is no row.
const OTHER_POLICIES: &str = "pass out_of_range=\"clamp\" or \"skip\" if such indices are meant";

/// The exception of an error.
fn raised(error: Error) -> PyErr {
    let message = words::of_python(&error.to_string());
    match error {
        Error::IndexOutOfRange {
            operation,
            position,
            index,
            table_rows,
            outcome,
        } => PyIndexError::new_err(format!(
            "{operation}: indices[{position}] is {index}, the table has {table_rows} rows, and {outcome}; \
             {OTHER_POLICIES}"
        )),
        Error::IndexMissed {
            operation,
            position,
            outcome,
        } => PyIndexError::new_err(format!(
            "{operation}: indices[{position}] is not a row of the table, and {outcome}; {OTHER_POLICIES}"
        )),
        Error::Host(host) => match host {
            HostError::OutOfMemory { .. } => PyMemoryError::new_err(message),
            HostError::BadGrid { .. }
            | HostError::WrongDevice { .. }
            | HostError::WrongStream { .. }
            | HostError::LengthMismatch { .. }
            | HostError::BadPointer { .. }
            | HostError::Dlpack { .. } => PyValueError::new_err(message),
            HostError::Capturing { .. } => PyRuntimeError::new_err(format!(
                "{message}; in a graph, pass out_of_range=\"deferred\", \"clamp\" or \"skip\", which do not wait"
            )),
            _ => PyRuntimeError::new_err(message),
        },
        Error::Device { .. } | Error::NotBuilt { .. } | Error::TuningFile { .. } => {
            PyRuntimeError::new_err(message)
        }
        _ => PyValueError::new_err(message),
    }
}
