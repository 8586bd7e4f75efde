//! Accumulators of one product as operand A of the next, without a copy.

use cutlet_layout_core::{
    Arrangement, Fragment, FragmentLayout, InOrder, OperandC, PartitionValues, Repeats,
    StaticLayout, ThreadIndex, ThreadMma, TileShape, TiledMma,
};

use super::{FragmentA, FragmentC};
use crate::sm80::{Mma16816, WarpMma, accumulators_to_a};
use crate::{Float16, MmaInstruction};

/// The registers of operand A in one step along k, of accumulators of an M×K tile: what attention multiplies by V. They
/// are rounded to `T`.
///
/// Each warp must have all columns, so that its threads hold what they multiply: `L!((4, 1):(1, 0))` has four warps below
/// one another.
#[inline(always)]
pub fn accumulators_as_a<T, W, X, Tile>(
    _mma: ThreadMma<TiledMma<Mma16816<T>, W>, X>,
    accumulators: &FragmentC<Mma16816<T>, W, InOrder, Tile>,
    step: usize,
) -> FragmentA<Mma16816<T>, W, Tile>
where
    T: Float16,
    Mma16816<T>: WarpMma<FragmentA = [u32; 4], Acc = f32>,
    W: Arrangement,
    X: ThreadIndex,
    Tile: TileShape,
    Tile::Rows: Repeats<<Mma16816<T> as cutlet_layout_core::Mma>::M, W::Below>,
    PartitionValues<TiledMma<Mma16816<T>, W>, OperandC, Tile>: FragmentLayout,
{
    const {
        assert!(
            W::Aside::SIZE == 1,
            "accumulators_as_a: warps side by side share the rows of the accumulators, and a thread lacks some of the \
             operand: put the warps below one another"
        )
    }
    let of_an_atom = const { <Mma16816<T> as MmaInstruction>::Values::SIZE };
    Fragment::from_fn(|m| {
        let rows = const {
            <Tile::Rows as Repeats<<Mma16816<T> as cutlet_layout_core::Mma>::M, W::Below>>::Times::SIZE
        };
        let block = |n| {
            Fragment::from_fn(|v| accumulators.get(v + of_an_atom * (m + rows * (2 * step + n))))
        };
        let [registers] = accumulators_to_a::<T, 2, 1>(&[block(0), block(1)]);
        registers
    })
}
