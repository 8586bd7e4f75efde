//! A GEMM with your own epilogue: `C = min(gelu(A·B + bias), cap)` in bf16 on Hopper's tensor cores.
//!
//! The GEMM, generic over the epilogue, is cutlet's, and so are bias and GELU. This package has the new
//! part of the epilogue, the kernel with the whole epilogue, and a plan that runs it.
#![no_std]

use cutlet_device::tile::KMajor;
use cutlet_device::tma::TensorMap;
use cutlet_device::{DeviceData, GlobalMut, instantiate};
use cutlet_kernels::gemm::args::Args;
use cutlet_kernels::gemm::config::{
    Cluster, ClusterShape, Cooperative, EpilogueTile, Stages, Tile,
};
use cutlet_kernels::gemm::epilogue::{ColumnBias, Epilogue, Gelu, Then};
use cutlet_kernels::gemm::sm90::{ByTma, Config, OneProduct, Sm90, Storage, ToMatrix, gemm};
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
    type Acc = f32;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn apply(&self, acc: f32, _: Option<f32>, _: Coord) -> f32 {
        if acc > self.most { self.most } else { acc }
    }
}

/// `min(gelu(acc + bias[column]), cap)`.
pub type BiasGeluCap = Then<ColumnBias<bf16>, Then<Gelu, Cap>>;

/// Two blocks of a cluster share the tiles of B.
type Pair = Cluster<2, 1>;

/// A and B are K-major, C is row-major.
type Kernel = Sm90<
    bf16,
    KMajor,
    KMajor,
    KMajor,
    Tile<128, 256>,
    Stages<4>,
    Pair,
    Cooperative<2>,
    EpilogueTile<64>,
>;

instantiate! {
    /// `C = min(gelu(A·B + bias), cap)`.
    ///
    /// # Safety
    /// As for [`gemm`], and the bias has a number for each column of C.
    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = Pair::LAUNCH_BOUND,
        arch = "sm_90a")]
    pub unsafe fn gemm_bias_gelu_cap(
        #[grid_constant] map_a: &TensorMap,
        #[grid_constant] map_b: &TensorMap,
        #[grid_constant] map_c: &TensorMap,
        c: GlobalMut<bf16>,
        workspace: GlobalMut<f32>,
        args: Args,
        epilogue: BiasGeluCap,
        #[shared] storage: Storage<Kernel>,
    ) = gemm::<Kernel, OneProduct, ByTma, ToMatrix<BiasGeluCap>>;
}

#[cfg(not(target_arch = "nvptx64"))]
mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::GemmBiasGeluCap;

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
