//! The product of a thread's fragments, by the instruction of a tiled MMA.

use cutlet_layout_core::{
    Arrangement, Fragment, FragmentLayout, OperandC, PartitionValues, Permutation, StaticLayout,
    ThreadIndex, ThreadMma, TiledMma, each,
};

use crate::MmaInstruction;
use crate::sm80::WarpMma;

/// A thread's accumulators of an M×N tile of C.
pub type FragmentC<I, W, P, Tile> =
    Fragment<<I as MmaInstruction>::Acc, PartitionValues<TiledMma<I, W, P>, OperandC, Tile>>;

/// Adds the product of one step along k to the accumulators of a tile of C: `c += a·bᵀ`. All threads of the tiled MMA call
/// it, each with its own fragments.
///
/// `a` has the registers of an instruction for each of its rows of instructions, and `b` for each column, as
/// [`load_a`](super::load_a) and [`load_b`](super::load_b) return them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn gemm<I, W, P, X, RowsOfA, RowsOfB, Tile>(
    _mma: ThreadMma<TiledMma<I, W, P>, X>,
    a: &Fragment<I::FragmentA, RowsOfA>,
    b: &Fragment<I::FragmentB, RowsOfB>,
    c: &mut FragmentC<I, W, P, Tile>,
) where
    I: WarpMma,
    W: Arrangement,
    P: Permutation,
    X: ThreadIndex,
    RowsOfA: FragmentLayout,
    RowsOfB: FragmentLayout,
    PartitionValues<TiledMma<I, W, P>, OperandC, Tile>: FragmentLayout,
{
    let of_an_atom = const { <I as MmaInstruction>::Values::SIZE };
    const {
        assert!(
            <I as MmaInstruction>::Values::SIZE * RowsOfA::SIZE * RowsOfB::SIZE
                == PartitionValues::<TiledMma<I, W, P>, OperandC, Tile>::SIZE,
            "gemm: the tiles of A and B have other rows than the tile of C has rows and columns: take tiles of the same \
             M and N"
        )
    }
    each::<RowsOfB>(|n| {
        each::<RowsOfA>(|m| {
            let first = of_an_atom * (m + RowsOfA::SIZE * n);
            let mut of_atom = Fragment::from_fn(|v| c.get(first + v));
            I::mma(&mut of_atom, a.get(m), b.get(n));
            each::<<I as MmaInstruction>::Values>(|v| c.set(first + v, of_atom.get(v)));
        });
    });
}
