//! Symbolic extents: names for extents without a value.
//!
//! An expression with symbolic extents is evaluated several times, each time with other values for its symbols. The
//! result is printed if one expression of the symbols is right every time. The values are large: eight sets of primes,
//! and one of multiples of all small numbers. So a result holds for symbols that are larger than all numbers beside
//! them.

mod sum;

use crate::refusal::Refusal;

/// The most symbolic extents.
const MOST: usize = 6;

/// The number of sets of values.
pub(crate) const TRIALS: usize = 9;

/// The values of the symbols, set by set.
const VALUES: [[i64; MOST]; TRIALS] = [
    [285_463, 269_473, 232_643, 275_227, 295_837, 220_919],
    [217_333, 227_453, 219_097, 200_443, 241_391, 271_967],
    [275_827, 277_301, 240_953, 263_411, 221_171, 207_301],
    [222_127, 281_317, 263_983, 299_567, 201_517, 237_857],
    [245_881, 267_913, 247_451, 239_671, 225_637, 253_133],
    [236_507, 238_703, 271_463, 267_193, 226_103, 238_417],
    [251_431, 260_861, 200_371, 225_751, 260_959, 208_657],
    [270_509, 220_123, 296_027, 230_149, 216_037, 281_579],
    [201_600, 282_240, 443_520, 524_160, 685_440, 766_080],
];

/// The most divisors that are tried for a quotient.
const DIVISORS: i64 = 1 << 12;

/// The symbolic extents of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    names: Vec<String>,
    /// Which of the values the symbols have now.
    trial: usize,
}

impl Extents {
    /// Symbols of these names.
    pub(crate) fn of(names: &[String]) -> Result<Extents, Refusal> {
        let mut extents = Extents::default();
        for name in names {
            extents.add(name)?;
        }
        Ok(extents)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The same symbols with another set of values.
    pub(crate) fn with_trial(&self, trial: usize) -> Extents {
        Extents {
            trial,
            ..self.clone()
        }
    }

    /// Whether more symbols are known than before.
    pub(crate) fn has_more_than(&self, before: &Extents) -> bool {
        self.names.len() > before.names.len()
    }

    /// The value of a symbol, if it is known.
    pub(crate) fn value(&self, name: &str) -> Option<i64> {
        let number = self.names.iter().position(|known| known == name)?;
        Some(VALUES[self.trial][number])
    }

    /// The value of a new symbol.
    pub(crate) fn add(&mut self, name: &str) -> Result<i64, Refusal> {
        if self.names.len() == MOST {
            return Err(Refusal::new(format!(
                "the expression has more than {MOST} symbolic extents"
            )));
        }
        self.names.push(name.to_owned());
        Ok(VALUES[self.trial][self.names.len() - 1])
    }

    /// The values as a condition: `M = 200003, N = 200009`.
    pub(crate) fn condition(&self) -> String {
        let values = self.names.iter().zip(VALUES[self.trial]);
        let equations: Vec<String> = values
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        equations.join(", ")
    }

    /// One text for those of all sets of values: numbers that differ become expressions of the symbols. A layout's
    /// integers are products, other integers may be sums.
    pub(crate) fn merged(&self, texts: &[String]) -> Option<String> {
        let parts: Vec<Vec<&str>> = texts.iter().map(|text| parts(text)).collect();
        let first = parts.first()?;
        if parts.iter().any(|parts| parts.len() != first.len()) {
            return None;
        }
        let allows_sums = !first.iter().any(|part| part.contains(':'));
        let merged = (0..first.len()).map(|i| {
            let same = parts.iter().all(|parts| parts[i] == first[i]);
            if same {
                return Some(first[i].to_owned());
            }
            let numbers: Option<Vec<i64>> =
                parts.iter().map(|parts| parts[i].parse().ok()).collect();
            let numbers = numbers?;
            let product = self.product(&numbers);
            product.or_else(|| allows_sums.then(|| self.sum(&numbers)).flatten())
        });
        merged.collect()
    }

    /// The values of a symbol in all sets.
    fn values(number: usize) -> impl Iterator<Item = i64> {
        VALUES.iter().map(move |values| values[number])
    }

    /// `2*M*N`, or such a product with a quotient that is rounded up: `ceil_div(M,4)*N`.
    fn product(&self, numbers: &[i64]) -> Option<String> {
        let mut rest = numbers.to_vec();
        let mut factors = Vec::new();
        for (number, name) in self.names.iter().enumerate() {
            while constant(&rest).is_none()
                && rest
                    .iter()
                    .zip(Self::values(number))
                    .all(|(r, s)| r % s == 0)
            {
                rest = rest
                    .iter()
                    .zip(Self::values(number))
                    .map(|(r, s)| r / s)
                    .collect();
                factors.push(name.clone());
            }
        }
        match constant(&rest) {
            Some(1) if !factors.is_empty() => {}
            Some(number) => factors.insert(0, number.to_string()),
            None => factors.insert(0, self.quotient(&rest)?),
        }
        Some(factors.join("*"))
    }

    /// `ceil_div(M,4)`, or a multiple of such a quotient.
    fn quotient(&self, numbers: &[i64]) -> Option<String> {
        let factor = numbers.iter().copied().fold(0, gcd);
        if let Some(quotient) = self.plain_quotient(numbers) {
            return Some(quotient);
        }
        let quotients: Vec<i64> = numbers.iter().map(|number| number / factor).collect();
        Some(format!("{factor}*{}", self.plain_quotient(&quotients)?))
    }

    fn plain_quotient(&self, numbers: &[i64]) -> Option<String> {
        self.names.iter().enumerate().find_map(|(number, name)| {
            let divisor = divisor(numbers, number)?;
            Some(format!("ceil_div({name},{divisor})"))
        })
    }
}

/// The divisor by which a symbol's values become these numbers, rounded up.
fn divisor(numbers: &[i64], number: usize) -> Option<i64> {
    let value = VALUES[0][number];
    let quotient = numbers[0];
    if quotient < 2 {
        return None;
    }
    let most = (value - 1) / (quotient - 1);
    let least = (value + quotient - 1) / quotient;
    (least.max(2)..=most.min(least + DIVISORS)).find(|&divisor| {
        let mut with_values = numbers.iter().zip(Extents::values(number));
        with_values.all(|(&n, value)| (value + divisor - 1) / divisor == n)
    })
}

/// The number that all are.
fn constant(numbers: &[i64]) -> Option<i64> {
    let first = *numbers.first()?;
    numbers
        .iter()
        .all(|&number| number == first)
        .then_some(first)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// A text as numbers and what is between them.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digit);
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(part);
        rest = after;
    }
    parts
}
