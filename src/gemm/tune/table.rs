//! The table: the fastest kernels at some problems, on some devices. At these problems, the fastest is chosen.

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

/// A device that instances were timed on.
struct Timed {
    /// A word of its name, as the driver states it: "NVIDIA H200".
    name: &'static str,
    /// Lines of the problem's m, n and k, and of the fastest instances, the fastest first. `cargo xtask measured` makes
    /// them from all times, which only the fit of the correction needs.
    fastest: &'static str,
}
static TIMED: [Timed; 2] = [
    Timed {
        name: "H200",
        fastest: include_str!("fastest/h200.txt"),
    },
    Timed {
        name: "H100",
        fastest: include_str!("fastest/h100.txt"),
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
            for (extents, names) in timed.fastest.lines().filter_map(extents) {
                let place = table.at.len();
                let instances = names.split(' ').filter_map(|name| all.get(name));
                table.places.insert((device, extents), place);
                table.at.push(logarithms(extents));
                table.fastest_first.push(instances.copied().collect());
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

/// A line's m, n and k, and its rest.
pub(super) fn extents(mut line: &str) -> Option<([usize; 3], &str)> {
    let mut extent = || {
        let (word, rest) = line.split_once(' ')?;
        line = rest;
        word.parse().ok()
    };
    let extents = [extent()?, extent()?, extent()?];
    Some((extents, line))
}

/// The name of an instance without its element type.
pub(super) fn any_type(name: &'static str) -> &'static str {
    name.split_once('_').map_or(name, |(_, rest)| rest)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What was measured on the device with this index.
    pub fn measured_on(device: usize) -> Measured {
        Measured {
            table: &HOPPER,
            device,
        }
    }

    /// The fastest instances on each device, as the library has them.
    pub fn fastest() -> [&'static str; 2] {
        TIMED.each_ref().map(|timed| timed.fastest)
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
