//! GEMM: `C = epilogue(A·B)`, in families of kernels that share these seams:
//!
//! | seam | file | implementations |
//! |---|---|---|
//! | which tiles a block computes | [`scheduler`] | persistent, in clusters, with splits |
//! | how operands reach shared memory | [`loader`] | TMA with multicast; rows that indices name, by `cp.async` |
//! | how accumulators are computed | [`mainloop`] | `wgmma` |
//! | what is applied to them | [`epilogue`] | types that compose |
//! | how C is written | [`store`] | TMA, vectors, partial output, fixup; rows that indices name |
//!
//! [`sm90`] is the family for Hopper's tensor cores. Two families share one kernel, [`multistage`]: [`sm80`] for tensor
//! cores from Ampere on, and [`simt`] for CUDA cores. [`gemv`] is for a C of few rows or few columns. [`config`] has
//! the types that a configuration is made of, [`args`] the arguments of a launch. After a GEMM that wrote partial
//! output, a second kernel makes C: [`split_k_reduce`] adds the partials of splits, [`epilogue_pass`] applies an
//! epilogue that the GEMM could not fuse.

pub mod args;
pub mod config;
pub mod epilogue;
pub mod epilogue_pass;
#[cfg(any(not(target_arch = "nvptx64"), not(target_feature = "sm_90")))]
pub mod gemv;
pub mod loader;
pub mod mainloop;
pub mod multistage;
pub mod named_rows;
pub mod scheduler;
pub mod simt;
pub mod sm80;
pub mod sm90;
pub mod split_k_reduce;
pub mod store;
