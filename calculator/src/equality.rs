//! `a == b`: whether two layouts are the same layout, or at least the same function.

use std::fmt;

use cutlet_layout_core::{Tiler, coalesce};

use crate::refusal::Refusal;
use crate::value::Value;

/// The most coordinates at which two layouts are compared.
const MOST_COORDINATES: i64 = 1 << 20;

/// What two layouts have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// They have the same shape and stride.
    SameLayout,
    /// They have the same values at all 1-D coordinates, but another shape or stride.
    SameFunction,
    /// They differ at a 1-D coordinate. No earlier one has different values.
    Different {
        /// The coordinate.
        at: i64,
        /// The first one's value.
        left: String,
        /// The second one's value.
        right: String,
    },
    /// They have different sizes. Up to the smaller size, the values are the same.
    DifferentSizes(i64, i64),
}

impl Comparison {
    /// Whether the functions are the same.
    pub fn is_same_function(&self) -> bool {
        matches!(self, Comparison::SameLayout | Comparison::SameFunction)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Comparison::SameLayout => f.write_str("the same layout"),
            Comparison::SameFunction => f.write_str("the same function, but another layout"),
            Comparison::Different { at, left, right } => {
                write!(f, "different: {left} and {right} at {at}")
            }
            Comparison::DifferentSizes(left, right) => {
                write!(
                    f,
                    "different: the same values, but the sizes {left} and {right}"
                )
            }
        }
    }
}

/// `left == right`. Layouts are compared as functions too. Other values are the same or not.
pub(crate) fn compare(left: &Value, right: &Value) -> Result<Value, Refusal> {
    match (left, right) {
        (Value::Tuple(a), Value::Tuple(b)) => Ok(Value::Truth(a == b)),
        (Value::Tiler(_), _) | (_, Value::Tiler(_)) => {
            Ok(Value::Truth(same_tiler(&left.tiler()?, &right.tiler()?)))
        }
        (Value::Inner(a), Value::Inner(b)) => Ok(Value::Truth(a == b)),
        (Value::Truth(a), Value::Truth(b)) => Ok(Value::Truth(a == b)),
        _ => compare_functions(left, right).map(Value::Comparison),
    }
}

fn same_tiler(a: &Tiler, b: &Tiler) -> bool {
    a.to_static().to_string() == b.to_static().to_string()
}

/// Compares two layouts as functions of 1-D coordinates.
///
/// # Errors
/// If one is no layout, or they have too many coordinates.
pub fn compare_functions(left: &Value, right: &Value) -> Result<Comparison, Refusal> {
    if let (Ok(a), Ok(b)) = (left.layout(), right.layout()) {
        if a == b {
            return Ok(Comparison::SameLayout);
        }
        if a.size() == b.size() && coalesce(&a.to_static()) == coalesce(&b.to_static()) {
            return Ok(Comparison::SameFunction);
        }
    } else if left.to_string() == right.to_string() {
        return Ok(Comparison::SameLayout);
    }
    let sizes = [left.size()?, right.size()?];
    let size = sizes[0].min(sizes[1]);
    if size > MOST_COORDINATES {
        return Err(Refusal::new(format!(
            "`==` compares values at all coordinates: {size} are more than {MOST_COORDINATES}"
        )));
    }
    for at in 0..size {
        let (left, right) = (left.at(at)?, right.at(at)?);
        if left != right {
            return Ok(Comparison::Different {
                at,
                left: left.to_string(),
                right: right.to_string(),
            });
        }
    }
    if sizes[0] == sizes[1] {
        Ok(Comparison::SameFunction)
    } else {
        Ok(Comparison::DifferentSizes(sizes[0], sizes[1]))
    }
}
