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

use super::problem_key::{ProblemKey, end, value};
use super::{DeviceRates, TunedDevice, Tuning, TuningEntry, Versions, refused, refused_line};
use crate::Result;

/// The format that this module reads and writes.
const FORMAT: &str = "1";

/// Writes the text of a tuning.
pub fn write(tuning: &Tuning) -> String {
    let Tuning {
        made_with,
        device,
        rates,
        entries,
        ..
    } = tuning;
    let mut text = format!(
        "# written by `cutlet tune`\nformat={FORMAT}\ncutlet={}\nkernels={}\ndevice={}\nmultiprocessors={}\ncuda={}\n",
        made_with.cutlet, made_with.kernels, device.name, device.multiprocessors, device.cuda
    );
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
    let mut lines = Lines::new(text, path);
    match lines.next_value("format")? {
        FORMAT => {}
        other => {
            return Err(lines.refused(format!(
                "its format is {other}, and this version of cutlet reads format {FORMAT}; use the version that wrote it"
            )));
        }
    }
    let made_with = Versions {
        cutlet: lines.next_value("cutlet")?.to_string(),
        kernels: lines.next_value("kernels")?.to_string(),
    };
    let device = TunedDevice {
        name: lines.next_value("device")?.to_string(),
        multiprocessors: lines.next_count("multiprocessors")?,
        cuda: lines.next_value("cuda")?.to_string(),
    };
    let rates = DeviceRates {
        memory_gigabytes: lines.next_rate("memory-gigabytes")?,
        l2_gigabytes: lines.next_rate("l2-gigabytes")?,
        loaded_megahertz: lines.next_rate("loaded-megahertz")?,
    };
    let mut tuning = Tuning {
        path: Some(path.to_path_buf()),
        made_with,
        device,
        rates,
        entries: Vec::new(),
    };
    let mut known = HashSet::new();
    while let Some(line) = lines.next() {
        let entry = entry(line).map_err(|found| lines.refused(restore(found)))?;
        if !known.insert(entry.problem) {
            let twice = "the problem has another entry above; remove one of them";
            return Err(lines.refused(twice.to_string()));
        }
        tuning.entries.push(entry);
    }
    Ok(tuning)
}

fn entry(line: &str) -> Result<TuningEntry, String> {
    let mut words = line.split_whitespace();
    let problem = ProblemKey::read(&mut words)?;
    let kernel = value(&mut words, "kernel")?;
    let microseconds = value(&mut words, "microseconds")?;
    end(&mut words)?;
    Ok(TuningEntry {
        problem,
        kernel: kernel.to_string(),
        microseconds: positive("microseconds", microseconds)?,
    })
}

fn positive(name: &str, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!("{name} is `{text}`, which is no number above 0")),
    }
}

/// What was found, with what to do.
fn restore(found: String) -> String {
    format!("{found}; restore the file, or make it again with `cutlet tune`")
}

/// The lines of a file that say something, one after the other.
struct Lines<'a> {
    lines: std::iter::Peekable<Box<dyn Iterator<Item = (usize, &'a str)> + 'a>>,
    path: &'a Path,
    /// The number of the line that was read last.
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, path: &'a Path) -> Self {
        let numbered = text.lines().enumerate();
        let numbered = numbered.map(|(before, line)| (before + 1, line.trim()));
        let lines = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let lines: Box<dyn Iterator<Item = _>> = Box::new(lines);
        Lines {
            lines: lines.peekable(),
            path,
            number: 0,
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        let (number, line) = self.lines.next()?;
        self.number = number;
        Some(line)
    }

    /// The error about the line that was read last.
    fn refused(&self, found: String) -> crate::Error {
        refused_line(self.path, self.number, found)
    }

    /// The value in the next line, which is `name=value`.
    fn next_value(&mut self, name: &str) -> Result<&'a str> {
        let Some(line) = self.next() else {
            let found = format!("it ends where `{name}=…` belongs");
            return Err(refused(self.path, restore(found)));
        };
        match line.split_once('=') {
            Some((found, value)) if found == name => Ok(value),
            _ => {
                let found = format!("`{line}` was found where `{name}=…` belongs");
                Err(self.refused(restore(found)))
            }
        }
    }

    fn next_count(&mut self, name: &str) -> Result<u32> {
        let text = self.next_value(name)?;
        match text.parse() {
            Ok(count) if count > 0 => Ok(count),
            _ => {
                let found = format!("{name} is `{text}`, which is no whole number above 0");
                Err(self.refused(restore(found)))
            }
        }
    }

    /// The number in the next line, if that line is `name=number`.
    fn next_rate(&mut self, name: &str) -> Result<Option<f64>> {
        let of_name = |(_, line): &(usize, &str)| {
            let (found, _) = line.split_once('=').unwrap_or_default();
            found == name
        };
        if !self.lines.peek().is_some_and(of_name) {
            return Ok(None);
        }
        let text = self.next_value(name)?;
        positive(name, text)
            .map(Some)
            .map_err(|found| self.refused(restore(found)))
    }
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
