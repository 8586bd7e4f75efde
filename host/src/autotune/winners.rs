//! The candidates that an autotuner remembers, in memory and in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cutlet_device::PtxLibrary;

use crate::tuning_file::{
    self, Damage, Header, Lines, TunedDevice, Versions, kernel_and_time, version_of,
};
use crate::{Device, Error, Result};

/// What to do about a damaged file.
const REMEDY: &str = "remove the file, and its problems are measured again";

/// The remembered candidates.
#[derive(Debug, Default)]
pub struct Winners {
    entries: Vec<Entry>,
    file: Option<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    header: Header,
}

/// The candidate that was chosen for a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Winner {
    pub name: String,
    /// None if it was not measured.
    pub microseconds: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: String,
    /// The names that were chosen from, separated by commas. Other candidates may have another fastest one.
    names: String,
    winner: Winner,
}

impl Winners {
    /// Those in the file of this device in a folder, which is made. A file of other versions is replaced.
    pub fn in_folder(device: &Device, library: &PtxLibrary, folder: &Path) -> Result<Winners> {
        let device = TunedDevice::of(device);
        let file = File {
            path: folder.join(file_name(&device)),
            header: Header {
                made_with: Versions {
                    cutlet: env!("CARGO_PKG_VERSION").to_string(),
                    kernels: version_of(library.families.iter()),
                },
                device,
            },
        };
        fs::create_dir_all(folder).map_err(|error| failed(folder, "making the folder", &error))?;
        let winners = Winners {
            entries: file.read()?,
            file: Some(file),
        };
        // A file that cannot be written is refused before anything is measured.
        winners.save()?;
        Ok(winners)
    }

    /// The winner for a key among candidates of these names, with its position.
    pub fn find(&self, key: &str, names: &[String]) -> Option<(usize, &Winner)> {
        let joined = names.join(",");
        let is_it = |entry: &&Entry| entry.key == key && entry.names == joined;
        let Entry { winner, .. } = self.entries.iter().find(is_it)?;
        let position = names.iter().position(|name| *name == winner.name)?;
        Some((position, winner))
    }

    /// Remembers a winner, in place of an earlier one for the key. Entries that other processes wrote stay.
    pub fn insert(&mut self, key: &str, names: &[String], winner: Winner) -> Result<()> {
        if let Some(file) = &self.file {
            let ours = std::mem::take(&mut self.entries);
            let theirs = file.read()?;
            let is_new = |entry: &Entry| !ours.iter().any(|our| our.key == entry.key);
            let new: Vec<Entry> = theirs.into_iter().filter(is_new).collect();
            self.entries = ours.into_iter().chain(new).collect();
        }
        self.entries.retain(|entry| entry.key != key);
        self.entries.push(Entry {
            key: key.to_string(),
            names: names.join(","),
            winner,
        });
        self.save()
    }

    fn save(&self) -> Result<()> {
        let Some(File { path, header }) = &self.file else {
            return Ok(());
        };
        let mut text = header.write("cutlet's autotuner");
        for entry in &self.entries {
            let Entry { key, names, winner } = entry;
            if let Some(microseconds) = winner.microseconds {
                let kernel = &winner.name;
                text += &format!(
                    "{key} candidates={names} kernel={kernel} microseconds={microseconds:.3}\n"
                );
            }
        }
        tuning_file::replace(path, &text).map_err(|error| failed(path, "writing it", &error))
    }
}

impl File {
    /// The entries of the file, if it is there and of the same versions.
    fn read(&self) -> Result<Vec<Entry>> {
        let File { path, header } = self;
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(path, "reading it", &error)),
        };
        let read = read(&text).map_err(|Damage { line, found }| Error::TuningFile {
            place: match line {
                Some(line) => format!("{}, line {line}", path.display()),
                None => path.display().to_string(),
            },
            found,
        });
        let (of_file, entries) = read?;
        match of_file == *header {
            true => Ok(entries),
            false => Ok(Vec::new()),
        }
    }
}

/// The header and the entries of a file.
fn read(text: &str) -> Result<(Header, Vec<Entry>), Damage> {
    let mut lines = Lines::new(text, REMEDY);
    let header = Header::read(&mut lines)?;
    let mut entries = Vec::new();
    while let Some(line) = lines.next_line() {
        entries.push(entry(line).map_err(|found| lines.unreadable(found))?);
    }
    Ok((header, entries))
}

