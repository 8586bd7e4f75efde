//! Numbers among the facts of results that must be positive, or 0, and finite.

use serde::de::{Deserialize, Deserializer, Error};

/// Reads a positive number.
///
/// # Errors
/// If it is 0, negative, infinite or NaN.
pub fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    match number > 0.0 && number.is_finite() {
        true => Ok(number),
        false => Err(D::Error::custom(format!(
            "{number} is not a positive number"
        ))),
    }
}

/// Reads a number that is 0 or positive.
///
/// # Errors
/// If it is negative, infinite or NaN.
pub fn zero_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    match number >= 0.0 && number.is_finite() {
        true => Ok(number),
        false => Err(D::Error::custom(format!(
            "{number} is neither 0 nor a positive number"
        ))),
    }
}

/// Reads a number of things of which there is at least one.
///
/// # Errors
/// If it is 0, or no whole number.
pub fn at_least_one<'de, D: Deserializer<'de>, N>(from: D) -> Result<N, D::Error>
where
    N: Deserialize<'de> + PartialEq + From<bool>,
{
    let number = N::deserialize(from)?;
    match number == N::from(false) {
        true => Err(D::Error::custom("there must be at least one")),
        false => Ok(number),
    }
}

/// Reads a positive number that may be absent.
///
/// # Errors
/// If it is 0, negative, infinite or NaN.
pub fn positive_or_absent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    positive(from).map(Some)
}
