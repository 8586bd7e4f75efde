//! What kernels say when they are debugged: functions of the driver.

use cutlet_device::{debug, kernel, thread_idx};

/// A line, and the end of the kernel if there is nothing to say.
#[kernel(threads = 32)]
pub fn debug_lines(value: f32) {
    debug::print!("{} is {}", thread_idx(), value);
    debug::assert!(value > 0.0);
}
