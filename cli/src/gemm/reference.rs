//! The reference of C in f64, and how far a result is from it.

use rayon::prelude::*;

use super::arithmetic::{Element, Factor, Stored};
use super::{Factors, GemmArgs, Inputs};
use crate::deviation::{Deviation, Entry};
use crate::measure::epilogue::Epilogue;
use crate::normal::generator;
use crate::progress::Progress;

/// Entries of C that are compared where all would take too long.
const SAMPLES: usize = 8192;
/// The step of a difference quotient, relative to the size of a sum's terms.
const SMALL: f64 = 1e-6;

/// How far the entries of `found` that are compared are from their references.
pub(super) fn deviation<T: Element<D>, D: Stored>(
    args: &GemmArgs,
    factors: Factors<T::Factor>,
    inputs: &Inputs<T, D>,
    found: &[D],
    progress: &Progress,
) -> Deviation {
    let places = places(args);
    progress.begin("reference in f64", places.len());
    let entries: Vec<Entry> = places
        .par_iter()
        .map(|&place| {
            progress.advance(1);
            compared(args, factors, inputs, found, place)
        })
        .collect();
    Deviation::of_entries(entries)
}

/// The rows and columns of the entries that are compared: all if that is quick, else samples. Mistakes at edges show in
/// the last row and column: they get half of the samples.
fn places(args: &GemmArgs) -> Vec<(usize, usize)> {
    let [m, n, _] = args.extents();
    if args.is_quick() {
        return (0..m * n).map(|entry| (entry / n, entry % n)).collect();
    }
    let mut random = generator(args.timed.seed);
    (0..SAMPLES)
        .map(|sample| match sample % 4 {
            0 => (m - 1, random.usize(..n)),
            1 => (random.usize(..m), n - 1),
            _ => (random.usize(..m), random.usize(..n)),
        })
        .collect()
}

/// An entry with its reference and its scale.
fn compared<T: Element<D>, D: Stored>(
    args: &GemmArgs,
    factors: Factors<T::Factor>,
    Inputs {
        a,
        b,
        c,
        bias,
        scales,
    }: &Inputs<T, D>,
    found: &[D],
    (i, j): (usize, usize),
) -> Entry {
    let [m, n, k] = args.extents();
    let terms = (0..k).map(|l| {
        let (a, b) = (
            a[args.a.index([m, k], [i, l])],
            b[args.b.index([k, n], [l, j])],
        );
        a.to_f64() * b.to_f64() * scales.factor([i, j], l)
    });
    let entry = args.c.index([m, n], [i, j]);
    let activation = Epilogue {
        bias: false,
        ..args.epilogue()
    };
    let exact = Exact {
        factors,
        sum: Sum::of(terms),
        old: c[entry].to_f64(),
        bias: if args.bias { bias[j].to_f64() } else { 0.0 },
    };
    exact.beside(found[entry], |sum| activation.apply(sum, 0.0))
}

/// A sum of products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    product: f64,
    /// The sum of their squares.
    squares: f64,
}

impl Sum {
    /// The sum of these products.
    pub fn of(terms: impl Iterator<Item = f64>) -> Sum {
        let (product, squares) = terms.fold((0.0, 0.0), |(product, squares), term| {
            (product + term, squares + term * term)
        });
        Sum { product, squares }
    }

    /// The sum itself.
    pub fn product(self) -> f64 {
        self.product
    }
}

/// What an entry of C is made of before the activation.
pub struct Exact<F> {
    pub factors: Factors<F>,
    pub sum: Sum,
    /// The entry before.
    pub old: f64,
    pub bias: f64,
}

impl<F: Factor> Exact<F> {
    /// The entry that was found, with its reference and its scale.
    pub fn beside<D: Stored>(self, found: D, activated: impl Fn(f64) -> f64) -> Entry {
        let Factors { alpha, beta } = self.factors;
        let Sum { product, squares } = self.sum;
        let sum = F::reference(alpha, product, beta, self.old, self.bias);
        let reference = activated(sum);
        // Where the terms cancel, the sum's rounding is relative to the terms, and the activation passes it on.
        let terms = alpha.value().abs() * squares.sqrt();
        let passed_on = (activated(sum + SMALL * terms) - reference).abs() / SMALL;
        let of_overflow = F::overflows(alpha, product, beta, self.old);
        let compared = Entry {
            found: found.to_f64(),
            reference,
            scale: reference.abs().max(passed_on),
        };
        right_or_compared::<D>(compared, of_overflow.into_iter().map(activated))
    }
}

/// The entry as it is compared. One that is right though it is infinite, or made of an infinite term, is compared with
/// itself, and is nothing that the errors of other entries are relative to.
fn right_or_compared<D: Stored>(entry: Entry, mut of_overflow: impl Iterator<Item = f64>) -> Entry {
    let Entry {
        found,
        reference,
        scale,
    } = entry;
    let is_of_overflow =
        of_overflow.any(|right| found == right || found.is_nan() && right.is_nan());
    let is_rounded = found.is_infinite() && is_beyond::<D>(found, reference, scale);
    match is_of_overflow || is_rounded {
        true => Entry {
            found,
            reference: found,
            scale: 0.0,
        },
        false => entry,
    }
}

/// How far a sum near C's largest number may be from its reference, relative to its scale.
const NEAR_THE_LARGEST: f64 = 1e-2;

/// Whether a sum that is right may round to this infinity in C's type.
fn is_beyond<D: Stored>(infinity: f64, reference: f64, scale: f64) -> bool {
    let furthest = reference + (NEAR_THE_LARGEST * scale).copysign(infinity);
    D::nearest(furthest).to_f64() == infinity
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn infinities_are_right_beyond_the_largest_number() {
        let infinity = f64::INFINITY;
        let is_right = |of, reference: f64| is_beyond::<f16>(of, reference, reference.abs());
        assert!(
            is_right(infinity, 1e6) && is_right(infinity, 65000.0) && is_right(-infinity, -1e6)
        );
        assert!(
            !is_right(infinity, 60000.0) && !is_right(infinity, -1e6) && !is_right(-infinity, 1.0)
        );
        assert!(is_beyond::<f32>(infinity, 1e39, 1e39) && !is_beyond::<f32>(infinity, 1e38, 1e38));
    }
}
