//! A GEMM with an epilogue of one's own: `C = gelu(A·B + bias)` in bf16 on Hopper's tensor cores.
//!
//! The multiplication is cutlet's, generic over the epilogue. Here stand the epilogue, the instance
//! with it, and what launches it.
#![no_std]

use cutlet_device::hopper::{KMajor, TensorMap};
use cutlet_device::{DeviceData, Float, Global, GlobalMut, fma, instantiate, tanh_approx};
use cutlet_kernels::gemm_wgmma::{Epilogue, Problem, gemm, shared_bytes};
use cutlet_layout_core::Coord;
use half::bf16;

/// `gelu(sum + bias[column])`, with GELU by way of tanh.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct BiasGelu {
    /// A number for each column of C.
    pub bias: Global<bf16>,
    /// Columns of C: at least 1.
    pub n: i32,
    /// Makes the size a multiple of the alignment.
    pub padding: i32,
}

impl Epilogue for BiasGelu {
    #[inline(always)]
    fn reads_old(&self) -> bool {
        false
    }

    #[inline(always)]
    fn is_identity(&self) -> bool {
        false
    }

    #[inline(always)]
    fn apply(&self, sum: f32, _: Option<f32>, [_, column]: Coord) -> f32 {
        // Beyond the edge there is no bias, and of what comes out nothing is used. With an index
        // clamped to the edge instead of this branch, registers spill.
        if column >= self.n {
            return sum;
        }
        // SAFETY: the launcher promises n elements, which nothing writes meanwhile.
        let [bias] = unsafe { self.bias.load_vec_read_only(column.into()) };
        // `bias.to_f32()` would be the `half` crate's, which knows no GPU.
        gelu(sum + Float::to_f32(bias))
    }
}

/// `x · Φ(x)`, where `Φ(x)` is taken to be `(1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2`.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    const LINEAR: f32 = 0.797_884_6;
    const CUBIC: f32 = 0.044_715 * LINEAR;
    let half = 0.5 * x;
    fma(half, tanh_approx(x * fma(CUBIC, x * x, LINEAR)), half)
}

/// Rows and columns of a block's tile of C.
const TILE: [usize; 2] = [128, 256];
/// Stages of the ring that the tiles of A and B go through.
const STAGES: usize = 4;
/// Blocks that lie below one another and share the tiles of B.
const CLUSTER: usize = 2;
/// Warpgroups that multiply.
const CONSUMERS: usize = 2;

instantiate! {
    /// `C = gelu(A·B + bias)`. k is consecutive in A and in B, and C is row-major.
    ///
    /// # Safety
    /// As for [`gemm`], and `epilogue.bias` must have `epilogue.n` elements, which is `problem.n`.
    #[kernel(threads = 128 * (1 + CONSUMERS) as u32, min_blocks = 1, cluster = CLUSTER as u32,
        shared = shared_bytes(TILE[0], TILE[1], STAGES, CONSUMERS), arch = "sm_90a")]
    pub unsafe fn gemm_bias_gelu(
        #[grid_constant] map_a: &TensorMap,
        #[grid_constant] map_b: &TensorMap,
        #[grid_constant] map_c: &TensorMap,
        c: GlobalMut<bf16>,
        workspace: GlobalMut<f32>,
        problem: Problem,
        epilogue: BiasGelu,
    ) = gemm::<bf16, KMajor, KMajor, BiasGelu, { TILE[0] }, { TILE[1] }, STAGES, CLUSTER, 1,
        CLUSTER, CONSUMERS>;
}

#[cfg(not(target_arch = "nvptx64"))]
mod launch;
#[cfg(not(target_arch = "nvptx64"))]
pub use launch::launch;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
