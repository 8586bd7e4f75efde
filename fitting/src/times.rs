//! The times: how long instances took at some problems, on some devices.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;

use cutlet::__choice::{CostInput, DeviceSpeed, H100, H200, extents};

use crate::Outcome;

/// The times of a device.
struct Times {
    /// The name of the file without its extension.
    name: &'static str,
    speed: DeviceSpeed,
    /// Lines as `cargo xtask measured` writes them: m, n and k, and instances with microseconds. Instances that are
    /// missing in a line are slower by far, or were not measured.
    lines: &'static str,
}
static TIMES: [Times; 2] = [
    Times {
        name: "h200",
        speed: H200,
        lines: include_str!("../tables/h200.txt"),
    },
    Times {
        name: "h100",
        speed: H100,
        lines: include_str!("../tables/h100.txt"),
    },
];

/// How many of a problem's fastest instances the library has: a list of instances may lack some of them.
const KEPT: usize = 2;

/// Words of lines. Each stands for what has changed since the lines without it:
///
/// - `streams`: instances can stream tiles.
/// - `clusters`: some kernels serve several clusters.
/// - `any`: most kernels serve any cluster of up to eight blocks.
/// - `graphs`: short runs are looked at in graphs, so that no fast instance is missing.
///
/// A line has no times of later instances.
pub const GENERATIONS: [&str; 4] = ["streams", "clusters", "any", "graphs"];

/// A line of a table.
pub struct Line {
    pub extents: [usize; 3],
    /// How many of the [`GENERATIONS`] of instances there were.
    pub generation: usize,
    /// The text of the times.
    times: &'static str,
}

impl Line {
    /// Instances, without the element type, and microseconds, the fastest first.
    pub fn times(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.times.split(' ').filter_map(|word| {
            let (name, microseconds) = word.split_once('=')?;
            Some((name, microseconds.parse().ok()?))
        })
    }

    /// The problem as it was measured, on a device of this speed.
    pub fn input(&self, speed: DeviceSpeed) -> CostInput {
        CostInput {
            allows_streams: self.generation > 0,
            ..CostInput::plain(self.extents, speed)
        }
    }
}

pub fn lines(times: &'static str) -> impl Iterator<Item = Line> {
    times.lines().filter_map(|line| {
        let (extents, mut line) = extents(line)?;
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

/// The text of each device's times.
pub fn times() -> [&'static str; 2] {
    TIMES.each_ref().map(|times| times.lines)
}

/// What was measured: the device's index, its speed, and a line.
pub fn measured() -> impl Iterator<Item = (usize, DeviceSpeed, Line)> {
    let of_device = |(device, times): (usize, &'static Times)| {
        lines(times.lines).map(move |line| (device, times.speed, line))
    };
    TIMES.iter().enumerate().flat_map(of_device)
}

/// The names of the instances of each generation that were measured.
pub fn generations(times: &'static str) -> [HashSet<&'static str>; GENERATIONS.len() + 1] {
    let mut names = <[HashSet<_>; _]>::default();
    for line in lines(times) {
        names[line.generation].extend(line.times().map(|(name, _)| name));
    }
    names
}

/// Writes the fastest instances of each device to files in this folder.
pub fn write_fastest(folder: &str) -> Outcome {
    for times in &TIMES {
        let path = format!("{folder}/{}.txt", times.name);
        fs::write(&path, fastest_of(times.lines)).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

/// The names of the fastest instances at each problem of these times, as the library has them.
fn fastest_of(times: &'static str) -> String {
    let mut text = String::new();
    for line in lines(times) {
        let [m, n, k] = line.extents;
        let names: Vec<_> = line.times().take(KEPT).map(|(name, _)| name).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{m} {n} {k} {}", names.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use cutlet::__choice::any_type;
    use cutlet_kernels::gemm::sm90::instances::BF16;

    use super::*;
    use crate::LIBRARY;

    #[test]
    fn the_library_has_the_fastest_of_the_times() {
        for times in &TIMES {
            let written = fs::read_to_string(format!("{LIBRARY}/fastest/{}.txt", times.name));
            let is_same = fastest_of(times.lines) == written.unwrap();
            assert!(is_same, "`cargo xtask measured --fit` writes them anew");
        }
    }
    #[test]
    fn every_line_names_existing_instances() {
        for times in times() {
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
}
