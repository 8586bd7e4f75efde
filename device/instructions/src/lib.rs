//! Kernels that no user launches: together they have every instruction that `cutlet-device` can
//! write into PTX.
//!
//! The device crate writes instructions as text, which rustc does not check. `cargo xtask ptx` runs NVIDIA's assembler
//! on these kernels, so that it finds a mistake before a user's driver does. The tests check that no instruction is
//! missing. Most of these kernels are never launched. Tests launch those of [`launched`].
#![no_std]

pub mod argument;
pub mod arithmetic;
pub mod atomic;
pub mod cluster;
pub mod cp_async;
pub mod debug;
pub mod index;
pub mod launch;
pub mod launched;
pub mod ldmatrix;
pub mod mbarrier;
pub mod memory;
pub mod mma_sync;
pub mod red;
pub mod stmatrix;
pub mod sync;
pub mod tma;
pub mod warp;
pub mod wgmma;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
