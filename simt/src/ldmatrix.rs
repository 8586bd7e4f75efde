//! `ldmatrix`: the lanes of a warp load 8×8 matrices of 16-bit elements.

use crate::shadow::MemoryAccess;
use crate::shared::locate;
use crate::shared_access::access_shared;
use crate::sync::warp_meet;
use crate::warp::WARP_SIZE;

/// Bytes of a row.
const ROW: u32 = 16;
/// Rows of a matrix.
const ROWS: u32 = 8;

/// Loads one matrix per register: `registers[i]` is the lane's part of matrix `i`, or of the transposed matrix if
/// `transposed`. `row` is the shared address of row `lane % 8` of matrix `lane / 8`. It is ignored if there is no such
/// matrix.
///
/// # Panics
/// - If the address of a row is not a multiple of 16, or is not in shared memory.
/// - If a copy to what the lane loads is in flight that the lane has not waited for.
/// - If not all 32 lanes call it.
/// - Outside of a kernel.
#[track_caller]
pub fn ldmatrix(row: u32, registers: &mut [u32], transposed: bool) {
    let lane = crate::context::lane();
    if (lane / ROWS) < registers.len() as u32 {
        locate(row, ROW, ROW);
    }
    let lanes = warp_meet("ldmatrix", row, || {});
    let (across, along) = (lane / 4, lane % 4 * 2);
    for (matrix, register) in registers.iter_mut().enumerate() {
        let address = |r: u32| {
            let provider = (matrix as u32 * ROWS + r) % WARP_SIZE as u32;
            // All 32 lanes are there.
            lanes.get(provider).unwrap_or_default()
        };
        *register = if transposed {
            let half = |r: u32| {
                let from =
                    access_shared(address(r) + 2 * across, 2, 2, MemoryAccess::Load).cast::<u16>();
                // SAFETY: `access_shared` checks the range and the alignment.
                u32::from(unsafe { from.read() })
            };
            half(along) | half(along + 1) << 16
        } else {
            let from =
                access_shared(address(across) + 2 * along, 4, 4, MemoryAccess::Load).cast::<u32>();
            // SAFETY: as above.
            unsafe { from.read() }
        };
    }
}
