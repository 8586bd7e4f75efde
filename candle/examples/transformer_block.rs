//! A transformer block with random weights, by candle alone and with cutlet: the largest difference, and tokens per second.
//!
//! On a GPU, with the sizes of a model of 7 billion parameters:
//! `cargo run --release -p cutlet-candle --features cuda --example transformer_block`

use std::time::Instant;

use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::RmsNorm;
use cutlet_candle::Linear;

/// The operations that differ.
trait Operations {
    const NAME: &'static str;

    /// `x · weightᵀ`.
    fn linear(x: &Tensor, weight: &Tensor) -> Result<Tensor>;
    /// `residual + x · weightᵀ`.
    fn linear_added(x: &Tensor, weight: &Tensor, residual: &Tensor) -> Result<Tensor>;
    /// `a · b` of each matrix of a batch.
    fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor>;
    /// `silu(gates) · ups` of the halves of the last dimension.
    fn swiglu(halves: &Tensor) -> Result<Tensor>;
}

struct Candle;

impl Operations for Candle {
    const NAME: &'static str = "candle";

    fn linear(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        candle_nn::Linear::new(weight.clone(), None).forward(x)
    }

    fn linear_added(x: &Tensor, weight: &Tensor, residual: &Tensor) -> Result<Tensor> {
        residual + Self::linear(x, weight)?
    }

    fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
        // cuBLAS takes heads that lie side by side only as a copy.
        a.contiguous()?.matmul(&b.contiguous()?)
    }

    fn swiglu(halves: &Tensor) -> Result<Tensor> {
        candle_nn::ops::swiglu(halves)
    }
}

struct Cutlet;

impl Operations for Cutlet {
    const NAME: &'static str = "with cutlet";

    fn linear(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        Linear::new(weight.clone(), None).forward(x)
    }

    fn linear_added(x: &Tensor, weight: &Tensor, residual: &Tensor) -> Result<Tensor> {
        Linear::new(weight.clone(), None).forward_with_residual(x, residual)
    }

    fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
        cutlet_candle::matmul(a, b)
    }

    fn swiglu(halves: &Tensor) -> Result<Tensor> {
        cutlet_candle::swiglu(halves)
    }
}

/// A block's weights. Linear ones have a row for each output.
struct Block {
    heads: usize,
    norms: [RmsNorm; 2],
    /// Queries, keys and values.
    qkv: Tensor,
    output: Tensor,
    /// Gates, then ups.
    gates_and_ups: Tensor,
    down: Tensor,
}

/// A random weight of a linear layer, which keeps N(0, 1) about that.
fn weight(outputs: usize, inputs: usize, dtype: DType, device: &Device) -> Result<Tensor> {
    let spread = 1.0 / (inputs as f32).sqrt();
    Tensor::randn(0f32, spread, (outputs, inputs), device)?.to_dtype(dtype)
}

impl Block {
    fn new(
        width: usize,
        inner: usize,
        heads: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Block> {
        let norm = RmsNorm::new(Tensor::ones(width, dtype, device)?, 1e-5);
        Ok(Block {
            heads,
            norms: [norm.clone(), norm],
            qkv: weight(3 * width, width, dtype, device)?,
            output: weight(width, width, dtype, device)?,
            gates_and_ups: weight(2 * inner, width, dtype, device)?,
            down: weight(width, inner, dtype, device)?,
        })
    }

    /// The block's results for one sequence: (tokens, width).
    fn forward<O: Operations>(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let attended = self.attention::<O>(&self.norms[0].forward(x)?, mask)?;
        let x = O::linear_added(&attended, &self.output, x)?;
        let between = O::linear(&self.norms[1].forward(&x)?, &self.gates_and_ups)?;
        O::linear_added(&O::swiglu(&between)?, &self.down, &x)
    }

    fn attention<O: Operations>(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let (tokens, width) = x.dims2()?;
        let head = width / self.heads;
        // The heads of each: (heads, tokens, head).
        let qkv = O::linear(x, &self.qkv)?.reshape((tokens, 3, self.heads, head))?;
        let part = |nth: usize| qkv.narrow(1, nth, 1)?.squeeze(1)?.transpose(0, 1);
        let (queries, keys, values) = (part(0)?, part(1)?, part(2)?);
        let scores = (O::matmul(&queries, &keys.t()?)? * (1.0 / (head as f64).sqrt()))?;
        let shares = candle_nn::ops::softmax_last_dim(&scores.broadcast_add(mask)?)?;
        O::matmul(&shares, &values)?
            .transpose(0, 1)?
            .reshape((tokens, width))
    }
}

/// 0 for what a token sees, and −∞ for later tokens.
fn causal_mask(tokens: usize, dtype: DType, device: &Device) -> Result<Tensor> {
    let hidden = |at: usize| {
        if at % tokens > at / tokens {
            f32::NEG_INFINITY
        } else {
            0.0
        }
    };
    let mask: Vec<f32> = (0..tokens * tokens).map(hidden).collect();
    Tensor::from_vec(mask, (tokens, tokens), device)?.to_dtype(dtype)
}

/// Seconds of a call, of several.
fn seconds(device: &Device, calls: usize, mut call: impl FnMut() -> Result<Tensor>) -> Result<f64> {
    device.synchronize()?;
    let start = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() / calls as f64)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Times both for so many tokens, in turns, and compares their results.
fn compare(block: &Block, tokens: usize, rounds: usize, calls: usize) -> Result<()> {
    let (dtype, device) = (block.qkv.dtype(), block.qkv.device());
    let x = Tensor::randn(0f32, 1.0, (tokens, block.qkv.dim(1)?), device)?.to_dtype(dtype)?;
    let mask = causal_mask(tokens, dtype, device)?;
    let (candle, cutlet) = (
        || block.forward::<Candle>(&x, &mask),
        || block.forward::<Cutlet>(&x, &mask),
    );
    let numbers = |it: Tensor| it.to_dtype(DType::F32);
    let (found, expected) = (numbers(cutlet()?)?, numbers(candle()?)?);
    let difference = (found - &expected)?.abs()?.max_all()?.to_scalar::<f32>()?;
    let largest = expected.abs()?.max_all()?.to_scalar::<f32>()?;

    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        times[0].push(seconds(device, calls, candle)?);
        times[1].push(seconds(device, calls, cutlet)?);
    }
    let [of_candle, of_cutlet] = times.map(|all| tokens as f64 / median(all));
    println!(
        "{tokens:>6} | {of_candle:>12.0} | {of_cutlet:>12.0} | {:.2} | {:.0e}",
        of_cutlet / of_candle,
        difference / largest
    );
    Ok(())
}

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let (block, tokens, rounds, calls) = match device.is_cuda() {
        true => (
            Block::new(4096, 11008, 32, DType::BF16, &device)?,
            [1, 16, 512],
            11,
            20,
        ),
        // Kernels run on cutlet's CPU backend, which is for finding their bugs.
        false => (
            Block::new(64, 96, 4, DType::F32, &device)?,
            [1, 16, 40],
            1,
            1,
        ),
    };
    println!(
        "tokens | {:>12} | {:>12} | ratio | largest difference",
        Candle::NAME,
        Cutlet::NAME
    );
    println!("       | tokens/s     | tokens/s     |");
    tokens
        .into_iter()
        .try_for_each(|tokens| compare(&block, tokens, rounds, calls))
}
