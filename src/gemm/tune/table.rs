//! Tables: measured times of kernels at some problems, on one device. They show the model's errors at these problems,
//! and the model errs alike at nearby problems. A table corrects the model only on the device that it was measured on.
//!
//! The correction of an instance is the average of log(time / model) over the measured problems. Nearer problems have
//! more weight, and an error of 0 has some weight as well.

use std::array;
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::instances::BF16;

use super::model::{CostInput, by_model};

/// Multiprocessors of an H200.
pub(super) const H200_MULTIPROCESSORS: u32 = 132;
/// The table of the H200, as `cargo xtask measured` writes it. A line has m, n and k, and instances with their times in
/// microseconds. Instances that are missing in a line are slower by far.
pub(super) static H200: LazyLock<Table> =
    LazyLock::new(|| Table::read(include_str!("tables/h200.txt"), H200_MULTIPROCESSORS));

/// The distance from which on a measured problem has no weight, between the logarithms of m, n and k. A problem with
/// half or twice as many rows has a weight of 0.6.
const FAR: f32 = 2.0;
/// The least weight. Problems with less are skipped, to save time.
const LEAST_WEIGHT: f32 = 0.05;
/// The weight of an error of 0. The problem itself, if it was measured, has a weight of 1.
const MODEL_WEIGHT: f32 = 0.3;

/// What was measured on a device.
pub struct Table {
    /// The place of each problem: its index in the other fields.
    places: HashMap<[usize; 3], usize>,
    /// The problems' logarithms of m, of n, and of k.
    at: [Vec<f32>; 3],
    /// The instances that were measured at each problem, the fastest first.
    fastest_first: Vec<Vec<usize>>,
    /// For each group of [`LANES`] instances, their errors at each problem. Ends at the last group that was measured.
    errors: Vec<Vec<Errors>>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} problems)", self.places.len())
    }
}

/// Instances whose errors are averaged together.
const LANES: usize = 8;

/// The model's errors for some instances at a problem.
#[derive(Clone, Copy, Default)]
struct Errors {
    /// log(time / model) minus its mean over the problem's instances. 0 if it is not known.
    of: [f32; LANES],
    /// 1 if the error is known, otherwise 0.
    known: [f32; LANES],
}

impl Table {
    /// The table of devices of this name, if there is one.
    pub fn of_device(name: &str) -> Option<&'static Self> {
        // The driver's name is "NVIDIA H200".
        name.ends_with("H200").then(|| &*H200)
    }

    fn read(text: &'static str, multiprocessors: u32) -> Self {
        let names = BF16.iter().map(|it| any_type(it.kernel.name()));
        let all: HashMap<_, _> = names.zip(BF16).collect();
        let lines: Vec<_> = lines(text).collect();
        let mut table = Table {
            places: HashMap::new(),
            at: [(); 3].map(|()| Vec::new()),
            fastest_first: Vec::new(),
            errors: vec![vec![Errors::default(); lines.len()]; BF16.len().div_ceil(LANES)],
        };
        for (place, line) in lines.into_iter().enumerate() {
            let input = CostInput::plain(line.extents, multiprocessors);
            let found = line.times.iter().filter_map(|&(name, microseconds)| {
                let candidate = by_model(all.get(name)?, &input, 0.0, f64::INFINITY)?;
                let error = (microseconds / candidate.clocks).ln() as f32;
                Some((candidate.instance.nth, error))
            });
            let found: Vec<_> = found.collect();
            let mean = found.iter().map(|(_, error)| error).sum::<f32>() / found.len() as f32;
            for &(nth, error) in &found {
                let Errors { of, known } = &mut table.errors[nth / LANES][place];
                (of[nth % LANES], known[nth % LANES]) = (error - mean, 1.0);
            }
            let fastest_first = found.into_iter().map(|(nth, _)| nth).collect();
            table.fastest_first.push(fastest_first);
            table.places.insert(line.extents, place);
            for (at, logarithm) in table.at.iter_mut().zip(logarithms(line.extents)) {
                at.push(logarithm);
            }
        }
        // Instances for other majors of A and B come last. They were not measured.
        let is_known = |errors: &Vec<Errors>| errors.iter().any(|it| it.known != [0.0; LANES]);
        let known = table.errors.iter().rposition(is_known);
        table.errors.truncate(known.map_or(0, |last| last + 1));
        table
    }

    /// Whether the table applies to the problem. Kernels were measured with a C of the operands' type and nothing fused:
    /// only then is the fixup allowed.
    pub fn applies_to(&self, input: &CostInput) -> bool {
        input.allows_fixup
    }

    /// The fastest of these instances at the problem. None if none of them was measured there.
    pub fn fastest<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
        input: &CostInput,
    ) -> Option<&'static Instance<T, Epi>> {
        let place = self.places.get(&[input.m, input.n, input.k])?;
        self.fastest_at(*place, instances)
    }

    /// The fastest of these instances at a place. None if none of them was measured there.
    fn fastest_at<T, Epi>(
        &self,
        place: usize,
        instances: &[&'static Instance<T, Epi>],
    ) -> Option<&'static Instance<T, Epi>> {
        let which = |&nth: &usize| instances.iter().find(|it| it.nth == nth).copied();
        self.fastest_first[place].iter().find_map(which)
    }
}

