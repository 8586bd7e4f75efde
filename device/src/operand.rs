//! Tiles in shared memory as operands A and B of matrix instructions that read shared memory, such as `wgmma`.

mod descriptor;

use core::marker::PhantomData;

use cutlet_layout_core::{StaticLayout, StaticSwizzle, TileShape};

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

/// A tile in shared memory as the operand `Q`: a [`SharedTile`], or the [`Operand`] that was made of it, as a
/// [`TileRing`](crate::collective::TileRing) does for each of its stages.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tile that an instruction reads from shared memory as `{Q}`",
    note = "take a `SharedTile` with the operand's elements and a layout of known extents, such as a `KMajorTile`"
)]
pub trait SharedOperand<Q: OperandKind>: Copy {
    /// The tile's layout, from (mn, k).
    type Layout: TileShape;
    /// The tile's swizzle.
    type Swizzle: StaticSwizzle;

    /// The operand, which makes descriptors.
    fn operand(self) -> Operand<Q, Self::Layout, Self::Swizzle>;
}

impl<Q: OperandKind, L: TileShape, W: StaticSwizzle> SharedOperand<Q>
    for SharedTile<Q::Element, L, W>
{
    type Layout = L;
    type Swizzle = W;

    #[inline(always)]
    fn operand(self) -> Operand<Q, L, W> {
        Operand::at(self.start().address())
    }
}

impl<Q: OperandKind, L: TileShape, W: StaticSwizzle> SharedOperand<Q> for Operand<Q, L, W> {
    type Layout = L;
    type Swizzle = W;

    #[inline(always)]
    fn operand(self) -> Self {
        self
    }
}
