//! Printing and asserting, which call functions of the driver.

use cutlet_device::{debug, kernel, thread_idx};

/// Prints a line, and asserts.
#[kernel(threads = 32)]
pub fn debug_lines(value: f32) {
    debug::print!("{} is {}", thread_idx(), value);
    debug::assert!(value > 0.0);
}
