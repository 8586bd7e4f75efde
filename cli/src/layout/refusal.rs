//! Refusals: why the calculator has no value.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};

use cutlet_layout_core::LayoutError;

/// Why there is no value.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The column of a mistake in the expression's text, in characters from 1.
    pub column: Option<usize>,
    pub message: String,
}

impl Refusal {
    pub fn new(message: impl Into<String>) -> Refusal {
        Refusal {
            column: None,
            message: message.into(),
        }
    }
}

impl From<LayoutError> for Refusal {
    fn from(error: LayoutError) -> Refusal {
        Refusal::new(error.message())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "column {column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// What a function returns; where it panics, as operations without a `try_` twin do to refuse,
/// the panic's message.
pub fn caught<T>(f: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    panic::catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Refusal::new(
            message.unwrap_or("the operation has no result"),
        ))
    })
}
