//! Standard output and standard error: printing that reports a failed write instead of panicking.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

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

/// Prints a complaint and a line break to standard error.
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
}
