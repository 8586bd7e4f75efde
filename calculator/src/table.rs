//! Index tables: `gather([7,250,0])` maps 0 to 7, 1 to 250 and 2 to 0.

use std::sync::Arc;

use crate::composed::Inner;
use crate::reader::Reader;
use crate::refusal::{Refusal, cut};
use crate::value::Value;

/// The most entries of a table.
const ENTRIES: usize = 1 << 16;

/// Reads the table behind the name `gather`.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Value, Refusal> {
    reader.expect("(", "`(` and a list of indices")?;
    reader.expect("[", "`[` and indices, as in gather([7,250,0])")?;
    let mut entries = Vec::new();
    loop {
        if entries.len() == ENTRIES {
            let place = reader.place();
            return Err(reader.refusal(place, format!("a table has up to {ENTRIES} entries")));
        }
        entries.push(entry(reader)?);
        if !reader.eat(",") {
            break;
        }
    }
    reader.expect("]", "`,` or `]`")?;
    reader.expect(")", "`)`")?;
    Ok(Value::Inner(Inner::Table(Arc::from(entries))))
}

fn entry(reader: &mut Reader<'_>) -> Result<i64, Refusal> {
    let place = reader.place();
    let rest = reader.rest();
    let is_digit = |(i, c): (usize, char)| c.is_ascii_digit() || i == 0 && c == '-';
    let end = rest.char_indices().find(|&at| !is_digit(at));
    let digits = &rest[..end.map_or(rest.len(), |(at, _)| at)];
    if digits.trim_start_matches('-').is_empty() {
        return Err(reader.expected("an index"));
    }
    reader.advance(digits.len());
    digits.parse().map_err(|_| {
        let message = format!("the integer {} does not fit 64 bits", cut(digits));
        reader.refusal(place, message)
    })
}
