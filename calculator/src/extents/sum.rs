//! Numbers as sums of symbols: the factors are found from some sets of values, and the others must agree.

use super::{Extents, TRIALS};

impl Extents {
    /// `M*N + 2*N + 3`: a sum whose terms have up to two symbols.
    pub(super) fn sum(&self, numbers: &[i64]) -> Option<String> {
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
