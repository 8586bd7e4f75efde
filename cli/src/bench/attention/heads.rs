//! The tensors of a shape on a device, the call, and its check.

use std::fmt;

use cutlet::{Attention, AttentionKernels, DeviceTensor, Stream};
use half::bf16;
use rayon::prelude::*;
use serde::Serialize;

use crate::measure::error::Result;
use crate::measure::random::random;
use crate::measure::setting::Setting;

/// Products of attention.
pub const PRODUCTS: usize = 2;
/// Products of its gradients.
pub const PRODUCTS_OF_GRADIENTS: usize = 5;

/// The extents of a call, of as many keys as queries.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shape {
    pub sequences: usize,
    pub tokens: usize,
    pub heads: usize,
    pub heads_of_keys: usize,
    pub features: usize,
    pub causal: bool,
}

impl Shape {
    /// Twice the multiply-adds of so many products of visible queries and keys.
    pub fn operations_of(&self, products: usize) -> f64 {
        let visible = match self.causal {
            true => self.tokens * (self.tokens + 1) / 2,
            false => self.tokens * self.tokens,
        };
        2.0 * (products * self.sequences * self.heads * self.features) as f64 * visible as f64
    }

    /// The extents of queries, and of keys.
    pub fn extents(&self) -> [[usize; 4]; 2] {
        let of = |heads| [self.sequences, self.tokens, heads, self.features];
        [of(self.heads), of(self.heads_of_keys)]
    }

    /// The call, without what it reads and writes.
    pub fn attention<'a>(&self) -> Attention<'a> {
        match self.causal {
            true => Attention::new().causal(),
            false => Attention::new(),
        }
    }

    /// The problem as the script for PyTorch reads it, which has this name for the operation.
    pub fn for_pytorch(&self, operation: &str, rounds: u32) -> String {
        let Shape {
            sequences,
            tokens,
            heads,
            heads_of_keys,
            features,
            causal,
        } = *self;
        let causal = u32::from(causal);
        format!(
            "{operation} {rounds} {sequences} {tokens} {heads} {heads_of_keys} {features} {causal}"
        )
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape {
            sequences,
            tokens,
            heads,
            heads_of_keys,
            features,
            causal,
        } = *self;
        let mask = if causal { "causal" } else { "full" };
        write!(
            f,
            "{sequences}×{tokens}, {heads}:{heads_of_keys} heads of {features}, {mask}"
        )
    }
}

/// A call that is timed and checked.
pub trait Call {
    /// Enqueues the call.
    ///
    /// # Errors
    /// If the launch fails.
    fn enqueue(&mut self, stream: &Stream) -> Result<()>;

    /// Runs the call into results of NaN, and compares some of their rows.
    ///
    /// # Errors
    /// If the device fails.
    fn check(&mut self, stream: &Stream) -> Result<Check>;
}

/// The tensors of attention.
pub struct Heads {
    pub(super) shape: Shape,
    pub(super) queries: DeviceTensor<bf16>,
    pub(super) keys: DeviceTensor<bf16>,
    pub(super) values: DeviceTensor<bf16>,
    pub(super) output: DeviceTensor<bf16>,
    kernels: Option<AttentionKernels>,
}

/// Rows that are looked at.
const ROWS: usize = 24;
/// The largest relative error: weights and results are rounded to bf16.
const WITHIN: f64 = 1e-2;

/// How far some rows of a result are from what they must be.
#[derive(Serialize)]
pub struct Check {
    rows: usize,
    /// ‖exact − found‖ / ‖exact‖ of the rows.
    relative: f64,
    /// Whether the rows are as close as bf16 allows.
    pub right: bool,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.right { "right" } else { "wrong" };
        let Check { rows, relative, .. } = self;
        write!(
            f,
            "{verdict}, {rows} rows have a relative error of {relative:.1e}"
        )
    }
}

impl Check {
    /// Compares some of `all` rows of an output with what they must be.
    pub fn of(
        all: usize,
        features: usize,
        output: &[bf16],
        exact: impl Fn(usize) -> Vec<f64> + Sync,
    ) -> Check {
        let every = (all / ROWS).max(1) | 1;
        let rows: Vec<usize> = (0..all).step_by(every).collect();
        let of_row = |&row: &usize| {
            let exact = exact(row);
            let both = exact.iter().zip(&output[row * features..][..features]);
            let error: f64 = both
                .map(|(exact, found)| (exact - found.to_f64()).powi(2))
                .sum();
            [error, exact.iter().map(|it| it * it).sum::<f64>()]
        };
        let sums: Vec<[f64; 2]> = rows.par_iter().map(of_row).collect();
        let sum = |nth: usize| sums.iter().map(|it| it[nth]).sum::<f64>();
        let relative = (sum(0) / sum(1)).sqrt();
        Check {
            rows: rows.len(),
            relative,
            right: relative <= WITHIN,
        }
    }

