//! The GEMM family for tensor cores from Ampere on: `mma.sync` of a warp.
//!
//! At each step along k a warp reads the operands of its rows and of its columns from shared memory, by `ldmatrix` or in
//! vectors, and multiplies each pair of them.
//!
//! | file | subject |
//! |---|---|
//! | `config` | what a kernel's type says |
//! | [`arithmetic`] | the atoms, and how a warp loads their operands |
//! | [`instances`], [`row_instances`] | the kernels that the library launches |

pub mod arithmetic;
mod config;
pub mod instances;
pub mod row_instances;

pub use config::{Named, Reads, Sm80, Unaligned, Words};
