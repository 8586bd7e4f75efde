//! Compares the barriers of every compiled kernel with those in `barriers.txt`, which someone has looked at.
//!
//! Not every compiler knows that the threads of a warp must meet at a barrier. One may copy a barrier that follows a
//! branch into both sides, and the kernel hangs. So a kernel with another number of barriers than before is an error.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use crate::process::{Outcome, root};

/// What is counted: how the instructions begin.
const KINDS: [&str; 4] = [
    "bar.sync",
    "bar.arrive",
    "barrier.cluster.",
    "mbarrier.try_wait",
];

/// How often a kernel has each of [`KINDS`].
type Counts = [u32; KINDS.len()];

/// Minor and major number of a Rust release: `(1, 95)`.
type Release = (u32, u32);

/// A kernel and its target.
type Kernel = (String, String);

/// The barriers of all kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Barriers(BTreeMap<Kernel, Counts>);

impl Barriers {
    /// Adds those of a module's text.
    pub fn add(&mut self, target: &str, ptx: &str) {
        for entry in ptx.split(".entry ").skip(1) {
            let name = entry.split('(').next().unwrap_or_default();
            let kernel = (name.to_owned(), target.to_owned());
            self.0.insert(kernel, count(entry));
        }
    }
}

fn count(entry: &str) -> Counts {
    let mut counts = Counts::default();
    for line in entry.lines() {
        let code = line.trim_start();
        let code = match code.strip_prefix('@').and_then(|it| it.split_once(' ')) {
            Some((_, guarded)) => guarded.trim_start(),
            None => code,
        };
        if let Some(kind) = KINDS.iter().position(|kind| code.starts_with(kind)) {
            counts[kind] += 1;
        }
    }
    counts
}

/// The content of `barriers.txt`: the barriers that were looked at, by the release of the compiler that made them. A
/// release has only those kernels whose barriers differ from those of the release before.
///
/// A kernel without barriers has no line. Neither has one for f16 with the barriers of that for bf16, nor one for e5m2,
/// alone or beside e4m3, with those of that for e4m3.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<Release, BTreeMap<Kernel, Counts>>);

impl Record {
    /// Reads the file.
    pub fn read() -> Outcome<Self> {
        let file = Self::file();
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Self::parse(&text).map_err(|line| format!("{}: `{line}`", file.display()))
    }

    /// Writes the file.
    pub fn write(&self) -> Outcome {
        let file = Self::file();
        std::fs::write(&file, self.to_string())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        println!("{} is written", file.display());
        Ok(())
    }

    fn file() -> PathBuf {
        root().join("xtask/barriers.txt")
    }

