//! The kernels of cutlet, one family per file; each is tiled and partitioned by layouts alone.
//!
//! The same source is compiled for the GPU (`nvptx64`, into PTX) and for the host, where kernels
//! are typed handles to launch and bodies that the CPU backend runs. Nothing here computes with a
//! thread's or a block's index: indices go into layouts, coordinates come out.
#![no_std]

pub mod fill;
pub mod gather;
pub mod gemm;
pub mod repack;
pub mod saxpy;
pub mod transpose;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
