//! `cargo xtask measured`: times of instances, from the results of `cutlet bench gemm --instances`, to where the choice
//! among them finds them.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::process::Outcome;

/// What the choice reads: lines of m, n and k, and of instances with their microseconds.
const TIMES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../src/gemm/choose/measured.txt"
);
/// The element type whose times are kept.
const DTYPE: &str = "bf16";
/// How many times as long as the fastest an instance may take to be kept.
const MOST: f64 = 1.3;

/// Instances, without the element type, and microseconds, by m, n and k.
type Times = BTreeMap<[u64; 3], Vec<(String, f64)>>;

/// Takes the times of all shapes in these files. A run of some instances alone leaves the times of the others, which may be
/// another device's: its own are brought to theirs.
pub fn run(results: &[String]) -> Outcome {
    let mut times = written(&read(TIMES)?)?;
    let mut count = 0;
    for path in results {
        let results =
            serde_json::from_str(&read(path)?).map_err(|error| format!("{path}: {error}"))?;
        let found = found(&results);
        if found.is_empty() {
            return Err(format!(
                "{path} has no times of instances: make it with `cutlet bench gemm --instances --dtype {DTYPE}`"
            ));
        }
        for (extents, new) in found {
            let known = times.entry(extents).or_default();
            match together(known, &new) {
                Some(all) => {
                    *known = all;
                    count += 1;
                }
                None => println!("left {extents:?}: it has no instance that is known there"),
            }
        }
    }
    fs::write(TIMES, text(&times)).map_err(|error| format!("{TIMES}: {error}"))?;
    println!("{count} shapes were taken; {} are known", times.len());
    Ok(())
}

fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// The times in a text, as it was written.
fn written(text: &str) -> Outcome<Times> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut extent = || words.next()?.parse().ok();
        let extents = [extent()?, extent()?, extent()?];
        let times = words.map(|word| {
            let (name, microseconds) = word.split_once('=')?;
            Some((name.to_string(), microseconds.parse().ok()?))
        });
        Some((extents, times.collect::<Option<Vec<_>>>()?))
    };
    let lines = text.lines();
    let times = lines.map(|text| line(text).ok_or(format!("`{text}` is no line of times")));
    times.collect()
}

/// The text of times, the fastest of each shape first.
fn text(times: &Times) -> String {
    let mut text = String::new();
    for ([m, n, k], times) in times {
        let mut times = times.clone();
        times.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        text.push_str(&format!("{m} {n} {k}"));
        let best = times.first().map_or(0.0, |(_, best)| *best);
        for (name, microseconds) in times {
            if microseconds <= MOST * best {
                text.push_str(&format!(" {name}={microseconds:.2}"));
            }
        }
        text.push('\n');
    }
    text
}

/// The times of a shape, known ones and new ones: the new ones if they are of all instances that are known. Else they are
/// brought to the known ones by the instances that both have, which get the mean of both times; nothing can be said if there
/// is none.
fn together(known: &[(String, f64)], new: &[(String, f64)]) -> Option<Vec<(String, f64)>> {
    let time = |times: &[(String, f64)], name: &str| {
        let found = times.iter().find(|(other, _)| other == name);
        found.map(|(_, microseconds)| *microseconds)
    };
    let longer = |(name, known): &(String, f64)| Some((known / time(new, name)?).ln());
    let longer: Vec<f64> = known.iter().filter_map(longer).collect();
    if longer.len() == known.len() {
        return Some(new.to_vec());
    }
    let mean = (longer.iter().sum::<f64>() / longer.len() as f64).exp();
    let lacking = known.iter().filter(|(name, _)| time(new, name).is_none());
    let brought = new.iter().map(|(name, microseconds)| {
        let brought = microseconds * mean;
        let known = time(known, name).unwrap_or(brought);
        (name.clone(), (known * brought).sqrt())
    });
    (!longer.is_empty()).then(|| lacking.cloned().chain(brought).collect())
}

