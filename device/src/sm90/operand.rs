//! Tiles in shared memory as operands A and B of a `wgmma` instruction.

use cutlet_layout_core::{StaticLayout, StaticSwizzle};

use super::WgmmaInstruction;
use super::descriptor::{Operand, OperandA, OperandB, OperandKind};
use crate::DeviceData;
use crate::tile::SharedTile;

impl<I: WgmmaInstruction> OperandKind for OperandA<I> {
    type Element = I::A;
    type Major = I::MajorA;
    const MN: usize = I::M;
    const K: usize = I::K;
}

impl<I: WgmmaInstruction> OperandKind for OperandB<I> {
    type Element = I::B;
    type Major = I::MajorB;
    const MN: usize = I::N;
    const K: usize = I::K;
}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle> SharedTile<T, L, W> {
    /// The tile as operand A of the instruction `I`.
    #[inline(always)]
    pub fn operand_a<I: WgmmaInstruction<A = T>>(self) -> Operand<OperandA<I>, L, W> {
        Operand::at(self.start().address())
    }

    /// The tile as operand B of the instruction `I`.
    #[inline(always)]
    pub fn operand_b<I: WgmmaInstruction<B = T>>(self) -> Operand<OperandB<I>, L, W> {
        Operand::at(self.start().address())
    }
}
