//! Whether a layout reaches each index once.

use std::collections::BTreeMap;
use std::fmt;

use crate::cells::plain;
use crate::refusal::Refusal;
use crate::value::Value;

/// The most coordinates that are looked at.
const MOST: i64 = 1 << 20;

/// How a layout maps its coordinates to the indices from 0 to its size minus 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bijection {
    /// Each index below the size is reached once.
    Bijective {
        /// The size.
        size: i64,
    },
    /// Each index is reached at most once, but some below the last are not reached.
    Injective {
        /// The first index that is not reached.
        gap: i64,
    },
    /// An index is reached twice.
    Overlapping {
        /// The first such index.
        index: String,
        /// The first two 1-D coordinates with this index.
        coordinates: [i64; 2],
    },
}

impl fmt::Display for Bijection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bijection::Bijective { size } => {
                write!(
                    f,
                    "bijective: it reaches each index from 0 to {} once",
                    size - 1
                )
            }
            Bijection::Injective { gap } => write!(
                f,
                "injective, not bijective: it reaches no index twice, but {gap} never"
            ),
            Bijection::Overlapping {
                index,
                coordinates: [first, second],
            } => write!(
                f,
                "not injective: coordinates {first} and {second} both have index {index}"
            ),
        }
    }
}

/// Tells whether a layout is a bijection.
///
/// # Errors
/// If the value is no layout, or has too many coordinates.
pub fn bijection(value: &Value) -> Result<Bijection, Refusal> {
    let size = value.size()?;
    if size > MOST {
        return Err(Refusal::new(format!(
            "--bijective looks at all coordinates: {size} are more than {MOST}"
        )));
    }
    let mut firsts: Vec<Option<i64>> = vec![None; usize::try_from(size).unwrap_or(0)];
    // Coordinates, and indices beyond the size.
    let mut others: BTreeMap<String, i64> = BTreeMap::new();
    for c in 0..size {
        let index = value.at(c)?;
        let place = plain(&index).and_then(|index| usize::try_from(index).ok());
        let first = match place.and_then(|place| firsts.get_mut(place)) {
            Some(first) => first.replace(c),
            None => others.insert(index.to_string(), c),
        };
        if let Some(first) = first {
            return Ok(Bijection::Overlapping {
                index: index.to_string(),
                coordinates: [first, c],
            });
        }
    }
    Ok(match firsts.iter().position(Option::is_none) {
        Some(gap) => Bijection::Injective { gap: gap as i64 },
        None => Bijection::Bijective { size },
    })
}
