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
/// Distance, in the logarithms of m, n and k, from which on what was measured does not count. At that of half the rows,
/// or of twice as many, it counts 0.6.
const FAR: f32 = 2.0;
/// What the model being right counts, where what was measured at the same place counts 1.
const MODEL: f32 = 0.3;

/// All of it.
static MEASURED: LazyLock<Measured> = LazyLock::new(|| Measured::read(TIMES));

struct Measured {
    /// The shapes' logarithms of m, of n, and of k.
    at: [Vec<f32>; 3],
    /// What instances took at them.
    times: Vec<Times>,
}

/// What instances took at a shape.
pub struct Times {
    extents: [usize; 3],
    /// Which instances, the fastest first.
    fastest_first: Vec<usize>,
    /// By instance, the logarithm of time over model, which those of the shape have none of on average; 0 where it is
    /// not known.
    errors: Vec<f32>,
    /// By instance, 1 where it is known, else 0.
    known: Vec<f32>,
}

impl Measured {
    fn read(text: &'static str) -> Self {
        let names = BF16.iter().map(|it| any_type(it.kernel.name()));
        let all: HashMap<_, _> = names.zip(BF16).collect();
        let mut at = [(); 3].map(|()| Vec::new());
        let mut times = Vec::new();
        for line in lines(text) {
            let shape = Shape::plain(line.extents, PROCESSORS);
            let found = line.times.iter().filter_map(|&(name, microseconds)| {
                let choice = by_model(all.get(name)?, &shape, 0.0, f64::INFINITY)?;
                let error = (microseconds / choice.clocks).ln() as f32;
                Some((choice.instance.nth, error))
            });
            let found: Vec<_> = found.collect();
            let mean = found.iter().map(|(_, error)| error).sum::<f32>() / found.len() as f32;
            let mut at_shape = Times {
                extents: line.extents,
                fastest_first: found.iter().map(|(nth, _)| *nth).collect(),
                errors: vec![0.0; BF16.len()],
                known: vec![0.0; BF16.len()],
            };
            for (nth, error) in found {
                (at_shape.errors[nth], at_shape.known[nth]) = (error - mean, 1.0);
            }
            times.push(at_shape);
            for (at, logarithm) in at.iter_mut().zip(logarithms(line.extents)) {
                at.push(logarithm);
            }
        }
        Measured { at, times }
    }
}

impl Times {
    /// The fastest of these; none if none of them was measured.
    pub fn fastest<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
    ) -> Option<&'static Instance<T, Epi>> {
        let which = |&nth: &usize| instances.iter().find(|it| it.nth == nth).copied();
        self.fastest_first.iter().find_map(which)
    }
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

fn logarithms(extents: [usize; 3]) -> [f32; 3] {
    extents.map(|extent| (extent as f32).ln())
}

/// What was measured around a shape.
#[derive(Default)]
pub struct Around {
    /// The nearest of the measured shapes, and whether it is the shape itself.
    nearest: Option<(&'static Times, bool)>,
    /// By instance, the sum of errors times what they count, …
    errors: Vec<f32>,
    /// … and of what they count.
    weights: Vec<f32>,
}

impl Around {
    /// What was measured around this one: where instances write C of the operands' type, nothing is fused, and on such a
    /// device.
    pub fn new(shape: &Shape) -> Self {
        let Shape { m, n, k, .. } = *shape;
        if shape.processors != PROCESSORS || !shape.fixes_up {
            return Around::default();
        }
        let Measured {
            at: [at_m, at_n, at_k],
            times,
        } = &*MEASURED;
        let here = logarithms([m, n, k]);
        let weight = |((m, n), k): ((&f32, &f32), &f32)| {
            let apart = [m - here[0], n - here[1], k - here[2]];
            let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
            // About e^(-square), and nothing where that is little.
            let weight = (1.0 - square / (FAR * FAR)).max(0.0);
            (weight * weight) * (weight * weight)
        };
        let weights: Vec<f32> = at_m.iter().zip(at_n).zip(at_k).map(weight).collect();
        let mut around = Around {
            nearest: None,
            errors: vec![0.0; BF16.len()],
            weights: vec![MODEL; BF16.len()],
        };
        let mut most = 0.0;
        let near = weights.into_iter().zip(times);
        for (weight, times) in near.filter(|(weight, _)| *weight > 0.0) {
            // One that is a row apart may count as much.
            let is_itself = times.extents == [m, n, k];
            if weight > most || is_itself {
                most = if is_itself { f32::INFINITY } else { weight };
                around.nearest = Some((times, is_itself));
            }
            for (sum, error) in around.errors.iter_mut().zip(&times.errors) {
                *sum += weight * error;
            }
            for (sum, known) in around.weights.iter_mut().zip(&times.known) {
                *sum += weight * known;
            }
        }
        around
    }

    /// What instances took at the shape itself.
    pub fn itself(&self) -> Option<&'static Times> {
        let (times, _) = self.nearest.filter(|(_, is_itself)| *is_itself)?;
        Some(times)
    }

    /// What they took at the nearest one.
    pub fn nearest(&self) -> Option<&'static Times> {
        self.nearest.map(|(times, _)| times)
    }

    /// How many times as long as the model says the instance takes, if all of them take on average as long as it says.
    pub fn factor<T, Epi>(&self, instance: &Instance<T, Epi>) -> f64 {
        match self.nearest {
            Some(_) => (self.errors[instance.nth] / self.weights[instance.nth])
                .exp()
                .into(),
            None => 1.0,
        }
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
            assert!(
                line.times
                    .is_sorted_by_key(|(_, microseconds)| *microseconds),
                "{text}"
            );
            for (name, microseconds) in line.times {
                assert!(
                    BF16.iter().any(|it| any_type(it.kernel.name()) == name),
                    "{name}: {text}"
                );
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
            let shape = Shape::plain(line.extents, PROCESSORS);
            assert!(Around::new(&shape).itself().is_some(), "{:?}", line.extents);
            let choice = fastest(&of_k_major, &shape).unwrap();
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
    fn in_other_orders_the_model_chooses() {
        let of_orders = BF16
            .iter()
            .filter(|it| it.k_major == it.oriented([false, true]));
        let of_orders: Vec<_> = of_orders.collect();
        for line in lines(TIMES) {
            let shape = Shape::plain(line.extents, PROCESSORS);
            let clocks = |it: &&'static _| Some(by_model(it, &shape, 0.0, f64::INFINITY)?.clocks);
            let least = of_orders.iter().filter_map(clocks).reduce(f64::min);
            let chosen = fastest(&of_orders, &shape).map(|choice| choice.clocks);
            assert_eq!(chosen, least, "{:?}", line.extents);
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
