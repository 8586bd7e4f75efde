//! Attention: `softmax(Q·Kᵀ · scale)·V`, of queries that see the keys of a window.
//!
//! | step | file |
//! |---|---|
//! | what a launch passes | [`args`] |
//! | which tiles a block computes, and which keys they see | [`scheduler`], [`mask`] |
//! | what is done to scores | [`score_mod`], [`softmax`] |
//! | the kernel for Hopper: roles, products, store | [`sm90`] |
//! | few queries and a long cache of keys: a step of decoding | [`decode`] |

pub mod args;
pub mod decode;
pub mod mask;
pub mod scheduler;
pub mod score_mod;
pub mod sm90;
pub mod softmax;
