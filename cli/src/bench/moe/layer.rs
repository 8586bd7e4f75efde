//! The layer on a device: its inputs, its weights, and its steps.

use std::fmt;

use cutlet::{
    Buffer, Gemm, Matrix, MatrixBatch, MatrixMut, MoeRows, Order, RouterWeights, Stream, gemm,
    top_k,
};
use half::bf16;
use serde::Serialize;

use crate::measure::error::Result;
use crate::measure::random::{random, scaled};
use crate::measure::setting::Setting;

/// The extents of a layer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shape {
    pub tokens: usize,
    /// Features of a token.
    pub width: usize,
    pub experts: usize,
    /// Experts of a token.
    pub top_k: usize,
    /// Features inside an expert.
    pub inner: usize,
}

impl Shape {
    /// Rows of all experts: one for each choice.
    pub fn rows(&self) -> usize {
        self.tokens * self.top_k
    }

    /// Twice the multiply-adds of the experts' products.
    pub fn operations(&self) -> f64 {
        2.0 * (self.rows() * 3 * self.inner * self.width) as f64
    }

    /// The problem as the script for PyTorch reads it.
    pub fn for_pytorch(&self, rounds: u32) -> String {
        let Shape {
            tokens,
            width,
            experts,
            top_k,
            inner,
        } = self;
        format!("moe {rounds} {tokens} {width} {experts} {top_k} {inner}")
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tokens of {} features, the top {} of {} experts with {} inner features",
            self.tokens, self.width, self.top_k, self.experts, self.inner
        )
    }
}

/// A step of the layer.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The logits of each token, its experts, and the order of rows.
    Route,
    Permute,
    /// The gates and ups of each row, and SwiGLU.
    FirstProduct,
    SecondProduct,
    Unpermute,
}

impl Step {
    /// All steps, in their order.
    pub const ALL: [Step; 5] = [
        Step::Route,
        Step::Permute,
        Step::FirstProduct,
        Step::SecondProduct,
        Step::Unpermute,
    ];

    /// The name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Step::Route => "route",
            Step::Permute => "permute",
            Step::FirstProduct => "first product",
            Step::SecondProduct => "second product",
            Step::Unpermute => "unpermute",
        }
    }
}

/// A layer on a device, with the memory of all steps.
pub struct Layer {
    pub shape: Shape,
    pub tokens: Buffer<bf16>,
    /// A column for each expert.
    pub router: Buffer<bf16>,
    /// A row of weights for each result. Those of gates and of ups alternate.
    pub first: Buffer<bf16>,
    pub second: Buffer<bf16>,
    logits: Buffer<f32>,
    pub choices: Buffer<i32>,
    /// The share of each choice in its token's result.
    pub shares: Buffer<f32>,
    routed: MoeRows,
    permuted: Buffer<bf16>,
    inner: Buffer<bf16>,
    results: Buffer<bf16>,
    pub sums: Buffer<bf16>,
}

impl Layer {
    /// A layer of random weights, which keep N(0, 1) about that.
    ///
    /// # Errors
    /// If the device is out of memory, or fails.
    pub fn new(shape: Shape, setting: &Setting) -> Result<Layer> {
        let Shape {
            tokens,
            width,
            experts,
            top_k,
            inner,
        } = shape;
        let (stream, rows) = (&setting.stream, shape.rows());
        let weights = |nth: u64, len: usize, inputs: usize| {
            let seed = setting.seed.wrapping_add(nth);
            scaled(stream, len, seed, 1.0 / (inputs as f32).sqrt())
        };
        Ok(Layer {
            shape,
            tokens: random(stream, tokens * width, setting.seed)?,
            router: weights(1, width * experts, width)?,
            first: weights(2, experts * 2 * inner * width, width)?,
            second: weights(3, experts * width * inner, inner)?,
            logits: stream.zeroed(tokens * experts)?,
            choices: stream.zeroed(rows)?,
            shares: stream.zeroed(rows)?,
            routed: MoeRows::new(stream.device(), tokens, top_k, experts)?,
            permuted: stream.zeroed(rows * width)?,
            inner: stream.zeroed(rows * inner)?,
            results: stream.zeroed(rows * width)?,
            sums: stream.zeroed(tokens * width)?,
        })
    }

    /// Enqueues some steps.
    ///
    /// # Errors
    /// If a launch fails.
    pub fn enqueue(&mut self, stream: &Stream, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Route => self.route(stream)?,
                Step::Permute => self.permute(stream)?,
                Step::FirstProduct => self.first_product(stream)?,
                Step::SecondProduct => self.second_product(stream)?,
                Step::Unpermute => self.unpermute(stream)?,
            }
        }
        Ok(())
    }

    fn route(&mut self, stream: &Stream) -> Result<()> {
        let Shape {
            tokens,
            width,
            experts,
            top_k: top,
            ..
        } = self.shape;
        gemm(
            stream,
            1.0,
            Matrix::row_major(&self.tokens, tokens, width)?,
            Matrix::row_major(&self.router, width, experts)?,
            0.0,
            MatrixMut::row_major(&mut self.logits, tokens, experts)?,
        )?;
        top_k(
            stream,
            Matrix::row_major(&self.logits, tokens, experts)?,
            RouterWeights::Normalised,
            MatrixMut::row_major(&mut self.choices, tokens, top)?,
            MatrixMut::row_major(&mut self.shares, tokens, top)?,
        )?;
        Ok(self.routed.route(stream, &self.choices)?)
    }

    fn permute(&mut self, stream: &Stream) -> Result<()> {
        let (tokens, rows, width) = (self.shape.tokens, self.shape.rows(), self.shape.width);
        Ok(self.routed.permute(
            stream,
            Matrix::row_major(&self.tokens, tokens, width)?,
            MatrixMut::row_major(&mut self.permuted, rows, width)?,
        )?)
    }

    fn first_product(&mut self, stream: &Stream) -> Result<()> {
        let (rows, width, inner) = (self.shape.rows(), self.shape.width, self.shape.inner);
        let experts = self.shape.experts;
        Ok(Gemm::new(
            Matrix::row_major(&self.permuted, rows, width)?,
            MatrixBatch::packed(&self.first, experts, width, 2 * inner, Order::ColMajor)?,
            MatrixMut::row_major(&mut self.inner, rows, inner)?,
        )
        .group_ends(self.routed.ends())
        .swiglu()
        .run(stream)?)
    }

    fn second_product(&mut self, stream: &Stream) -> Result<()> {
        let (rows, width, inner) = (self.shape.rows(), self.shape.width, self.shape.inner);
        let experts = self.shape.experts;
        Ok(Gemm::new(
            Matrix::row_major(&self.inner, rows, inner)?,
            MatrixBatch::packed(&self.second, experts, inner, width, Order::ColMajor)?,
            MatrixMut::row_major(&mut self.results, rows, width)?,
        )
        .group_ends(self.routed.ends())
        .run(stream)?)
    }

    fn unpermute(&mut self, stream: &Stream) -> Result<()> {
        let (tokens, rows, width) = (self.shape.tokens, self.shape.rows(), self.shape.width);
        Ok(self.routed.unpermute(
            stream,
            Matrix::row_major(&self.results, rows, width)?,
            &self.shares,
            MatrixMut::row_major(&mut self.sums, tokens, width)?,
        )?)
    }

    /// Overwrites the results, so that a run must write them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn spoil(&mut self, stream: &Stream) -> Result<()> {
        Ok(stream.fill_bytes(&mut self.sums, 0xff)?)
    }
}
