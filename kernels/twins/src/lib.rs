//! Twins: the transpose and the f32 GEMM with every index computed by hand.
//!
//! They take the same arguments, cover the same tiles and issue the same accesses as the layout-driven kernels. The
//! tests compare the results and count the instructions of both. Nothing else uses the twins.
#![no_std]

pub mod gemm_f32;
pub mod transpose;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
