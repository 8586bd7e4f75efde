//! The operations around the products of an attention layer, each one launch: the residual is added and normalised, heads
//! are normalised and rotated where they are, and scores become probabilities. All are compared with a plain loop.

use cutlet::{
    Device, DeviceTensor, Norm, Reduction, Result, Rope, RopeTable, Softmax, Stream, Tensor, bf16,
    layout, mul, reduce,
};

const TOKENS: usize = 24;
const HEADS: usize = 4;
const WIDTH: usize = 32;
const MODEL: usize = HEADS * WIDTH;
const EPSILON: f32 = 1e-6;
const BASE: f64 = 10_000.0;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;
    add_and_normalise(&stream)?;
    attention_weights(&stream)
}

/// Numbers from −2 to 2.
fn numbers(count: usize, seed: u64) -> Vec<bf16> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count)
        .map(|_| bf16::from_f32(4.0 * random.f32() - 2.0))
        .collect()
}

/// RMSNorm of a row, in f64.
fn normal(row: &[f64]) -> Vec<f64> {
    let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    let root = (mean + f64::from(EPSILON)).sqrt();
    row.iter().map(|x| x / root).collect()
}

/// Two tensors are read, and two are written.
fn add_and_normalise(stream: &Stream) -> Result<()> {
    let (x, before, weight) = (
        numbers(TOKENS * MODEL, 1),
        numbers(TOKENS * MODEL, 2),
        numbers(MODEL, 3),
    );
    let on_x = DeviceTensor::upload(stream, &x, [TOKENS, MODEL])?;
    let on_weight = DeviceTensor::upload(stream, &weight, [MODEL])?;
    let mut residual = DeviceTensor::upload(stream, &before, [TOKENS, MODEL])?;
    let mut y = DeviceTensor::<bf16>::zeroed(stream, [TOKENS, MODEL])?;
    Norm::rms(EPSILON)
        .weight(&on_weight)
        .residual(&mut residual)
        .run(stream, &on_x, &mut y)?;

    let (sums, y) = (residual.download(stream)?, y.download(stream)?);
    let mut worst = 0.0f64;
    for (row, sums) in sums.chunks(MODEL).enumerate() {
        let sums: Vec<f64> = sums.iter().map(|sum| sum.to_f64()).collect();
        for (column, exact) in normal(&sums).iter().enumerate() {
            let (at, exact) = (row * MODEL + column, exact * weight[column].to_f64());
            let sum = x[at].to_f64() + before[at].to_f64();
            assert!((sums[column] - sum).abs() <= sum.abs() / 256.0);
            worst = worst.max((y[at].to_f64() - exact).abs() / exact.abs().max(1e-3));
        }
    }
    println!("residual and RMSNorm: the largest relative error is {worst:.4}");
    assert!(worst < 1.0 / 200.0);
    Ok(())
}

/// Queries and keys of one tensor are normalised and rotated in their place, multiplied, and made probabilities.
fn attention_weights(stream: &Stream) -> Result<()> {
    let from: Vec<f32> = numbers(TOKENS * 2 * HEADS * WIDTH, 4)
        .iter()
        .map(|it| it.to_f32())
        .collect();
    // (token, query or key, head, dimension)
    let mut both = DeviceTensor::upload(stream, &from, [TOKENS, 2, HEADS, WIDTH])?;
    Norm::rms(EPSILON).run_in_place(stream, &mut both)?;
    let table = RopeTable::new(stream, 1024, WIDTH, BASE)?;
    let positions: Vec<i32> = (100..100 + TOKENS as i32).collect();
    let on_positions = stream.upload(&positions)?;
    let of_heads = layout!((dyn TOKENS, 2, dyn HEADS):(1, 0, 0));
    Rope::new(&table).run_in_place(stream, Tensor::new(&on_positions, of_heads)?, &mut both)?;

    // Each query times each key, and the sum of each product's row. `contract(stream, "qhd,khd->hqk", …)` does the same
    // without the products in memory.
    let token = 2 * HEADS * WIDTH;
    let keys_from = both.buffer().slice(HEADS * WIDTH..)?;
    let of_queries =
        layout!((dyn HEADS, dyn TOKENS, dyn TOKENS, dyn WIDTH):(dyn WIDTH, dyn token, 0, 1));
    let of_keys =
        layout!((dyn HEADS, dyn TOKENS, dyn TOKENS, dyn WIDTH):(dyn WIDTH, 0, dyn token, 1));
    let queries = Tensor::new(both.buffer(), of_queries)?;
    let keys = Tensor::new(keys_from, of_keys)?;
    let mut products = DeviceTensor::<f32>::zeroed(stream, [HEADS, TOKENS, TOKENS, WIDTH])?;
    mul(stream, queries, keys, &mut products)?;
    let mut scores = DeviceTensor::<f32>::zeroed(stream, [HEADS, TOKENS, TOKENS])?;
    reduce(stream, Reduction::Sum, &products, &mut scores)?;
    let scale = 1.0 / (WIDTH as f32).sqrt();
    Softmax::new()
        .scale(scale)
        .causal(0)
        .run_in_place(stream, &mut scores)?;

    let found = scores.download(stream)?;
    let row = |token: usize, which: usize, head: usize| {
        let begin = ((token * 2 + which) * HEADS + head) * WIDTH;
        let row: Vec<f64> = from[begin..][..WIDTH]
            .iter()
            .map(|it| f64::from(*it))
            .collect();
        rotated(&normal(&row), f64::from(positions[token]))
    };
    let mut worst = 0.0f64;
    for (head, query) in (0..HEADS).flat_map(|head| (0..TOKENS).map(move |query| (head, query))) {
        let of_query = row(query, 0, head);
        let powers: Vec<f64> = (0..=query)
            .map(|key| {
                let products = of_query.iter().zip(row(key, 1, head)).map(|(a, b)| a * b);
                (products.sum::<f64>() * f64::from(scale)).exp()
            })
            .collect();
        let sum: f64 = powers.iter().sum();
        for key in 0..TOKENS {
            let exact = powers.get(key).map_or(0.0, |power| power / sum);
            let found = f64::from(found[(head * TOKENS + query) * TOKENS + key]);
            worst = worst.max((found - exact).abs());
        }
    }
    println!("RMSNorm of heads, rotation, scores and softmax: the largest error is {worst:.1e}");
    assert!(worst < 1e-5);
    Ok(())
}

/// A row, whose halves are pairs, rotated by the angles of its position.
fn rotated(row: &[f64], position: f64) -> Vec<f64> {
    let pairs = row.len() / 2;
    let mut result = row.to_vec();
    for pair in 0..pairs {
        let (sine, cosine) = (position * BASE.powf(-(pair as f64) / pairs as f64)).sin_cos();
        let (first, second) = (row[pair], row[pair + pairs]);
        result[pair] = first * cosine - second * sine;
        result[pair + pairs] = second * cosine + first * sine;
    }
    result
}
