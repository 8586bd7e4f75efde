//! Lets a test say that it could not run, and why.
//!
//! A test that needs a GPU returns early where there is none, and the test program counts it as passed. So it says so
//! in a line of its own, which `cargo xtask test` counts.

use std::io::{self, Write};
use std::thread;

/// How the line of a test begins that did not run. The test's name, a colon and the reason follow.
pub const BEGIN: &str = "not run: ";

/// To be called by a test that returns because it cannot run here. `why` completes the sentence "it was not run,
/// because …".
pub fn not_run(why: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test without a name");
    // The test program keeps what `println!` prints of a test that passes. It may stand within a line of its own.
    let line = format!("\n{BEGIN}{test}: {why}\n");
    // Without standard output, there is nobody to tell.
    let _ = io::stdout().lock().write_all(line.as_bytes());
}
