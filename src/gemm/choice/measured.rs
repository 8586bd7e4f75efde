//! The table: the fastest kernels at some problems, on some devices. At these problems, the fastest is chosen.

use std::array;
use std::collections::HashMap;
use std::sync::LazyLock;

use cutlet_kernels::gemm::sm90::instances::BF16;
use cutlet_kernels::gemm::sm90::kernel_traits::KernelTraits;

use super::cost::CostInput;
use super::device_speed::DeviceSpeed;

/// What the driver states of an H200.
pub const H200: DeviceSpeed = DeviceSpeed {
    multiprocessors: 132,
    memory_rate: 18.81,
    clusters: [132, 66, 30, 15],
    clock: 1.98e9,
};
/// What the driver states of an H100 with HBM3.
pub const H100: DeviceSpeed = DeviceSpeed {
    memory_rate: 12.83,
    ..H200
};

/// How far the rate of a device's memory may be from that of the device that was measured.
const SAME_RATE: f64 = 0.1;

/// A device that instances were timed on.
struct Timed {
    /// What the driver states of it. A device that states the same is taken for the same, whatever its name is.
    speed: DeviceSpeed,
    /// Lines of the problem's m, n and k, and of the fastest instances, the fastest first. `cargo xtask measured` makes
    /// them from all times, which only the fit of the correction needs.
    fastest: &'static str,
}
static TIMED: [Timed; 2] = [
    Timed {
        speed: H200,
        fastest: include_str!("fastest/h200.txt"),
    },
    Timed {
        speed: H100,
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

/// The table, for a device.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    table: &'static Table,
    /// The device's index, if kernels were measured on such a device.
    device: Option<usize>,
}

impl Measured {
    /// The table for a device of this speed.
    pub fn on(speed: DeviceSpeed) -> Self {
        let is_same = |timed: &Timed| {
            timed.speed.multiprocessors == speed.multiprocessors
                && (speed.memory_rate / timed.speed.memory_rate - 1.0).abs() < SAME_RATE
        };
        Self {
            table: &HOPPER,
            device: TIMED.iter().position(is_same),
        }
    }

    /// The fastest of these instances at the problem. None if none of them was measured there, on this device.
    pub fn fastest(
        &self,
        instances: &[&'static KernelTraits],
        input: &CostInput,
    ) -> Option<&'static KernelTraits> {
        let extents = [input.m, input.n, input.k];
        let place = self.table.places.get(&(self.device?, extents))?;
        self.table.fastest_at(*place, instances)
    }

    /// Of these instances, the fastest at the nearest problem, on any device. None if none of them was measured there.
    pub fn likely(
        &self,
        instances: &[&'static KernelTraits],
        input: &CostInput,
    ) -> Option<&'static KernelTraits> {
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
        let all: HashMap<_, _> = names.zip(BF16.iter().map(|it| it.traits.nth)).collect();
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
    fn fastest_at(
        &self,
        place: usize,
        instances: &[&'static KernelTraits],
    ) -> Option<&'static KernelTraits> {
        let which = |&nth: &usize| instances.iter().find(|it| it.nth == nth).copied();
        self.fastest_first[place].iter().find_map(which)
    }
}

fn logarithms(extents: [usize; 3]) -> [f32; 3] {
    extents.map(|extent| (extent as f32).ln())
}

/// A line's m, n and k, and its rest.
pub fn extents(mut line: &str) -> Option<([usize; 3], &str)> {
    let mut extent = || {
        let (word, rest) = line.split_once(' ')?;
        line = rest;
        word.parse().ok()
    };
    let extents = [extent()?, extent()?, extent()?];
    Some((extents, line))
}

/// The name of an instance without its element type.
pub fn any_type(name: &'static str) -> &'static str {
    name.split_once('_').map_or(name, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_their_speed() {
        for (index, timed) in TIMED.iter().enumerate() {
            assert_eq!(Measured::on(timed.speed).device, Some(index));
        }
        let pcie = DeviceSpeed {
            multiprocessors: 114,
            ..H100
        };
        let slower = DeviceSpeed {
            memory_rate: 10.0,
            ..H100
        };
        for other in [pcie, slower] {
            assert_eq!(Measured::on(other).device, None, "{other:?}");
        }
    }

    #[test]
    fn every_line_names_instances_of_the_library() {
        let names: Vec<_> = BF16.iter().map(|it| any_type(it.name())).collect();
        for line in TIMED.iter().flat_map(|timed| timed.fastest.lines()) {
            let (_, fastest) = extents(line).expect("a line begins with m, n and k");
            let all_exist = fastest.split(' ').all(|name| names.contains(&name));
            assert!(
                all_exist,
                "{line}: `cargo xtask measured --fit` writes the table anew"
            );
        }
    }
}
