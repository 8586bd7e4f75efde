//! Attention of few queries a sequence to a long cache of keys and values: a step of decoding.
//!
//! The queries of all heads that share keys are rows of one matrix, in tiles of 16. A block attends with a tile of rows
//! to a part of the keys, which is a *split*. The block that is the last one to end combines the partial outputs of the
//! splits. A second kernel does so where blocks cannot count who has ended.
//!
//! | step | file |
//! |---|---|
//! | what a launch passes, and which part of it a block computes | [`args`] |
//! | which rows of memory are keys and values, and which are queries | [`cache`], [`rows`] |
//! | how many warps a block has, and what is in shared memory | [`warps`], [`storage`] |
//! | a warp's loads and products | `warp`, `scores` |
//! | the kernel, and the merge of warps | [`kernel`] |
//! | partial outputs of a row, and their sum | `partial` |
//! | the output of several splits | [`combine`] |
//! | the kernels of the library | [`instances`] |

pub mod args;
pub mod cache;
pub mod combine;
pub mod instances;
pub mod kernel;
mod partial;
pub mod rows;
mod scores;
pub mod storage;
mod warp;
pub mod warps;
