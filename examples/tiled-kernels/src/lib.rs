//! Kernels that are written with tiled copies and tiled matrix products.
#![no_std]

pub mod attention;
pub mod gemm;
pub mod rms_norm;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
