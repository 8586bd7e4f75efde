//! The matrix instructions of Hopper, `wgmma`. Kernels that use them have `arch = "sm_90a"`.
//!
//! | topic | functions and types |
//! |---|---|
//! | matrix instructions | [`Wgmma`], [`WgmmaGroup`], [`Accumulator`], [`warpgroup_arrive`], [`warpgroup_wait`] |
//! | operand A in registers | [`RegisterA`], [`FragmentA`] |
//! | stores of accumulators to shared memory | [`store_accumulator`] |
//!
//! [`collective`](crate::collective) builds on them.

mod register_a;
mod store_accumulator;
mod wgmma;

pub use register_a::{FragmentA, RegisterA, RegisterElement};
pub use store_accumulator::store_accumulator;
pub use wgmma::{
    Accumulator, AccumulatorLayout, WarpgroupThreads, Wgmma, WgmmaGroup, WgmmaInstruction,
    warpgroup_arrive, warpgroup_wait,
};
