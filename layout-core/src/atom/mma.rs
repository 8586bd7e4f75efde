//! MMA atoms: which thread holds which elements of A, B and C.

use super::covers;
use crate::{IntTuple, Layout, StaticLayout, ThreadValue, composition};

/// A matrix multiply-accumulate instruction, D = A·B + C, as data.
///
/// A is M×K, B is N×K, and C and D are M×N. For each operand, a layout maps (thread, value) to the
/// element's position, counted down the columns, as in CuTe's `MMA_Traits`.
///
/// ```
/// use cutlet_layout_core::{M16N8K16Bits16, Mma};
///
/// let atom = M16N8K16Bits16::ATOM;
/// assert_eq!(atom.a().to_string(), "((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))");
/// assert_eq!(atom.c().to_string(), "((_4,_8),(_2,_2)):((_32,_1),(_16,_8))");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MmaAtom {
    name: &'static str,
    shape: [i64; 3],
    a: Layout,
    b: Layout,
    c: Layout,
}

impl MmaAtom {
    /// An instruction of the shape (M, N, K) with these thread-value layouts of A, B and C.
    ///
    /// # Panics
    /// If a layout does not cover each element of its operand exactly once, or the layouts have
    /// different numbers of threads.
    pub const fn new(
        name: &'static str,
        shape: [i64; 3],
        a: &Layout,
        b: &Layout,
        c: &Layout,
    ) -> MmaAtom {
        let [m, n, k] = shape;
        assert!(
            covers(a, m * k),
            "MmaAtom: the layout of A does not hold each element of M×K exactly once: correct it or the shape"
        );
        assert!(
            covers(b, n * k),
            "MmaAtom: the layout of B does not hold each element of N×K exactly once: correct it or the shape"
        );
        assert!(
            covers(c, m * n),
            "MmaAtom: the layout of C does not hold each element of M×N exactly once: correct it or the shape"
        );
        let threads = c.mode(0).size();
        assert!(
            a.mode(0).size() == threads && b.mode(0).size() == threads,
            "MmaAtom: the layouts of A, B and C have different numbers of threads: give all three the same mode 0 size"
        );
        MmaAtom {
            name,
            shape,
            a: *a,
            b: *b,
            c: *c,
        }
    }

    /// An instruction with these thread-value layouts, which map to the coordinates of A, B and C.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub const fn of<A: ThreadValue, B: ThreadValue, C: ThreadValue>(
        name: &'static str,
        shape: [i64; 3],
    ) -> MmaAtom {
        let [m, n, k] = shape;
        let (a, b, c) = (
            positions::<A>(m, k),
            positions::<B>(n, k),
            positions::<C>(m, n),
        );
        MmaAtom::new(name, shape, &a, &b, &c)
    }

    /// The instruction's name in PTX.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The shape (M, N, K).
    pub const fn shape(&self) -> [i64; 3] {
        self.shape
    }

    /// The number of threads that execute the instruction together.
    pub const fn threads(&self) -> i64 {
        self.c.mode(0).size()
    }

    /// (thread, value) → position in the M×K operand A.
    pub const fn a(&self) -> &Layout {
        &self.a
    }

    /// (thread, value) → position in the N×K operand B.
    pub const fn b(&self) -> &Layout {
        &self.b
    }

    /// (thread, value) → position in the M×N operands C and D.
    pub const fn c(&self) -> &Layout {
        &self.c
    }
}

/// (thread, value) → position in a matrix, counted down its columns.
pub(super) const fn positions<C: ThreadValue>(rows: i64, columns: i64) -> Layout {
    let matrix = Layout::col_major(&IntTuple::fixed(&[rows, columns]));
    composition(&matrix, &Layout::concat2(&C::Thr::LAYOUT, &C::Val::LAYOUT))
}