/// A line of a table.
pub(super) struct Line {
    pub(super) extents: [usize; 3],
    /// Instances, without the element type, and microseconds.
    pub(super) times: Vec<(&'static str, f64)>,
}

pub(super) fn lines(times: &'static str) -> impl Iterator<Item = Line> {
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
pub(super) fn any_type(name: &'static str) -> &'static str {
    name.split_once('_').map_or(name, |(_, rest)| rest)
}

fn logarithms(extents: [usize; 3]) -> [f32; 3] {
    extents.map(|extent| (extent as f32).ln())
}

/// The measured problems near a problem.
#[derive(Default)]
pub struct Neighbours {
    table: Option<&'static Table>,
    /// The places of these problems, and the weight of each.
    pub(super) near: Vec<(usize, f32)>,
    /// The model's average error at these problems, by instance.
    errors: Vec<[f32; LANES]>,
}

impl Neighbours {
    /// Those of this problem.
    pub fn new(table: &'static Table, input: &CostInput) -> Self {
        let here = logarithms([input.m, input.n, input.k]);
        let weight = |((m, n), k): ((&f32, &f32), &f32)| {
            let apart = [m - here[0], n - here[1], k - here[2]];
            let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
            // About e^(−square), and 0 where e^(−square) is small.
            let weight = (1.0 - square / (FAR * FAR)).max(0.0);
            (weight * weight) * (weight * weight)
        };
        let [at_m, at_n, at_k] = &table.at;
        let weights: Vec<_> = at_m.iter().zip(at_n).zip(at_k).map(weight).collect();
        let weights = weights.into_iter().enumerate();
        let near = weights.filter(|(_, weight)| *weight > LEAST_WEIGHT);
        Self::of(table, near.collect())
    }

    /// The problems at these places, with these weights.
    pub(super) fn of(table: &'static Table, near: Vec<(usize, f32)>) -> Self {
        let average = |errors: &Vec<Errors>| {
            let (mut sum, mut weights) = ([0.0; LANES], [MODEL_WEIGHT; LANES]);
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
            table: Some(table),
            errors: table.errors.iter().map(average).collect(),
            near,
        }
    }

    /// Of these instances, the fastest at the nearest problem. None if no problem is near.
    pub fn likely<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
    ) -> Option<&'static Instance<T, Epi>> {
        let near = self.near.iter();
        let (nearest, _) = near.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        self.table?.fastest_at(*nearest, instances)
    }

    /// The factor that corrects the model's time of an instance. It assumes that the model is right on average over all
    /// instances.
    pub fn factor<T, Epi>(&self, instance: &Instance<T, Epi>) -> f64 {
        let errors = self.errors.get(instance.nth / LANES);
        errors.map_or(1.0, |errors| f64::from(errors[instance.nth % LANES]).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> impl Iterator<Item = (Line, &'static str)> {
        let text = include_str!("tables/h200.txt");
        lines(text).zip(text.lines())
    }

    #[test]
    fn every_line_names_existing_instances() {
        let mut count = 0;
        for (line, text) in times() {
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
        assert!(count > 200);
    }

    #[test]
    fn neighbours_correct_the_model_on_their_device_alone() {
        let instance = |name: &str| BF16.iter().find(|it| it.kernel.name() == name).unwrap();
        let factor = |extents, name| {
            let input = CostInput::plain(extents, H200_MULTIPROCESSORS);
            Neighbours::new(&H200, &input).factor(instance(name))
        };
        let (near, far) = ([520, 512, 8192], [1, 64, 1 << 24]);
        let name = "bf16_64x64x64_1x1_ws";
        assert_ne!(factor(near, name), 1.0);
        assert_eq!(factor(near, "bf16_64x64x64_1x1_ws_mm"), 1.0);
        assert_eq!(factor(far, name), 1.0);
        assert!(Table::of_device("NVIDIA H200").is_some());
        for other in ["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "cpu"] {
            assert!(Table::of_device(other).is_none(), "{other}");
        }
    }
}
