//! Kernels for batches and groups of products of 8-bit floats (e4m3), with [`OuterScales`] or with one factor. Sums are
//! [`Promoted`](super::Promoted), and C is of bf16.
//!
//! Names are as those of [other kernels for e4m3](super::k_major_instances). As those of
//! [other kernels for groups](super::grouped_instances), they have `grouped` behind the type.

// As in `instances`.
#![cfg_attr(
    any(not(feature = "hopper"), not(feature = "cpu"), target_arch = "nvptx64"),
    allow(unused_imports, unused_macros)
)]

use cutlet_device::fp8::F8E4M3;
use cutlet_device::tile::KMajor as K;
use cutlet_device::tma::TensorMap;
use cutlet_device::{GlobalMut, instantiate};
use half::bf16;

#[cfg(not(target_arch = "nvptx64"))]
use super::instance::Instance;
use super::instances::cpu_body;
use super::{ByTma, Config, Groups, PromotedInOut, Sm90, Storage, ToMatrix, gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, EpilogueTile, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::{OuterScales, Scale, Then};

/// The scales, and then what is added of C.
pub type ScaledEpilogue = Then<OuterScales, Scale>;

/// The element types of the kernels.
pub type Types = PromotedInOut<F8E4M3, bf16>;

macro_rules! instances {
    ($($name:ident = $m:literal, $n:literal, $stages:ty, $cluster:ty, $consumers:ty $(, $cpu:ident)?;)+) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ", `", stringify!($cluster), "`, `", stringify!($consumers), "`.")]
            #[cfg(feature = "hopper")]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type Kernel = Sm90<Types, K, K, K, Tile<$m, $n, 128>, $stages, $cluster, $consumers,
                    EpilogueTile<{ epilogue_n::<bf16>($n) }>>;

                instantiate! {
                    /// The kernel.
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = <$cluster>::LAUNCH_BOUND,
                        arch = "sm_90a", cpu = cpu_body!(e4m3 $($cpu)?))]
                    pub unsafe fn $name(
                        #[grid_constant] map_a: &TensorMap,
                        #[grid_constant] map_b: &TensorMap,
                        #[grid_constant] map_c: &TensorMap,
                        c: GlobalMut<bf16>,
                        workspace: GlobalMut<f32>,
                        args: Args,
                        epilogue: ScaledEpilogue,
                        #[shared] storage: Storage<Kernel>,
                    ) = gemm::<Kernel, Groups, ByTma, ToMatrix<ScaledEpilogue>>;
                }
            }
        )+

        /// Kernels for batches and groups of e4m3.
        #[cfg(not(target_arch = "nvptx64"))]
        pub static E4M3_GROUPED: &[Instance<Types, ScaledEpilogue>] =
            &[$(#[cfg(feature = "hopper")] Instance::new::<$name::Kernel>(&$name::$name),)+];
    };
}
instances! {
    e4m3_grouped_128x128x128_2x1_coop_outer = 128, 128, Stages<5>, Cluster<2, 1>, Cooperative<2>;
    e4m3_grouped_128x128x128_1x1_coop_outer = 128, 128, Stages<5>, Cluster<1, 1>, Cooperative<2>, cpu_both;
    e4m3_grouped_64x128x128_1x1_ws_outer = 64, 128, Stages<8>, Cluster<1, 1>, Cooperative<1>, cpu_both;
}
