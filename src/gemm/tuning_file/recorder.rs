//! The recorder: it notes each problem that the process plans, once, in the file that `cutlet tune --recorded` reads.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::notice::tell;
use super::problem_key::ProblemKey;
use super::{read, refused, refused_line};
use crate::Result;

/// The first line of a file of problems.
const HEADER: &str = "# problems of cutlet, format 1";

/// Notes problems in a file. It adds to those that are there.
pub struct Recorder {
    path: PathBuf,
    noted: Mutex<Noted>,
}

struct Noted {
    problems: HashSet<ProblemKey>,
    /// None once a write failed.
    file: Option<File>,
}

impl Recorder {
    /// The environment variable that names the file.
    pub const VARIABLE: &str = "CUTLET_RECORD";

    /// Opens or makes the file at this path.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| refused(path, format!("opening it failed: {error}"));
        let appending = OpenOptions::new().append(true).create(true).open(path);
        let mut file = appending.map_err(failed)?;
        let is_new = file.metadata().map_err(failed)?.len() == 0;
        if is_new {
            writeln!(file, "{HEADER}").map_err(failed)?;
        }
        let problems = recorded_problems(path)?.into_iter().collect();
        Ok(Recorder {
            path: path.to_path_buf(),
            noted: Mutex::new(Noted {
                problems,
                file: Some(file),
            }),
        })
    }

    /// Notes a problem, unless it is noted.
    pub fn record(&self, problem: &ProblemKey) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let Noted { problems, file } = &mut *noted;
        if !problems.insert(*problem) {
            return;
        }
        // A single write, so that lines of several processes do not mix.
        let line = format!("{problem}\n");
        let written = file.as_mut().map(|file| file.write_all(line.as_bytes()));
        if let Some(Err(error)) = written {
            *file = None;
            tell(format!(
                "writing {} failed: {error}; further problems are not recorded",
                self.path.display()
            ));
        }
    }
}

/// Reads a file of problems, which a process with the environment variable `CUTLET_RECORD` wrote.
///
/// # Errors
/// [`Error::TuningFile`](crate::Error::TuningFile) if it cannot be read, is no such file or is damaged, with the line
/// that is wrong.
pub fn recorded_problems(path: impl AsRef<Path>) -> Result<Vec<ProblemKey>> {
    let path = path.as_ref();
    let text = read(path)?;
    if !text.starts_with(HEADER) {
        return Err(refused_line(
            path,
            1,
            format!(
                "it is no file of recorded problems, which begins with `{HEADER}`; name another file"
            ),
        ));
    }
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(before, line)| {
            line.parse().map_err(|found| {
                let found = format!("{found}; remove the line, or record the problem again");
                refused_line(path, before + 1, found)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs, process, thread};

    fn key(m: usize) -> ProblemKey {
        let line = format!(
            "operands=f32 c=f32 precision=exact m={m} n=2 k=3 a=row b=col alignments=128,128,4 beta=0 bias=none \
             residual=none activation=none"
        );
        line.parse().unwrap()
    }

    /// A path at which there is no file.
    fn path(name: &str) -> PathBuf {
        let path = env::temp_dir().join(format!("cutlet-{name}-{}", process::id()));
        // It may be there from an earlier run.
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn each_problem_is_noted_once_by_all_threads_and_runs() {
        let path = path("recorder");
        for run in 1..=2 {
            let recorder = Recorder::open(&path).unwrap();
            thread::scope(|scope| {
                for first in 0..4 {
                    let recorder = &recorder;
                    scope.spawn(move || {
                        (0..50).for_each(|nth| recorder.record(&key(run + (first + nth) % 50)));
                    });
                }
            });
        }
        let mut found = recorded_problems(&path).unwrap();
        found.sort_by_key(|key| key.extents);
        // The second run has one problem more.
        assert_eq!(found, (1..=51).map(key).collect::<Vec<_>>());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn other_files_are_refused_and_left_as_they_are() {
        let path = path("other");
        fs::write(&path, "a letter\n").unwrap();
        let refused = Recorder::open(&path).err().unwrap().to_string();
        assert!(
            refused.contains("line 1: it is no file of recorded problems"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "a letter\n");
        fs::write(&path, format!("{HEADER}\n\n{}\nnonsense\n", key(1))).unwrap();
        let refused = recorded_problems(&path).unwrap_err().to_string();
        assert!(
            refused.contains("line 4: `nonsense` was found where"),
            "{refused}"
        );
        fs::remove_file(path).unwrap();
    }
}