    /// Returns the line that cannot be read if there is one.
    fn parse(text: &str) -> Result<Self, &str> {
        let mut record = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let (Some(first), Some(second)) = (words.next(), words.next()) else {
                return Err(line);
            };
            if first == "rustc" {
                record.0.entry(release(second).ok_or(line)?).or_default();
                continue;
            }
            let counts: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
            let counts = counts.and_then(|counts| Counts::try_from(counts).ok());
            let mut last = record.0.last_entry().ok_or(line)?;
            let kernel = (first.to_owned(), second.to_owned());
            last.get_mut().insert(kernel, counts.ok_or(line)?);
        }
        Ok(record)
    }

    /// What differs between the barriers that a compiler made and those that were looked at.
    pub fn faults(&self, compiler: &str, found: &Barriers) -> Outcome<Vec<String>> {
        let release = release_of(compiler)?;
        let mut faults = Vec::new();
        for (kernel, counts) in &found.0 {
            let expected = self.expected(release, kernel);
            let differing = KINDS.iter().zip(counts.iter().zip(expected));
            faults.extend(
                differing
                    .filter(|(_, (count, expected))| *count != expected)
                    .map(|(kind, (count, expected))| {
                        format!(
                            "{} for {}: {count} times `{kind}`, not {expected}",
                            kernel.0, kernel.1
                        )
                    }),
            );
        }
        let recorded: BTreeSet<&Kernel> = self.0.values().flat_map(BTreeMap::keys).collect();
        faults.extend(
            recorded
                .into_iter()
                .filter(|kernel| !found.0.contains_key(kernel))
                .map(|(name, target)| format!("{name} for {target}: there is no such kernel")),
        );
        if !faults.is_empty() {
            faults.push(format!(
                "these barriers differ from those in xtask/barriers.txt, with {compiler}: look whether the kernels' \
                 source or loops that are unrolled explain them, then run `cargo xtask ptx --record`"
            ));
        }
        Ok(faults)
    }

    /// The same with the barriers that a compiler made.
    pub fn updated(mut self, compiler: &str, found: &Barriers) -> Outcome<Self> {
        let release = release_of(compiler)?;
        for kernels in self.0.values_mut() {
            kernels.retain(|kernel, _| found.0.contains_key(kernel));
        }
        self.0.remove(&release);
        // Those that others refer to first.
        let (derived, others) = found
            .0
            .iter()
            .partition::<Vec<_>, _>(|(kernel, _)| twin(kernel).is_some());
        for (kernel, counts) in others.into_iter().chain(derived) {
            if self.expected(release, kernel) != *counts {
                let kernels = self.0.entry(release).or_default();
                kernels.insert(kernel.clone(), *counts);
            }
        }
        Ok(self)
    }

    /// The barriers that a kernel has if a compiler of this release makes it.
    fn expected(&self, release: Release, kernel: &Kernel) -> Counts {
        let of = |kernel: &Kernel| {
            let releases = self.0.range(..=release).rev();
            releases
                .into_iter()
                .find_map(|(_, kernels)| kernels.get(kernel))
        };
        let found = of(kernel).or_else(|| of(&twin(kernel)?));
        found.copied().unwrap_or_default()
    }
}

/// The kernel whose text that of a kernel for f16, or for 8-bit floats but e4m3, is made of.
fn twin((name, target): &Kernel) -> Option<Kernel> {
    let of_8_bits = ["e5m2_", "e4m3e5m2_", "e5m2e4m3_"]
        .iter()
        .find_map(|formats| name.strip_prefix(formats));
    let twin = match of_8_bits {
        Some(rest) => format!("e4m3_{rest}"),
        None if name.contains("f16") && !name.contains("bf16") => name.replace("f16", "bf16"),
        None => return None,
    };
    Some((twin, target.clone()))
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# kernel, target, and how often its PTX has {}",
            KINDS.join(", ")
        )?;
        writeln!(
            f,
            "# `cargo xtask ptx --record` writes this file. What it means is said in src/barriers.rs."
        )?;
        for ((major, minor), kernels) in &self.0 {
            writeln!(f, "rustc {major}.{minor}")?;
            for ((name, target), [sync, arrive, cluster, wait]) in kernels {
                writeln!(f, "{name} {target} {sync} {arrive} {cluster} {wait}")?;
            }
        }
        Ok(())
    }
}

/// The release in a line such as `rustc 1.95.0 (59807616e 2026-04-14)`.
fn release_of(compiler: &str) -> Outcome<Release> {
    let number = compiler.split_whitespace().nth(1).and_then(release);
    number.ok_or_else(|| format!("`{compiler}` names no release of Rust"))
}

