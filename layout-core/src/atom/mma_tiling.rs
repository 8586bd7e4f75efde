//! The tilings of MMAs: an MMA atom repeated over more threads and values.
//!
//! They are values: [`TiledMma`](crate::TiledMma) is the type that kernels use, and computes its layouts by them.

use super::MmaAtom;
use crate::error::{LayoutError, or_panic, tri};
use crate::layout::LayoutBuilder;
use crate::value_tensor::underscores;
use crate::{
    IntTuple, Layout, Tiler, ValueTensor, right_inverse, try_composition, try_logical_divide,
    try_tiled_product, try_zipped_divide,
};

/// An [`MmaAtom`] that several warps (or warpgroups, or threads) execute at once, each on its own
/// part of a tile.
///
/// ```
/// use cutlet_layout_core::{M16N8K16Bits16, Mma, MmaTiling, layout};
///
/// // 2×4 warps over M and N.
/// let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((2, 4, 1):(1, 2, 8)));
/// assert_eq!(mma.threads(), 256);
/// assert_eq!(mma.tile(), [32, 32, 16]);
/// let c = mma.thrfrg_c(&layout!((128, 128):(1, 128)));
/// assert_eq!(c.mode(1).to_string(), "((_2,_2),(_4,_4)):((_128,_8),(_32,_4096))");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MmaTiling {
    atom: MmaAtom,
    /// (lane, m, n, k) → thread.
    threads: Layout,
    permutations: [Tiler; 3],
}

/// The directions of A among (M, N, K).
const A: [usize; 2] = [0, 2];
/// The directions of B among (M, N, K).
const B: [usize; 2] = [1, 2];
/// The directions of C among (M, N, K).
const C: [usize; 2] = [0, 1];

impl MmaTiling {
    /// The atom executed at each coordinate (m, n, k) of `atoms`, a compact layout that numbers the
    /// executing warps.
    ///
    /// # Panics
    /// If `atoms` is not of rank 3, or not compact.
    #[track_caller]
    pub const fn new(atom: MmaAtom, atoms: &Layout) -> MmaTiling {
        assert!(
            atoms.rank() == 3,
            "MmaTiling: the layout of atoms is not of rank 3: give it a mode each for M, N and K"
        );
        assert!(
            super::covers(atoms, atoms.size()),
            "MmaTiling: the layout of atoms is not compact: number the atoms from 0, each once"
        );
        let lanes = Layout::static_mode(atom.threads(), 1);
        let threads = or_panic(try_tiled_product(&lanes, &Tiler::layout(atoms)));
        MmaTiling {
            atom,
            threads,
            permutations: [Tiler::UNDERSCORE; 3],
        }
    }

    /// The tiled MMA with a tiler for each of M, N and K, by which the direction is divided first.
    /// A layout as tiler permutes the elements of a tile, for example so that values of
    /// neighbouring atoms become one vector.
    pub const fn permuted(self, permutations: [Tiler; 3]) -> MmaTiling {
        MmaTiling {
            permutations,
            ..self
        }
    }

    /// The atom.
    pub const fn atom(&self) -> &MmaAtom {
        &self.atom
    }

    /// The number of threads.
    pub const fn threads(&self) -> i64 {
        self.threads.size()
    }

    /// (lane, m, n, k) → thread: CuTe's `thr_layout_VMNK`.
    pub const fn thr_layout_vmnk(&self) -> &Layout {
        &self.threads
    }

    /// The tile (M, N, K) that all threads work on at once. In each direction its extent is the
    /// size of the permutation, if that is a layout, or else the atoms' extents together.
    pub const fn tile(&self) -> [i64; 3] {
        let mut tile = [0; 3];
        let mut i = 0;
        while i < 3 {
            tile[i] = match self.permutations[i].kind() {
                crate::TilerKind::Layout(layout) => layout.size(),
                _ => self.atom.shape()[i] * self.threads.mode(1 + i).size(),
            };
            i += 1;
        }
        tile
    }

    /// A layout of an M×K operand A as `((lane, (m, k)), (value, (RestM, RestK)))`.
    ///
    /// # Panics
    /// If [`try_thrfrg_a`](Self::try_thrfrg_a) returns an error.
    #[track_caller]
    pub const fn thrfrg_a(&self, a: &Layout) -> Layout {
        or_panic(self.try_thrfrg_a(a))
    }

    /// A layout of an N×K operand B as `((lane, (n, k)), (value, (RestN, RestK)))`.
    ///
    /// # Panics
    /// If [`try_thrfrg_b`](Self::try_thrfrg_b) returns an error.
    #[track_caller]
    pub const fn thrfrg_b(&self, b: &Layout) -> Layout {
        or_panic(self.try_thrfrg_b(b))
    }

