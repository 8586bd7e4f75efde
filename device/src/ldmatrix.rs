//! `ldmatrix`: a warp loads 8×8 matrices of 16-bit elements from shared memory to registers, in rows of 16 bytes.
//!
//! It brings A and B to the registers in which [`WarpMma`](crate::sm80::WarpMma) takes them.

use crate::{DeviceData, Shared};

/// Loads one, two or four matrices of 8 rows of 16 bytes.
///
/// Register `i` of lane `l` holds the four bytes from byte `4·(l mod 4)` of row `l / 4` of matrix `i`. These are
/// elements `2·(l mod 4)` and `2·(l mod 4) + 1` of 16-bit types, four elements of 8-bit types, and one of 32-bit types.
/// The `row` of lane `l` is the address of row `l mod 8` of matrix `l / 8`, if there is such a matrix. All lanes of the
/// warp call it.
///
/// # Safety
/// `row` must be 16-byte aligned in shared memory, with 16 bytes that were written before and that no other thread
/// writes at the same time. That does not concern lanes whose matrix is not loaded.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn ldmatrix<T: DeviceData, const MATRICES: usize>(row: Shared<T>) -> [u32; MATRICES] {
    const {
        assert!(
            matches!(size_of::<T>(), 1 | 2 | 4),
            "ldmatrix loads elements of 8, 16 or 32 bits"
        );
        check(MATRICES);
    }
    // SAFETY: as promised by the caller.
    unsafe { imp::ldmatrix::<false, MATRICES>(row.address()) }
}

/// [`ldmatrix`] of the transposed matrices, of 16-bit elements: lane `l` gets elements `2·(l mod 4)` and `2·(l mod 4) +
/// 1` of column `l / 4`.
///
/// # Safety
/// As [`ldmatrix`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn ldmatrix_transposed<T: DeviceData, const MATRICES: usize>(
    row: Shared<T>,
) -> [u32; MATRICES] {
    const {
        assert!(
            size_of::<T>() == 2,
            "ldmatrix_transposed loads elements of 16 bits"
        );
        check(MATRICES);
    }
    // SAFETY: as promised by the caller.
    unsafe { imp::ldmatrix::<true, MATRICES>(row.address()) }
}

const fn check(matrices: usize) {
    assert!(
        matches!(matrices, 1 | 2 | 4),
        "ldmatrix loads 1, 2 or 4 matrices"
    );
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    /// The assembly is not `pure`: the compiler would move it to where its results are used, which not all lanes of the
    /// warp may reach.
    macro_rules! ldmatrix {
        ($matrices:literal $transposed:literal $row:ident: $($register:ident)*) => {
            asm!(
                concat!("ldmatrix.sync.aligned.m8n8.", $matrices, $transposed, ".shared.b16 {{",
                    ldmatrix!(@list $($register)*), "}}, [{row}];"),
                row = in(reg32) $row, $($register = out(reg32) *$register,)*
                options(readonly, nostack))
        };
        (@list $first:ident $($register:ident)*) => {
            concat!("{", stringify!($first), "}", $(", {", stringify!($register), "}",)*)
        };
    }

    #[inline(always)]
    pub unsafe fn ldmatrix<const TRANSPOSED: bool, const MATRICES: usize>(
        row: u32,
    ) -> [u32; MATRICES] {
        let mut registers = [0; MATRICES];
        // SAFETY: as promised by the caller.
        unsafe {
            match (&mut registers[..], TRANSPOSED) {
                ([a], false) => ldmatrix!("x1" "" row: a),
                ([a], true) => ldmatrix!("x1" ".trans" row: a),
                ([a, b], false) => ldmatrix!("x2" "" row: a b),
                ([a, b], true) => ldmatrix!("x2" ".trans" row: a b),
                ([a, b, c, d], false) => ldmatrix!("x4" "" row: a b c d),
                ([a, b, c, d], true) => ldmatrix!("x4" ".trans" row: a b c d),
                _ => unreachable!("1, 2 or 4 matrices"),
            }
        }
        registers
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    #[track_caller]
    pub unsafe fn ldmatrix<const TRANSPOSED: bool, const MATRICES: usize>(
        row: u32,
    ) -> [u32; MATRICES] {
        let mut registers = [0; MATRICES];
        cutlet_simt::ldmatrix(row, &mut registers, TRANSPOSED);
        registers
    }
}
