//! Tiles in shared memory as operands A and B of matrix instructions that read shared memory, such as `wgmma`.

mod descriptor;

use core::marker::PhantomData;

use cutlet_layout_core::{StaticLayout, StaticSwizzle};

pub use descriptor::{MatrixDescriptor, Operand};

use crate::tile::{Major, SharedTile};
use crate::{DeviceData, SharedMma};

/// An operand of an instruction: [`OperandA`] or [`OperandB`].
pub trait OperandKind: Copy + 'static {
    /// The element type.
    type Element: DeviceData;
    /// Which coordinate is consecutive.
    type Major: Major;
    /// The rows that one instruction reads: m of A, n of B.
    const MN: usize;
    /// The k that one instruction reads.
    const K: usize;
}

/// Operand A of the instruction `I`: M rows.
#[derive(Clone, Copy, Debug)]
pub struct OperandA<I>(PhantomData<I>);

/// Operand B of the instruction `I`: N rows.
#[derive(Clone, Copy, Debug)]
pub struct OperandB<I>(PhantomData<I>);

impl<I: SharedMma> OperandKind for OperandA<I> {
    type Element = I::A;
    type Major = I::MajorA;
    const MN: usize = I::M;
    const K: usize = I::K;
}

impl<I: SharedMma> OperandKind for OperandB<I> {
    type Element = I::B;
    type Major = I::MajorB;
    const MN: usize = I::N;
    const K: usize = I::K;
}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle> SharedTile<T, L, W> {
    /// The tile as operand A of the instruction `I`.
    #[inline(always)]
    pub fn operand_a<I: SharedMma<A = T>>(self) -> Operand<OperandA<I>, L, W> {
        Operand::at(self.start().address())
    }

    /// The tile as operand B of the instruction `I`.
    #[inline(always)]
    pub fn operand_b<I: SharedMma<B = T>>(self) -> Operand<OperandB<I>, L, W> {
        Operand::at(self.start().address())
    }
}
