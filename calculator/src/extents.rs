//! Symbolic extents: names for extents without a value.
//!
//! An expression with symbolic extents is evaluated several times, each time with other values for its symbols. The
//! result is printed if one expression of the symbols is right every time. The values are large: eight sets of primes, and
//! one of multiples of all small numbers. So a result holds for symbols that are larger than all numbers beside them.

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

    /// `M*N + 2*N + 3`: a sum whose terms have up to two symbols.
    fn sum(&self, numbers: &[i64]) -> Option<String> {
        let terms = self.terms(numbers.len());
        let factors = factors(&terms, numbers)?;
        let mut text = String::new();
        for (term, factor) in terms.iter().zip(factors).filter(|(_, factor)| *factor != 0) {
            let sign = match (text.is_empty(), factor < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            text += sign;
            text += &match (factor.abs(), term.name.as_str()) {
                (factor, "") => factor.to_string(),
                (1, name) => name.to_owned(),
                (factor, name) => format!("{factor}*{name}"),
            };
        }
        Some(text)
    }

    /// The terms of a sum: products of two symbols as far as there are values enough, symbols, and 1.
    fn terms(&self, trials: usize) -> Vec<Term> {
        let mut terms = Vec::new();
        let count = self.names.len();
        if 1 + count + count * (count - 1) / 2 < trials {
            for (i, j) in (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j))) {
                let name = format!("{}*{}", self.names[i], self.names[j]);
                let values = Self::values(i).zip(Self::values(j)).map(|(a, b)| a * b);
                terms.push(Term::new(name, values));
            }
        }
        for (i, name) in self.names.iter().enumerate() {
            terms.push(Term::new(name.clone(), Self::values(i)));
        }
        terms.push(Term::new(String::new(), [1; TRIALS].into_iter()));
        terms
    }
}

/// A term of a sum: its name and its value for each set of values of the symbols.
struct Term {
    name: String,
    values: Vec<i64>,
}

impl Term {
    fn new(name: String, values: impl Iterator<Item = i64>) -> Term {
        Term {
            name,
            values: values.collect(),
        }
    }
}

/// The factors with which the terms add up to the numbers, if there are some.
fn factors(terms: &[Term], numbers: &[i64]) -> Option<Vec<i64>> {
    let count = terms.len();
    // An equation for each of the first sets of values: the terms' values, then the number.
    let mut equations: Vec<Vec<f64>> = (0..count)
        .map(|trial| {
            let values = terms.iter().map(|term| term.values[trial]);
            let equation = values.chain([numbers[trial]]);
            equation.map(|value| value as f64).collect()
        })
        .collect();
    for column in 0..count {
        let rows = column..count;
        let pivot = rows.max_by(|&a, &b| {
            equations[a][column]
                .abs()
                .total_cmp(&equations[b][column].abs())
        })?;
        equations.swap(column, pivot);
        let pivot = equations[column].clone();
        for (row, equation) in equations.iter_mut().enumerate() {
            if row != column {
                let times = equation[column] / pivot[column];
                for (value, of_pivot) in equation.iter_mut().zip(&pivot) {
                    *value -= times * of_pivot;
                }
            }
        }
    }
    let factors: Vec<i64> = (0..count)
        .map(|i| (equations[i][count] / equations[i][i]).round() as i64)
        .collect();
    // Rounding may have gone wrong, and the other sets of values must agree.
    let sum = |trial: usize| -> i128 {
        let products = terms.iter().zip(&factors);
        products
            .map(|(term, &factor)| i128::from(term.values[trial]) * i128::from(factor))
            .sum()
    };
    let agrees = numbers
        .iter()
        .enumerate()
        .all(|(trial, &number)| sum(trial) == i128::from(number));
    agrees.then_some(factors)
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