    /// The check of several results: the rows of all, and the largest error.
    pub fn worst<const RESULTS: usize>(checks: [Check; RESULTS]) -> Check {
        Check {
            rows: checks.iter().map(|it| it.rows).sum(),
            relative: checks.iter().map(|it| it.relative).fold(0.0, f64::max),
            right: checks.iter().all(|it| it.right),
        }
    }
}

impl Heads {
    /// Tensors of random numbers.
    ///
    /// # Errors
    /// If the device is out of memory, or fails.
    pub fn new(shape: Shape, setting: &Setting) -> Result<Heads> {
        let [of_queries, of_keys] = shape.extents();
        let of_heads = |nth: u64, shape: [usize; 4]| -> Result<DeviceTensor<bf16>> {
            let seed = setting.seed.wrapping_add(nth);
            let numbers = random(&setting.stream, shape.iter().product(), seed)?;
            Ok(DeviceTensor::new(numbers, shape)?)
        };
        Ok(Heads {
            shape,
            queries: of_heads(0, of_queries)?,
            keys: of_heads(1, of_keys)?,
            values: of_heads(2, of_keys)?,
            output: of_heads(3, of_queries)?,
            kernels: None,
        })
    }

    /// The call by these kernels, if there are some.
    pub fn by(self, kernels: Option<AttentionKernels>) -> Heads {
        Heads { kernels, ..self }
    }

    /// Enqueues this attention.
    ///
    /// # Errors
    /// If the launch fails.
    pub fn run(&mut self, stream: &Stream, attention: Attention<'_>) -> Result<()> {
        let attention = match self.kernels {
            Some(kernels) => attention.kernels(kernels),
            None => attention,
        };
        let output = &mut self.output;
        Ok(attention.run(stream, &self.queries, &self.keys, &self.values, output)?)
    }
}

impl Call for Heads {
    fn enqueue(&mut self, stream: &Stream) -> Result<()> {
        let attention = self.shape.attention();
        self.run(stream, attention)
    }

    fn check(&mut self, stream: &Stream) -> Result<Check> {
        stream.fill_bytes(self.output.view_mut(), 0xff)?;
        self.enqueue(stream)?;
        let [queries, keys, values, output] =
            [&self.queries, &self.keys, &self.values, &self.output].map(|it| it.download(stream));
        let (queries, keys, values, output) = (queries?, keys?, values?, output?);
        let Shape {
            sequences,
            tokens,
            heads,
            features,
            ..
        } = self.shape;
        let exact = |row| self.exact(row, (&queries, &keys, &values));
        let all = sequences * tokens * heads;
        Ok(Check::of(all, features, &output, exact))
    }
}

impl Heads {
    /// The output of a row, in f64.
    fn exact(&self, row: usize, (queries, keys, values): (&[bf16], &[bf16], &[bf16])) -> Vec<f64> {
        let Shape {
            tokens,
            heads,
            heads_of_keys,
            features,
            causal,
            ..
        } = self.shape;
        let (token, head) = (row / heads, row % heads);
        let (sequence, query) = (token / tokens, token % tokens);
        let head_of_keys = head / (heads / heads_of_keys);
        let of_key =
            |key: usize| ((sequence * tokens + key) * heads_of_keys + head_of_keys) * features;
        let visible = if causal { query + 1 } else { tokens };
        let rows = KeyRows {
            keys,
            values,
            first: &of_key,
        };
        rows.attend(&queries[row * features..][..features], visible)
    }
}

/// Keys and values on the host.
pub struct KeyRows<'a> {
    pub keys: &'a [bf16],
    pub values: &'a [bf16],
    /// The first element of a key, and of its value.
    pub first: &'a (dyn Fn(usize) -> usize + Sync),
}

impl KeyRows<'_> {
    /// The output of a query that sees the first `visible` keys, in f64.
    pub fn attend(&self, query: &[bf16], visible: usize) -> Vec<f64> {
        let features = query.len();
        let score = |key: usize| {
            let key = &self.keys[(self.first)(key)..][..features];
            let both = query.iter().zip(key);
            both.map(|(q, k)| q.to_f64() * k.to_f64()).sum::<f64>() / (features as f64).sqrt()
        };
        let scores: Vec<f64> = (0..visible).map(score).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
        let mut output = vec![0.0; features];
        for (key, score) in scores.iter().enumerate() {
            let weight = (score - largest).exp() / sum;
            for (output, value) in output.iter_mut().zip(&self.values[(self.first)(key)..]) {
                *output += weight * value.to_f64();
            }
        }
        output
    }
}
