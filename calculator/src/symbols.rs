//! Symbols: names for strides without a value.
//!
//! A symbol is a direction of its own, as `1@0` is. Operations on strides in directions are those on symbolic strides.

use cutlet_layout_core::{Basis, CAPACITY, Int, IntTuple, Layout, idx2crd};

use crate::refusal::Refusal;
use crate::value::Value;

/// The most symbols. Directions below are left to strides such as `1@0`.
const MOST: usize = 16;

/// The symbols of an expression.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Vec<String>,
}

impl Symbols {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The stride that a name stands for.
    pub(crate) fn stride(&mut self, name: &str) -> Result<Int, Refusal> {
        let known = self.names.iter().position(|known| known == name);
        let number = match known {
            Some(number) => number,
            None if self.names.len() == MOST => {
                return Err(Refusal::new(format!(
                    "the expression has more than {MOST} symbolic strides"
                )));
            }
            None => {
                self.names.push(name.to_owned());
                self.names.len() - 1
            }
        };
        Ok(Int::fixed(1).along(Basis::new(CAPACITY - 1 - number)))
    }

    /// The name of a direction, if it is a symbol's.
    fn name(&self, direction: usize) -> Option<&str> {
        let number = (CAPACITY - 1).checked_sub(direction)?;
        self.names.get(number).map(String::as_str)
    }

    /// A text with names in place of their directions: `72@31` is `72*w`.
    pub fn named(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let mut named = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('@') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let name = after[..digits].parse().ok().and_then(|d| self.name(d));
            match name {
                Some(name) => {
                    let number = before.trim_end_matches(|c: char| c.is_ascii_digit());
                    let factor = &before[number.len()..];
                    // A factor of 1 is left out, whether it is static or not.
                    let sign = if number.ends_with('-') { "-" } else { "" };
                    let start = number.strip_suffix(sign).unwrap_or(number);
                    if factor == "1" {
                        named += start.strip_suffix('_').unwrap_or(start);
                        named += sign;
                    } else {
                        named += number;
                        named += factor;
                        named.push('*');
                    }
                    named += name;
                }
                None => {
                    named += before;
                    named.push('@');
                    named += &after[..digits];
                }
            }
            rest = &after[digits..];
        }
        named + rest
    }

    /// A refusal's message, in which symbols are no directions.
    pub(crate) fn in_words(&self, message: &str) -> String {
        if self.is_empty() {
            return message.to_owned();
        }
        self.named(message)
            .replace("strides in basis directions", "symbolic strides")
    }

    /// The value of a layout with symbolic strides at a coordinate, if it has some.
    pub(crate) fn sum(&self, layout: &Layout, coord: &IntTuple) -> Option<Value> {
        let symbolic = (0..layout.num_leaves()).any(|leaf| {
            let basis = layout.leaf_stride(leaf).basis();
            !basis.is_none() && self.name(basis.at(0)).is_some()
        });
        if !symbolic || coord.has_underscore() {
            return None;
        }
        let natural = idx2crd(coord, &layout.shape());
        let mut terms: Vec<Int> = Vec::new();
        for leaf in 0..layout.num_leaves() {
            let term = layout.leaf_stride(leaf).checked_mul(natural.leaf(leaf))?;
            match terms.iter_mut().find(|sum| sum.basis().eq(term.basis())) {
                Some(sum) => *sum = sum.checked_add(term)?,
                None => terms.push(term),
            }
        }
        terms.retain(|term| term.value() != 0);
        Some(Value::Sum(terms))
    }
}
