//! Runs other programs: prints each command, and turns a failure into a sentence.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The result of every step of xtask. An error is a sentence that says what failed.
pub type Outcome<T = ()> = Result<T, String>;

/// The repository's root folder.
pub fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}

/// The cargo that runs xtask, started in the repository's root with the arguments of `line`.
pub fn cargo(line: &str) -> Command {
    let mut command = cutlet_machine_code::cargo::cargo();
    command.args(line.split_whitespace()).current_dir(root());
    command
}

/// The command as a person would type it.
pub fn display(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let arguments = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(name.into())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints and runs the command without standard input, and returns an error unless it succeeds.
pub fn run(command: &mut Command) -> Outcome {
    let shown = display(command);
    println!("\n$ {shown}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    require(&shown, status)
}

/// Runs the command quietly, and returns its standard output and its standard error.
pub fn output(command: &mut Command) -> Outcome<(String, String)> {
    let shown = display(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    require(&shown, output.status).map_err(|error| format!("{error}\n{printed}{complained}"))?;
    Ok((printed, complained))
}

/// Whether a program can be run that knows `--version`.
pub fn is_there(program: &str) -> bool {
    output(Command::new(program).arg("--version")).is_ok()
}

/// Like [`run`], but also passes every line of standard output to `line`.
pub fn run_and_read(command: &mut Command, mut line: impl FnMut(&str)) -> Outcome {
    let shown = display(command);
    println!("\n$ {shown}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).lines() {
            let text = text.map_err(|error| format!("cannot read from `{shown}`: {error}"))?;
            println!("{text}");
            line(&text);
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("`{shown}` was lost: {error}"))?;
    require(&shown, status)
}

/// Like [`run`], but kills the command, which is a failure, if it takes longer than `limit`.
pub fn run_within(command: &mut Command, limit: Duration) -> Outcome {
    let shown = display(command);
    println!("\n$ {shown}");
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    match wait_until(&mut child, Instant::now() + limit) {
        Some(status) => require(&shown, status),
        None => Err(format!(
            "`{shown}` was ended after {} s without a result",
            limit.as_secs()
        )),
    }
}

/// The exit status, or `None` if the child had to be killed at the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(50)),
            _ => {
                // The child may have ended in the meantime, so errors of these calls do not matter.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

fn require(shown: &str, status: ExitStatus) -> Outcome {
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{shown}` failed ({status})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hanging_command_is_ended_at_its_limit() {
        let started = Instant::now();
        let error =
            run_within(Command::new("sleep").arg("600"), Duration::from_millis(200)).unwrap_err();
        assert!(error.contains("`sleep 600` was ended"), "{error}");
        // A long limit, for slow or busy machines, but shorter than the command.
        assert!(started.elapsed() < Duration::from_secs(300));
    }

    #[test]
    fn a_failure_names_the_command() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.contains("`sh -c exit 3` failed"), "{error}");
        let error = run(&mut Command::new("no-such-program")).unwrap_err();
        assert!(error.contains("cannot start `no-such-program`"), "{error}");
    }

    #[test]
    fn lines_are_read_while_they_are_printed() {
        let mut lines = Vec::new();
        run_and_read(Command::new("printf").arg("one\\ntwo\\n"), |line| {
            lines.push(line.to_owned())
        })
        .unwrap();
        assert_eq!(lines, ["one", "two"]);
    }
}
