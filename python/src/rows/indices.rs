//! Arrays of row numbers, of either integer type.

use crate::array::Array;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type};

/// Row numbers that lie one behind the other.
#[derive(Clone, Copy)]
pub enum Indices<'a> {
    Narrow(&'a Array),
    Wide(&'a Array),
}

impl<'a> Indices<'a> {
    /// The numbers of an array of any shape.
    ///
    /// # Errors
    /// If they are not of 32 or 64 bits, or not contiguous.
    pub fn of(operation: &str, array: &'a Array) -> Result<Indices<'a>> {
        array.expect_contiguous(operation)?;
        match array.data_type {
            DataType::I32 => Ok(Indices::Narrow(array)),
            DataType::I64 => Ok(Indices::Wide(array)),
            other => wrong_type(format!(
                "{operation}: {} is {}; give int32 or int64",
                array.name,
                other.name()
            )),
        }
    }
}

/// Evaluates an expression with the view of indices, of either type.
macro_rules! for_indices {
    ($indices:expr, $context:expr, |$view:ident| $call:expr) => {
        match $indices {
            $crate::rows::indices::Indices::Narrow(array) => {
                let $view = array.memory::<i32>($context)?;
                $call
            }
            $crate::rows::indices::Indices::Wide(array) => {
                let $view = array.memory::<i64>($context)?;
                $call
            }
        }
    };
}
pub(crate) use for_indices;
