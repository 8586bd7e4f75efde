//! What instances took at shapes that were measured: how wrong the model is there, and, as it seems, at shapes like them.
//!
//! The model knows what a launch is made of, but not all that its parts do to each other. Where instances were timed, it
//! need not know; and what it takes for too fast there, it takes for too fast with a few more rows, too. So the logarithm
//! of time over model is averaged over the measured shapes, those that are near counting more, with some weight for the
//! model being right.

use std::collections::HashMap;
use std::sync::LazyLock;

use cutlet_kernels::gemm_wgmma::Instance;
use cutlet_kernels::gemm_wgmma::instances::BF16;

use super::{Shape, by_model};

/// Lines of m, n and k, and of instances with the microseconds that they took, as `cargo xtask measured` writes them.
/// Instances that a line does not have are slower by far than those that it has.
const TIMES: &str = include_str!("measured.txt");
/// Multiprocessors of the GPU that they were measured on, an H200.
const PROCESSORS: u32 = 132;
/// Distance, in the logarithms of m, n and k, from where on what was measured counts little: that of half the rows, or of
/// twice as many.
const NEAR: f64 = 0.7;
/// As many times as that far away, it does not count.
const FAR: f64 = 3.0;
/// What the model being right counts, where what was measured at the same place counts 1.
const MODEL: f64 = 0.3;

/// All of it.
static MEASURED: LazyLock<Measured> = LazyLock::new(|| Measured::read(TIMES));

struct Measured {
    shapes: Vec<Times>,
    /// Which instance is which in [`Times`], by its name without the element type: for the other type, it takes as long.
    instances: HashMap<&'static str, usize>,
}

/// What instances took at a shape.
pub struct Times {
    /// Logarithms of m, n and k.
    at: [f64; 3],
    /// Microseconds, by instance; infinite for those that are slower by far.
    microseconds: Vec<f64>,
    /// Logarithms of time over model, by instance, which are 0 on average where they are known.
    errors: Vec<Option<f64>>,
}

impl Measured {
    fn read(times: &'static str) -> Self {
        let names = BF16.iter().map(|it| any_type(it.kernel.name()));
        let instances: HashMap<_, _> = names.enumerate().map(|(nth, name)| (name, nth)).collect();
        let times = lines(times).map(|line| {
            let mut microseconds = vec![f64::INFINITY; BF16.len()];
            for (name, time) in line.times {
                if let Some(&nth) = instances.get(name) {
                    microseconds[nth] = time;
                }
            }
            Times::new(line.extents, microseconds)
        });
        Measured {
            shapes: times.collect(),
            instances,
        }
    }
}

impl Times {
    fn new(extents: [usize; 3], microseconds: Vec<f64>) -> Self {
        let shape = Shape::plain(extents, PROCESSORS);
        let error = |(nth, &time): (usize, &f64)| {
            let choice = by_model(&BF16[nth], &shape, 0.0, f64::INFINITY)?;
            time.is_finite().then(|| (time / choice.clocks).ln())
        };
        let errors: Vec<_> = microseconds.iter().enumerate().map(error).collect();
        let known = errors.iter().flatten();
        let mean = known.clone().sum::<f64>() / known.count() as f64;
        Times {
            at: logarithms(extents),
            microseconds,
            errors: errors
                .into_iter()
                .map(|error| Some(error? - mean))
                .collect(),
        }
    }

    /// The fastest of these; none if none of them was measured.
    pub fn fastest<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
    ) -> Option<&'static Instance<T, Epi>> {
        let time = |it: &&'static Instance<T, Epi>| Some((self.microseconds[place(it)?], *it));
        let fastest = instances
            .iter()
            .filter_map(time)
            .min_by(|(a, _), (b, _)| a.total_cmp(b));
        fastest.map(|(_, instance)| instance)
    }
}

/// Where times have that of an instance.
fn place<T, Epi>(instance: &Instance<T, Epi>) -> Option<usize> {
    MEASURED
        .instances
        .get(any_type(instance.kernel.name()))
        .copied()
}

/// A line of what was measured.
struct Line {
    extents: [usize; 3],
    /// Instances, without the element type, and microseconds.
    times: Vec<(&'static str, f64)>,
}

fn lines(times: &'static str) -> impl Iterator<Item = Line> {
    times.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let mut extent = || words.next()?.parse().ok();
        let extents = [extent()?, extent()?, extent()?];
        let times = words.filter_map(|word| {
            let (name, microseconds) = word.split_once('=')?;
            Some((name, microseconds.parse().ok()?))
        });
        Some(Line {
            extents,
            times: times.collect(),
        })
    })
}

