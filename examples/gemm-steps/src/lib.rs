//! One matrix product in nine kernels, each a step faster than the one before.
//!
//! `C = A·B` in bf16 with f32 accumulation. A is row-major, m×k. B is given as n×k, row-major, so that k is consecutive
//! in both operands. C is row-major, m×n. The chapter "GEMM in nine steps" of the book walks through the files.
#![no_std]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

#[cfg(not(target_arch = "nvptx64"))]
pub mod check;
mod matrices;
#[cfg(not(target_arch = "nvptx64"))]
mod operands;
pub mod step1_naive;
pub mod step2_shared_tiles;
pub mod step3_register_tiles;
pub mod step4_vector_loads;
pub mod step5_cp_async;
pub mod step6_mma_sync;
pub mod step7_tma;
pub mod step8_wgmma;
pub mod step9_clusters;
#[cfg(not(target_arch = "nvptx64"))]
mod steps;

#[cfg(not(target_arch = "nvptx64"))]
pub use operands::{Error, Operands, Result};
#[cfg(not(target_arch = "nvptx64"))]
pub use steps::{STEPS, Step};

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
