//! What `cutlet` does when standard output is closed or full.

use std::process::{Command, Output};

/// Runs the command with `rest` behind it in a shell.
fn shell(arguments: &str, rest: &str) -> Output {
    let command = format!("'{}' {arguments} {rest}", env!("CARGO_BIN_EXE_cutlet"));
    Command::new("sh")
        .args(["-c", &command])
        .output()
        .expect("a shell")
}

/// Commands that print.
const COMMANDS: [&str; 6] = [
    "doctor",
    "doctor --json",
    "layout --functions",
    "layout '(4,2):(1,4)' --table",
    "gemm --m 8 --n 8 --k 8 --backend cpu --iters 1",
    "--help",
];

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    for arguments in COMMANDS {
        let output = shell(arguments, "| true");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(error, "", "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_of_one_line() {
    for arguments in COMMANDS {
        let output = shell(arguments, "> /dev/full");
        let error = String::from_utf8_lossy(&output.stderr);
        let expected = "writing to standard output: No space left on device";
        assert!(error.contains(expected), "{arguments}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments}: {error}");
        assert_eq!(output.status.code(), Some(2), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_error_is_no_panic() {
    let output = shell("gemm --m 0", "2> /dev/full");
    assert_eq!(output.status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_benchmark_ends_quietly_without_a_reader_and_with_one_line_on_a_full_disk() {
    let folder = |name: &str| format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    let bench =
        |out: &str| format!("bench gemm --backend cpu --dtype f32 --rounds 5 --out '{out}'");
    let kept = folder("kept");
    // `head` closes the pipe after the first row.
    let output = shell(&bench(&kept), "| head -4");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // The rows that were measured are results like any others.
    let report = shell(&format!("bench report '{kept}'"), "");
    assert!(report.status.success(), "{report:?}");

    let output = shell(&bench(&folder("full")), "> /dev/full");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.starts_with("error: writing to standard output: "),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_eq!(output.status.code(), Some(2));
}
