//! Why an operation on layouts has no result, in words.

use core::fmt;

use crate::text::Text;

/// The kind of an error. [`LayoutError`] says in full what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The function exists, but no layout computes it.
    NotRepresentable,
    /// A layout maps two coordinates to one index, which the operation does not allow.
    Overlap,
    /// Shapes, ranks or profiles do not fit each other.
    Mismatch,
    /// A size, stride or index does not fit 64 bits.
    Overflow,
    /// More leaves or deeper nesting than a value holds; see [`CAPACITY`](crate::CAPACITY).
    Capacity,
    /// A value that is not allowed, such as an extent of 0.
    Invalid,
    /// Text that is not in CuTe's notation.
    Syntax,
}

/// Why an operation has no result.
///
/// The message names the operation, its operands and the obstacle. An operation that returns no
/// `Result` panics with the message; in a `const` it is a compile error.
///
/// ```
/// use cutlet_layout_core::{layout, try_composition};
///
/// let error = try_composition(&layout!((4, 2):(1, 8)), &layout!(3:3)).unwrap_err();
/// assert_eq!(
///     error.message(),
///     "composition: (4,2):(1,8) o 3:3 takes 0, 3, 10: no layout does"
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LayoutError {
    kind: ErrorKind,
    column: usize,
    text: Text,
}

impl LayoutError {
    pub(crate) const fn new(kind: ErrorKind, text: &Text) -> LayoutError {
        LayoutError {
            kind,
            column: 0,
            text: *text,
        }
    }

    pub(crate) const fn with_column(self, column: usize) -> LayoutError {
        LayoutError { column, ..self }
    }

    pub(crate) const fn of(kind: ErrorKind, message: &str) -> LayoutError {
        let mut text = Text::new();
        text.str(message);
        LayoutError::new(kind, &text)
    }

    /// The kind of the error.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The column, counted from 1, if reading a text failed.
    pub const fn column(&self) -> Option<usize> {
        if self.column == 0 {
            None
        } else {
            Some(self.column)
        }
    }

    /// What went wrong, in words.
    pub const fn message(&self) -> &str {
        self.text.as_str()
    }

    /// Panics with the message.
    #[track_caller]
    pub(crate) const fn panic(&self) -> ! {
        panic!("{}", self.message())
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LayoutError({:?}: {})", self.kind, self.message())
    }
}

impl core::error::Error for LayoutError {}

/// The value of a `Result`, or a panic with the error's message: `Result::unwrap` is not `const`.
#[track_caller]
pub(crate) const fn or_panic<T: Copy>(result: Result<T, LayoutError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => error.panic(),
    }
}

/// `?` for `const fn`.
macro_rules! tri {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}
pub(crate) use tri;

/// The twin of a `try_` function: it panics instead, which in a `const` is a compile error.
macro_rules! twin {
    ($(
        $(#[$doc:meta])*
        $name:ident = $try_name:ident($($arg:ident: $type:ty),*) -> $result:ty;
    )+) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        #[doc = concat!(
            "If [`", stringify!($try_name), "`] returns an error; in a `const`, its message is a compile error."
        )]
        #[track_caller]
        pub const fn $name($($arg: $type),*) -> $result {
            $crate::error::or_panic($try_name($($arg),*))
        }
    )+};
}
pub(crate) use twin;
