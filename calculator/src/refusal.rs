//! Refusals: why the calculator has no value.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};

use cutlet_layout_core::LayoutError;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The column of a mistake in the expression's text, in characters from 1.
    pub column: Option<usize>,
    /// The reason, in words.
    pub message: String,
}

impl Refusal {
    /// A refusal that points at no place.
    pub fn new(message: impl Into<String>) -> Refusal {
        Refusal {
            column: None,
            message: message.into(),
        }
    }

    /// The refusal with a part of its expression, and a mark under the column.
    pub fn marked(&self, expression: &str) -> String {
        let Some(column) = self.column else {
            return self.to_string();
        };
        let (line, place) = line_of(expression, column);
        let (shown, place) = part_around(line, place);
        format!("{self}\n  {shown}\n  {:>place$}", "^")
    }
}

/// The line of a column in a text, and the column in it.
fn line_of(text: &str, column: usize) -> (&str, usize) {
    let mut begin = 0;
    for line in text.split('\n') {
        let length = line.chars().count();
        if column <= begin + length + 1 {
            return (line, column - begin);
        }
        begin += length + 1;
    }
    (text, column)
}

/// The most characters that are shown of a line on each side of a mistake.
const AROUND: usize = 60;

/// The part of a line around a column, and the column in it.
fn part_around(line: &str, column: usize) -> (String, usize) {
    let first = column.saturating_sub(AROUND + 1);
    let mut shown: String = line.chars().skip(first).take(2 * AROUND).collect();
    if line.chars().nth(first + 2 * AROUND).is_some() {
        shown.push('…');
    }
    if first == 0 {
        (shown, column)
    } else {
        (format!("…{shown}"), column - first + 1)
    }
}

/// The most characters of a name or a value in a message.
const LONGEST: usize = 60;

/// A text for a message, cut if it is long or has several lines.
pub(crate) fn cut(text: &str) -> String {
    let mut ends = text.char_indices().enumerate();
    match ends.find(|(nth, (_, c))| *nth == LONGEST || *c == '\n') {
        Some((_, (end, _))) => format!("{}…", &text[..end]),
        None => text.to_owned(),
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

impl std::error::Error for Refusal {}

/// What a function returns; where it panics, as operations without a `try_` twin do to refuse,
/// the panic's message.
///
/// WebAssembly has no unwinding: there, the panic ends the call, and a panic hook has the message.
///
/// # Errors
/// If the function refuses or panics.
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
