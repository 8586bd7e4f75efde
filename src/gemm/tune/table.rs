//! The table: measured times of kernels at some problems, on some devices. They show the model's errors at these
//! problems, and the model errs alike at nearby problems, and on devices that are alike.
//!
//! The correction of an instance is the average of log(time / model) over the measured problems. Nearer problems have
//! more weight, and the instance's average over all problems has some weight as well.

use std::array;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::LazyLock;

use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::instances::BF16;

use super::model::{CostInput, DeviceSpeed, by_model};

/// What the driver states of an H200.
pub const H200: DeviceSpeed = DeviceSpeed {
    multiprocessors: 132,
    memory_rate: 18.81,
    clusters: [132, 66, 30, 15],
};
/// What the driver states of an H100 with HBM3.
const H100: DeviceSpeed = DeviceSpeed {
    multiprocessors: 132,
    memory_rate: 12.83,
    clusters: [132, 66, 30, 15],
};

/// A device that instances were timed on.
struct Timed {
    /// A word of its name, as the driver states it: "NVIDIA H200".
    name: &'static str,
    speed: DeviceSpeed,
    /// Lines as `cargo xtask measured` writes them: m, n and k, and instances with their times in microseconds.
    /// Instances that are missing in a line are slower by far, or were not measured.
    times: &'static str,
}
static TIMED: [Timed; 2] = [
    Timed {
        name: "H200",
        speed: H200,
        times: include_str!("tables/h200.txt"),
    },
    Timed {
        name: "H100",
        speed: H100,
        times: include_str!("tables/h100.txt"),
    },
];
/// The table of these devices.
static HOPPER: LazyLock<Table> = LazyLock::new(|| Table::read(&TIMED));

/// The distance from which on a measured problem has no weight, between the logarithms of m, n and k. A problem with
/// half or twice as many rows has a weight of 0.85.
const FAR: f32 = 3.5;
/// The least weight.
const LEAST_WEIGHT: f32 = 0.1;
/// The weight of problems that differ in whether rows start at cache lines, relative to others.
const OTHER_LINES: f32 = 0.3;
/// The weight of the instance's average over all problems. The problem itself, if it was measured, has a weight of 1.
const AVERAGE_WEIGHT: f32 = 0.5;
/// What is added to an instance's error, divided by the weight of what is known of it. Of many instances, the one with
/// the least estimate is mostly one whose estimate is too low, and that is likelier the less is known.
const DOUBT: f32 = 0.02;
/// Problems by which the average of an instance is drawn towards 0.
const DRAWN_BY: f32 = 6.0;
/// Instances that a line leaves out are of interest if the model takes them for faster than this multiple of the line's
/// last one: the averages of instances differ by less.
const NOT_NEWS: f64 = 1.3;
/// Rounds in which the averages of problems and of instances are found. Each is measured against the other.
const ROUNDS: usize = 8;

/// What was measured.
pub struct Table {
    /// The place of each problem on each device: its index in the other fields.
    places: HashMap<(usize, [usize; 3]), usize>,
    /// The problems' logarithms of m, of n, and of k.
    at: [Vec<f32>; 3],
    /// Whether rows start at cache lines.
    at_lines: Vec<bool>,
    /// The instances that were measured at each problem, the fastest first.
    fastest_first: Vec<Vec<usize>>,
    /// The model's errors for each instance.
    errors: Vec<Errors>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} problems)", self.places.len())
    }
}

/// The model's errors for an instance.
#[derive(Clone, Default)]
struct Errors {
    /// Places, and log(time / model) there, minus its mean over the instances at that place.
    at: Vec<(usize, f32)>,
    /// The error on average.
    average: f32,
}

/// The model's error for an instance at a problem.
struct Found {
    place: usize,
    /// The instance's index.
    nth: usize,
    /// log(time / model).
    error: f32,
    /// Whether this is only the least that the error may be: a line leaves out instances that are slower than its last
    /// one. It counts where the model would take the instance to be faster. If it did not, instances that the model
    /// always takes for too fast would never be found out.
    is_least: bool,
}

impl Found {
    /// The error at a place where the instance took so long. None if the model takes it for slower than `most` clocks.
    fn of(
        instance: &'static Instance<half::bf16>,
        input: &CostInput,
        microseconds: f64,
        most: f64,
        place: usize,
    ) -> Option<Self> {
        let candidate = by_model(instance, input, 0.0, most)?;
        Some(Self {
            place,
            nth: instance.nth,
            error: (microseconds / candidate.clocks).ln() as f32,
            is_least: false,
        })
    }

