//! `install_tuning`: kernels that were measured at the shapes of a program.

use std::path::PathBuf;

use cutlet::Tuning;
use pyo3::prelude::*;

use crate::error::Result;

/// Has all products of the process from now on look for their kernels in a file that the command `cutlet tune` made.
///
/// Arguments:
///     path: The file. One of another version or another kind of GPU is ignored, with a line on standard error. The
///         variable `CUTLET_TUNING` names a file that is read at the first product.
///
/// Raises:
///     RuntimeError: The file cannot be read or is damaged.
#[pyfunction]
pub fn install_tuning(path: PathBuf) -> Result<()> {
    Tuning::load(path)?.install();
    Ok(())
}
