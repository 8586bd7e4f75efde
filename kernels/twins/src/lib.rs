//! A twin: the transpose with every index computed by hand.
//!
//! It takes the same arguments, covers the same tiles and issues the same accesses as the layout-driven kernel. The
//! tests compare the results and count the instructions of both. Nothing else uses the twin.
#![no_std]

pub mod transpose;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
