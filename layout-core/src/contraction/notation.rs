//! The notation of a contraction: `bshd,bthd->bhst`.

use core::fmt;
use core::str::FromStr;

use super::names::Names;
use crate::CAPACITY;
use crate::error::{ErrorKind, LayoutError, tri};
use crate::text::Text;

/// A contraction as text, in einsum's notation of two operands: a letter for each mode of A, B and C.
///
/// Modes that C does not have are summed. Letters are those of NumPy and PyTorch, a to z and A to Z. Spaces mean
/// nothing.
///
/// ```
/// use cutlet_layout_core::contraction::Notation;
///
/// let notation = Notation::parse("ij, jk -> ik").unwrap();
/// assert_eq!(notation.to_string(), "ij,jk->ik");
/// let refused = Notation::parse("ij,jk->il").unwrap_err();
/// assert_eq!(
///     refused.message(),
///     "the output of `ij,jk->il` has the mode l, and no operand has; give an operand a mode of stride 0"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Notation {
    names: [Names; 3],
}

const ASKS: &str = "write `ab,bc->ac`: a letter for each mode of A, B and C";

impl Notation {
    /// Reads the notation.
    ///
    /// # Errors
    /// What is wrong in it: there are not two operands and an output, a name is no letter, or the output has a mode
    /// twice or alone.
    pub const fn parse(text: &str) -> Result<Notation, LayoutError> {
        let arrow = tri!(arrow(text));
        let bytes = text.as_bytes();
        let mut names = [Names::EMPTY; 3];
        let mut tensor = 0;
        let mut i = 0;
        while i < bytes.len() {
            let byte = bytes[i];
            if i == arrow {
                tensor = 2;
                i += 1;
            } else if byte == b',' && i < arrow {
                tensor = 1;
            } else if !byte.is_ascii_whitespace() {
                if !byte.is_ascii_alphabetic() {
                    return Err(no_letter(text, i));
                }
                if !names[tensor].push(byte) {
                    return Err(too_many(text));
                }
            }
            i += 1;
        }
        let notation = Notation { names };
        match notation.check(text) {
            Ok(()) => Ok(notation),
            Err(error) => Err(error),
        }
    }

    /// The names of the modes of A (0), B (1) or C (2).
    ///
    /// # Panics
    /// If there is no such tensor.
    pub const fn names(&self, tensor: usize) -> &Names {
        &self.names[tensor]
    }

    /// Whether each mode of the output is one of an operand, and there once.
    const fn check(&self, text: &str) -> Result<(), LayoutError> {
        let [a, b, c] = &self.names;
        let mut i = 0;
        while i < c.len() {
            let name = c.letter(i);
            let is_twice = c.count(name, i) > 0;
            if is_twice || !a.has(name) && !b.has(name) {
                let why = if is_twice {
                    " twice; write a diagonal by a tensor that has it alone"
                } else {
                    ", and no operand has; give an operand a mode of stride 0"
                };
                let mut message = Text::new();
                message.str("the output of `").str(text);
                message.str("` has the mode ").letter(name).str(why);
                return Err(LayoutError::new(ErrorKind::Mismatch, &message));
            }
            i += 1;
        }
        Ok(())
    }
}

/// The place of `->`, behind two operands.
const fn arrow(text: &str) -> Result<usize, LayoutError> {
    let bytes = text.as_bytes();
    let mut commas = 0;
    let mut i = 0;
    while i + 1 < bytes.len() {
        if bytes[i] == b'-' && bytes[i + 1] == b'>' {
            break;
        }
        if bytes[i] == b',' {
            commas += 1;
        }
        i += 1;
    }
    let mut message = Text::new();
    message.str("`").str(text);
    if i + 1 >= bytes.len() {
        message.str("` has no `->` and no output; ").str(ASKS);
        return Err(LayoutError::new(ErrorKind::Syntax, &message));
    }
    if commas != 1 {
        message.str("` has ").number(commas + 1);
        message.str(" operands, and a contraction has two; contract them one after the other");
        return Err(LayoutError::new(ErrorKind::Syntax, &message));
    }
    Ok(i)
}

/// The error of the character at a place of the notation.
const fn no_letter(text: &str, place: usize) -> LayoutError {
    let bytes = text.as_bytes();
    let mut end = place + 1;
    while end < bytes.len() && bytes[end] & 0b1100_0000 == 0b1000_0000 {
        end += 1;
    }
    let character = text.split_at(end).0.split_at(place).1;
    let mut message = Text::new();
    message.str("`").str(text).str("` has `").str(character);
    message.str("`, which is no letter; ").str(ASKS);
    LayoutError::new(ErrorKind::Syntax, &message)
}

const fn too_many(text: &str) -> LayoutError {
    let mut message = Text::new();
    message.str("a tensor of `").str(text);
    message.str("` has more than ").number(CAPACITY as i64);
    message.str(" modes; merge some of them first");
    LayoutError::new(ErrorKind::Capacity, &message)
}

impl FromStr for Notation {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Notation, LayoutError> {
        Notation::parse(text)
    }
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = &self.names;
        write!(f, "{a},{b}->{c}")
    }
}
