//! Outputs that a framework makes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::data_type::DataType;
use crate::error::Result;

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
        let module = py.import(intern!(py, "cutlet._output"))?;
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
