//! What instances took at shapes that were measured: how wrong the model is there, and, as it seems, at shapes like them.
//!
//! The model knows what a launch is made of, but not all that its parts do to each other. Where instances were timed, it
//! need not know; and what it takes for too fast there, it takes for too fast with a few more rows, too. So the logarithm
//! of time over model is averaged over the measured shapes, those that are near counting more, with some weight for the
//! model being right.

use std::array;
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
/// What counts less than this does not count at all: it would take time.
const LITTLE: f32 = 0.05;
/// What the model being right counts, where what was measured at the same place counts 1.
const MODEL: f32 = 0.3;

/// All of it.
static MEASURED: LazyLock<Measured> = LazyLock::new(|| Measured::read(TIMES));

struct Measured {
    /// Where each shape is.
    places: HashMap<[usize; 3], usize>,
    /// The shapes' logarithms of m, of n, and of k.
    at: [Vec<f32>; 3],
    /// Which instances were measured at them, the fastest first.
    fastest_first: Vec<Vec<usize>>,
    /// Of each [`LANES`] instances, up to the last that was measured, at each shape.
    errors: Vec<Vec<Errors>>,
}

/// Instances whose errors are averaged together.
const LANES: usize = 8;

/// How wrong the model is about some instances at a shape.
#[derive(Clone, Copy, Default)]
struct Errors {
    /// The logarithm of time over model, which those of a shape have none of on average; 0 where it is not known.
    of: [f32; LANES],
    /// 1 where it is known, else 0.
    known: [f32; LANES],
}

impl Measured {
    fn read(text: &'static str) -> Self {
        let names = BF16.iter().map(|it| any_type(it.kernel.name()));
        let all: HashMap<_, _> = names.zip(BF16).collect();
        let lines: Vec<_> = lines(text).collect();
        let mut measured = Measured {
            places: HashMap::new(),
            at: [(); 3].map(|()| Vec::new()),
            fastest_first: Vec::new(),
            errors: vec![vec![Errors::default(); lines.len()]; BF16.len().div_ceil(LANES)],
        };
        for (place, line) in lines.into_iter().enumerate() {
            let shape = Shape::plain(line.extents, PROCESSORS);
            let found = line.times.iter().filter_map(|&(name, microseconds)| {
                let choice = by_model(all.get(name)?, &shape, 0.0, f64::INFINITY)?;
                let error = (microseconds / choice.clocks).ln() as f32;
                Some((choice.instance.nth, error))
            });
            let found: Vec<_> = found.collect();
            let mean = found.iter().map(|(_, error)| error).sum::<f32>() / found.len() as f32;
            for &(nth, error) in &found {
                let Errors { of, known } = &mut measured.errors[nth / LANES][place];
                (of[nth % LANES], known[nth % LANES]) = (error - mean, 1.0);
            }
            let fastest_first = found.into_iter().map(|(nth, _)| nth).collect();
            measured.fastest_first.push(fastest_first);
            measured.places.insert(line.extents, place);
            for (at, logarithm) in measured.at.iter_mut().zip(logarithms(line.extents)) {
                at.push(logarithm);
            }
        }
        // Of instances for other orders of A and B, which are the last ones, nothing is known.
        let is_known = |errors: &Vec<Errors>| errors.iter().any(|it| it.known != [0.0; LANES]);
        let known = measured.errors.iter().rposition(is_known);
        measured.errors.truncate(known.map_or(0, |last| last + 1));
        measured
    }

    /// What is known of such a shape: where instances write C of the operands' type, nothing is fused, and on such a
    /// device.
    fn of(shape: &Shape) -> Option<&'static Self> {
        (shape.processors == PROCESSORS && shape.fixes_up).then(|| &*MEASURED)
    }

    /// The fastest of these at a place; none if none of them was measured there.
    fn fastest<T, Epi>(
        &self,
        place: usize,
        instances: &[&'static Instance<T, Epi>],
    ) -> Option<&'static Instance<T, Epi>> {
        let which = |&nth: &usize| instances.iter().find(|it| it.nth == nth).copied();
        self.fastest_first[place].iter().find_map(which)
    }
}

/// The fastest of these at the shape; none if it was not measured.
pub fn fastest<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    shape: &Shape,
) -> Option<&'static Instance<T, Epi>> {
    let measured = Measured::of(shape)?;
    let place = measured.places.get(&[shape.m, shape.n, shape.k])?;
    measured.fastest(*place, instances)
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
    measured: Option<&'static Measured>,
    /// Places of shapes that are near, and what each counts.
    near: Vec<(usize, f32)>,
    /// How wrong the model seems to be, by instance.
    errors: Vec<[f32; LANES]>,
}

