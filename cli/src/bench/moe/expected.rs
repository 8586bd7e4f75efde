//! What the layer must compute for some tokens, in f64 on the host.

use std::fmt;

use cutlet::{Buffer, DeviceData, Stream};
use half::bf16;
use rayon::prelude::*;
use serde::Serialize;

use super::layer::{Layer, Shape, Step};
use crate::measure::error::Result;

/// Tokens that are looked at.
const TOKENS: usize = 8;
/// The largest relative error: bf16 keeps three digits, and the results are rounded four times.
const WITHIN: f64 = 1e-2;

/// How far the results of some tokens are from what they must be.
#[derive(Serialize)]
pub struct Check {
    tokens: usize,
    /// ‖exact − found‖ / ‖exact‖ of the results; infinite if an expert is not among a token's best.
    relative: f64,
    /// Whether the results are as close as bf16 allows.
    pub right: bool,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Check {
            tokens,
            relative,
            right,
        } = self;
        let verdict = if *right { "right" } else { "wrong" };
        write!(
            f,
            "{verdict}: {tokens} tokens have a relative error of {relative:.1e}"
        )
    }
}

/// Runs the layer, and compares results of some tokens.
///
/// # Errors
/// If the device fails.
pub fn check(layer: &mut Layer, stream: &Stream) -> Result<Check> {
    layer.spoil(stream)?;
    layer.enqueue(stream, &Step::ALL)?;
    compare(layer, stream)
}

/// Compares the results that some tokens have.
///
/// # Errors
/// If the device fails.
pub fn compare(layer: &Layer, stream: &Stream) -> Result<Check> {
    let Shape { tokens, width, .. } = layer.shape;
    let looked_at = tokens.min(TOKENS);
    let (mut errors, mut squares) = (0.0, 0.0);
    for token in (0..looked_at).map(|nth| nth * tokens / looked_at) {
        let found = part(stream, layer.sums.buffer(), token, width)?;
        for (exact, found) in result(layer, stream, token)?.iter().zip(found) {
            errors += (exact - f64::from(found)).powi(2);
            squares += exact.powi(2);
        }
    }
    let relative = (errors / squares).sqrt();
    Ok(Check {
        tokens: looked_at,
        // A result that is no number is wrong.
        right: relative < WITHIN,
        relative,
    })
}

/// The layer's result for a token. It is infinite if the token's experts are not its best ones.
fn result(layer: &Layer, stream: &Stream, token: usize) -> Result<Vec<f64>> {
    let Shape {
        width,
        experts,
        top_k,
        inner,
        ..
    } = layer.shape;
    let features = in_f64(&part(stream, layer.tokens.buffer(), token, width)?);
    let router = in_f64(&layer.router.download(stream)?);
    let logits: Vec<f64> = (0..experts)
        .map(|expert| dot(&features, router[expert..].iter().step_by(experts).copied()))
        .collect();
    let choices = part(stream, layer.choices.buffer(), token, top_k)?;
    let Some(shares) = shares(&logits, &choices) else {
        return Ok(vec![f64::INFINITY; width]);
    };
    let mut sums = vec![0.0; width];
    for (&expert, share) in choices.iter().zip(shares) {
        let expert = expert as usize;
        let first = part(stream, layer.first.buffer(), expert, 2 * inner * width)?;
        let gates_and_ups = products(&first, &features);
        let gated: Vec<f64> = gates_and_ups
            .chunks_exact(2)
            .map(|pair| pair[0] / (1.0 + (-pair[0]).exp()) * pair[1])
            .collect();
        let second = part(stream, layer.second.buffer(), expert, width * inner)?;
        for (sum, product) in sums.iter_mut().zip(products(&second, &gated)) {
            *sum += share * product;
        }
    }
    Ok(sums)
}

/// The softmax of the choices' logits, if they are different experts and no other expert has a greater logit beyond
/// rounding.
fn shares(logits: &[f64], choices: &[i32]) -> Option<Vec<f64>> {
    let chosen = |expert: usize| choices.iter().filter(|&&it| it as usize == expert).count();
    let own: Option<Vec<f64>> = choices
        .iter()
        .map(|&expert| logits.get(expert as usize).copied())
        .collect();
    let own = own?;
    let least = own.iter().copied().fold(f64::INFINITY, f64::min);
    let are_best = logits.iter().enumerate().all(|(expert, &logit)| {
        chosen(expert) <= 1 && (chosen(expert) == 1 || logit <= least + 1e-3)
    });
    let exponentials: Vec<f64> = own.iter().map(|logit| logit.exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    are_best.then(|| exponentials.iter().map(|it| it / sum).collect())
}

/// Part number `nth` of a buffer that has parts of this length.
fn part<T: DeviceData>(stream: &Stream, all: &Buffer<T>, nth: usize, len: usize) -> Result<Vec<T>> {
    Ok(stream.download(all.slice(nth * len..(nth + 1) * len)?)?)
}

fn in_f64(numbers: &[bf16]) -> Vec<f64> {
    numbers.iter().map(|&it| it.into()).collect()
}

/// The product of each row of a matrix with a vector.
fn products(rows: &[bf16], vector: &[f64]) -> Vec<f64> {
    rows.par_chunks_exact(vector.len())
        .map(|row| dot(vector, row.iter().map(|&it| it.into())))
        .collect()
}

fn dot(a: &[f64], b: impl Iterator<Item = f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_must_be_the_best_and_different() {
        let logits = [0.0, 3.0, 1.0, 3.0];
        assert_eq!(shares(&logits, &[3, 1]), Some(vec![0.5, 0.5]));
        assert_eq!(shares(&logits, &[1, 2]), None);
        assert_eq!(shares(&logits, &[1, 1]), None);
        assert_eq!(shares(&logits, &[1, 4]), None);
    }
}