    /// Whether the error tells something of an instance with this average error, at a problem with this mean.
    fn counts(&self, mean: f32, average: f32) -> bool {
        !self.is_least || self.error - mean > average
    }
}

/// The table, for a device that it was measured on.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub(super) table: &'static Table,
    /// The device's index.
    pub(super) device: usize,
}

impl Measured {
    /// The table for devices of this name, if it was measured there.
    pub fn on(name: &str) -> Option<Self> {
        let is_named = |timed: &Timed| name.split(' ').any(|word| word == timed.name);
        let device = TIMED.iter().position(is_named);
        device.map(|device| Self {
            table: &HOPPER,
            device,
        })
    }

    /// Whether the table applies to the problem. Kernels were measured with a C of the operands' type and nothing
    /// fused: only then is the fixup allowed.
    pub fn applies_to(&self, input: &CostInput) -> bool {
        input.allows_fixup
    }

    /// The fastest of these instances at the problem. None if none of them was measured there, on this device.
    pub fn fastest<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
        input: &CostInput,
    ) -> Option<&'static Instance<T, Epi>> {
        let extents = [input.m, input.n, input.k];
        let place = self.table.places.get(&(self.device, extents))?;
        self.table.fastest_at(*place, instances)
    }

    /// The measured problems near a problem, on any device.
    pub fn near(&self, input: &CostInput) -> Neighbours {
        Neighbours {
            table: Some(self.table),
            weights: self.table.weights(input),
        }
    }
}

impl Table {
    fn read(timed: &[Timed]) -> Self {
        let mut table = Table {
            places: HashMap::new(),
            at: [(); 3].map(|()| Vec::new()),
            at_lines: Vec::new(),
            fastest_first: Vec::new(),
            errors: Vec::new(),
        };
        let names = BF16.iter().map(|it| any_type(it.name()));
        let all: HashMap<_, _> = names.zip(BF16).collect();
        let mut found = Vec::new();
        for (device, Timed { speed, times, .. }) in timed.iter().enumerate() {
            let generations = generations(times).map(|names| {
                let instances = names.iter().filter_map(|name| all.get(name).copied());
                instances.collect::<Vec<_>>()
            });
            for line in lines(times) {
                let place = table.fastest_first.len();
                let input = line.input(*speed);
                let errors = line.times.iter().filter_map(|&(name, microseconds)| {
                    Found::of(all.get(name)?, &input, microseconds, f64::INFINITY, place)
                });
                let before = found.len();
                found.extend(errors);
                let measured: Vec<_> = found[before..].iter().map(|found| found.nth).collect();
                found.extend(left_out(&line, &input, &found[before..], &generations));
                table.fastest_first.push(measured);
                table.places.insert((device, line.extents), place);
                table.at_lines.push(starts_at_lines(line.extents));
                for (at, logarithm) in table.at.iter_mut().zip(logarithms(line.extents)) {
                    at.push(logarithm);
                }
            }
        }
        table.enter(&found);
        table
    }

