//! The table: measured times of kernels at some problems, on some devices. At these problems, the fastest is chosen. At
//! others, they tell how the model errs: the [correction](super::trees) is fitted to them.

use std::array;
use std::collections::HashMap;
use std::sync::LazyLock;

use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::instances::BF16;

use super::model::{CostInput, DeviceSpeed};

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
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the fit of the correction reads it")
    )]
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

/// What was measured.
#[derive(Debug)]
pub struct Table {
    /// The place of each problem on each device: its index in the other fields.
    places: HashMap<(usize, [usize; 3]), usize>,
    /// The problems' logarithms of m, n and k.
    at: Vec<[f32; 3]>,
    /// The fastest instances at each problem, the fastest first.
    fastest_first: Vec<Vec<usize>>,
}

/// Instances of a line that the table keeps: a list of instances may lack some of them.
const KEPT: usize = 4;

/// The table, for a device that it was measured on.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    table: &'static Table,
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

    /// Of these instances, the fastest at the nearest problem, on any device. None if none of them was measured there.
    pub fn likely<T, Epi>(
        &self,
        instances: &[&'static Instance<T, Epi>],
        input: &CostInput,
    ) -> Option<&'static Instance<T, Epi>> {
        let here = logarithms([input.m, input.n, input.k]);
        let distance = |at: &[f32; 3]| {
            let [m, n, k] = array::from_fn(|i| at[i] - here[i]);
            m * m + n * n + k * k
        };
        let distances = self.table.at.iter().map(distance).enumerate();
        let (nearest, _) = distances.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        self.table.fastest_at(nearest, instances)
    }
}

impl Table {
    fn read(timed: &[Timed]) -> Self {
        let names = BF16.iter().map(|it| any_type(it.name()));
        let all: HashMap<_, _> = names.zip(BF16.iter().map(|it| it.nth)).collect();
        let mut table = Table {
            places: HashMap::new(),
            at: Vec::new(),
            fastest_first: Vec::new(),
        };
        for (device, timed) in timed.iter().enumerate() {
            for line in lines(timed.times) {
                let instances = line.times().filter_map(|(name, _)| all.get(name));
                let place = table.at.len();
                table.places.insert((device, line.extents), place);
                table.at.push(logarithms(line.extents));
                table
                    .fastest_first
                    .push(instances.take(KEPT).copied().collect());
            }
        }
        table
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

fn logarithms(extents: [usize; 3]) -> [f32; 3] {
    extents.map(|extent| (extent as f32).ln())
}

/// Words of lines. Each stands for what has changed since the lines without it:
///
/// - `streams`: instances can stream tiles.
/// - `clusters`: some kernels serve several clusters.
/// - `any`: most kernels serve any cluster of up to eight blocks.
/// - `graphs`: short runs are looked at in graphs, so that no fast instance is missing.
///
/// A line has no times of later instances.
pub(super) const GENERATIONS: [&str; 4] = ["streams", "clusters", "any", "graphs"];

/// A line of a table.
pub(super) struct Line {
    pub(super) extents: [usize; 3],
    /// How many of the [`GENERATIONS`] of instances there were.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the fit of the correction reads it")
    )]
    pub(super) generation: usize,
    /// The text of the times.
    times: &'static str,
}

impl Line {
    /// Instances, without the element type, and microseconds, the fastest first.
    pub(super) fn times(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.times.split(' ').filter_map(|word| {
            let (name, microseconds) = word.split_once('=')?;
            Some((name, microseconds.parse().ok()?))
        })
    }

    /// The problem as it was measured, on a device of this speed.
    #[cfg(test)]
    pub(super) fn input(&self, speed: DeviceSpeed) -> CostInput {
        CostInput {
            allows_streams: self.generation > 0,
            ..CostInput::plain(self.extents, speed)
        }
    }
}

pub(super) fn lines(times: &'static str) -> impl Iterator<Item = Line> {
    times.lines().filter_map(|mut line| {
        let mut extent = || {
            let (word, rest) = line.split_once(' ')?;
            line = rest;
            word.parse().ok()
        };
        let extents = [extent()?, extent()?, extent()?];
        let mut generation = 0;
        for word in GENERATIONS {
            let rest = line.strip_prefix(word);
            let Some(rest) = rest.and_then(|rest| rest.strip_prefix(' ')) else {
                break;
            };
            line = rest;
            generation += 1;
        }
        Some(Line {
            extents,
            generation,
            times: line,
        })
    })
}

/// The name of an instance without its element type.
pub(super) fn any_type(name: &'static str) -> &'static str {
    name.split_once('_').map_or(name, |(_, rest)| rest)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The text of each device's table.
    pub fn times() -> [&'static str; 2] {
        TIMED.each_ref().map(|timed| timed.times)
    }

    /// What was measured, and the device's speed.
    pub fn measured() -> impl Iterator<Item = (Measured, DeviceSpeed, Line)> {
        let of_device = |(device, timed): (usize, &'static Timed)| {
            let table = &*HOPPER;
            let all = lines(timed.times);
            all.map(move |line| (Measured { table, device }, timed.speed, line))
        };
        TIMED.iter().enumerate().flat_map(of_device)
    }

    /// The names of the instances of each generation that were measured.
    pub fn generations(times: &'static str) -> [HashSet<&'static str>; GENERATIONS.len() + 1] {
        let mut names = <[HashSet<_>; _]>::default();
        for line in lines(times) {
            names[line.generation].extend(line.times().map(|(name, _)| name));
        }
        names
    }

    #[test]
    fn every_line_names_existing_instances() {
        for Timed { times, .. } in &TIMED {
            let mut count = 0;
            for (line, text) in lines(times).zip(times.lines()) {
                let [m, n, k] = line.extents;
                assert!(text.starts_with(&format!("{m} {n} {k} ")), "{text}");
                let words = 3 + line.generation;
                assert_eq!(
                    line.times().count(),
                    text.split(' ').count() - words,
                    "{text}"
                );
                let microseconds = line.times().map(|(_, microseconds)| microseconds);
                assert!(microseconds.is_sorted(), "{text}");
                for (name, microseconds) in line.times() {
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
    fn devices_are_known_by_a_word_of_their_name() {
        for known in ["NVIDIA H200", "NVIDIA H100 80GB HBM3"] {
            assert!(Measured::on(known).is_some(), "{known}");
        }
        for other in ["NVIDIA A100-SXM4-40GB", "NVIDIA H20", "cpu"] {
            assert!(Measured::on(other).is_none(), "{other}");
        }
    }
}
