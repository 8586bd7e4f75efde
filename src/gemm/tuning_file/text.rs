//! The text of a tuning file: lines of the header, then a line for each entry. Reading is strict, so that a damaged
//! file is noticed.
//!
//! ```text
//! # written by `cutlet tune`
//! format=1
//! cutlet=0.1.0
//! kernels=5f0c2a9be3d84417
//! device=NVIDIA H200
//! multiprocessors=132
//! cuda=13.0
//! memory-gigabytes=4220
//! operands=bf16 c=bf16 … activation=none kernel=bf16_128x256x64_2x1_pingpong microseconds=183.2
//! ```

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use cutlet_host::tuning_file::{Damage, Header, Lines, kernel_and_time};

use super::problem_key::ProblemKey;
use super::{DeviceRates, Tuning, TuningEntry, refused, refused_line};
use crate::Result;

/// What to do about a damaged file.
const REMEDY: &str = "restore the file, or make it again with `cutlet tune`";

/// Writes the text of a tuning.
pub fn write(tuning: &Tuning) -> String {
    let Tuning {
        header,
        rates,
        entries,
        ..
    } = tuning;
    let mut text = header.write("`cutlet tune`");
    for (name, rate) in named(rates) {
        if let Some(rate) = rate {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name}={rate}");
        }
    }
    for TuningEntry {
        problem,
        kernel,
        microseconds,
    } in entries
    {
        let _ = writeln!(
            text,
            "{problem} kernel={kernel} microseconds={microseconds}"
        );
    }
    text
}

/// The names of the rates in the header, with their values.
fn named(rates: &DeviceRates) -> [(&'static str, Option<f64>); 3] {
    [
        ("memory-gigabytes", rates.memory_gigabytes),
        ("l2-gigabytes", rates.l2_gigabytes),
        ("loaded-megahertz", rates.loaded_megahertz),
    ]
}

/// Reads the text of the file at this path.
pub fn read(text: &str, path: &Path) -> Result<Tuning> {
    let tuning =
        content(&mut Lines::new(text, REMEDY)).map_err(|Damage { line, found }| match line {
            Some(line) => refused_line(path, line, found),
            None => refused(path, found),
        })?;
    Ok(Tuning {
        path: Some(path.to_path_buf()),
        ..tuning
    })
}

fn content(lines: &mut Lines<'_>) -> Result<Tuning, Damage> {
    let header = Header::read(lines)?;
    let rates = DeviceRates {
        memory_gigabytes: lines.next_rate("memory-gigabytes")?,
        l2_gigabytes: lines.next_rate("l2-gigabytes")?,
        loaded_megahertz: lines.next_rate("loaded-megahertz")?,
    };
    let mut entries: Vec<TuningEntry> = Vec::new();
    let mut known = HashSet::new();
    while let Some(line) = lines.next_line() {
        let entry = entry(line).map_err(|found| lines.unreadable(found))?;
        if !known.insert(entry.problem) {
            let twice = "the problem has another entry above; remove one of them";
            return Err(lines.damage(twice.to_string()));
        }
        entries.push(entry);
    }
    Ok(Tuning {
        path: None,
        header,
        rates,
        entries,
    })
}

fn entry(line: &str) -> Result<TuningEntry, String> {
    let mut words = line.split_whitespace();
    let problem = ProblemKey::read(&mut words)?;
    let (kernel, microseconds) = kernel_and_time(&mut words)?;
    Ok(TuningEntry {
        problem,
        kernel: kernel.to_string(),
        microseconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutlet_host::Device;

    const KEY: &str = "operands=f32 c=f32 precision=exact m=1 n=2 k=3 a=row b=col alignments=128,128,4 beta=0 \
                       bias=none residual=none activation=none";

    fn tuning() -> Tuning {
        let mut tuning = Tuning::new(&Device::cpu());
        tuning.set_rates(DeviceRates {
            memory_gigabytes: Some(4220.5),
            l2_gigabytes: None,
            loaded_megahertz: Some(1755.0),
        });
        for m in ["m=1", "m=7"] {
            tuning.insert(TuningEntry {
                problem: KEY.replace("m=1", m).parse().unwrap(),
                kernel: "some_kernel".to_string(),
                microseconds: 12.25,
            });
        }
        tuning
    }

    /// The error of this text in a file.
    fn refusal(text: &str) -> String {
        read(text, Path::new("my.tuning")).unwrap_err().to_string()
    }

    #[test]
    fn a_tuning_is_read_as_it_is_written() {
        let path = Path::new("my.tuning");
        let found = read(&write(&tuning()), path).unwrap();
        let written = Tuning {
            path: Some(path.to_path_buf()),
            ..tuning()
        };
        assert_eq!(found, written);
    }

    #[test]
    fn a_damaged_line_is_refused_with_its_number() {
        let right = write(&tuning());
        let lines: Vec<&str> = right.lines().collect();
        for (at, line) in lines.iter().enumerate().skip(1) {
            let mut damaged = lines.clone();
            let cut = &line[1..];
            damaged[at] = cut;
            let refused = refusal(&damaged.join("\n"));
            let place = format!("my.tuning, line {}: ", at + 1);
            assert!(refused.contains(&place), "{refused}");
            assert!(refused.contains("belongs"), "{refused}");
        }
        for (from, to, found) in [
            (
                "format=1",
                "format=2",
                "line 2: its format is 2, and this version",
            ),
            (
                "multiprocessors=",
                "multiprocessors=x",
                "line 6: multiprocessors is `x",
            ),
            (
                "memory-gigabytes=4220.5",
                "memory-gigabytes=-1",
                "line 8: memory-gigabytes is `-1`",
            ),
            (
                "microseconds=12.25",
                "microseconds=NaN",
                "line 10: microseconds is `NaN`",
            ),
            ("m=7", "m=1", "line 11: the problem has another entry above"),
            (
                "kernel=",
                "kern=",
                "line 10: `kern=some_kernel` was found where `kernel=…` belongs",
            ),
        ] {
            let refused = refusal(&right.replacen(from, to, 1));
            assert!(refused.contains(found), "{refused}");
        }
    }

    #[test]
    fn a_file_that_ends_early_is_refused() {
        for (text, found) in [
            ("", "it ends where `format=…` belongs"),
            (
                "format=1\ncutlet=0.1.0\n",
                "it ends where `kernels=…` belongs",
            ),
        ] {
            assert!(refusal(text).contains(found), "{}", refusal(text));
        }
        let right = write(&tuning());
        let cut = &right[..right.len() - 20];
        let refused = refusal(cut);
        assert!(
            refused.contains("my.tuning, line 11: the line ends where"),
            "{refused}"
        );
    }
}
