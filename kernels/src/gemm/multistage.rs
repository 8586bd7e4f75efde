//! The multistage kernel: k-tiles go by `cp.async` into a ring of stages in shared memory, and all threads multiply
//! one stage while the next ones are under way. It runs on every GPU since Ampere.
//!
//! | file | subject |
//! |---|---|
//! | `args` | what a launch passes |
//! | [`config`] | what a kernel's type says |
//! | [`staging`] | how an operand's k-tiles lie in shared memory, and which thread copies what |
//! | `loader` | the copies |
//! | [`arithmetic`] | the atom of the tiled MMA, and how it loads operands from stages |
//! | [`warps`] | which rows and columns each warp has |
//! | [`product`] | the product of a stage |
//! | `kernel` | the kernel |
//! | `named_rows` | the kernel for rows of tables |
//! | [`subtile`] | some rows of a warp's part of C, which leave it together |
//! | `storage` | what a block keeps in shared memory |
//! | `store` | from accumulators to C, through shared memory |
//! | [`instance`] | what the host knows of a kernel |
//!
//! The mainloop's arithmetic is the family's: `mma.sync` ([`sm80`](super::sm80)) or multiply-adds of CUDA cores
//! ([`simt`](super::simt)).

mod args;
pub mod arithmetic;
pub mod config;
pub mod instance;
mod kernel;
mod loader;
mod named_rows;
pub mod product;
pub mod staging;
mod storage;
mod store;
pub mod subtile;
pub mod warps;

pub use args::{MultistageArgs, NamedOperands};
pub use config::{Config, Product};
pub use kernel::gemm;
pub use named_rows::named_rows_gemm;
pub use storage::Storage;
