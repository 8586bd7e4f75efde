//! The text of a tuning file: lines of the header, then a line for each entry. Reading is strict, so that a damaged
//! file is noticed.

use std::iter::Peekable;
use std::str::SplitWhitespace;

use super::{TunedDevice, Versions};

/// The format that this module reads and writes.
const FORMAT: &str = "1";

/// What is wrong with a file.
#[derive(Debug, PartialEq)]
pub struct Damage {
    /// The line that is wrong, counted from 1; `None` if lines are missing.
    pub line: Option<usize>,
    /// What was found, and what to do.
    pub found: String,
}

/// The first lines of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// What the kernels were measured with.
    pub made_with: Versions,
    /// What they were measured on.
    pub device: TunedDevice,
}

impl Header {
    /// Writes the header, below a line that says who wrote the file.
    pub fn write(&self, writer: &str) -> String {
        let Header { made_with, device } = self;
        format!(
            "# written by {writer}\nformat={FORMAT}\ncutlet={}\nkernels={}\ndevice={}\nmultiprocessors={}\ncuda={}\n",
            made_with.cutlet, made_with.kernels, device.name, device.multiprocessors, device.cuda
        )
    }

    /// Reads the header.
    ///
    /// # Errors
    /// What is wrong with a line.
    pub fn read(lines: &mut Lines<'_>) -> Result<Header, Damage> {
        match lines.next_value("format")? {
            FORMAT => {}
            other => {
                return Err(lines.damage(format!(
                    "its format is {other}, and this version of cutlet reads format {FORMAT}; use the version that \
                     wrote it"
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
        Ok(Header { made_with, device })
    }
}

/// The lines of a file that say something, one after the other.
pub struct Lines<'a> {
    lines: Peekable<Box<dyn Iterator<Item = (usize, &'a str)> + 'a>>,
    /// What to do about a damaged line.
    remedy: &'static str,
    /// The number of the line that was read last.
    number: usize,
}

impl<'a> Lines<'a> {
    /// The lines of this text. The remedy is what to do about a damaged one.
    pub fn new(text: &'a str, remedy: &'static str) -> Self {
        let numbered = text.lines().enumerate();
        let numbered = numbered.map(|(before, line)| (before + 1, line.trim()));
        let lines = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let lines: Box<dyn Iterator<Item = _>> = Box::new(lines);
        Lines {
            lines: lines.peekable(),
            remedy,
            number: 0,
        }
    }

    /// The next line.
    pub fn next_line(&mut self) -> Option<&'a str> {
        let (number, line) = self.lines.next()?;
        self.number = number;
        Some(line)
    }

    /// The line that was read last is wrong: what was found, and what to do.
    pub fn damage(&self, found: String) -> Damage {
        Damage {
            line: Some(self.number),
            found,
        }
    }

    /// The line that was read last is damaged: what was found.
    pub fn unreadable(&self, found: String) -> Damage {
        self.damage(self.with_remedy(found))
    }

    /// The number in the next line, if that line is `name=number`.
    ///
    /// # Errors
    /// If it is no number above 0.
    pub fn next_rate(&mut self, name: &str) -> Result<Option<f64>, Damage> {
        let of_name = |(_, line): &(usize, &str)| {
            let (found, _) = line.split_once('=').unwrap_or_default();
            found == name
        };
        if !self.lines.peek().is_some_and(of_name) {
            return Ok(None);
        }
        let text = self.next_value(name)?;
        let rate = positive(name, text).map(Some);
        rate.map_err(|found| self.unreadable(found))
    }

    fn with_remedy(&self, found: String) -> String {
        format!("{found}; {}", self.remedy)
    }

    /// The value in the next line, which is `name=value`.
    fn next_value(&mut self, name: &str) -> Result<&'a str, Damage> {
        let Some(line) = self.next_line() else {
            return Err(Damage {
                line: None,
                found: self.with_remedy(format!("it ends where `{name}=…` belongs")),
            });
        };
        match line.split_once('=') {
            Some((found, value)) if found == name => Ok(value),
            _ => Err(self.unreadable(format!("`{line}` was found where `{name}=…` belongs"))),
        }
    }

    fn next_count(&mut self, name: &str) -> Result<u32, Damage> {
        let text = self.next_value(name)?;
        match text.parse() {
            Ok(count) if count > 0 => Ok(count),
            _ => {
                let found = format!("{name} is `{text}`, which is no whole number above 0");
                Err(self.unreadable(found))
            }
        }
    }
}

/// The last two words of an entry: the kernel, and the microseconds that were measured.
///
/// # Errors
/// What was found in place of one of them.
pub fn kernel_and_time<'a>(words: &mut SplitWhitespace<'a>) -> Result<(&'a str, f64), String> {
    let kernel = value(words, "kernel")?;
    let microseconds = value(words, "microseconds")?;
    end(words)?;
    Ok((kernel, positive("microseconds", microseconds)?))
}

/// The value of the next word, which is `name=value`.
///
/// # Errors
/// What was found in its place.
pub fn value<'a>(words: &mut SplitWhitespace<'a>, name: &str) -> Result<&'a str, String> {
    let word = words
        .next()
        .ok_or_else(|| format!("the line ends where `{name}=…` belongs"))?;
    match word.split_once('=') {
        Some((found, value)) if found == name => Ok(value),
        _ => Err(format!("`{word}` was found where `{name}=…` belongs")),
    }
}

/// Refuses further words.
///
/// # Errors
/// If there is one.
pub fn end(words: &mut SplitWhitespace<'_>) -> Result<(), String> {
    match words.next() {
        None => Ok(()),
        Some(word) => Err(format!("`{word}` was found where the line should end")),
    }
}

fn positive(name: &str, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!("{name} is `{text}`, which is no number above 0")),
    }
}