    /// A layout of an M×N operand C as `((lane, (m, n)), (value, (RestM, RestN)))`.
    ///
    /// # Panics
    /// If [`try_thrfrg_c`](Self::try_thrfrg_c) returns an error.
    #[track_caller]
    pub const fn thrfrg_c(&self, c: &Layout) -> Layout {
        or_panic(self.try_thrfrg_c(c))
    }

    /// [`thrfrg_a`](Self::thrfrg_a), or the reason why there is none.
    ///
    /// # Errors
    /// If the operand's layout cannot be divided by the atom.
    pub const fn try_thrfrg_a(&self, a: &Layout) -> Result<Layout, LayoutError> {
        self.thrfrg(a, A, self.atom.a())
    }

    /// [`thrfrg_b`](Self::thrfrg_b), or the reason why there is none.
    ///
    /// # Errors
    /// If the operand's layout cannot be divided by the atom.
    pub const fn try_thrfrg_b(&self, b: &Layout) -> Result<Layout, LayoutError> {
        self.thrfrg(b, B, self.atom.b())
    }

    /// [`thrfrg_c`](Self::thrfrg_c), or the reason why there is none.
    ///
    /// # Errors
    /// If the operand's layout cannot be divided by the atom.
    pub const fn try_thrfrg_c(&self, c: &Layout) -> Result<Layout, LayoutError> {
        self.thrfrg(c, C, self.atom.c())
    }

    const fn thrfrg(
        &self,
        operand: &Layout,
        [i, j]: [usize; 2],
        atom: &Layout,
    ) -> Result<Layout, LayoutError> {
        let permutation = Tiler::tuple(&[self.permutations[i], self.permutations[j]]);
        let permuted = tri!(try_logical_divide(operand, &permutation));
        let tile = IntTuple::fixed(&[self.atom.shape()[i], self.atom.shape()[j]]);
        let divided = tri!(try_zipped_divide(&permuted, &Tiler::shape(&tile)));
        let values = tri!(try_composition(&divided.mode(0), atom));
        let rest = divided.mode(1);
        let first = tri!(split(&rest.mode(0), &self.threads.mode(1 + i)));
        let second = tri!(split(&rest.mode(1), &self.threads.mode(1 + j)));
        let mut builder = LayoutBuilder::new();
        builder.open();
        builder.open();
        builder.append(&values.mode(0));
        builder.open();
        builder.append(&first.mode(0));
        builder.append(&second.mode(0));
        builder.close();
        builder.close();
        builder.open();
        builder.append(&values.mode(1));
        builder.open();
        builder.append(&first.mode(1));
        builder.append(&second.mode(1));
        let mut other = 2;
        while other < rest.rank() {
            builder.append(&rest.mode(other));
            other += 1;
        }
        builder.close();
        builder.close();
        builder.close();
        builder.finish()
    }

    /// (thread, value) → position in the M×K tile of A: CuTe's `get_layoutA_TV`.
    pub const fn get_layout_a_tv(&self) -> Layout {
        let [m, _, k] = self.tile();
        self.layout_a_tv(&Layout::col_major(&IntTuple::fixed(&[m, k])))
    }

    /// (thread, (value, (RestM, RestK))) → where a layout of an M×K operand A leads.
    ///
    /// # Panics
    /// If [`try_thrfrg_a`](Self::try_thrfrg_a) returns an error.
    #[track_caller]
    pub const fn layout_a_tv(&self, a: &Layout) -> Layout {
        self.by_thread(&self.thrfrg_a(a), A)
    }

    /// (thread, value) → position in the N×K tile of B: CuTe's `get_layoutB_TV`.
    pub const fn get_layout_b_tv(&self) -> Layout {
        let [_, n, k] = self.tile();
        self.layout_b_tv(&Layout::col_major(&IntTuple::fixed(&[n, k])))
    }

    /// (thread, (value, (RestN, RestK))) → where a layout of an N×K operand B leads.
    ///
    /// # Panics
    /// If [`try_thrfrg_b`](Self::try_thrfrg_b) returns an error.
    #[track_caller]
    pub const fn layout_b_tv(&self, b: &Layout) -> Layout {
        self.by_thread(&self.thrfrg_b(b), B)
    }

    /// (thread, value) → position in the M×N tile of C: CuTe's `get_layoutC_TV`.
    pub const fn get_layout_c_tv(&self) -> Layout {
        let [m, n, _] = self.tile();
        self.layout_c_tv(&Layout::col_major(&IntTuple::fixed(&[m, n])))
    }

