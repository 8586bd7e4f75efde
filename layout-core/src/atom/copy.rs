//! Copy atoms: which thread reads and which thread writes each element of one copy instruction.
//!
//! [`CopyAtom::universal`] is that of `cp.async` and of plain loads and stores, [`CopyAtom::ldmatrix`]
//! that of the operands of `mma.sync`.

use super::covers;
use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::text::Text;
use crate::{IntTuple, Layout, upcast};

/// A copy instruction as data.
///
/// Source and destination are layouts from (thread, value) to the elements that the instruction
/// copies. They differ if a thread writes other elements than it reads, as in `ldmatrix`. The
/// reference is the side in registers; a [`CopyTiling`](crate::CopyTiling) is tiled in its terms.
///
/// ```
/// use cutlet_layout_core::CopyAtom;
///
/// let atom = CopyAtom::ldmatrix(4, 16);
/// assert_eq!(atom.source().to_string(), "(_32,_8):(_8,_1)"); // a row of 8 from each thread's address
/// assert_eq!(atom.destination().to_string(), "(_32,(_2,_4)):(_2,(_1,_64))");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CopyAtom {
    name: &'static str,
    element_bits: i64,
    source: Layout,
    destination: Layout,
    reference: Layout,
}

impl CopyAtom {
    /// An instruction that copies elements of `element_bits` bits, by layouts from (thread, value)
    /// to elements.
    ///
    /// # Errors
    /// If a layout does not cover every element exactly once, or the sides have different numbers
    /// of threads.
    const fn try_new(
        name: &'static str,
        element_bits: i64,
        source: Layout,
        destination: Layout,
        reference: Layout,
    ) -> Result<CopyAtom, LayoutError> {
        let size = reference.size();
        let all = covers(&source, size) && covers(&destination, size) && covers(&reference, size);
        if !all || source.mode(0).size() != destination.mode(0).size() {
            let mut text = Text::new();
            text.str("CopyAtom: ")
                .str(name)
                .str(" with elements of ")
                .number(element_bits);
            text.str(
                " bits does not copy every element once with the same threads on both sides: ",
            )
            .str("choose another element width");
            return Err(LayoutError::new(ErrorKind::Invalid, &text));
        }
        Ok(CopyAtom {
            name,
            element_bits,
            source,
            destination,
            reference,
        })
    }

    /// Each thread copies `access_bits` bits for itself: plain loads and stores, `cp.async`.
    ///
    /// # Panics
    /// If an access is not a whole number of elements.
    #[track_caller]
    pub const fn universal(access_bits: i64, element_bits: i64) -> CopyAtom {
        assert!(
            element_bits >= 1 && access_bits >= 1 && access_bits % element_bits == 0,
            "CopyAtom: an access is not a whole number of elements: make access_bits a multiple of element_bits"
        );
        let own = Layout::concat2(
            &Layout::static_mode(1, 0),
            &Layout::static_mode(access_bits / element_bits, 1),
        );
        or_panic(CopyAtom::try_new(
            "universal copy",
            element_bits,
            own,
            own,
            own,
        ))
    }

    /// `ldmatrix.x1`, `.x2` or `.x4`: loads `matrices` 8×8 matrices of 16-bit elements. Eight
    /// threads per matrix give the addresses of its rows.
    ///
    /// # Panics
    /// If `matrices` is not 1, 2 or 4, or `element_bits` does not divide 32.
    #[track_caller]
    pub const fn ldmatrix(matrices: i64, element_bits: i64) -> CopyAtom {
        let (rows, registers) = (rows(matrices), registers(matrices));
        or_panic(Self::matrices(
            "ldmatrix",
            element_bits,
            &rows,
            &registers,
            &registers,
        ))
    }

    /// `ldmatrix.trans`: [`ldmatrix`](Self::ldmatrix) with each matrix transposed on the way to
    /// registers.
    ///
    /// # Panics
    /// If `matrices` is not 1, 2 or 4, or `element_bits` does not divide 16.
    #[track_caller]
    pub const fn ldmatrix_transposed(matrices: i64, element_bits: i64) -> CopyAtom {
        let (rows, registers) = (rows(matrices), transposed_registers(matrices));
        or_panic(Self::matrices(
            "ldmatrix.trans",
            element_bits,
            &rows,
            &registers,
            &registers,
        ))
    }