/// The entry in a line. The key may have any words.
fn entry(line: &str) -> Result<Entry, String> {
    let missing = || format!("`{line}` has no `candidates=…`");
    let (key, rest) = line.rsplit_once(" candidates=").ok_or_else(missing)?;
    let mut words = rest.split_whitespace();
    let names = words.next().ok_or_else(missing)?.to_string();
    let (kernel, microseconds) = kernel_and_time(&mut words)?;
    Ok(Entry {
        key: key.to_string(),
        names,
        winner: Winner {
            name: kernel.to_string(),
            microseconds: Some(microseconds),
        },
    })
}

/// The name of the file of a kind of device: `nvidia-h200-132.tuning`.
fn file_name(device: &TunedDevice) -> String {
    let words = device.name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    format!("{}-{}.tuning", words.join("-"), device.multiprocessors)
}

fn failed(path: &Path, doing: &str, error: &io::Error) -> Error {
    Error::TuningFile {
        place: path.display().to_string(),
        found: format!("{doing} failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use cutlet_device::{PtxFamily, PtxModule, PtxText};

    static SOME: PtxLibrary = PtxLibrary { families: &[] };
    static OTHER: PtxLibrary = PtxLibrary {
        families: &[PtxFamily {
            name: "norm",
            modules: &[PtxModule {
                target: "sm_80",
                ptx: PtxText::Plain(".version 8.0"),
            }],
        }],
    };

    /// A folder that is not there.
    fn folder(name: &str) -> PathBuf {
        let name = format!("cutlet-winners-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // It may be there from an earlier run.
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    fn winner(name: &str, microseconds: f64) -> Winner {
        Winner {
            name: name.to_string(),
            microseconds: Some(microseconds),
        }
    }

    fn open(folder: &Path) -> Winners {
        Winners::in_folder(&Device::cpu(), &SOME, folder).unwrap()
    }

    #[test]
    fn winners_are_read_as_they_are_written_and_added_to_those_of_other_processes() {
        let folder = folder("written");
        let both = names(&["a", "b"]);
        let (mut one, mut other) = (open(&folder), open(&folder));
        one.insert("norm rows=1", &both, winner("b", 1.5)).unwrap();
        other
            .insert("norm kernel=x rows=2", &both, winner("a", 2.25))
            .unwrap();
        one.insert("norm rows=1", &both, winner("a", 1.25)).unwrap();
        let read = open(&folder);
        assert_eq!(
            read.find("norm rows=1", &both),
            Some((0, &winner("a", 1.25)))
        );
        let other = read.find("norm kernel=x rows=2", &both);
        assert_eq!(other, Some((0, &winner("a", 2.25))));
        assert_eq!(read.find("norm rows=3", &both), None);
        // Among other candidates, another one may be the fastest.
        assert_eq!(read.find("norm rows=1", &names(&["a", "b", "c"])), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn winners_of_other_kernels_are_forgotten() {
        let folder = folder("versions");
        let one = names(&["a"]);
        open(&folder)
            .insert("norm", &one, winner("a", 1.0))
            .unwrap();
        let other = Winners::in_folder(&Device::cpu(), &OTHER, &folder).unwrap();
        assert_eq!(other.find("norm", &one), None);
        assert_eq!(open(&folder).find("norm", &one), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_line_is_refused_with_its_number() {
        let folder = folder("damaged");
        let mut winners = open(&folder);
        winners
            .insert("norm", &names(&["a"]), winner("a", 1.0))
            .unwrap();
        let path = &winners.file.as_ref().unwrap().path;
        let right = fs::read_to_string(path).unwrap();
        for (from, to, found) in [
            ("format=1", "format=2", "line 2: its format is 2"),
            (" candidates=", " candi=", "line 8: `norm candi=a kernel=a"),
            (
                "kernel=a",
                "kern=a",
                "line 8: `kern=a` was found where `kernel=…` belongs",
            ),
            (
                "microseconds=1",
                "microseconds=-1",
                "line 8: microseconds is `-1",
            ),
        ] {
            fs::write(path, right.replace(from, to)).unwrap();
            let refused = Winners::in_folder(&Device::cpu(), &SOME, &folder);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(found), "{refused}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn each_kind_of_device_has_a_file() {
        let device = TunedDevice {
            name: "NVIDIA H100 80GB HBM3".to_string(),
            multiprocessors: 132,
            cuda: "13.0".to_string(),
        };
        assert_eq!(file_name(&device), "nvidia-h100-80gb-hbm3-132.tuning");
    }
}
