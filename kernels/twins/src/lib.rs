//! Twins: what `transpose` and `gemm_f32` look like when every index is computed by hand.
//!
//! They take the same arguments, cover the same tiles and issue the same accesses as the
//! layout-driven kernels; the tests have both write the same, and count the instructions of both.
//! Nothing else uses them.
#![no_std]

pub mod gemm_f32;
pub mod transpose;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
