//! Kernels that are never launched: together they have every instruction that `cutlet-device` can
//! write into PTX.
//!
//! Instructions of the device crate are texts, which rustc does not read. `cargo xtask ptx` has
//! NVIDIA's assembler read these kernels, so that a mistake in one of the texts shows there, and not when the
//! driver compiles a user's kernel. The tests see to it that no text is missing.
#![no_std]

pub mod argument;
pub mod arithmetic;
pub mod atomic;
pub mod cluster;
pub mod debug;
pub mod index;
pub mod launch;
pub mod mbarrier;
pub mod memory;
pub mod stmatrix;
pub mod sync;
pub mod tma;
pub mod warp;
pub mod wgmma;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
