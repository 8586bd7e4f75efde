//! `stmatrix`.

use cutlet_device::{SharedArray, kernel, stmatrix, stmatrix_transposed};

/// Stores of one, two and four matrices, by rows and transposed.
#[kernel(threads = 32, arch = "sm_90a")]
pub fn matrices(register: u32, #[shared] row: SharedArray<u16, 8>) {
    let row = *row;
    // SAFETY: there is room for one row, which all lanes write.
    unsafe {
        stmatrix(row, [register; 1]);
        stmatrix(row, [register; 2]);
        stmatrix(row, [register; 4]);
        stmatrix_transposed(row, [register; 1]);
        stmatrix_transposed(row, [register; 2]);
        stmatrix_transposed(row, [register; 4]);
    }
}
