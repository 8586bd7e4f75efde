//! Lines for the user on standard error: why a tuning file does not count, or a problem is not recorded.

use std::io::{self, Write};

/// Says something on standard error.
pub fn tell(what: String) {
    // A program without standard error computes all the same.
    let _ = writeln!(io::stderr().lock(), "cutlet: {what}");
}
