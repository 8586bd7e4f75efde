//! `stmatrix`: a warp stores 8×8 matrices of 16-bit elements from registers to shared memory, in rows of 16 bytes.

use crate::{DeviceData, Shared};

/// Stores one, two or four 8×8 matrices of 16-bit elements.
///
/// Register `i` of lane `l` holds elements `2·(l mod 4)` and `2·(l mod 4) + 1` of row `l / 4` of matrix `i`. The `row`
/// of lane `l` is the address for row `l mod 8` of matrix `l / 8`, if there is such a matrix. All lanes of the warp
/// call it. Hopper and newer GPUs have the instruction.
///
/// # Safety
/// `row` must be 16-byte aligned in shared memory, with room for 8 elements that no other thread accesses.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn stmatrix<T: DeviceData, const MATRICES: usize>(
    row: Shared<T>,
    registers: [u32; MATRICES],
) {
    const { check(size_of::<T>(), MATRICES) };
    // SAFETY: as promised by the caller.
    unsafe { imp::stmatrix::<false>(row.address(), &registers) };
}

/// [`stmatrix`] of the transposed matrices: the `column` of lane `l` is the address for column `l mod 8` of matrix `l /
/// 8`.
///
/// # Safety
/// As [`stmatrix`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn stmatrix_transposed<T: DeviceData, const MATRICES: usize>(
    column: Shared<T>,
    registers: [u32; MATRICES],
) {
    const { check(size_of::<T>(), MATRICES) };
    // SAFETY: as promised by the caller.
    unsafe { imp::stmatrix::<true>(column.address(), &registers) };
}

const fn check(bytes: usize, matrices: usize) {
    assert!(bytes == 2, "stmatrix stores elements of 16 bits");
    assert!(
        matches!(matrices, 1 | 2 | 4),
        "stmatrix stores 1, 2 or 4 matrices"
    );
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    macro_rules! stmatrix {
        ($matrices:literal $transposed:literal $row:ident: $($register:ident)*) => {
            asm!(
                concat!("stmatrix.sync.aligned.m8n8.", $matrices, $transposed, ".shared.b16 [{row}], {{",
                    stmatrix!(@list $($register)*), "}};"),
                row = in(reg32) $row, $($register = in(reg32) $register,)* options(nostack))
        };
        (@list $first:ident $($register:ident)*) => {
            concat!("{", stringify!($first), "}", $(", {", stringify!($register), "}",)*)
        };
    }

    #[inline(always)]
    pub unsafe fn stmatrix<const TRANSPOSED: bool>(row: u32, registers: &[u32]) {
        // SAFETY: as promised by the caller.
        unsafe {
            match (registers, TRANSPOSED) {
                (&[a], false) => stmatrix!("x1" "" row: a),
                (&[a], true) => stmatrix!("x1" ".trans" row: a),
                (&[a, b], false) => stmatrix!("x2" "" row: a b),
                (&[a, b], true) => stmatrix!("x2" ".trans" row: a b),
                (&[a, b, c, d], false) => stmatrix!("x4" "" row: a b c d),
                (&[a, b, c, d], true) => stmatrix!("x4" ".trans" row: a b c d),
                _ => unreachable!("1, 2 or 4 matrices"),
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    #[track_caller]
    pub unsafe fn stmatrix<const TRANSPOSED: bool>(row: u32, registers: &[u32]) {
        cutlet_simt::stmatrix(row, registers, TRANSPOSED);
    }
}
