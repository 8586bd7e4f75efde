//! How a warp multiplies: the atom of a kernel's tiled MMA, and how the atom's operands come from stages.

use cutlet_device::MmaInstruction;
use cutlet_device::sm80::WarpMma;
use cutlet_device::tile::Major;
use cutlet_device::tiled::LoadOperands;
use cutlet_layout_core::{AccessWidth, Fragment, Layout, StaticLayout};

use super::staging::StagedElement;
use crate::gemm::epilogue::Accumulator;

/// An atom, and the order in which a warp adds its products.
pub trait Arithmetic:
    WarpMma<A: StagedElement, B = <Self as MmaInstruction>::A, Acc: Accumulator>
{
    /// The registers of A, as [`add`](Self::add) takes them.
    type OperandA: Copy;
    /// The registers of B, as [`add`](Self::add) takes them.
    type OperandB: Copy;
    /// The parts of the atom's product. Each waits for the one before it.
    type Parts: StaticLayout;
    /// Whether the products of a step are added on their own first, and their sums then to the accumulators.
    const ADDS_STEPS: bool = false;
    /// The k of a step that each k of the atom is. It is the same for A and for B.
    const ORDER_OF_K: Layout;

    /// Makes operands of registers of A.
    fn prepare_a(registers: Self::FragmentA) -> Self::OperandA;

    /// Makes operands of registers of B.
    fn prepare_b(registers: Self::FragmentB) -> Self::OperandB;

    /// Adds a part of the atom's product to its accumulators.
    fn add(
        part: usize,
        accumulators: &mut Fragment<Self::Acc, Self::Values>,
        a: Self::OperandA,
        b: Self::OperandB,
    );
}

/// The elements of A and B.
pub type ElementOf<I> = <I as MmaInstruction>::A;

/// The direction of a stage's lines, and how a warp loads operands of the arithmetic `I` along them.
pub trait Lines<I: Arithmetic>: Major {
    /// Loads of A.
    type LoadA: LoadOperands<I>;
    /// Loads of B.
    type LoadB: LoadOperands<I>;
    /// The row of a block (0), or the column (1), that each row or column of the atoms is. A warp has whole blocks. The
    /// order makes what a thread loads neighbours, and what a warp loads at a time lie in all banks.
    const ORDER: [Layout; 2];
    /// Neighbours in a row of C among a thread's accumulators, if B has these lines.
    type Width: AccessWidth;
}