    /// Enters the model's errors. The mean of a problem depends on which instances were measured there, and the average
    /// of an instance on the problems where it was: each is taken of what the other one leaves.
    fn enter(&mut self, found: &[Found]) {
        let problems = self.fastest_first.len();
        let instances = found.iter().map(|it| it.nth + 1).max().unwrap_or(0);
        let mut averages = vec![0.0; instances];
        let mut means = vec![0.0; problems];
        for _ in 0..ROUNDS {
            let measured = found.iter().filter(|it| !it.is_least);
            let left = measured.map(|it| (it.place, it.error - averages[it.nth]));
            means = mean_of_each(problems, 0.0, left);
            let left = left_of_each(found, &means, &averages);
            let left = left.map(|(it, left)| (it.nth, left));
            averages = mean_of_each(instances, DRAWN_BY, left);
        }
        self.errors = vec![Errors::default(); instances];
        for (errors, average) in self.errors.iter_mut().zip(&averages) {
            errors.average = *average;
        }
        for (it, left) in left_of_each(found, &means, &averages) {
            self.errors[it.nth].at.push((it.place, left));
        }
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

    /// The weight of the problem at each place for a problem: 0 unless it is near.
    fn weights(&self, input: &CostInput) -> Vec<f32> {
        let extents = [input.m, input.n, input.k];
        let (here, at_lines) = (logarithms(extents), starts_at_lines(extents));
        let weight = |place: usize| {
            let apart = array::from_fn(|i| self.at[i][place] - here[i]);
            let [m, n, k]: [f32; 3] = apart;
            // About e^(−square), and 0 where e^(−square) is small.
            let weight = (1.0 - (m * m + n * n + k * k) / (FAR * FAR)).max(0.0);
            let weight = (weight * weight) * (weight * weight);
            let weight = match self.at_lines[place] == at_lines {
                true => weight,
                false => OTHER_LINES * weight,
            };
            if weight > LEAST_WEIGHT { weight } else { 0.0 }
        };
        (0..self.at_lines.len()).map(weight).collect()
    }
}

/// The errors that count, and what the means of their places leave of them.
fn left_of_each<'a>(
    found: &'a [Found],
    means: &[f32],
    averages: &[f32],
) -> impl Iterator<Item = (&'a Found, f32)> {
    let counted = found
        .iter()
        .filter(|it| it.counts(means[it.place], averages[it.nth]));
    counted.map(|it| (it, it.error - means[it.place]))
}

