//! Attention: `softmax(Q·Kᵀ · scale)·V`, of queries that see the keys of a window.
//!
//! | step | file |
//! |---|---|
//! | what a launch passes | [`args`] |
//! | which tiles a block computes, and which keys they see | [`scheduler`], [`mask`] |
//! | what is done to scores | [`score_mod`], `scores`, [`softmax`] |
//! | rows and their outputs | `rows` |
//! | the instruction of an element type, as a warp executes it | [`element`] |
//! | the kernel for GPUs from Ampere on: loads, products, store | [`sm80`] |
//! | the kernel for Hopper: roles, products, store | [`sm90`] |
//! | the gradients of queries, keys and values | [`sm90::backward`] |
//! | few queries and a long cache of keys: a step of decoding | [`decode`] |

pub mod args;
pub mod decode;
pub mod element;
pub mod mask;
mod rows;
pub mod scheduler;
pub mod score_mod;
mod scores;
pub mod sm80;
pub mod sm90;
pub mod softmax;
