//! Attention for GPUs from Ampere on: `cp.async` loads tiles, and warps multiply by `mma.sync`.
//!
//! A block has one tile: 16 or 32 queries for each of four warps. All warps load blocks of 64 keys and of 64 values by
//! turns, into a ring of stages. Each warp multiplies its queries by the keys, makes weights of the scores, and
//! multiplies them by the values. Scores and weights stay in its registers.
//!
//! | step | file |
//! |---|---|
//! | what is in shared memory | [`storage`] |
//! | the loads of keys and values | `loader` |
//! | a warp's products | `warp` |
//! | the kernel: the loop over blocks of keys, and the store | [`kernel`] |
//! | the kernels of the library | [`instances`] |

pub mod instances;
pub mod kernel;
mod loader;
pub mod storage;
mod warp;
