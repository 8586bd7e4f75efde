//! Attention for Hopper: TMA loads tiles, and warpgroups multiply by `wgmma`.
//!
//! [`kernel`] is the kernel, by the roles of a block's warpgroups. [`config`] says what its type says, and
//! [`instances`] are the kernels of the library. [`backward`] has those of the backward pass.

pub mod backward;
pub mod config;
pub mod instances;
pub mod kernel;
mod mainloop;
mod scores;
mod store;
