//! Matrices from registers to shared memory.

use cutlet_device::sm90::{stmatrix, stmatrix_transposed};
use cutlet_device::{SharedMemory, kernel};

/// Two and four matrices, as they are and transposed.
#[kernel(threads = 32, shared = 16, arch = "sm_90a")]
pub fn matrices(register: u32) {
    let row = SharedMemory::new().take::<u16>(8);
    // SAFETY: there is room for a row, and all rows are the same one.
    unsafe {
        stmatrix(row, [register; 2]);
        stmatrix(row, [register; 4]);
        stmatrix_transposed(row, [register; 2]);
        stmatrix_transposed(row, [register; 4]);
    }
}
