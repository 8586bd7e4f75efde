//! Matrix instructions: what a kernel needs to know of one, whichever architecture has it.

use cutlet_layout_core::StaticLayout;

use crate::DeviceData;

/// A matrix instruction, or several that are issued as one: `M × N` accumulators, each of which gets `K` products.
///
/// A kernel that takes its types and extents from here holds for every instruction.
pub trait MmaInstruction: Copy + 'static {
    /// Elements of A.
    type A: DeviceData;
    /// Elements of B.
    type B: DeviceData;
    /// Accumulators.
    type Acc: DeviceData;
    /// Rows of accumulators.
    const M: usize;
    /// Columns of accumulators.
    const N: usize;
    /// Products that one instruction adds to each accumulator.
    const K: usize;
    /// Which of the accumulators are a thread's, counted from its first.
    type Values: StaticLayout;
}
