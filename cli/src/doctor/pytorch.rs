//! Python and its PyTorch, asked in a process of its own while other parts are looked for. Importing PyTorch may take
//! long, so there is a limit.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::finding::Finding;
use crate::python::{VARIABLE, python};

/// What Python runs. It says how facts are written.
const SCRIPT: &str = include_str!("pytorch.py");

/// The process has so long to say what it knows.
const LIMIT: Duration = Duration::from_secs(2);

const TOPIC: &str = "Python, PyTorch";

/// A Python that is being asked.
pub struct Asked {
    /// When the process must have said what it knows.
    limit: Instant,
    /// The process with the lines that it prints, or why there is none.
    process: Result<(Child, Receiver<String>), String>,
}

/// What a Python said.
#[derive(Debug, Default, PartialEq)]
struct Facts {
    /// The version of Python, and its path.
    python: Option<[String; 2]>,
    torch: Option<String>,
    built_for: Option<String>,
    /// Whether PyTorch has CUDA, or the error of importing it.
    cuda: Option<String>,
}

impl Asked {
    /// Asks the Python that `bench` would ask.
    pub fn start() -> Asked {
        let process = start(Command::new(python()).args(["-c", SCRIPT]));
        Asked {
            limit: Instant::now() + LIMIT,
            process: process.map_err(|error| error.to_string()),
        }
    }

    /// The finding, at the latest when the limit is over.
    pub fn finding(self) -> Finding {
        let python = python();
        let python = python.to_string_lossy();
        let fix = format!("set {VARIABLE} to a Python that has torch, or `pip install torch`");
        let (mut child, lines) = match self.process {
            Ok(process) => process,
            Err(error) => return Finding::none(TOPIC, format!("{python}: {error}"), fix),
        };
        let mut facts = Facts::default();
        // The channel closes when Python ends.
        while let Ok(line) = lines.recv_timeout(self.limit.duration_since(Instant::now())) {
            facts.learn(&line);
        }
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        facts.finding(&python, fix)
    }
}

fn start(command: &mut Command) -> std::io::Result<(Child, Receiver<String>)> {
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let (sender, receiver) = channel();
    if let Some(printed) = child.stdout.take() {
        std::thread::spawn(move || {
            let lines = BufReader::new(printed).lines().map_while(Result::ok);
            // Nobody listens after the limit.
            lines
                .take_while(|line| sender.send(line.clone()).is_ok())
                .count()
        });
    }
    Ok((child, receiver))
}

impl Facts {
    fn learn(&mut self, line: &str) {
        let words: Vec<&str> = line.split('\t').collect();
        let owned = |word: &str| Some(word.to_string());
        match words.as_slice() {
            ["python", version, path] => {
                self.python = Some([(*version).to_string(), (*path).to_string()]);
            }
            ["torch", version] => self.torch = owned(version),
            ["built for", cuda] => self.built_for = owned(cuda),
            ["cuda", found] => self.cuda = owned(found),
            _ => {}
        }
    }

    /// The finding about this Python.
    fn finding(self, python: &str, fix: String) -> Finding {
        let Some([version, path]) = self.python else {
            return Finding::none(TOPIC, format!("{python} said nothing"), fix);
        };
        let python = format!("Python {version} at {path}");
        let torch = match self.torch.as_deref() {
            Some("none") => {
                let what =
                    format!("{python} without torch (only comparisons with it are left out)");
                return Finding::none(TOPIC, what, fix);
            }
            Some(torch) => torch,
            None => {
                let what = format!("{python} did not say in time whether it has torch");
                return Finding::none(TOPIC, what, fix);
            }
        };
        let built_for = match self.built_for.as_deref() {
            None => String::new(),
            Some("no CUDA") => ", built without CUDA".to_string(),
            Some(cuda) => format!(", built for CUDA {cuda}"),
        };
        let cuda = match self.cuda.as_deref() {
            None => format!(
                "; whether it finds a GPU is not known, because importing it took longer than {} s",
                LIMIT.as_secs()
            ),
            Some("available") => "; it finds a GPU".to_string(),
            Some("not available") => "; it finds no GPU".to_string(),
            Some(error) => format!("; importing it failed: {error}"),
        };
        Finding::found(TOPIC, format!("torch {torch}{built_for}{cuda}; {python}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Finding {
        let mut facts = Facts::default();
        lines.iter().for_each(|line| facts.learn(line));
        facts.finding("python3", "install it".to_string())
    }

    #[test]
    fn what_is_known_at_the_limit_is_said() {
        let python = "python\t3.12.3\t/usr/bin/python3";
        let all = [python, "torch\t2.9.0", "built for\t12.8", "cuda\tavailable"];
        let at = "Python 3.12.3 at /usr/bin/python3";
        let torch = "torch 2.9.0, built for CUDA 12.8";
        assert_eq!(of(&all).what, format!("{torch}; it finds a GPU; {at}"));
        let late = of(&all[..3]).what;
        assert!(
            late.starts_with(&format!("{torch}; whether it finds a GPU is not known")),
            "{late}"
        );
        assert!(
            of(&all[..1])
                .what
                .ends_with("did not say in time whether it has torch")
        );
        let without = of(&[python, "torch\tnone"]);
        assert!(!without.found && without.what.starts_with(&format!("{at} without torch")));
        assert_eq!(of(&[]).what, "python3 said nothing");
        let broken = of(&[python, "torch\t2.9.0", "cuda\tImportError('libcudart')"]).what;
        assert!(
            broken.contains("importing it failed: ImportError('libcudart')"),
            "{broken}"
        );
    }

    #[test]
    fn a_process_that_never_ends_is_waited_for_until_the_limit() {
        let limit = Duration::from_millis(300);
        let shell = "echo 'python\t3.1\t/bin/sh'; exec sleep 60";
        let began = Instant::now();
        let asked = Asked {
            limit: began + limit,
            process: start(Command::new("sh").args(["-c", shell])).map_err(|it| it.to_string()),
        };
        let what = asked.finding().what;
        assert!(
            what.starts_with("Python 3.1 at /bin/sh did not say in time"),
            "{what}"
        );
        let waited = began.elapsed();
        assert!(
            (limit..Duration::from_secs(30)).contains(&waited),
            "{waited:?}"
        );
    }
}
