//! Arguments that are words: activations, precisions, policies for indices, element types.

use cutlet::{Activation, OutOfRange, Pooling, Precision};
use pyo3::intern;
use pyo3::prelude::*;

use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};

/// What follows a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    Nothing,
    Activation(Activation),
    /// Gates and ups alternate, and become one column.
    SwiGlu,
}

/// Reads the argument `activation`.
pub fn activation(operation: &str, word: Option<&str>) -> Result<Follows> {
    Ok(match word {
        None => Follows::Nothing,
        Some("relu") => Follows::Activation(Activation::Relu),
        Some("gelu") => Follows::Activation(Activation::Gelu),
        Some("gelu_erf") => Follows::Activation(Activation::GeluErf),
        Some("silu") => Follows::Activation(Activation::Silu),
        Some("swiglu") => Follows::SwiGlu,
        Some(other) => {
            let known = "relu, gelu, gelu_erf, silu or swiglu";
            return unknown(operation, "activation", other, known);
        }
    })
}

/// Reads the argument `precision`.
pub fn precision(operation: &str, word: Option<&str>) -> Result<Precision> {
    Ok(match word {
        None | Some("exact") => Precision::Exact,
        Some("tf32") => Precision::Tf32,
        Some("3xtf32") => Precision::Tf32x3,
        Some("fast-accumulation") => Precision::FastAccumulation,
        Some(other) => {
            let known = "exact, tf32, 3xtf32 or fast-accumulation";
            return unknown(operation, "precision", other, known);
        }
    })
}

/// What an index means that is not a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// An error, for which the call waits.
    Checked,
    /// An error, which a later `check` reports.
    Deferred,
    /// The first or the last row.
    Clamp,
    /// Nothing is read and written.
    Skip,
}

impl Policy {
    /// The library's policy.
    pub fn out_of_range(self) -> OutOfRange {
        match self {
            Policy::Checked | Policy::Deferred => OutOfRange::Error,
            Policy::Clamp => OutOfRange::Clamp,
            Policy::Skip => OutOfRange::Skip,
        }
    }
}

/// Reads the argument `out_of_range`.
pub fn out_of_range(operation: &str, word: &str) -> Result<Policy> {
    Ok(match word {
        "checked" => Policy::Checked,
        "deferred" => Policy::Deferred,
        "clamp" => Policy::Clamp,
        "skip" => Policy::Skip,
        other => {
            let known = "deferred, checked, clamp or skip";
            return unknown(operation, "out_of_range", other, known);
        }
    })
}

/// Reads the argument `pooling`.
pub fn pooling(operation: &str, word: &str) -> Result<Pooling> {
    Ok(match word {
        "sum" => Pooling::Sum,
        "mean" => Pooling::Mean,
        "max" => Pooling::Max,
        other => return unknown(operation, "pooling", other, "sum, mean or max"),
    })
}

/// Reads the argument `dtype`: a name, or a type of NumPy or PyTorch.
pub fn data_type(operation: &str, asked: &Bound<'_, PyAny>) -> Result<DataType> {
    let py = asked.py();
    let name = match asked.extract::<String>() {
        Ok(name) => name,
        Err(_) => {
            // `numpy.dtype` has a name, `numpy.float32` is a class, and PyTorch's prints as `torch.float32`.
            let named = asked
                .getattr(intern!(py, "name"))
                .or_else(|_| asked.getattr(intern!(py, "__name__")));
            match named.and_then(|it| it.extract::<String>()) {
                Ok(name) => name,
                Err(_) => asked.str()?.to_cow()?.into_owned(),
            }
        }
    };
    let name = name.rsplit('.').next().unwrap_or_default();
    match DataType::named(name) {
        Some(data_type) => Ok(data_type),
        None => wrong_type(format!(
            "{operation}: dtype is {asked}; give a type such as \"float32\", numpy.float32 or torch.float32"
        )),
    }
}

fn unknown<T>(operation: &str, argument: &str, found: &str, known: &str) -> Result<T> {
    wrong_value(format!(
        "{operation}: {argument} is \"{found}\"; give {known}"
    ))
}
