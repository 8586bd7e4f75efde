//! Numbers among the facts of results that must be positive and finite.

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

/// Reads a positive number that may be absent.
///
/// # Errors
/// If it is 0, negative, infinite or NaN.
pub fn positive_or_absent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    positive(from).map(Some)
}
