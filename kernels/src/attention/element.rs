//! The instruction of an element type, as a warp executes it for itself.

use cutlet_device::sm80::{Mma16816, WarpMma};
use cutlet_device::tiled::{FragmentA, FragmentC, accumulators_as_a};
use cutlet_device::{Float16, LaneIdx, MmaInstruction, warp_idx_sync};
use cutlet_layout_core::{
    Arrangement, FragmentLayout, InOrder, L, M16N8K16Bits16, Mma, OperandC, PartitionValues,
    Repeats, ThreadMma, TileShape, TiledMma,
};
use half::{bf16, f16};

use super::scheduler::number;

/// The instruction's layouts.
type Atom = M16N8K16Bits16;
type OneWarp = L!((1, 1):(0, 0));
/// The warps below one another.
type OneUnit = <OneWarp as Arrangement>::Below;
/// A warp's products of tiles.
pub(super) type Products<T> = TiledMma<<T as Element>::Instruction, OneWarp>;
/// A lane's accumulators of a tile.
pub(super) type Accumulators<T, Tile> =
    FragmentC<<T as Element>::Instruction, OneWarp, InOrder, Tile>;
/// A lane's registers of operand A, in one step along k.
pub(super) type OperandA<T, Tile> = FragmentA<<T as Element>::Instruction, OneWarp, Tile>;
/// 16 rows and 64 columns, which a line of 128 bytes holds: a block of features, or scores of 64 keys.
pub(super) type TileOfBlock = L!((16, 64):(1@0, 1@1));
/// The k-steps of 64 columns.
pub(super) type StepsOfBlock = L!(4:1);

/// The number of the running warp in its block.
#[inline(always)]
pub(super) fn warp_of_block() -> u32 {
    number(warp_idx_sync())
}

/// An element type, by its instruction.
pub trait Element: Float16 + Default {
    /// The instruction.
    type Instruction: WarpMma<FragmentA = [u32; 4], FragmentB = [u32; 2]>
        + MmaInstruction<
            A = Self,
            B = Self,
            Acc = f32,
            Values = <Mma16816<bf16> as MmaInstruction>::Values,
        > + Mma<
            LayoutA = <Atom as Mma>::LayoutA,
            LayoutB = <Atom as Mma>::LayoutB,
            LayoutC = <Atom as Mma>::LayoutC,
            RowsOfC = <Atom as Mma>::RowsOfC,
            M = <Atom as Mma>::M,
            N = <Atom as Mma>::N,
            K = <Atom as Mma>::K,
        >;

    /// Weights as operand A of a step of their product with values.
    #[doc(hidden)]
    fn operand<Tile: TileShape>(
        mma: ThreadMma<Products<Self>, LaneIdx>,
        weights: &Accumulators<Self, Tile>,
        step: usize,
    ) -> OperandA<Self, Tile>
    where
        Tile::Rows: Repeats<<Atom as Mma>::M, OneUnit>,
        PartitionValues<Products<Self>, OperandC, Tile>: FragmentLayout;
}

macro_rules! element {
    ($($element:ty),+) => {$(
        impl Element for $element {
            type Instruction = Mma16816<$element>;

            #[inline(always)]
            fn operand<Tile: TileShape>(
                mma: ThreadMma<Products<Self>, LaneIdx>,
                weights: &Accumulators<Self, Tile>,
                step: usize,
            ) -> OperandA<Self, Tile>
            where
                Tile::Rows: Repeats<<Atom as Mma>::M, OneUnit>,
                PartitionValues<Products<Self>, OperandC, Tile>: FragmentLayout,
            {
                accumulators_as_a::<_, _, _, Tile>(mma, weights, step)
            }
        }
    )+};
}
element!(bf16, f16);
