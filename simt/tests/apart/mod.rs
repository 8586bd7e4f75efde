//! Tests in a process of their own, which ends by an abort.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Set in the process that a test starts.
const INSIDE: &str = "CUTLET_TEST_APART";

/// Names the emulator, if this program is of another machine: the system does not start it by itself.
const EMULATOR: &str = "CUTLET_TEST_EMULATOR";

/// Runs this program again with these environment variables, for the given test alone. Its name begins with its file's.
/// `None` in the process that this starts.
pub fn run_apart(test: &str, variables: &[(&str, &str)]) -> Option<Output> {
    if std::env::var_os(INSIDE).is_some() {
        return None;
    }
    let program = std::env::current_exe().unwrap();
    // With an emulator, the program is its first argument.
    let line: Vec<_> = std::env::var_os(EMULATOR)
        .into_iter()
        .chain([program.into()])
        .collect();
    let output = Command::new(&line[0])
        .args(&line[1..])
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    // Without a test of this name, the program would succeed.
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("running 1 test"), "{test}: {printed}");
    Some(output)
}

/// Fails unless the process aborted with a message that has all of these parts.
#[track_caller]
pub fn assert_aborted(output: &Output, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}
