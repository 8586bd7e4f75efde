//! What an operation must write to a row, computed in f64.

use half::bf16;

use super::case::EPSILON;
use super::operation::{HEAD, Operation};

/// The tokens of a row that sampling draws from.
pub const TOP_K: usize = 50;

/// The rows that an operation must write.
pub struct Expected<'a> {
    pub operation: Operation,
    /// Weights of norms, and their biases.
    pub weights: &'a [bf16],
}

impl Expected<'_> {
    /// Whether a row is right. `other` is the second term of a sum, or the residual before.
    pub fn is_right(&self, row: usize, x: &[bf16], other: &[bf16], found: &[f64]) -> bool {
        let [x, other, weights] = [x, other, self.weights]
            .map(|all| all.iter().map(|it| it.to_f64()).collect::<Vec<_>>());
        let pairs = |f: fn((f64, f64)) -> f64| -> Vec<f64> {
            x.iter()
                .copied()
                .zip(other.iter().copied())
                .map(f)
                .collect()
        };
        // Numbers are rounded to bf16, or to e4m3.
        let mut relative = 1.0 / 128.0;
        let exact = match self.operation {
            Operation::RmsNorm => normal(&x, 0.0, &weights, None),
            Operation::RmsNormResidual => {
                // The sums are rounded before they are normalised.
                let sums: Vec<f64> = found[x.len()..].to_vec();
                let exact = pairs(|(x, residual)| x + residual);
                let normals = normal(&sums, 0.0, &weights, None);
                normals.into_iter().chain(exact).collect()
            }
            Operation::LayerNorm => {
                let mean = x.iter().sum::<f64>() / x.len() as f64;
                normal(&x, mean, &weights, Some(&weights))
            }
            Operation::Softmax => {
                let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<f64> = x.iter().map(|x| (x - largest).exp()).collect();
                let sum: f64 = powers.iter().sum();
                powers.iter().map(|power| power / sum).collect()
            }
            Operation::Rope => x.chunks(HEAD).flat_map(|it| rotated(it, row)).collect(),
            Operation::Add => pairs(|(a, b)| a + b),
            Operation::Cast | Operation::Copy => return found == x,
            Operation::Quantize => {
                relative = 1.0 / 15.0;
                x
            }
            Operation::Reduce | Operation::ReduceColumns => vec![x.iter().sum()],
            Operation::TopK => {
                let mut places: Vec<usize> = (0..x.len()).collect();
                places.sort_by(|&a, &b| x[b].total_cmp(&x[a]));
                let first = places.iter().take(TOP_K).map(|&place| place as f64);
                return first.eq(found.iter().copied());
            }
            Operation::Argmax | Operation::Sampling => {
                let at = |place: &f64| x.get(*place as usize).copied();
                let Some(drawn) = found.first().and_then(at) else {
                    return false;
                };
                let larger = x.iter().filter(|it| **it > drawn).count();
                return match self.operation {
                    Operation::Argmax => larger == 0,
                    _ => larger < TOP_K,
                };
            }
        };
        // Small numbers of a row are differences of larger ones.
        let absolute = 1e-4 * exact.iter().fold(0.0, |most: f64, it| most.max(it.abs()));
        let is_close = |(exact, found): (&f64, &f64)| {
            (exact - found).abs() <= relative * exact.abs() + absolute
        };
        exact.len() == found.len() && exact.iter().zip(found).all(is_close)
    }
}

/// A row, less its mean, over the root of its mean square, times its weights.
fn normal(x: &[f64], mean: f64, weights: &[f64], bias: Option<&[f64]>) -> Vec<f64> {
    let squares: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
    let root = (squares / x.len() as f64 + f64::from(EPSILON)).sqrt();
    let of = |(column, x): (usize, &f64)| {
        (x - mean) / root * weights[column] + bias.map_or(0.0, |it| it[column])
    };
    x.iter().enumerate().map(of).collect()
}

/// A head whose halves are pairs, rotated by the angles of a position.
fn rotated(x: &[f64], position: usize) -> Vec<f64> {
    let half = HEAD / 2;
    let of = |at: usize| {
        let angle = position as f64 * 10_000f64.powf(-((at % half) as f64) / half as f64);
        let (sine, cosine) = angle.sin_cos();
        match at < half {
            true => x[at] * cosine - x[at + half] * sine,
            false => x[at] * cosine + x[at - half] * sine,
        }
    };
    (0..HEAD).map(of).collect()
}
