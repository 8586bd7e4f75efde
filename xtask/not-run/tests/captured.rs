//! The line is seen although the test program keeps what its tests print.

use std::process::Command;

use cutlet_not_run::not_run;

/// Set in the process that the test starts.
const INSIDE: &str = "CUTLET_TEST_NOT_RUN";

#[test]
fn a_test_that_passes_says_that_it_did_not_run() {
    if std::env::var_os(INSIDE).is_some() {
        println!("this is kept");
        return not_run("there is no GPU");
    }
    let program = std::env::current_exe().expect("the test program");
    let name = "a_test_that_passes_says_that_it_did_not_run";
    let output = Command::new(program)
        .args(["--exact", name, "--test-threads=2"])
        .env(INSIDE, "1")
        .output()
        .expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let expected = format!("not run: {name}: there is no GPU");
    assert!(printed.lines().any(|line| line == expected), "{printed}");
    assert!(!printed.contains("this is kept"), "{printed}");
    assert!(printed.contains("1 passed"), "{printed}");
}