/// The name of an instance without its element type.
fn any_type(name: &'static str) -> &'static str {
    name.split_once('_').map_or(name, |(_, rest)| rest)
}

fn logarithms(extents: [usize; 3]) -> [f64; 3] {
    extents.map(|extent| (extent as f64).ln())
}

/// What was measured around a shape.
pub enum Around {
    /// Nothing.
    Nothing,
    /// The shape itself.
    Itself(&'static Times),
    /// Others, and what they count.
    Others(Vec<(f64, &'static Times)>),
}

impl Around {
    /// What was measured around this one: products of 16 bits throughout, on such a device.
    pub fn new(shape: &Shape) -> Self {
        let Shape { m, n, k, .. } = *shape;
        if shape.processors != PROCESSORS || shape.leaves_sums || shape.bytes_c != 2 {
            return Around::Nothing;
        }
        let at = logarithms([m, n, k]);
        let mut others = Vec::new();
        for times in &MEASURED.shapes {
            let apart = [0, 1, 2].map(|i| times.at[i] - at[i]);
            let square = apart.iter().map(|apart| apart * apart).sum::<f64>();
            if square == 0.0 {
                return Around::Itself(times);
            }
            if square < (FAR * NEAR) * (FAR * NEAR) {
                others.push(((-0.5 * square / (NEAR * NEAR)).exp(), times));
            }
        }
        Around::Others(others)
    }

    /// How many times as long as the model says the instance takes, if all of them take on average as long as it says.
    pub fn factor<T, Epi>(&self, instance: &Instance<T, Epi>) -> f64 {
        let (Around::Others(others), Some(place)) = (self, place(instance)) else {
            return 1.0;
        };
        let (mut sum, mut weights) = (0.0, MODEL);
        for (weight, times) in others {
            if let Some(error) = times.errors[place] {
                sum += weight * error;
                weights += weight;
            }
        }
        (sum / weights).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fastest;
    use super::*;

    #[test]
    fn every_line_is_of_instances_that_there_are() {
        let mut count = 0;
        for (line, text) in lines(TIMES).zip(TIMES.lines()) {
            let [m, n, k] = line.extents;
            assert!(text.starts_with(&format!("{m} {n} {k} ")), "{text}");
            assert_eq!(line.times.len(), text.split(' ').count() - 3, "{text}");
            for (name, microseconds) in line.times {
                assert!(MEASURED.instances.contains_key(name), "{name}: {text}");
                assert!(microseconds > 0.0, "{text}");
            }
            count += 1;
        }
        assert_eq!(count, TIMES.lines().count());
        assert!(count > 200);
    }

    #[test]
    fn a_choice_costs_less_than_three_percent_where_it_was_measured() {
        let of_k_major = BF16
            .iter()
            .filter(|it| it.k_major == it.oriented([true; 2]));
        let of_k_major: Vec<_> = of_k_major.collect();
        for line in lines(TIMES) {
            let choice = fastest(&of_k_major, &Shape::plain(line.extents, PROCESSORS)).unwrap();
            let name = any_type(choice.instance.kernel.name());
            let chosen = line.times.iter().find(|(of, _)| *of == name);
            let chosen = chosen.map_or(f64::INFINITY, |(_, microseconds)| *microseconds);
            let all = line.times.iter().map(|(_, microseconds)| *microseconds);
            let best = all.fold(f64::INFINITY, f64::min);
            let extents = line.extents;
            assert!(
                chosen < 1.03 * best,
                "{extents:?}: {name} takes {chosen}, another {best}"
            );
        }
    }

    #[test]
    fn what_was_measured_counts_for_shapes_like_it() {
        let instance = |name: &str| BF16.iter().find(|it| it.kernel.name() == name).unwrap();
        let factor = |extents, processors, name| {
            Around::new(&Shape::plain(extents, processors)).factor(instance(name))
        };
        assert_ne!(
            factor([520, 512, 8192], PROCESSORS, "bf16_1x64x64_c1_kk"),
            1.0
        );
        assert_eq!(factor([520, 512, 8192], 78, "bf16_1x64x64_c1_kk"), 1.0);
        assert_eq!(
            factor([520, 512, 8192], PROCESSORS, "bf16_1x64x64_c1_mm"),
            1.0
        );
        let far = [1, 64, 1 << 24];
        assert_eq!(factor(far, PROCESSORS, "bf16_1x64x64_c1_kk"), 1.0);
    }
}
