//! Matrix instructions of every architecture, as a kernel sees them.

use cutlet_layout_core::FragmentLayout;

use crate::DeviceData;

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
