//! Fresh shapes of GEMMs, drawn at random, so that a run can be of shapes that nobody has measured before.

use fastrand::Rng;

use super::suite::{Suite, SuiteError};

/// Widths of the layers of language models.
const WIDTHS: [usize; 15] = [
    768, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 11008, 14336, 28672,
];
/// The most products of a GEMM: those of a cube of 8192.
const MOST_PRODUCTS: usize = 1 << 39;

/// How a shape is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Every extent is a multiple of 8, so that rows of 16-bit elements begin at multiples of 16 bytes.
    Aligned,
    /// Every extent is odd.
    Odd,
    /// A layer of a model, with any number of rows.
    Layer,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Aligned, Kind::Odd, Kind::Layer];

    fn label(self) -> &'static str {
        match self {
            Kind::Aligned => "aligned",
            Kind::Odd => "odd",
            Kind::Layer => "layer of a model",
        }
    }

    /// m, n and k.
    fn draw(self, random: &mut Rng) -> [usize; 3] {
        loop {
            let shape = match self {
                Kind::Aligned => [0; 3].map(|_| log_uniform(random, 16, 16384) / 8 * 8),
                Kind::Odd => [0; 3].map(|_| log_uniform(random, 33, 8192) | 1),
                Kind::Layer => {
                    let [n, k] = [0; 2].map(|_| WIDTHS[random.usize(..WIDTHS.len())]);
                    [log_uniform(random, 1, 8192), n, k]
                }
            };
            if shape.iter().product::<usize>() <= MOST_PRODUCTS {
                return shape;
            }
        }
    }
}

/// A number from `least` to `most`, uniform in its logarithm.
fn log_uniform(random: &mut Rng, least: usize, most: usize) -> usize {
    let (low, high) = ((least as f64).ln(), (most as f64).ln());
    let number = (low + random.f64() * (high - low)).exp().round() as usize;
    number.clamp(least, most)
}

/// A suite of `count` shapes: a third of each kind. The same seed draws the same shapes.
///
/// # Errors
/// [`SuiteError::File`] if the shapes are not those of a suite.
pub fn suite(seed: u64, count: usize) -> Result<Suite, SuiteError> {
    let mut random = Rng::with_seed(seed);
    let mut text = format!("about = \"{count} random shapes of seed {seed}\"\n");
    for (nth, kind) in Kind::ALL.into_iter().enumerate() {
        let of_kind = (count + Kind::ALL.len() - 1 - nth) / Kind::ALL.len();
        if of_kind == 0 {
            continue;
        }
        let mut shapes: Vec<[usize; 3]> = (0..of_kind).map(|_| kind.draw(&mut random)).collect();
        shapes.sort_unstable();
        text += &format!(
            "\n[[gemm]]\nlabel = \"{}\"\nmnk = {shapes:?}\n",
            kind.label()
        );
    }
    Suite::read(&format!("random shapes of seed {seed}"), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::family::Family;
    use crate::bench::gemm::Gemm;
    use crate::measure::dtype::Dtype;

    /// The shapes of a suite, as results name them.
    fn shapes(seed: u64, count: usize) -> Vec<String> {
        let suite = suite(seed, count).unwrap();
        let problems = suite.gemm.iter().flat_map(|entry| {
            let read = |entry| Gemm.problems(entry, &[Dtype::Bf16]);
            suite.problems(entry, read).unwrap()
        });
        problems.map(|problem| Gemm.row(&problem).shape).collect()
    }

    #[test]
    fn a_seed_draws_the_same_shapes_and_another_seed_others() {
        assert_eq!(shapes(7, 60), shapes(7, 60));
        assert_ne!(shapes(7, 60), shapes(8, 60));
        for count in [1, 2, 3, 64] {
            assert_eq!(shapes(1, count).len(), count);
        }
    }

    #[test]
    fn shapes_are_of_their_kinds() {
        let mut random = Rng::with_seed(3);
        for _ in 0..1000 {
            let aligned = Kind::Aligned.draw(&mut random);
            assert!(
                aligned
                    .iter()
                    .all(|extent| extent.is_multiple_of(8) && *extent >= 16)
            );
            let odd = Kind::Odd.draw(&mut random);
            assert!(odd.iter().all(|extent| extent % 2 == 1));
            let [m, n, k] = Kind::Layer.draw(&mut random);
            assert!((1..=8192).contains(&m) && WIDTHS.contains(&n) && WIDTHS.contains(&k));
            assert!(m * n * k <= MOST_PRODUCTS);
        }
    }
}
