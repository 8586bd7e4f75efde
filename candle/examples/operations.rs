//! Each operation beside candle's own: times, and their ratio. The tests compare the values.
//!
//! On a GPU: `cargo run --release -p cutlet-candle --features cuda --example operations`

use std::time::Instant;

use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::Embedding;
use cutlet_candle::{Activation, Linear, Moe, embedding, index_add, matmul, swiglu};

/// An operation, by candle and by cutlet.
struct Case {
    name: String,
    candle: Box<dyn Fn() -> Result<Tensor>>,
    cutlet: Box<dyn Fn() -> Result<Tensor>>,
}

/// How large tensors are, and how often each operation is called in a round.
struct Size {
    /// Divides every extent.
    by: usize,
    calls: usize,
    rounds: usize,
}

fn random(dims: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    Tensor::randn(0f32, 0.1, dims, device)?.to_dtype(dtype)
}

/// Numbers below `below`, which repeat.
fn ids(count: usize, below: usize, device: &Device) -> Result<Tensor> {
    let mut random = fastrand::Rng::with_seed(1);
    let ids: Vec<u32> = (0..count).map(|_| random.u32(..below as u32)).collect();
    Tensor::new(ids, device)
}

/// `(batch, m, k) × (batch, k, n)`, with B transposed if it is to be.
fn product(
    [batch, m, n, k]: [usize; 4],
    transposed: bool,
    dtype: DType,
    device: &Device,
) -> Result<Case> {
    let a = random(&[batch, m, k], dtype, device)?;
    let b = match transposed {
        true => random(&[batch, n, k], dtype, device)?.t()?,
        false => random(&[batch, k, n], dtype, device)?,
    };
    let (to_a, to_b) = (a.clone(), b.clone());
    let how = if transposed { ", B transposed" } else { "" };
    Ok(Case {
        name: format!("matmul {batch}×{m}×{n}×{k} {dtype:?}{how}"),
        candle: Box::new(move || a.matmul(&b)),
        cutlet: Box::new(move || matmul(&to_a, &to_b)),
    })
}

/// A linear layer with a bias, a residual and SiLU.
fn layer([rows, inputs, outputs]: [usize; 3], device: &Device) -> Result<Case> {
    let dtype = DType::BF16;
    let (x, residual) = (
        random(&[rows, inputs], dtype, device)?,
        random(&[rows, outputs], dtype, device)?,
    );
    let (weight, bias) = (
        random(&[outputs, inputs], dtype, device)?,
        random(&[outputs], dtype, device)?,
    );
    let theirs = candle_nn::Linear::new(weight.clone(), Some(bias.clone()));
    let ours = Linear::new(weight, Some(bias)).activation(Activation::Silu);
    let (to_x, to_residual) = (x.clone(), residual.clone());
    Ok(Case {
        name: format!("linear {rows}×{inputs}→{outputs} bf16, bias, residual, SiLU"),
        candle: Box::new(move || (theirs.forward(&x)? + &residual)?.silu()),
        cutlet: Box::new(move || ours.forward_with_residual(&to_x, &to_residual)),
    })
}

fn rows([count, table_rows, width]: [usize; 3], device: &Device) -> Result<[Case; 2]> {
    let (table, ids) = (
        random(&[table_rows, width], DType::BF16, device)?,
        ids(count, table_rows, device)?,
    );
    let source = random(&[count, width], DType::BF16, device)?;
    let theirs = Embedding::new(table.clone(), width);
    let (ours, of_ids, by) = (table.clone(), ids.clone(), ids.clone());
    let (to, to_ids, from) = (table.clone(), ids.clone(), source.clone());
    Ok([
        Case {
            name: format!("embedding {count} of {table_rows}×{width} bf16"),
            candle: Box::new(move || theirs.forward(&of_ids)),
            cutlet: Box::new(move || embedding(&ours, &by)),
        },
        Case {
            name: format!("index_add {count} to {table_rows}×{width} bf16"),
            candle: Box::new(move || table.index_add(&ids, &source, 0)),
            cutlet: Box::new(move || index_add(&to, &to_ids, &from, 0)),
        },
    ])
}

fn gate([rows, columns]: [usize; 2], device: &Device) -> Result<Case> {
    let halves = random(&[rows, 2 * columns], DType::BF16, device)?;
    let also = halves.clone();
    Ok(Case {
        name: format!("swiglu {rows}×{columns} bf16"),
        candle: Box::new(move || candle_nn::ops::swiglu(&halves)),
        cutlet: Box::new(move || swiglu(&also)),
    })
}

