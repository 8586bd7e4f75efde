//! What a command prints: its result on standard output, for people or as JSON, and complaints on standard error.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use clap::Args;
use serde::Serialize;

/// Options of every command with a result: how it is printed.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Output {
    /// Print the result as one line of JSON, and errors as JSON on standard error.
    #[arg(long, display_order = 900)]
    pub json: bool,
}

impl Output {
    /// Prints a result in the way that was asked for.
    ///
    /// # Errors
    /// If standard output is closed or full.
    pub fn result(&self, result: &(impl Display + Serialize)) -> Result<(), OutputError> {
        self.say(result)?;
        self.answer(result)
    }

    /// Prints a line for people; nothing where JSON was asked for.
    ///
    /// # Errors
    /// If standard output is closed or full.
    pub fn say(&self, line: impl Display) -> Result<(), OutputError> {
        match self.json {
            true => Ok(()),
            false => print_line(line),
        }
    }

    /// Prints a result as a line of JSON, where JSON was asked for.
    ///
    /// # Errors
    /// If standard output is closed or full.
    pub fn answer(&self, result: &impl Serialize) -> Result<(), OutputError> {
        match self.json {
            true => print_line(as_json(result)),
            false => Ok(()),
        }
    }

    /// Complains about what ends the command, or makes it fail.
    pub fn error(&self, message: impl Display) {
        self.complain(Complaint::Error(Message::of(message)));
    }

    /// Complains about what the command goes on without.
    pub fn warning(&self, message: impl Display) {
        self.complain(Complaint::Warning(Message::of(message)));
    }

    /// Says how the command could be used better.
    pub fn hint(&self, message: impl Display) {
        self.complain(Complaint::Hint(Message::of(message)));
    }

    fn complain(&self, complaint: Complaint) {
        match self.json {
            true => complain(as_json(&complaint)),
            false => complain(complaint.in_words()),
        }
    }
}

/// A line on standard error. As JSON: `{"error":{"message":"…"}}`.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Complaint {
    Error(Message),
    Warning(Message),
    Hint(Message),
}

#[derive(Serialize)]
struct Message {
    message: String,
}

impl Message {
    fn of(message: impl Display) -> Message {
        Message {
            message: message.to_string(),
        }
    }
}

impl Complaint {
    fn in_words(&self) -> String {
        let (kind, Message { message }) = match self {
            Complaint::Error(message) => ("error", message),
            Complaint::Warning(message) => ("warning", message),
            Complaint::Hint(message) => ("hint", message),
        };
        format!("{kind}: {message}")
    }
}

/// A value as a line of JSON.
fn as_json(value: &impl Serialize) -> String {
    // Only maps whose keys are no strings cannot be written. No result has one.
    serde_json::to_string(value).expect("results and complaints can be written as JSON")
}

/// Standard output could not be written to.
#[derive(Debug, thiserror::Error)]
#[error("writing to standard output: {found}")]
pub struct OutputError {
    #[from]
    #[source]
    found: io::Error,
}

/// Prints a text and a line break to standard output.
///
/// # Errors
/// If standard output is closed or full.
pub fn print_line(text: impl Display) -> Result<(), OutputError> {
    Ok(writeln!(io::stdout().lock(), "{text}")?)
}

/// Prints a text as it is to standard output.
///
/// # Errors
/// If standard output is closed or full.
pub fn print(text: impl Display) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Prints a text and a line break to standard error.
pub fn complain(text: impl Display) {
    // Standard error is the last place to report anything.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether the error says that the reader of standard output has closed it, as `head -1` does.
pub fn reader_is_gone(error: &(dyn Error + 'static)) -> bool {
    let found = error.downcast_ref::<io::Error>().map(io::Error::kind);
    found == Some(ErrorKind::BrokenPipe) || error.source().is_some_and(reader_is_gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_told_from_a_full_disk() {
        let output = |kind: ErrorKind| OutputError::from(io::Error::from(kind));
        assert!(reader_is_gone(&output(ErrorKind::BrokenPipe)));
        assert!(!reader_is_gone(&output(ErrorKind::StorageFull)));
    }

    #[test]
    fn a_complaint_is_the_same_in_words_and_as_json() {
        let warning = Complaint::Warning(Message::of("a \"b\""));
        assert_eq!(warning.in_words(), "warning: a \"b\"");
        assert_eq!(as_json(&warning), r#"{"warning":{"message":"a \"b\""}}"#);
    }
}