/// The times in results: of plain products in one layout.
fn found(results: &Value) -> Times {
    let rows = results["rows"].as_array().into_iter().flatten();
    let times = rows.filter_map(|row| {
        let shape = row["shape"].as_str()?;
        let plain = format!("gemm {DTYPE} {}", shape.replace(' ', "x"));
        if row["id"].as_str()? != plain {
            return None;
        }
        let mut extents = shape.split(' ').map(|extent| extent.parse().ok());
        let mut extent = || extents.next().flatten();
        let extents = [extent()?, extent()?, extent()?];
        let contestants = row["contestants"].as_array().into_iter().flatten();
        let times = contestants.filter_map(|contestant| {
            if contestant["role"].as_str()? != "instance" {
                return None;
            }
            let (_, name) = contestant["name"].as_str()?.split_once('_')?;
            let microseconds = contestant["microseconds"]["median"].as_f64()?;
            Some((name.to_string(), microseconds))
        });
        let times: Vec<_> = times.collect();
        (!times.is_empty()).then_some((extents, times))
    });
    times.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_written_the_same() {
        let written_before = fs::read_to_string(TIMES).unwrap();
        assert_eq!(text(&written(&written_before).unwrap()), written_before);
        for wrong in ["1 2", "1 2 x a=1", "1 2 3 a"] {
            assert!(written(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_of_some_instances_are_brought_to_those_of_the_others() {
        let times = |times: &[(&str, f64)]| -> Vec<_> {
            times
                .iter()
                .map(|(name, time)| (name.to_string(), *time))
                .collect()
        };
        let known = times(&[("a", 1.0), ("b", 2.0), ("c", 3.0)]);
        let mut found = together(&known, &times(&[("b", 4.0), ("new", 5.0)])).unwrap();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        assert_eq!(
            found,
            times(&[("a", 1.0), ("b", 2.0), ("c", 3.0), ("new", 2.5)])
        );
        assert_eq!(together(&known, &times(&[("new", 5.0)])), None);
        // What both have took four times as long in the new run on average, a sixteen times: each is met halfway.
        let differing = times(&[("a", 16.0), ("b", 2.0), ("new", 5.0)]);
        let found = together(&known, &differing).unwrap();
        let rounded = found
            .iter()
            .map(|(name, time)| (name.as_str(), (time * 1e6).round() / 1e6));
        assert_eq!(
            rounded.collect::<Vec<_>>(),
            [("c", 3.0), ("a", 2.0), ("b", 1.0), ("new", 1.25)]
        );

        let all = times(&[("a", 2.0), ("b", 4.0), ("c", 5.0), ("new", 5.0)]);
        assert_eq!(together(&known, &all), Some(all.clone()));
        assert_eq!(together(&[], &all), Some(all.clone()));
    }

    #[test]
    fn times_of_instances_are_found_in_results() {
        let contestant = |name: &str, role: &str, median: f64| serde_json::json!({"name": name, "role": role, "microseconds": {"median": median}});
        let row = |id: &str| {
            let contestants = [
                contestant("cutlet", "cutlet", 3.0),
                contestant("bf16_b", "instance", 3.5),
                contestant("bf16_a", "instance", 3.0),
                contestant("bf16_c", "instance", 4.0),
            ];
            serde_json::json!({"id": id, "shape": "1 2 3", "contestants": contestants})
        };
        let times = found(&serde_json::json!({"rows": [row("gemm bf16 1x2x3")]}));
        assert_eq!(text(&times), "1 2 3 a=3.00 b=3.50\n");
        for id in [
            "gemm f16 1x2x3",
            "gemm bf16 1x2x3 nn",
            "gemm bf16 1x2x3 bias",
        ] {
            assert!(
                found(&serde_json::json!({"rows": [row(id)]})).is_empty(),
                "{id}"
            );
        }
    }
}