/// A layer of experts. candle's has a loop over experts, which reads on the host which tokens each one gets.
fn experts([tokens, width, count, inner, top_k]: [usize; 5], device: &Device) -> Result<Case> {
    let dtype = DType::BF16;
    let router = random(&[count, width], dtype, device)?;
    let [gates, ups] = [1, 2].map(|_| random(&[count, inner, width], dtype, device));
    let (gates, ups) = (gates?, ups?);
    let down = random(&[count, width, inner], dtype, device)?;
    let x = random(&[tokens, width], dtype, device)?;
    let (ours, to_x) = (
        Moe::new(router.clone(), &gates, &ups, down.clone(), top_k)?,
        x.clone(),
    );
    let theirs = move || {
        let logits = x.matmul(&router.t()?)?.to_dtype(DType::F32)?;
        let chosen = logits
            .arg_sort_last_dim(false)?
            .narrow(1, 0, top_k)?
            .contiguous()?;
        let shares = candle_nn::ops::softmax_last_dim(&logits.gather(&chosen, 1)?)?;
        let (chosen, shares) = (chosen.to_vec2::<u32>()?, shares.to_vec2::<f32>()?);
        let mut sum = x.zeros_like()?;
        for expert in 0..count {
            let of_expert = |token: usize| {
                let nth = chosen[token].iter().position(|&it| it as usize == expert)?;
                Some((token as u32, shares[token][nth]))
            };
            let (rows, share): (Vec<u32>, Vec<f32>) = (0..tokens).filter_map(of_expert).unzip();
            if rows.is_empty() {
                continue;
            }
            let share = Tensor::new(share, x.device())?
                .to_dtype(dtype)?
                .unsqueeze(1)?;
            let rows = Tensor::new(rows, x.device())?;
            let own = x.index_select(&rows, 0)?;
            let weight = |of: &Tensor| of.get(expert)?.t();
            let between = (own.matmul(&weight(&gates)?)?.silu()? * own.matmul(&weight(&ups)?)?)?;
            let result = between.matmul(&weight(&down)?)?.broadcast_mul(&share)?;
            sum = sum.index_add(&rows, &result, 0)?;
        }
        Ok(sum)
    };
    Ok(Case {
        name: format!("moe of {tokens} tokens, {top_k} of {count} experts, {width}×{inner} bf16"),
        candle: Box::new(theirs),
        cutlet: Box::new(move || ours.forward(&to_x)),
    })
}

fn cases(by: usize, device: &Device) -> Result<Vec<Case>> {
    let of = |extent: usize| (extent / by).max(1);
    let mut cases = Vec::new();
    for dtype in [DType::BF16, DType::F16, DType::F32] {
        cases.push(product(
            [1, of(4096), of(4096), of(4096)],
            true,
            dtype,
            device,
        )?);
        cases.push(product(
            [of(64), of(512), of(512), of(128)],
            true,
            dtype,
            device,
        )?);
    }
    cases.push(product(
        [1, of(4096), of(4096), of(4096)],
        false,
        DType::BF16,
        device,
    )?);
    cases.push(product(
        [1, 16, of(4096), of(4096)],
        true,
        DType::BF16,
        device,
    )?);
    for rows in [16, of(512), of(8192)] {
        cases.push(layer([rows, of(4096), of(4096)], device)?);
    }
    cases.extend(rows([of(8192), of(32000), of(4096)], device)?);
    cases.push(gate([of(8192), of(11008)], device)?);
    for tokens in [of(64), of(4096)] {
        cases.push(experts(
            [tokens, of(2048), of(64), of(1024), 8.min(of(64))],
            device,
        )?);
    }
    Ok(cases)
}

/// Seconds of a call, of several in a row.
fn seconds(device: &Device, calls: usize, call: &dyn Fn() -> Result<Tensor>) -> Result<f64> {
    device.synchronize()?;
    let start = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() / calls as f64)
}

/// Median seconds of a call of each, which take turns.
fn times(case: &Case, device: &Device, size: &Size) -> Result<[f64; 2]> {
    let both = [&case.candle, &case.cutlet];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=size.rounds {
        for (call, times) in both.into_iter().zip(&mut times) {
            let took = seconds(device, size.calls, call)?;
            // The first round loads kernels.
            if round > 0 {
                times.push(took);
            }
        }
    }
    Ok(times.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    }))
}

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let size = match device.is_cuda() {
        true => Size {
            by: 1,
            calls: 20,
            rounds: 7,
        },
        false => Size {
            by: 64,
            calls: 1,
            rounds: 1,
        },
    };
    println!("candle µs | cutlet µs | ratio | operation");
    for case in cases(size.by, &device)? {
        let [candle, cutlet] = times(&case, &device, &size)?;
        let (ratio, name) = (candle / cutlet, case.name);
        println!(
            "{:>9.1} | {:>9.1} | {ratio:>5.2} | {name}",
            candle * 1e6,
            cutlet * 1e6
        );
    }
    Ok(())
}