fn release(number: &str) -> Option<Release> {
    let mut numbers = number.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "rustc 1.95.0 (59807616e 2026-04-14)";
    const NEW: &str = "rustc 1.99.1 (58cf8f9c3 2026-10-13)";

    fn barriers(kernels: &[(&str, &str)]) -> Barriers {
        let mut barriers = Barriers::default();
        for (name, body) in kernels {
            barriers.add(
                "sm_80",
                &format!(".visible .entry {name}(\n)\n{{\n{body}}}\n"),
            );
        }
        barriers
    }

    #[test]
    fn barriers_are_counted_with_and_without_a_condition() {
        let counted = barriers(&[(
            "a",
            "\tbar.sync \t0;\n\t@%p1 bar.sync \t%r1, 128;\n\tbar.warp.sync \t-1;\n\tbarrier.cluster.wait;\n\
             mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2;\n// bar.arrive in a comment\n",
        )]);
        assert_eq!(counted.0.into_values().collect::<Vec<_>>(), [[2, 0, 1, 1]]);
    }

    #[test]
    fn another_number_is_a_fault_that_names_kernel_and_instruction() {
        let once = barriers(&[("a", "\tbar.sync \t0;\n"), ("b", "\tret;\n")]);
        let record = Record::default().updated(OLD, &once).unwrap();
        assert_eq!(record.faults(OLD, &once).unwrap(), [""; 0]);
        let twice = barriers(&[
            ("a", "\tbar.sync \t0;\n\tbar.sync \t0;\n"),
            ("b", "\tret;\n"),
        ]);
        let faults = record.faults(NEW, &twice).unwrap();
        assert_eq!(faults[0], "a for sm_80: 2 times `bar.sync`, not 1");
        assert!(faults[1].contains(NEW), "{faults:?}");
        let faults = record.faults(OLD, &barriers(&[])).unwrap();
        assert_eq!(faults[0], "a for sm_80: there is no such kernel");
    }

    #[test]
    fn a_later_release_has_what_differs() {
        let old = barriers(&[("a", "\tbar.sync \t0;\n"), ("b", "\tbar.sync \t0;\n")]);
        let new = barriers(&[("a", "\tbar.arrive \t1, 2;\n"), ("b", "\tbar.sync \t0;\n")]);
        let record = Record::default().updated(OLD, &old).unwrap();
        let record = record.updated(NEW, &new).unwrap();
        let written = record.to_string();
        assert!(
            written.ends_with(
                "rustc 1.95\na sm_80 1 0 0 0\nb sm_80 1 0 0 0\nrustc 1.99\na sm_80 0 1 0 0\n"
            ),
            "{written}"
        );
        assert_eq!(Record::parse(&written), Ok(record));
    }

    #[test]
    fn kernels_for_f16_have_the_barriers_of_those_for_bf16() {
        let both = barriers(&[
            ("f16_64", "\tbar.sync \t0;\n"),
            ("bf16_64", "\tbar.sync \t0;\n"),
        ]);
        let record = Record::default().updated(OLD, &both).unwrap();
        assert!(!record.to_string().contains("\nf16_64"), "{record}");
        assert_eq!(record.faults(OLD, &both).unwrap(), [""; 0]);
        let differing = barriers(&[("f16_64", "\tret;\n"), ("bf16_64", "\tbar.sync \t0;\n")]);
        assert_eq!(record.faults(OLD, &differing).unwrap().len(), 2);
    }

    #[test]
    fn kernels_for_other_formats_of_8_bits_have_the_barriers_of_those_for_e4m3() {
        let names = ["e4m3_64", "e5m2_64", "e4m3e5m2_64", "e5m2e4m3_64"];
        let all = barriers(&names.map(|name| (name, "\tbar.sync \t0;\n")));
        let record = Record::default().updated(OLD, &all).unwrap();
        assert!(!record.to_string().contains("e5m2"), "{record}");
        assert_eq!(record.faults(OLD, &all).unwrap(), [""; 0]);
        let differing = barriers(&[
            ("e5m2e4m3_64", "\tret;\n"),
            ("e4m3_64", "\tbar.sync \t0;\n"),
        ]);
        assert_eq!(record.faults(OLD, &differing).unwrap().len(), 2);
    }

    #[test]
    fn the_file_is_as_it_would_be_written() {
        let text = std::fs::read_to_string(Record::file()).unwrap();
        assert_eq!(Record::read().unwrap().to_string(), text);
    }
}