    /// `stmatrix.x1`, `.x2` or `.x4`: [`ldmatrix`](Self::ldmatrix) in the other direction.
    ///
    /// # Panics
    /// If `matrices` is not 1, 2 or 4, or `element_bits` does not divide 32.
    #[track_caller]
    pub const fn stmatrix(matrices: i64, element_bits: i64) -> CopyAtom {
        let (rows, registers) = (rows(matrices), registers(matrices));
        or_panic(Self::matrices(
            "stmatrix",
            element_bits,
            &registers,
            &rows,
            &registers,
        ))
    }

    /// `stmatrix.trans`: [`stmatrix`](Self::stmatrix) with each matrix transposed on the way to
    /// memory.
    ///
    /// # Panics
    /// If `matrices` is not 1, 2 or 4, or `element_bits` does not divide 16.
    #[track_caller]
    pub const fn stmatrix_transposed(matrices: i64, element_bits: i64) -> CopyAtom {
        let (rows, registers) = (rows(matrices), transposed_registers(matrices));
        or_panic(Self::matrices(
            "stmatrix.trans",
            element_bits,
            &registers,
            &rows,
            &registers,
        ))
    }

    /// An instruction whose sides are given as layouts (thread, bit) → bit.
    const fn matrices(
        name: &'static str,
        element_bits: i64,
        source: &Layout,
        destination: &Layout,
        reference: &Layout,
    ) -> Result<CopyAtom, LayoutError> {
        CopyAtom::try_new(
            name,
            element_bits,
            tri!(crate::try_upcast(source, element_bits)),
            upcast(destination, element_bits),
            upcast(reference, element_bits),
        )
    }

    /// The instruction's name in PTX; "universal copy" for plain loads and stores.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The width of an element, in bits.
    pub const fn element_bits(&self) -> i64 {
        self.element_bits
    }

    /// The number of threads that execute the instruction together.
    pub const fn threads(&self) -> i64 {
        self.reference.mode(0).size()
    }

    /// (thread, value) → the element that the thread reads.
    pub const fn source(&self) -> &Layout {
        &self.source
    }

    /// (thread, value) → the element that the thread writes.
    pub const fn destination(&self) -> &Layout {
        &self.destination
    }

    /// The side whose threads hold registers.
    pub const fn reference(&self) -> &Layout {
        &self.reference
    }
}

/// Bits of a matrix row.
const ROW: i64 = 128;
/// Bits of a matrix.
const MATRIX: i64 = 8 * ROW;

/// (thread, bit) → bit on the side in memory: each thread gives the address of a row. Threads that
/// are not needed repeat the addresses of others.
const fn rows(matrices: i64) -> Layout {
    assert!(
        matches!(matrices, 1 | 2 | 4),
        "CopyAtom: ldmatrix and stmatrix move 1, 2 or 4 matrices: choose one of these numbers"
    );
    let needed = 8 * matrices;
    let threads = if needed == 32 {
        Layout::static_mode(32, ROW)
    } else {
        Layout::from_shape_stride(
            &IntTuple::fixed(&[needed, 32 / needed]),
            &IntTuple::fixed(&[ROW, 0]),
        )
    };
    Layout::concat2(&threads, &Layout::static_mode(ROW, 1))
}

/// (thread, bit) → bit on the side in registers: a thread holds 32 bits of each matrix, four
/// threads a row.
const fn registers(matrices: i64) -> Layout {
    let bits = if matrices == 1 {
        Layout::static_mode(32, 1)
    } else {
        Layout::from_shape_stride(
            &IntTuple::fixed(&[32, matrices]),
            &IntTuple::fixed(&[1, MATRIX]),
        )
    };
    Layout::concat2(&Layout::static_mode(32, 32), &bits)
}

/// [`registers`] of transposed matrices of 16-bit elements: four threads hold a column.
const fn transposed_registers(matrices: i64) -> Layout {
    let threads =
        Layout::from_shape_stride(&IntTuple::fixed(&[4, 8]), &IntTuple::fixed(&[2 * ROW, 16]));
    let bits = if matrices == 1 {
        Layout::from_shape_stride(&IntTuple::fixed(&[16, 2]), &IntTuple::fixed(&[1, ROW]))
    } else {
        Layout::from_shape_stride(
            &IntTuple::fixed(&[16, 2, matrices]),
            &IntTuple::fixed(&[1, ROW, MATRIX]),
        )
    };
    Layout::concat2(&threads, &bits)
}

const _: () = {
    let mut matrices = 1;
    while matrices <= 4 {
        let _ = CopyAtom::ldmatrix(matrices, 16);
        let _ = CopyAtom::ldmatrix_transposed(matrices, 16);
        let _ = CopyAtom::stmatrix(matrices, 16);
        let _ = CopyAtom::stmatrix_transposed(matrices, 16);
        matrices *= 2;
    }
};
