//! Outputs that a framework makes.

use std::sync::OnceLock;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::data_type::DataType;
use crate::error::Result;

/// The package that has the extension module. Hugging Face's `kernels` gives it another name than `cutlet`.
static PACKAGE: OnceLock<String> = OnceLock::new();

/// Notes the package of the extension module.
///
/// # Errors
/// If the module has no name.
pub fn note_package(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let name = module.name()?;
    if let Some((package, _)) = name.to_cow()?.rsplit_once('.') {
        PACKAGE.get_or_init(|| package.to_string());
    }
    Ok(())
}

/// An array of the framework of `like`, on its device, and of its type unless another one is asked for. Memory of a GPU
/// belongs to `stream`, or else to the framework's current stream.
///
/// # Errors
/// The framework's exception, or that it has no arrays that may be written.
pub fn empty<'py>(
    operation: &str,
    like: &Bound<'py, PyAny>,
    shape: &[usize],
    data_type: Option<DataType>,
    stream: Option<usize>,
) -> Result<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = like.py();
    let function = EMPTY.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        let package = PACKAGE.get().map_or("cutlet", String::as_str);
        let module = py.import(format!("{package}._output"))?;
        Ok(module.getattr(intern!(py, "empty"))?.unbind())
    })?;
    let shape = PyTuple::new(py, shape)?;
    let arguments = (
        operation,
        like,
        shape,
        data_type.map(DataType::name),
        stream,
    );
    Ok(function.bind(py).call1(arguments)?)
}
