//! Array interfaces: dictionaries that describe an array, NumPy's for the CPU and Numba's for GPUs.

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::{Array, Dimensions};
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};

/// The dictionary of an array.
pub struct Interface<'py>(Bound<'py, PyDict>);

/// The interface of an array on a GPU, if it has one.
///
/// # Errors
/// What the array raises instead.
pub fn cuda_interface<'py>(array: &Bound<'py, PyAny>) -> Result<Option<Interface<'py>>> {
    interface(array, intern!(array.py(), "__cuda_array_interface__"))
}

/// The interface of an array of NumPy, if it has one.
///
/// # Errors
/// What the array raises instead.
pub fn numpy_interface<'py>(array: &Bound<'py, PyAny>) -> Result<Option<Interface<'py>>> {
    interface(array, intern!(array.py(), "__array_interface__"))
}

fn interface<'py>(
    array: &Bound<'py, PyAny>,
    attribute: &Bound<'py, PyString>,
) -> Result<Option<Interface<'py>>> {
    match array.getattr(attribute) {
        Ok(found) => Ok(found.cast_into().ok().map(Interface)),
        Err(error) if error.is_instance_of::<PyAttributeError>(array.py()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Interface<'_> {
    /// The array that the dictionary describes.
    ///
    /// # Errors
    /// If an entry is missing or is not what it should be, or there is a mask.
    pub fn array(&self, name: &'static str, of: &Bound<'_, PyAny>) -> Result<Array> {
        if self.0.get_item("mask")?.is_some_and(|it| !it.is_none()) {
            return wrong_value(format!(
                "{name} has a mask in its array interface, which no kernel reads; fill it first"
            ));
        }
        let typestr: String = self.required("typestr")?;
        let data_type = match DataType::of_typestr(&typestr, name_of_type(of).as_deref()) {
            Some(data_type) => data_type,
            None => {
                return wrong_type(format!(
                    "{name} has elements of type {typestr}, which no kernel takes; convert it"
                ));
            }
        };
        let shape: Vec<i64> = self.required("shape")?;
        let (address, is_read_only): (u64, bool) = self.required("data")?;
        let strides = match self.0.get_item("strides")? {
            Some(strides) => strides.extract::<Option<Vec<i64>>>()?,
            None => None,
        };
        let strides = match strides {
            Some(bytes) => Some(in_elements(name, &bytes, data_type)?),
            None => None,
        };
        let dimensions = Dimensions::new(name, &shape, strides.as_deref())?;
        Array::new(name, data_type, is_read_only, address, dimensions)
    }

    /// The stream in which the elements are ready, if the dictionary names one.
    pub fn stream(&self) -> Option<usize> {
        let stream = self.0.get_item("stream").ok()??;
        stream.extract().ok()
    }

    fn required<T>(&self, key: &str) -> Result<T>
    where
        for<'a, 'b> T: FromPyObject<'a, 'b, Error = PyErr>,
    {
        match self.0.get_item(key)? {
            Some(value) => Ok(value.extract()?),
            None => wrong_value(format!(
                "an array interface has no entry `{key}`: {}",
                self.0
            )),
        }
    }
}

/// The name of an array's `dtype`, for types that NumPy does not have.
fn name_of_type(array: &Bound<'_, PyAny>) -> Option<String> {
    let data_type = array.getattr(intern!(array.py(), "dtype")).ok()?;
    data_type
        .getattr(intern!(array.py(), "name"))
        .ok()?
        .extract()
        .ok()
}

/// Strides in bytes as strides in elements.
fn in_elements(name: &str, bytes: &[i64], data_type: DataType) -> Result<Vec<i64>> {
    let size = data_type.size() as i64;
    if let Some(odd) = bytes.iter().find(|it| **it % size != 0) {
        return wrong_value(format!(
            "{name} has a stride of {odd} bytes, and its elements have {size}; pass a copy"
        ));
    }
    Ok(bytes.iter().map(|it| it / size).collect())
}