impl Around {
    /// What was measured around this one.
    pub fn new(shape: &Shape) -> Self {
        let Some(measured) = Measured::of(shape) else {
            return Self::default();
        };
        let here = logarithms([shape.m, shape.n, shape.k]);
        let weight = |((m, n), k): ((&f32, &f32), &f32)| {
            let apart = [m - here[0], n - here[1], k - here[2]];
            let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
            // About e^(-square), and nothing where that is little.
            let weight = (1.0 - square / (FAR * FAR)).max(0.0);
            (weight * weight) * (weight * weight)
        };
        let [at_m, at_n, at_k] = &measured.at;
        let weights: Vec<_> = at_m.iter().zip(at_n).zip(at_k).map(weight).collect();
        let weights = weights.into_iter().enumerate();
        let near = weights.filter(|(_, weight)| *weight > LITTLE);
        Self::of(measured, near.collect())
    }

    /// What was measured at these places, each of which counts so much.
    fn of(measured: &'static Measured, near: Vec<(usize, f32)>) -> Self {
        let average = |errors: &Vec<Errors>| {
            let (mut sum, mut weights) = ([0.0; LANES], [MODEL; LANES]);
            for &(place, weight) in &near {
                let Errors { of, known } = &errors[place];
                for lane in 0..LANES {
                    sum[lane] += weight * of[lane];
                    weights[lane] += weight * known[lane];
                }
            }
            array::from_fn(|lane| sum[lane] / weights[lane])
        };
        Self {
            measured: Some(measured),
            errors: measured.errors.iter().map(average).collect(),
            near,
        }
    }

    /// The one of these that was the fastest at the nearest shape, if any is near.
    pub fn likely<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
    ) -> Option<&'static Instance<T, Epi>> {
        let near = self.near.iter();
        let (nearest, _) = near.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        self.measured?.fastest(*nearest, instances)
    }

    /// How many times as long as the model says the instance takes, if all of them take on average as long as it says.
    pub fn factor<T, Epi>(&self, instance: &Instance<T, Epi>) -> f64 {
        let errors = self.errors.get(instance.nth / LANES);
        errors.map_or(1.0, |errors| f64::from(errors[instance.nth % LANES]).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::choose::{self, by_model_and_around};

    /// The instances for an A and a B along which k is consecutive, or is not.
    fn of_majors(k_major: [bool; 2]) -> Vec<&'static Instance<half::bf16>> {
        let of_majors = BF16.iter().filter(|it| it.k_major == it.oriented(k_major));
        of_majors.collect()
    }

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
    fn the_fastest_is_chosen_where_it_was_measured() {
        let of_k_major = of_majors([true; 2]);
        for line in lines(TIMES) {
            let shape = Shape::plain(line.extents, PROCESSORS);
            assert!(
                super::fastest(&of_k_major, &shape).is_some(),
                "{:?}",
                line.extents
            );
            let choice = choose::fastest(&of_k_major, &shape).unwrap();
            let name = any_type(choice.instance.kernel.name());
            let (fastest, _) = line.times[0];
            assert_eq!(name, fastest, "{:?}", line.extents);
        }
    }

    #[test]
    fn others_like_it_say_what_is_fast_where_it_was_not_measured() {
        let of_k_major = of_majors([true; 2]);
        let mut losses = [Vec::new(), Vec::new()];
        for (place, line) in lines(TIMES).enumerate() {
            let shape = Shape::plain(line.extents, PROCESSORS);
            let mut others = Around::new(&shape).near;
            others.retain(|(at, _)| *at != place);
            let around = Around::of(&MEASURED, others);
            let choice = by_model_and_around(&of_k_major, &shape, &around).unwrap();
            let name = any_type(choice.instance.kernel.name());
            // What a line does not have is slower.
            let slowest = line.times.last();
            let chosen = line.times.iter().find(|(of, _)| *of == name).or(slowest);
            losses[shape.lines[0] - 1].push(chosen.unwrap().1 / line.times[0].1 - 1.0);
        }
        let [of_lines, of_any_rows] =
            losses.map(|losses| losses.iter().sum::<f64>() / losses.len() as f64);
        assert!(of_lines < 0.015, "{of_lines}");
        assert!(of_any_rows < 0.05, "{of_any_rows}");
    }

    #[test]
    fn in_other_orders_the_model_chooses() {
        let of_orders = of_majors([false, true]);
        for line in lines(TIMES) {
            let shape = Shape::plain(line.extents, PROCESSORS);
            let clocks = |it: &&'static _| Some(by_model(it, &shape, 0.0, f64::INFINITY)?.clocks);
            let least = of_orders.iter().filter_map(clocks).reduce(f64::min);
            let chosen = choose::fastest(&of_orders, &shape).map(|choice| choice.clocks);
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
