//! Runs other programs, and keeps what they print.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Runs the command without standard input, and returns its standard output and its standard error.
pub(crate) fn output(command: &mut Command) -> Result<(String, String), Error> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Start {
            command: display(command),
            error,
        })?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok((printed, complained)),
        false => Err(Error::Failed {
            command: display(command),
            status: output.status,
            printed: printed + &complained,
        }),
    }
}

/// The command as a person would type it, with the program's name alone.
fn display(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    let arguments = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(name)
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_shows_what_it_printed() {
        let error = output(Command::new("sh").args(["-c", "echo no; exit 3"])).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("`sh -c echo no; exit 3` failed"), "{error}");
        assert!(error.ends_with("\nno"), "{error}");
        let error = output(&mut Command::new("/nowhere/no-such-program")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("cannot start `no-such-program`"), "{error}");
    }
}