/// The least errors of the instances that a line leaves out, of those of its generation: they took longer than its last
/// one. `measured` are the errors of those that it has.
fn left_out(
    line: &Line,
    input: &CostInput,
    measured: &[Found],
    generations: &[Vec<&'static Instance<half::bf16>>; GENERATIONS.len() + 1],
) -> Vec<Found> {
    let (Some(&(_, slowest)), Some(first)) = (line.times.last(), measured.first()) else {
        return Vec::new();
    };
    let mean = measured.iter().map(|it| it.error).sum::<f32>() / measured.len() as f32;
    let most = NOT_NEWS * slowest / f64::from(mean).exp();
    let others = generations[line.generation].iter();
    let others = others.filter(|it| measured.iter().all(|measured| measured.nth != it.nth));
    let found = others.filter_map(|it| {
        let found = Found::of(it, input, slowest, most, first.place)?;
        Some(Found {
            is_least: true,
            ..found
        })
    });
    found.collect()
}

/// The names of the instances of each generation that were measured.
pub(super) fn generations(times: &'static str) -> [HashSet<&'static str>; GENERATIONS.len() + 1] {
    let mut names = <[HashSet<_>; _]>::default();
    for line in lines(times) {
        names[line.generation].extend(line.times.iter().map(|(name, _)| *name));
    }
    names
}

/// The mean of the numbers with each index. `zeros` of them are 0 besides.
fn mean_of_each(count: usize, zeros: f32, numbers: impl Iterator<Item = (usize, f32)>) -> Vec<f32> {
    let mut sums = vec![(0.0, zeros); count];
    for (index, number) in numbers {
        sums[index].0 += number;
        sums[index].1 += 1.0;
    }
    let means = sums.into_iter().map(|(sum, count)| match count {
        0.0 => 0.0,
        _ => sum / count,
    });
    means.collect()
}

/// Whether rows of packed operands of 16 bits start at cache lines. Those that TMA cannot read are copied to rows that
/// do.
fn starts_at_lines(extents: [usize; 3]) -> bool {
    CostInput::plain(extents, H200).lines == [1; 2]
}

/// Words of lines, each of which stands for a later generation of instances: since instances can stream tiles, since
/// one kernel serves several clusters, and since it serves more of them. A line has no times of instances of later
/// generations than its own.
const GENERATIONS: [&str; 3] = ["streams", "clusters", "more-clusters"];

/// A line of a table.
pub(super) struct Line {
    pub(super) extents: [usize; 3],
    /// How many of the [`GENERATIONS`] of instances there were.
    pub(super) generation: usize,
    /// Instances, without the element type, and microseconds.
    pub(super) times: Vec<(&'static str, f64)>,
}

impl Line {
    /// The problem as it was measured, on a device of this speed.
    pub(super) fn input(&self, speed: DeviceSpeed) -> CostInput {
        CostInput {
            allows_streams: self.generation > 0,
            ..CostInput::plain(self.extents, speed)
        }
    }
}

pub(super) fn lines(times: &'static str) -> impl Iterator<Item = Line> {
    times.lines().filter_map(|line| {
        let mut words = line.split(' ').peekable();
        let mut extent = || words.next()?.parse().ok();
        let extents = [extent()?, extent()?, extent()?];
        let generations = GENERATIONS.iter();
        let generation = generations
            .take_while(|word| words.next_if_eq(*word).is_some())
            .count();
        let times = words.filter_map(|word| {
            let (name, microseconds) = word.split_once('=')?;
            Some((name, microseconds.parse().ok()?))
        });
        Some(Line {
            extents,
            generation,
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
    /// The weight of the problem at each place of the table: 0 unless it is near.
    pub(super) weights: Vec<f32>,
}

impl Neighbours {
    /// Of these instances, the fastest at the nearest problem. None if no problem is near.
    pub fn likely<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
    ) -> Option<&'static Instance<T, Epi>> {
        let weights = self.weights.iter().enumerate();
        let near = weights.filter(|(_, weight)| **weight > 0.0);
        let (nearest, _) = near.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        self.table?.fastest_at(nearest, instances)
    }

    /// The factor that corrects the model's time of an instance. It assumes that the model is right on average over all
    /// instances.
    pub fn factor<T, Epi>(&self, instance: &Instance<T, Epi>) -> f64 {
        let nothing = Errors::default();
        let known = self.table.and_then(|table| table.errors.get(instance.nth));
        let known = known.unwrap_or(&nothing);
        let mut sum = AVERAGE_WEIGHT * known.average + DOUBT;
        let mut weights = AVERAGE_WEIGHT;
        for &(place, error) in &known.at {
            sum += self.weights[place] * error;
            weights += self.weights[place];
        }
        f64::from(sum / weights).exp()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The text of each device's table.
    pub fn times() -> [&'static str; 2] {
        TIMED.each_ref().map(|timed| timed.times)
    }

    /// What was measured, by the device's speed and place.
    pub fn measured() -> impl Iterator<Item = (Measured, DeviceSpeed, usize, Line)> {
        let of_device = |(device, timed): (usize, &'static Timed)| {
            let table = &*HOPPER;
            let all = lines(timed.times);
            all.map(move |line| (Measured { table, device }, timed.speed, line))
        };
        let all = TIMED.iter().enumerate().flat_map(of_device);
        all.enumerate()
            .map(|(place, (measured, speed, line))| (measured, speed, place, line))
    }

    #[test]
    fn every_line_names_existing_instances() {
        for Timed { times, .. } in &TIMED {
            let mut count = 0;
            for (line, text) in lines(times).zip(times.lines()) {
                let [m, n, k] = line.extents;
                assert!(text.starts_with(&format!("{m} {n} {k} ")), "{text}");
                let words = 3 + line.generation;
                assert_eq!(line.times.len(), text.split(' ').count() - words, "{text}");
                let microseconds = line.times.iter().map(|(_, microseconds)| *microseconds);
                assert!(microseconds.clone().is_sorted(), "{text}");
                for (name, microseconds) in line.times {
                    assert!(
                        BF16.iter().any(|it| any_type(it.name()) == name),
                        "{name}: {text}"
                    );
                    assert!(microseconds > 0.0, "{text}");
                }
                count += 1;
            }
            assert!(count > 50);
        }
    }

    #[test]
    fn neighbours_correct_the_model() {
        let instance = |name: &str| BF16.iter().find(|it| it.name() == name).unwrap();
        let factor = |extents, name| {
            let input = CostInput::plain(extents, H200);
            let measured = Measured::on("NVIDIA H200").unwrap();
            measured.near(&input).factor(instance(name))
        };
        let (near, far) = ([520, 512, 8192], [1, 64, 1 << 24]);
        let name = "bf16_64x64x64_1x1_ws";
        assert_ne!(factor(near, name), factor(far, name));
        // Only instances for K-major operands were measured. Of the others, nothing is known at any problem.
        let unknown = "bf16_64x64x64_1x1_ws_mm";
        assert_eq!(factor(near, unknown), factor(far, unknown));
        for known in ["NVIDIA H200", "NVIDIA H100 80GB HBM3"] {
            assert!(Measured::on(known).is_some(), "{known}");
        }
        for other in ["NVIDIA A100-SXM4-40GB", "NVIDIA H20", "cpu"] {
            assert!(Measured::on(other).is_none(), "{other}");
        }
    }
}
