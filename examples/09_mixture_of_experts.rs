//! A layer of a mixture of experts: each token goes through the two experts that its router likes best, and the results
//! are added with the router's weights. All sizes stay on the device, so that the layer can be captured in a graph.

use cutlet::{
    Device, Gemm, Matrix, MatrixBatch, MatrixMut, MoeRows, Order, Result, RouterWeights, gemm,
    swiglu, top_k,
};
use half::bf16;

/// Tokens, their features, experts, the experts of a token, and features inside an expert.
const TOKENS: usize = 96;
const WIDTH: usize = 64;
const EXPERTS: usize = 8;
const TOP_K: usize = 2;
const INNER: usize = 48;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;

    let mut random = fastrand::Rng::with_seed(1);
    let mut numbers = |count: usize, scale: f32| -> Vec<bf16> {
        let number = |_| bf16::from_f32(scale * (2.0 * random.f32() - 1.0));
        (0..count).map(number).collect()
    };
    let tokens = numbers(TOKENS * WIDTH, 1.0);
    let router = numbers(WIDTH * EXPERTS, 1.0);
    // A row of weights for each result. Those of gates and of ups alternate.
    let first = numbers(EXPERTS * 2 * INNER * WIDTH, 0.3);
    let second = numbers(EXPERTS * WIDTH * INNER, 0.3);

    let on_tokens = stream.upload(&tokens)?;
    let on_tokens = Matrix::row_major(&on_tokens, TOKENS, WIDTH)?;
    let on_router = stream.upload(&router)?;
    let (on_first, on_second) = (stream.upload(&first)?, stream.upload(&second)?);
    let experts = |weights, rows, columns| {
        Ok::<_, cutlet::Error>(
            MatrixBatch::packed(weights, EXPERTS, rows, columns, Order::RowMajor)?.transposed(),
        )
    };

    // Each token chooses its experts.
    let mut logits = stream.zeroed::<f32>(TOKENS * EXPERTS)?;
    gemm(
        &stream,
        1.0,
        on_tokens,
        Matrix::row_major(&on_router, WIDTH, EXPERTS)?,
        0.0,
        MatrixMut::row_major(&mut logits, TOKENS, EXPERTS)?,
    )?;
    let mut choices = stream.zeroed::<i32>(TOKENS * TOP_K)?;
    let mut weights = stream.zeroed::<f32>(TOKENS * TOP_K)?;
    top_k(
        &stream,
        Matrix::row_major(&logits, TOKENS, EXPERTS)?,
        RouterWeights::Normalised,
        MatrixMut::row_major(&mut choices, TOKENS, TOP_K)?,
        MatrixMut::row_major(&mut weights, TOKENS, TOP_K)?,
    )?;

    // A row for each choice, sorted by expert.
    let rows = TOKENS * TOP_K;
    let mut routed = MoeRows::new(&stream, TOKENS, TOP_K, EXPERTS)?;
    routed.route(&choices)?;
    let mut permuted = stream.zeroed::<bf16>(rows * WIDTH)?;
    routed.permute(on_tokens, MatrixMut::row_major(&mut permuted, rows, WIDTH)?)?;

    // Each expert multiplies its rows.
    let mut gates_and_ups = stream.zeroed::<bf16>(rows * 2 * INNER)?;
    let ends = routed.offsets().slice(1..)?;
    Gemm::new().run_grouped(
        &stream,
        1.0,
        Matrix::row_major(&permuted, rows, WIDTH)?,
        ends,
        experts(&on_first, 2 * INNER, WIDTH)?,
        0.0,
        MatrixMut::row_major(&mut gates_and_ups, rows, 2 * INNER)?,
    )?;
    let mut inner = stream.zeroed::<bf16>(rows * INNER)?;
    swiglu(
        &stream,
        Matrix::row_major(&gates_and_ups, rows, 2 * INNER)?,
        MatrixMut::row_major(&mut inner, rows, INNER)?,
    )?;
    let mut results = stream.zeroed::<bf16>(rows * WIDTH)?;
    Gemm::new().run_grouped(
        &stream,
        1.0,
        Matrix::row_major(&inner, rows, INNER)?,
        ends,
        experts(&on_second, WIDTH, INNER)?,
        0.0,
        MatrixMut::row_major(&mut results, rows, WIDTH)?,
    )?;

    // The results of a token's experts are added.
    let mut sums = stream.zeroed::<bf16>(TOKENS * WIDTH)?;
    routed.unpermute(
        Matrix::row_major(&results, rows, WIDTH)?,
        &weights,
        MatrixMut::row_major(&mut sums, TOKENS, WIDTH)?,
    )?;

    let sums = stream.download(&sums)?;
    let choices = stream.download(&choices)?;
    let weights = stream.download(&weights)?;
    let offsets = stream.download(routed.offsets())?;
    println!(
        "rows of the experts: {:?}",
        offsets
            .windows(2)
            .map(|it| it[1] - it[0])
            .collect::<Vec<_>>()
    );
    let (mut error, mut size) = (0.0, 0.0);
    for token in 0..TOKENS {
        let exact = layer(
            &tokens[token * WIDTH..][..WIDTH],
            &choices[token * TOP_K..][..TOP_K],
            &weights[token * TOP_K..][..TOP_K],
            &first,
            &second,
        );
        for (exact, found) in exact.iter().zip(&sums[token * WIDTH..]) {
            error += (exact - f64::from(*found)).powi(2);
            size += exact.powi(2);
        }
    }
    let error = (error / size).sqrt();
    println!("the relative error is {error:.1e}");
    // bf16 keeps three digits, and the results are rounded four times.
    assert!(error < 1e-2);
    Ok(())
}

/// The layer's results for a token, in f64.
fn layer(
    token: &[bf16],
    choices: &[i32],
    weights: &[f32],
    first: &[bf16],
    second: &[bf16],
) -> Vec<f64> {
    let dot = |weights: &[bf16], with: &[f64]| -> f64 {
        let products = weights.iter().zip(with);
        products.map(|(a, b)| f64::from(*a) * b).sum()
    };
    let token: Vec<f64> = token.iter().map(|&it| it.into()).collect();
    let mut sums = vec![0.0; WIDTH];
    for (&expert, &weight) in choices.iter().zip(weights) {
        let first = &first[expert as usize * 2 * INNER * WIDTH..];
        let inner: Vec<f64> = (0..INNER)
            .map(|at| {
                let [gate, up] =
                    [2 * at, 2 * at + 1].map(|row| dot(&first[row * WIDTH..][..WIDTH], &token));
                gate / (1.0 + (-gate).exp()) * up
            })
            .collect();
        let second = &second[expert as usize * WIDTH * INNER..];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum += f64::from(weight) * dot(&second[at * INNER..][..INNER], &inner);
        }
    }
    sums
}
