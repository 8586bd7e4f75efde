//! The instruction of an element type, as a warp executes it for itself.

use cutlet_device::sm80::{Mma16816, WarpMma};
use cutlet_device::tiled::{FragmentA, FragmentC, accumulators_as_a};
use cutlet_device::{Float16, LaneIdx, MmaInstruction};
use cutlet_layout_core::{InOrder, L, M16N8K16Bits16, Mma, ThreadMma, TiledMma};
use half::{bf16, f16};

/// The instruction's layouts.
type Atom = M16N8K16Bits16;
type OneWarp = L!((1, 1):(0, 0));
/// A warp's products of tiles.
pub(super) type Products<T> = TiledMma<<T as Element>::Instruction, OneWarp>;
/// A lane's accumulators of a tile.
pub(super) type Accumulators<T, Tile> =
    FragmentC<<T as Element>::Instruction, OneWarp, InOrder, Tile>;
/// A lane's registers of operand A, in one step along k.
pub(super) type OperandA<T, Tile> = FragmentA<<T as Element>::Instruction, OneWarp, Tile>;
/// 16 rows or keys of a block of 64 features, which a line of 128 bytes holds.
pub(super) type TileOfBlock = L!((16, 64):(1@0, 1@1));
/// The scores of 16 rows and 16 keys.
pub(super) type TileOfScores = L!((16, 16):(1@0, 1@1));

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

    /// Weights as operand A of their product with values.
    #[doc(hidden)]
    fn operand(
        mma: ThreadMma<Products<Self>, LaneIdx>,
        weights: &Accumulators<Self, TileOfScores>,
    ) -> OperandA<Self, TileOfScores>;
}

macro_rules! element {
    ($($element:ty),+) => {$(
        impl Element for $element {
            type Instruction = Mma16816<$element>;

            #[inline(always)]
            fn operand(
                mma: ThreadMma<Products<Self>, LaneIdx>,
                weights: &Accumulators<Self, TileOfScores>,
            ) -> OperandA<Self, TileOfScores> {
                accumulators_as_a::<_, _, _, TileOfScores>(mma, weights, 0)
            }
        }
    )+};
}
element!(bf16, f16);
