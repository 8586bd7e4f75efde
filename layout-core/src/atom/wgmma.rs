//! The MMA instructions of a warpgroup: `wgmma.m64nNkK`.

use super::MmaAtom;
use crate::{E, IntTuple, L, Layout, Tv};

/// The thread layout of registers: four threads along a row, eight rows, four warps.
type Threads = L!((4, 8, 4):(2@1, 1@0, 16@0));

/// C and D of `wgmma.m64nN`, N = 8·`N8`: in every 8 columns, a thread holds two neighbours of a row
/// and the two 8 rows below them.
pub type WgmmaC<const N8: usize> = Tv<Threads, (E<2, 1, 1>, E<2, 8, 0>, E<N8, 8, 1>)>;

/// A of `wgmma` in registers, 64×8 elements of 32 bits: tf32.
pub type WgmmaA32 = Tv<L!((4, 8, 4):(1@1, 1@0, 16@0)), L!((2, 2):(8@0, 4@1))>;

/// A of `wgmma` in registers, 64×16 elements of 16 bits: bf16 and f16.
pub type WgmmaA16 = Tv<Threads, L!((2, 2, 2):(1@1, 8@0, 8@1))>;

/// A of `wgmma` in registers, 64×32 elements of 8 bits: s8, u8, e4m3 and e5m2.
pub type WgmmaA8 = Tv<L!((4, 8, 4):(4@1, 1@0, 16@0)), L!((4, 2, 2):(1@1, 8@0, 16@1))>;

/// Threads of a warpgroup.
const THREADS: i64 = 128;

impl MmaAtom {
    /// `wgmma.m64nNkK` with A and B in shared memory, for elements of `bits` bits (8, 16 or 32;
    /// K is 256 / `bits`). All threads of the warpgroup share A and B.
    ///
    /// ```
    /// use cutlet_layout_core::MmaAtom;
    ///
    /// let atom = MmaAtom::wgmma(256, 16);
    /// assert_eq!(atom.shape(), [64, 256, 16]);
    /// assert_eq!(atom.c().to_string(), "((_4,_8,_4),(_2,_2,_32)):((_128,_1,_16),(_64,_8,_512))");
    /// assert_eq!(atom.b().to_string(), "(_128,(_256,_16)):(_0,(_1,_256))");
    /// ```
    ///
    /// # Panics
    /// If `n` is not a multiple of 8 up to 256, or `bits` is not 8, 16 or 32.
    #[track_caller]
    pub const fn wgmma(n: i64, bits: i64) -> MmaAtom {
        let k = depth(bits);
        MmaAtom::new(
            "wgmma.mma_async.sync.aligned",
            [64, n, k],
            &shared(64, k),
            &shared(n, k),
            &accumulators(n),
        )
    }

    /// [`wgmma`](Self::wgmma) with A in registers.
    ///
    /// # Panics
    /// As [`wgmma`](Self::wgmma).
    #[track_caller]
    pub const fn wgmma_from_registers(n: i64, bits: i64) -> MmaAtom {
        let k = depth(bits);
        let a = match bits {
            8 => super::mma::positions::<WgmmaA8>(64, k),
            16 => super::mma::positions::<WgmmaA16>(64, k),
            _ => super::mma::positions::<WgmmaA32>(64, k),
        };
        MmaAtom::new(
            "wgmma.mma_async.sync.aligned",
            [64, n, k],
            &a,
            &shared(n, k),
            &accumulators(n),
        )
    }
}

/// K of the instruction: 32 bytes of elements.
const fn depth(bits: i64) -> i64 {
    assert!(
        matches!(bits, 8 | 16 | 32),
        "wgmma: there is no instruction for elements of this width: use 8, 16 or 32 bits"
    );
    256 / bits
}

const fn accumulators(n: i64) -> Layout {
    assert!(
        n >= 8 && n <= 256 && n % 8 == 0,
        "wgmma: there is no instruction for this N: use a multiple of 8, at most 256"
    );
    Layout::concat2(
        &Layout::from_shape_stride(
            &IntTuple::fixed(&[4, 8, 4]),
            &IntTuple::fixed(&[128, 1, 16]),
        ),
        &Layout::from_shape_stride(
            &IntTuple::fixed(&[2, 2, n / 8]),
            &IntTuple::fixed(&[64, 8, 512]),
        ),
    )
}

/// An operand in shared memory: every thread sees all of it.
const fn shared(rows: i64, columns: i64) -> Layout {
    Layout::concat2(
        &Layout::static_mode(THREADS, 0),
        &Layout::col_major(&IntTuple::fixed(&[rows, columns])),
    )
}

// The types and the values describe the same layouts.
const _: () = assert!(super::mma::positions::<WgmmaC<32>>(64, 256).eq(MmaAtom::wgmma(256, 16).c()));
const _: () = {
    let _ = (
        MmaAtom::wgmma_from_registers(8, 8),
        MmaAtom::wgmma_from_registers(8, 16),
        MmaAtom::wgmma_from_registers(8, 32),
    );
};
