//! Matrix instructions of every architecture, as a kernel sees them.

use cutlet_layout_core::FragmentLayout;

use crate::DeviceData;
use crate::tile::Major;

/// A matrix instruction, or several that are issued together. It adds `K` products to each of `M × N` accumulators.
///
/// A kernel that takes its types and extents from this trait works with every instruction.
pub trait MmaInstruction: Copy + 'static {
    /// The element type of A.
    type A: DeviceData;
    /// The element type of B.
    type B: DeviceData;
    /// The type of the accumulators.
    type Acc: DeviceData;
    /// Rows of accumulators.
    const M: usize;
    /// Columns of accumulators.
    const N: usize;
    /// The products that the instruction adds to each accumulator.
    const K: usize;
    /// The coordinates of a thread's accumulators, relative to its first one.
    type Values: FragmentLayout;
}

/// A matrix instruction that reads A and B from tiles in shared memory, where
/// [matrix descriptors](crate::operand::MatrixDescriptor) say they are.
#[diagnostic::on_unimplemented(
    message = "there is no instruction `{Self}` that reads A and B from shared memory",
    note = "`Wgmma` is of bf16, f16, f32 (as tf32), 8-bit floats or i8, and its N is 8 to 256 in steps of 8",
    note = "only bf16 and f16 operands may be MN-major"
)]
pub trait SharedMma: MmaInstruction {
    /// Which coordinate of A is consecutive.
    type MajorA: Major;
    /// Which coordinate of B is consecutive.
    type MajorB: Major;
}
