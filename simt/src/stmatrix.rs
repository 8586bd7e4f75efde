//! `stmatrix`: the lanes of a warp store 8×8 matrices of 16-bit elements.

use crate::shadow::MemoryAccess;
use crate::shared_access::access_shared;
use crate::sync::warp_exchange;

/// Stores one matrix per register: `registers[i]` is the lane's part of matrix `i`. `row` is the shared address of the
/// lane's row of matrix `lane / 8`, or of its column if `transposed`. It is ignored if there is no such matrix.
///
/// # Panics
/// If the address is not a multiple of 16 or not in shared memory, if not all lanes call it, or outside of a kernel.
#[track_caller]
pub fn stmatrix(row: u32, registers: &[u32], transposed: bool) {
    let mut line = None;
    for (matrix, &register) in registers.iter().enumerate() {
        let lanes = warp_exchange("stmatrix", register);
        let lane = lanes.lane();
        if lane as usize / 8 != matrix {
            continue;
        }
        let mut bytes = [0u8; 16];
        for element in 0..8 {
            let (r, c) = if transposed {
                (element, lane % 8)
            } else {
                (lane % 8, element)
            };
            // A lane that does not exist has no value.
            let pair = lanes.get(4 * r + c / 2).unwrap_or(u32::MAX).to_le_bytes();
            let (half, to) = (c as usize % 2 * 2, element as usize * 2);
            bytes[to..to + 2].copy_from_slice(&pair[half..half + 2]);
        }
        line = Some(bytes);
    }
    if let Some(bytes) = line {
        // SAFETY: `access_shared` checks the range.
        unsafe {
            access_shared(row, 16, 16, MemoryAccess::Store)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
    }
    warp_exchange("stmatrix", 0);
}
