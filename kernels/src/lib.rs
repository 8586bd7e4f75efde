//! The kernels of cutlet, one operation per module. Layouts alone tile and partition them.
//!
//! The same source is compiled for the GPU (`nvptx64`, into PTX) and for the host. On the host, a kernel is a typed
//! handle to launch and a body that the CPU backend runs. Kernels do no arithmetic with a thread's or a block's index:
//! layouts map indices to coordinates.
//!
//! Modules whose PTX for sm_80 serves newer GPUs as well are compiled for sm_80 alone.
#![no_std]

pub mod attention;
#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(any(not(target_arch = "nvptx64"), not(target_feature = "sm_90")))]
pub mod fill;
pub mod gather;
pub mod gelu_erf;
pub mod gemm;
mod quantization;
#[cfg(any(not(target_arch = "nvptx64"), not(target_feature = "sm_90")))]
pub mod repack;
pub mod rows;
#[cfg(any(not(target_arch = "nvptx64"), not(target_feature = "sm_90")))]
pub mod saxpy;
pub mod selection;
pub mod swiglu;
#[cfg(any(not(target_arch = "nvptx64"), not(target_feature = "sm_90")))]
pub mod transpose;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
