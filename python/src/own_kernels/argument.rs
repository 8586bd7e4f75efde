//! Arguments of a launch from Python: arrays, numbers and bytes, checked against the kernel's parameters.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use cutlet::{Stream, bf16, f16};
use cutlet_device::{KernelArgs, MAX_ARGS};
use cutlet_host::LaunchArgs;
use cutlet_simt::Buffers;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;

use super::signature::{Kind, Parameter};
use crate::call::{Argument, Call};
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};

/// What a launch passes for a parameter.
pub enum Value {
    /// An array, and the bytes of its address.
    Array(Argument, [u8; 8]),
    /// A number's bytes, the lowest first.
    Number([u8; 8]),
    Bytes(Vec<u8>),
}

/// The addresses of a launch's arguments. The driver copies what is there.
#[derive(Clone, Copy)]
pub struct Packed {
    addresses: [usize; MAX_ARGS],
    count: usize,
}

impl Value {
    /// Reads an argument.
    ///
    /// # Errors
    /// If it is not of the parameter's type, a number out of its range, or an array with gaps.
    pub fn read<'py>(
        call: &mut Call<'py>,
        name: &'static str,
        parameter: &Parameter,
        given: &Bound<'py, PyAny>,
    ) -> Result<Value> {
        let kernel = call.operation;
        match parameter.kind {
            Kind::Array { element, may_write } => {
                let array = match may_write {
                    true => call.write(name, given)?,
                    false => call.read(name, given)?,
                };
                array.expect_type(kernel, element)?;
                array.expect_contiguous(kernel)?;
                let address = array.aligned_address(call.context())?;
                Ok(Value::Array(array, address.to_le_bytes()))
            }
            Kind::Number(data_type) => {
                expect_number(kernel, parameter, given)?;
                Ok(Value::Number(number(kernel, parameter, data_type, given)?))
            }
            Kind::Bytes(count) => bytes(kernel, parameter, count, given).map(Value::Bytes),
        }
    }

    /// What the driver copies.
    fn bytes(&self) -> &[u8] {
        match self {
            Value::Array(_, bytes) | Value::Number(bytes) => bytes,
            Value::Bytes(bytes) => bytes,
        }
    }
}

impl Packed {
    /// The values, which live until the launch is enqueued.
    pub fn new(values: &[Value]) -> Packed {
        let mut addresses = [0; MAX_ARGS];
        for (address, value) in addresses.iter_mut().zip(values) {
            *address = value.bytes().as_ptr().expose_provenance();
        }
        Packed {
            addresses,
            count: values.len(),
        }
    }
}

// SAFETY: it visits as many values as it was made of. Kernels of this module are launched with one value for each of
// their parameters, of its size.
unsafe impl KernelArgs for Packed {
    fn for_each(&self, mut visit: impl FnMut(*const c_void)) {
        for address in &self.addresses[..self.count] {
            visit(ptr::with_exposed_provenance(*address));
        }
    }
}

impl LaunchArgs<Packed> for Packed {
    fn into_args(
        self,
        _: &'static str,
        _: &Stream,
        _: &RefCell<Buffers>,
    ) -> cutlet_host::Result<Packed> {
        Ok(self)
    }
}

/// Refuses arrays of one number: those on a GPU would have to be waited for.
fn expect_number(kernel: &str, parameter: &Parameter, given: &Bound<'_, PyAny>) -> Result<()> {
    match given.hasattr(intern!(given.py(), "__dlpack__"))? {
        false => Ok(()),
        true => wrong_type(format!(
            "{kernel}: `{parameter}` takes a number, and a {} was given; pass its `item()`",
            given.get_type()
        )),
    }
}

/// A number as the kernel reads it.
fn number(
    kernel: &str,
    parameter: &Parameter,
    data_type: DataType,
    given: &Bound<'_, PyAny>,
) -> Result<[u8; 8]> {
    let mismatch = |error: PyErr| -> PyErr {
        match error.is_instance_of::<PyOverflowError>(given.py()) {
            true => out_of_range(kernel, parameter, given),
            false => PyTypeError::new_err(format!(
                "{kernel}: `{parameter}` takes a number of this type, and {given} is a {}",
                given.get_type()
            )),
        }
    };
    let bits = match data_type {
        DataType::Bool => u64::from(given.extract::<bool>().map_err(mismatch)?),
        DataType::F16 | DataType::Bf16 | DataType::F32 | DataType::F64 => {
            let value: f64 = given.extract().map_err(mismatch)?;
            let (bits, rounded) = match data_type {
                DataType::F16 => {
                    let it = f16::from_f64(value);
                    (u64::from(it.to_bits()), it.to_f64())
                }
                DataType::Bf16 => {
                    let it = bf16::from_f64(value);
                    (u64::from(it.to_bits()), it.to_f64())
                }
                DataType::F32 => (u64::from((value as f32).to_bits()), f64::from(value as f32)),
                _ => (value.to_bits(), value),
            };
            if value.is_finite() && !rounded.is_finite() {
                return Err(out_of_range(kernel, parameter, given).into());
            }
            bits
        }
        _ => {
            let value: i128 = given.extract().map_err(mismatch)?;
            let (least, most) = range(data_type);
            if !(least..=most).contains(&value) {
                return Err(out_of_range(kernel, parameter, given).into());
            }
            value as u64
        }
    };
    Ok(bits.to_le_bytes())
}

/// The least and the largest integer of a type.
fn range(data_type: DataType) -> (i128, i128) {
    let bits = 8 * data_type.size();
    match data_type {
        DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64 => {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
        _ => (0, (1 << bits) - 1),
    }
}

fn out_of_range(kernel: &str, parameter: &Parameter, given: &Bound<'_, PyAny>) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(format!(
        "{kernel}: {given} is out of the range of `{parameter}`"
    ))
}

/// The bytes of a struct.
fn bytes(
    kernel: &str,
    parameter: &Parameter,
    count: usize,
    given: &Bound<'_, PyAny>,
) -> Result<Vec<u8>> {
    let Ok(found) = given.extract::<&[u8]>() else {
        return wrong_type(format!(
            "{kernel}: `{parameter}` takes a struct as `bytes`, and a {} was given; `struct.pack` makes them",
            given.get_type()
        ));
    };
    match found.len() == count {
        true => Ok(found.to_vec()),
        false => wrong_value(format!(
            "{kernel}: `{parameter}` takes {count} bytes, and {} were given",
            found.len()
        )),
    }
}
