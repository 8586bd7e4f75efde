//! The instructions of Hopper. Kernels that use them have `arch = "sm_90a"`.
//!
//! | topic | functions and types |
//! |---|---|
//! | matrix instructions | [`Wgmma`], [`WgmmaGroup`], [`Accumulator`], [`warpgroup_arrive`], [`warpgroup_wait`] |
//! | stores from registers to shared memory | [`stmatrix`], [`store_accumulator`] |
//!
//! [`collective`](crate::collective) builds on them.

mod descriptor;
mod operand;
mod stmatrix;
mod wgmma;

pub use descriptor::{MatrixDescriptor, Operand, OperandA, OperandB, OperandKind};
pub use stmatrix::{stmatrix, stmatrix_transposed, store_accumulator};
pub use wgmma::{
    Accumulator, AccumulatorLayout, WarpgroupThreads, Wgmma, WgmmaGroup, WgmmaInstruction,
    warpgroup_arrive, warpgroup_wait,
};
