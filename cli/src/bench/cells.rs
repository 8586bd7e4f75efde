//! The cells of one line of results, by column.

use std::collections::BTreeMap;

use cutlet::MAX_EXTENT;
use serde::Deserialize;
use serde::de::{IntoDeserializer, value};

/// The cells of one line of results, by column. An empty cell is the same as no cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells(BTreeMap<String, String>);

impl Cells {
    /// From columns and their texts.
    pub fn new<'a>(cells: impl IntoIterator<Item = (&'a str, &'a str)>) -> Cells {
        let mut all = Cells::default();
        for (column, text) in cells {
            all.set(column, text);
        }
        all
    }

    /// Sets the text in a column.
    pub fn set(&mut self, column: &str, text: impl ToString) {
        let text = text.to_string();
        if !text.is_empty() {
            self.0.insert(column.to_string(), text);
        }
    }

    /// Sets a number, rounded to six digits.
    pub fn set_number(&mut self, column: &str, number: f64) {
        let rounded = format!("{number:.5e}").parse().unwrap_or(number);
        self.set(column, rounded);
    }

    /// The text in a column, empty where there is none.
    pub fn text(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    /// The value that a column names.
    ///
    /// # Errors
    /// If there is no such value.
    pub fn named<'a, T: Deserialize<'a>>(&'a self, column: &str) -> Result<T, String> {
        let text: value::StrDeserializer<'a, value::Error> = self.text(column).into_deserializer();
        T::deserialize(text).map_err(|error| format!("{column}: {error}"))
    }

    /// The extent in a column: from 1 to [`MAX_EXTENT`].
    ///
    /// # Errors
    /// If it is anything else.
    pub fn extent(&self, column: &str) -> Result<usize, String> {
        let text = self.text(column);
        let extent = text
            .parse()
            .ok()
            .filter(|extent| (1..=MAX_EXTENT).contains(extent));
        extent.ok_or_else(|| format!("{column} is `{text}`, not a number from 1 to {MAX_EXTENT}"))
    }

    /// The number in a column, which is positive and finite.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn positive(&self, column: &str) -> Result<f64, String> {
        let text = self.text(column);
        let number = text.parse().ok();
        let number = number.filter(|&number: &f64| number > 0.0 && number.is_finite());
        number.ok_or_else(|| format!("{column} is `{text}`, not a positive number"))
    }

    /// The number in a column, which is positive and finite or absent.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn positive_or_absent(&self, column: &str) -> Result<Option<f64>, String> {
        match self.text(column) {
            "" => Ok(None),
            _ => self.positive(column).map(Some),
        }
    }

    /// The number in a column, which is 0, positive and finite, or absent.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn zero_or_more(&self, column: &str) -> Result<Option<f64>, String> {
        match self.text(column).parse() {
            Ok(0.0) => Ok(Some(0.0)),
            _ => self.positive_or_absent(column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_six_digits() {
        let mut cells = Cells::default();
        for (number, text) in [
            (2.119_767_441_860_465, "2.11977"),
            (1_234_567.8, "1234570"),
            (700.0, "700"),
            (0.001_670_679_76, "0.00167068"),
        ] {
            cells.set_number("number", number);
            assert_eq!(cells.text("number"), text);
        }
    }

    #[test]
    fn absurd_numbers_are_refused() {
        for text in ["", "0", "-1", "NaN", "inf", "1e999", "x"] {
            let cells = Cells::new([("time", text)]);
            let error = cells.positive("time").unwrap_err();
            assert_eq!(error, format!("time is `{text}`, not a positive number"));
        }
        assert_eq!(Cells::new([("time", "2.5")]).positive("time"), Ok(2.5));
        assert_eq!(
            Cells::new([("error", "0")]).zero_or_more("error"),
            Ok(Some(0.0))
        );
        assert!(Cells::new([("error", "-1")]).zero_or_more("error").is_err());
        for text in ["0", "-3", "1.5", "2147483648000"] {
            assert!(Cells::new([("m", text)]).extent("m").is_err(), "{text}");
        }
    }
}
