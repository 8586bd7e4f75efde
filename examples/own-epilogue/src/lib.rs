//! A GEMM with your own epilogue: `C = min(gelu(A·B + bias), cap)` in bf16 on Hopper's tensor cores.
//!
//! The GEMM, generic over the epilogue, is cutlet's, and so are bias and GELU. This package has the new
//! part of the epilogue, the kernel instance with the whole epilogue, and its launch.
#![no_std]

use cutlet_device::sm90::{KMajor, TensorMap};
use cutlet_device::{DeviceData, GlobalMut, instantiate};
use cutlet_kernels::gemm_wgmma::{
    ColumnBias, Epilogue, Gelu, Problem, Then, gemm, piece_columns, piece_span, shared_bytes,
};
use cutlet_layout_core::Coord;
use half::bf16;

/// Limits a number to at most `most`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Cap {
    /// The largest result.
    pub most: f32,
    /// Makes the size a multiple of the alignment of the epilogue's other parts.
    pub padding: u32,
}

impl Epilogue for Cap {
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn apply(&self, sum: f32, _: Option<f32>, _: Coord) -> f32 {
        if sum > self.most { self.most } else { sum }
    }
}

/// `min(gelu(sum + bias[column]), cap)`.
pub type BiasGeluCap = Then<ColumnBias<bf16>, Then<Gelu, Cap>>;

/// Rows and columns of a block's tile of C.
const TILE: [usize; 2] = [128, 256];
/// Stages of the ring that the tiles of A and B go through.
const STAGES: usize = 4;
/// Blocks that lie below one another and share the tiles of B.
const CLUSTER: usize = 2;
/// Warpgroups that multiply, 64 rows each.
const CONSUMERS: usize = 2;
/// Columns that leave for C at a time.
const PIECE: usize = piece_columns(TILE[1]);
/// Bytes of a line of them.
const SWIZZLE_BYTES: usize = piece_span::<KMajor>(PIECE);

instantiate! {
    /// `C = min(gelu(A·B + bias), cap)`. k is consecutive in A and in B, and C is row-major.
    ///
    /// # Safety
    /// As for [`gemm`], and the bias has a number for each column of C.
    #[kernel(threads = 128 * (1 + CONSUMERS) as u32, min_blocks = 1, cluster = CLUSTER as u32,
        shared = shared_bytes(TILE[0], TILE[1], STAGES, CONSUMERS, 1), arch = "sm_90a")]
    pub unsafe fn gemm_bias_gelu_cap(
        #[grid_constant] map_a: &TensorMap,
        #[grid_constant] map_b: &TensorMap,
        #[grid_constant] map_c: &TensorMap,
        c: GlobalMut<bf16>,
        workspace: GlobalMut<f32>,
        problem: Problem,
        epilogue: BiasGeluCap,
    ) = gemm::<bf16, KMajor, KMajor, KMajor, BiasGeluCap, { TILE[0] }, { TILE[1] }, STAGES, CLUSTER, 1,
        CLUSTER, 1, CONSUMERS, 1, PIECE, SWIZZLE_BYTES>;
}

#[cfg(not(target_arch = "nvptx64"))]
mod launch;
#[cfg(not(target_arch = "nvptx64"))]
pub use launch::launch;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
