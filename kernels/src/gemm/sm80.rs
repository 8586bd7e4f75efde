//! The GEMM family for tensor cores from Ampere on: `mma.sync` of a warp.
//!
//! A warp has a rectangle of the tile of C, in blocks of 16×16 accumulators (8×8 of f64). At each step along k it reads
//! the operands of its rows and of its columns from shared memory, by `ldmatrix`, and multiplies each pair of them.
//!
//! | file | subject |
//! |---|---|
//! | `config` | what a kernel's type says |
//! | [`arithmetic`] | how a warp loads and multiplies blocks, for each element type |
//! | `product` | the blocks of a warp |
//! | [`instances`], [`row_instances`] | the kernels that the library launches |

pub mod arithmetic;
mod config;
pub mod instances;
mod product;
pub mod row_instances;

pub use config::{Blocks, Named, Reads, Sm80, Unaligned, Warps, Words};
