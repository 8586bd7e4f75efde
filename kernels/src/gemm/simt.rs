//! The GEMM family for CUDA cores: multiply-adds in f32.
//!
//! A thread has a tile of accumulators. At each k it reads the elements of A for its rows and of B for its columns from
//! shared memory, four at a time.
//!
//! | file | subject |
//! |---|---|
//! | `config` | what a kernel's type says |
//! | `multiply_add` | the atom, and how a warp loads its operands |
//! | [`instances`], [`row_instances`] | the kernels that the library launches |

mod config;
pub mod instances;
pub mod multiply_add;
pub mod row_instances;

pub use config::{Lanes, Named, Reads, Simt, ThreadTile, Transposed, Unaligned};
