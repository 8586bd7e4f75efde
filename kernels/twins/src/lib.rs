//! Twins: kernels with every index computed by hand, of the transpose, of a tiled copy and of a tiled product.
//!
//! A twin takes the same arguments, covers the same tiles and issues the same accesses as the layout-driven kernel. The
//! tests compare the results and count the instructions of both. Nothing else uses the twins.
#![no_std]

pub mod tiled_copy;
pub mod tiled_product;
pub mod transpose;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
