//! The matrix instructions of Hopper, `wgmma`. Kernels that use them have `arch = "sm_90a"`.
//!
//! | topic | functions and types |
//! |---|---|
//! | matrix instructions | [`Wgmma`], [`WgmmaGroup`], [`Accumulator`], [`warpgroup_arrive`], [`warpgroup_wait`] |
//! | operand A in registers | [`RegisterA`], [`FragmentA`] |
//! | accumulators as operand A of the next product | [`accumulator_to_a`], [`AccumulatorsAsA`] |
//! | stores of accumulators to shared memory | [`store_accumulator`], [`StoredAccumulator`] |
//!
//! [`collective`](crate::collective) builds on them.

mod accumulator_to_a;
mod register_a;
mod store_accumulator;
mod wgmma;

pub use accumulator_to_a::{AccumulatorsAsA, accumulator_to_a};
pub use register_a::{FragmentA, RegisterA, RegisterElement};
pub use store_accumulator::{StoredAccumulator, store_accumulator};
pub use wgmma::{
    Accumulator, AccumulatorLayout, WarpgroupThreads, Wgmma, WgmmaGroup, WgmmaInstruction,
    warpgroup_arrive, warpgroup_wait,
};
