//! The layer on a device: its inputs, its weights, and its steps.

use std::fmt;

use cutlet::{DeviceTensor, Gemm, MoeRows, RouterWeights, Stream, gemm, layout, top_k};
use half::bf16;
use serde::Serialize;

use crate::measure::error::{Error, Result};
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
    pub tokens: DeviceTensor<bf16>,
    /// A column for each expert.
    pub router: DeviceTensor<bf16>,
    /// (K, N, experts), with a row of weights for each result. Those of gates and of ups alternate.
    pub first: DeviceTensor<bf16>,
    pub second: DeviceTensor<bf16>,
    logits: DeviceTensor<f32>,
    pub choices: DeviceTensor<i32>,
    /// The share of each choice in its token's result.
    pub shares: DeviceTensor<f32>,
    routed: MoeRows,
    permuted: DeviceTensor<bf16>,
    inner: DeviceTensor<bf16>,
    results: DeviceTensor<bf16>,
    pub sums: DeviceTensor<bf16>,
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
        let of_experts = |nth: u64, inputs: usize, outputs: usize| {
            let one = inputs * outputs;
            let of_b = layout!((dyn inputs, dyn outputs, dyn experts):(1, dyn inputs, dyn one));
            Ok::<_, Error>(DeviceTensor::new(
                weights(nth, experts * one, inputs)?,
                of_b,
            )?)
        };
        Ok(Layer {
            shape,
            tokens: DeviceTensor::new(
                random(stream, tokens * width, setting.seed)?,
                [tokens, width],
            )?,
            router: DeviceTensor::new(weights(1, width * experts, width)?, [width, experts])?,
            first: of_experts(2, width, 2 * inner)?,
            second: of_experts(3, inner, width)?,
            logits: DeviceTensor::zeroed(stream, [tokens, experts])?,
            choices: DeviceTensor::zeroed(stream, [tokens, top_k])?,
            shares: DeviceTensor::zeroed(stream, [tokens, top_k])?,
            routed: MoeRows::new(stream.device(), tokens, top_k, experts)?,
            permuted: DeviceTensor::zeroed(stream, [rows, width])?,
            inner: DeviceTensor::zeroed(stream, [rows, inner])?,
            results: DeviceTensor::zeroed(stream, [rows, width])?,
            sums: DeviceTensor::zeroed(stream, [tokens, width])?,
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
        gemm(
            stream,
            1.0,
            &self.tokens,
            &self.router,
            0.0,
            &mut self.logits,
        )?;
        let (choices, shares) = (&mut self.choices, &mut self.shares);
        top_k(
            stream,
            &self.logits,
            RouterWeights::Normalised,
            choices,
            shares,
        )?;
        Ok(self.routed.route(stream, self.choices.view())?)
    }

    fn permute(&mut self, stream: &Stream) -> Result<()> {
        let to = &mut self.permuted;
        Ok(self.routed.permute(stream, &self.tokens, to)?)
    }

    fn first_product(&mut self, stream: &Stream) -> Result<()> {
        Ok(Gemm::new(&self.permuted, &self.first, &mut self.inner)
            .group_ends(self.routed.ends())
            .swiglu()
            .run(stream)?)
    }

    fn second_product(&mut self, stream: &Stream) -> Result<()> {
        Ok(Gemm::new(&self.inner, &self.second, &mut self.results)
            .group_ends(self.routed.ends())
            .run(stream)?)
    }

    fn unpermute(&mut self, stream: &Stream) -> Result<()> {
        let (shares, sums) = (self.shares.view(), &mut self.sums);
        Ok(self.routed.unpermute(stream, &self.results, shares, sums)?)
    }

    /// Overwrites the results, so that a run must write them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn spoil(&mut self, stream: &Stream) -> Result<()> {
        Ok(stream.fill_bytes(self.sums.view_mut(), 0xff)?)
    }
}
