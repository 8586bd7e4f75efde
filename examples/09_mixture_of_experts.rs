//! A layer of a mixture of experts: each token goes through the two experts that its router likes best, and the results
//! are added with the router's weights. How many rows each expert has stays on the device. The first product applies
//! SwiGLU to its gates and ups before they reach memory.

use cutlet::{
    Device, DeviceTensor, Gemm, MoeRows, Result, RouterWeights, Stream, gemm, layout, top_k,
};
use half::bf16;

/// Tokens, their features, experts, the experts of a token, and features inside an expert.
const TOKENS: usize = 96;
const WIDTH: usize = 64;
const EXPERTS: usize = 8;
const TOP_K: usize = 2;
const INNER: usize = 48;

/// The weights of the layer.
struct Weights {
    router: Vec<bf16>,
    /// A row for each result. Those of gates and of ups alternate.
    first: Vec<bf16>,
    second: Vec<bf16>,
}

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
    let weights = Weights {
        router: numbers(WIDTH * EXPERTS, 1.0),
        first: numbers(EXPERTS * 2 * INNER * WIDTH, 0.3),
        second: numbers(EXPERTS * WIDTH * INNER, 0.3),
    };

    let on_tokens = DeviceTensor::upload(&stream, &tokens, [TOKENS, WIDTH])?;
    let (choices, shares) = choose(&stream, &on_tokens, &weights.router)?;

    // A row for each choice, sorted by expert.
    let mut routed = MoeRows::new(stream.device(), TOKENS, TOP_K, EXPERTS)?;
    routed.route(&stream, choices.view())?;
    let results = run_experts(&stream, &on_tokens, &mut routed, &weights)?;

    // The results of a token's experts are added.
    let mut sums = DeviceTensor::<bf16>::zeroed(&stream, [TOKENS, WIDTH])?;
    routed.unpermute(&stream, &results, shares.view(), &mut sums)?;

    let offsets = stream.download(routed.offsets())?;
    let counts: Vec<i32> = offsets.windows(2).map(|it| it[1] - it[0]).collect();
    println!("rows of the experts: {counts:?}");
    let (choices, shares) = (choices.download(&stream)?, shares.download(&stream)?);
    let error = error(&sums.download(&stream)?, |token| {
        let own = token * TOP_K..(token + 1) * TOP_K;
        let token = &tokens[token * WIDTH..][..WIDTH];
        layer(token, &choices[own.clone()], &shares[own], &weights)
    });
    println!("the relative error is {error:.1e}");
    // bf16 keeps three digits, and the results are rounded four times.
    assert!(error < 1e-2);
    Ok(())
}

/// The experts of each token, and their shares in its result.
fn choose(
    stream: &Stream,
    tokens: &DeviceTensor<bf16>,
    router: &[bf16],
) -> Result<(DeviceTensor<i32>, DeviceTensor<f32>)> {
    let router = DeviceTensor::upload(stream, router, [WIDTH, EXPERTS])?;
    let mut logits = DeviceTensor::<f32>::zeroed(stream, [TOKENS, EXPERTS])?;
    gemm(stream, 1.0, tokens, &router, 0.0, &mut logits)?;
    let mut choices = DeviceTensor::<i32>::zeroed(stream, [TOKENS, TOP_K])?;
    let mut shares = DeviceTensor::<f32>::zeroed(stream, [TOKENS, TOP_K])?;
    let normalised = RouterWeights::Normalised;
    top_k(stream, &logits, normalised, &mut choices, &mut shares)?;
    Ok((choices, shares))
}

/// What each expert makes of the tokens that were routed to it.
fn run_experts(
    stream: &Stream,
    tokens: &DeviceTensor<bf16>,
    routed: &mut MoeRows,
    weights: &Weights,
) -> Result<DeviceTensor<bf16>> {
    let rows = routed.rows();
    let mut permuted = DeviceTensor::<bf16>::zeroed(stream, [rows, WIDTH])?;
    routed.permute(stream, tokens, &mut permuted)?;
    let ends = routed.ends();

    let first = experts(stream, &weights.first, 2 * INNER, WIDTH)?;
    let mut inner = DeviceTensor::<bf16>::zeroed(stream, [rows, INNER])?;
    Gemm::new(&permuted, &first, &mut inner)
        .group_ends(ends)
        .swiglu()
        .run(stream)?;

    let second = experts(stream, &weights.second, WIDTH, INNER)?;
    let mut results = DeviceTensor::<bf16>::zeroed(stream, [rows, WIDTH])?;
    Gemm::new(&inner, &second, &mut results)
        .group_ends(ends)
        .run(stream)?;
    Ok(results)
}

/// The experts' weights as matrices B, (K, N, experts): for each expert, a row of weights for each output.
fn experts(
    stream: &Stream,
    weights: &[bf16],
    outputs: usize,
    inputs: usize,
) -> Result<DeviceTensor<bf16>> {
    let one = inputs * outputs;
    let of_b = layout!((dyn inputs, dyn outputs, dyn EXPERTS):(1, dyn inputs, dyn one));
    DeviceTensor::upload(stream, weights, of_b)
}

/// ‖exact − found‖ / ‖exact‖, where `exact` computes the results of a token.
fn error(found: &[bf16], exact: impl Fn(usize) -> Vec<f64>) -> f64 {
    let (mut errors, mut squares) = (0.0, 0.0);
    for (token, found) in found.chunks_exact(WIDTH).enumerate() {
        for (exact, found) in exact(token).iter().zip(found) {
            errors += (exact - f64::from(*found)).powi(2);
            squares += exact.powi(2);
        }
    }
    (errors / squares).sqrt()
}

/// The layer's results for a token, in f64.
fn layer(token: &[bf16], choices: &[i32], shares: &[f32], weights: &Weights) -> Vec<f64> {
    let dot = |weights: &[bf16], with: &[f64]| -> f64 {
        let products = weights.iter().zip(with);
        products.map(|(a, b)| f64::from(*a) * b).sum()
    };
    let token: Vec<f64> = token.iter().map(|&it| it.into()).collect();
    let mut sums = vec![0.0; WIDTH];
    for (&expert, &share) in choices.iter().zip(shares) {
        let first = &weights.first[expert as usize * 2 * INNER * WIDTH..];
        let inner: Vec<f64> = (0..INNER)
            .map(|at| {
                let [gate, up] =
                    [2 * at, 2 * at + 1].map(|row| dot(&first[row * WIDTH..][..WIDTH], &token));
                gate / (1.0 + (-gate).exp()) * up
            })
            .collect();
        let second = &weights.second[expert as usize * WIDTH * INNER..];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum += f64::from(share) * dot(&second[at * INNER..][..INNER], &inner);
        }
    }
    sums
}