    /// (thread, (value, (RestM, RestN))) → where a layout of an M×N operand C leads.
    ///
    /// # Panics
    /// If [`try_thrfrg_c`](Self::try_thrfrg_c) returns an error.
    #[track_caller]
    pub const fn layout_c_tv(&self, c: &Layout) -> Layout {
        self.by_thread(&self.thrfrg_c(c), C)
    }

    /// Replaces the mode (lane, (i, j)) by thread numbers. Threads that differ only in the
    /// direction that the operand lacks share their elements.
    const fn by_thread(&self, thrfrg: &Layout, [i, j]: [usize; 2]) -> Layout {
        let holders = thrfrg.mode(0);
        let mut builder = LayoutBuilder::new();
        builder.open();
        builder.append(&holders.mode(0));
        let mut direction = 0;
        while direction < 3 {
            if direction == i {
                builder.append(&holders.mode(1).mode(0));
            } else if direction == j {
                builder.append(&holders.mode(1).mode(1));
            } else {
                let extent = self.threads.mode(1 + direction).size();
                builder.append(&Layout::static_mode(extent, 0));
            }
            direction += 1;
        }
        builder.close();
        let by_coordinate = or_panic(builder.finish());
        let threads = or_panic(try_composition(
            &by_coordinate,
            &right_inverse(&self.threads),
        ));
        Layout::concat2(&threads, &thrfrg.mode(1))
    }

    /// The part of an M×K operand A that a thread holds, as `(value, RestM, RestK)`.
    ///
    /// # Panics
    /// If [`try_thrfrg_a`](Self::try_thrfrg_a) returns an error, or if there is no such thread.
    #[track_caller]
    pub fn partition_a<E, I: Copy>(&self, a: ValueTensor<E, I>, thread: i64) -> ValueTensor<E, I> {
        let thrfrg = self.thrfrg_a(a.outer());
        self.slice(a.with_outer(thrfrg), thread, A)
    }

    /// The part of an N×K operand B that a thread holds, as `(value, RestN, RestK)`.
    ///
    /// # Panics
    /// If [`try_thrfrg_b`](Self::try_thrfrg_b) returns an error, or if there is no such thread.
    #[track_caller]
    pub fn partition_b<E, I: Copy>(&self, b: ValueTensor<E, I>, thread: i64) -> ValueTensor<E, I> {
        let thrfrg = self.thrfrg_b(b.outer());
        self.slice(b.with_outer(thrfrg), thread, B)
    }

    /// The part of an M×N operand C that a thread holds, as `(value, RestM, RestN)`.
    ///
    /// ```
    /// use cutlet_layout_core::{Counting, M16N8K16Bits16, Mma, MmaTiling, ValueTensor, layout};
    ///
    /// let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((2, 2, 1):(1, 2, 4)));
    /// let c = ValueTensor::new(Counting, layout!((64, 32):(32, 1)));
    /// let mine = mma.partition_c(c, 33); // lane 1 of the warp at (1, 0)
    /// assert_eq!(mine.outer().to_string(), "((_2,_2),_2,_2):((_1,_256),_1024,_16)");
    /// assert_eq!(mine.at(0), (16 * 32 + 2).into());
    /// ```
    ///
    /// # Panics
    /// If [`try_thrfrg_c`](Self::try_thrfrg_c) returns an error, or if there is no such thread.
    #[track_caller]
    pub fn partition_c<E, I: Copy>(&self, c: ValueTensor<E, I>, thread: i64) -> ValueTensor<E, I> {
        let thrfrg = self.thrfrg_c(c.outer());
        self.slice(c.with_outer(thrfrg), thread, C)
    }

    #[track_caller]
    fn slice<E, I: Copy>(
        &self,
        thrfrg: ValueTensor<E, I>,
        thread: i64,
        [i, j]: [usize; 2],
    ) -> ValueTensor<E, I> {
        let threads = self.threads();
        assert!(
            (0..threads).contains(&thread),
            "MmaTiling: there is no thread {thread}: the {threads} threads are numbered from 0"
        );
        let at = self.threads.get_flat_coord(thread.into());
        let holder = IntTuple::tuple(&[
            at.mode(0),
            IntTuple::tuple(&[at.mode(1 + i), at.mode(1 + j)]),
        ]);
        let rest = underscores(thrfrg.outer().get(&[1, 1]).rank());
        let values = IntTuple::tuple(&[IntTuple::UNDERSCORE, rest]);
        thrfrg.slice(&IntTuple::tuple(&[holder, values]))
    }
}

/// Divides a rest mode into (threads, rest of each thread).
const fn split(rest: &Layout, threads: &Layout) -> Result<Layout, LayoutError> {
    try_logical_divide(
        rest,
        &Tiler::layout(&Layout::static_mode(threads.size(), 1)),
    )
}
