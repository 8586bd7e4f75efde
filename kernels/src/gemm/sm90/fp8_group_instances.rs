//! Kernels for batches and groups of products of 8-bit floats, with [`OuterScales`] or with one factor. C is
//! of bf16. Sums are [`Promoted`](super::Promoted), but those of kernels with `fast` in their names.
//!
//! Names are as those of [other kernels for 8-bit floats](super::k_major_instances). As those of
//! [other kernels for groups](super::grouped_instances), they have `grouped` behind the type.

// As in `instances`.
#![cfg_attr(
    any(not(feature = "hopper"), not(feature = "cpu"), target_arch = "nvptx64"),
    allow(unused_imports, unused_macros)
)]

use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_device::tile::KMajor as K;
use cutlet_device::tma::TensorMap;
use cutlet_device::{GlobalMut, instantiate};
use half::bf16;

use super::fp8_formats::for_formats;
#[cfg(not(target_arch = "nvptx64"))]
use super::instance::Instance;
use super::instances::cpu_body;
use super::{ByTma, Config, Groups, InOut, PromotedInOut, Sm90, Storage, ToMatrix, gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, EpilogueTile, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::{OuterScales, Scale, Then};

/// The scales, and then what is added of C.
pub type ScaledEpilogue = Then<OuterScales, Scale>;

/// Kernels for 8-bit floats of two formats: `name = { tile, stages, cluster, consumers }`.
macro_rules! scaled_groups {
    ({ $types:ident } $list:ident of $format:ident: $in:ty => $_transposed:ty, compiled if $condition:tt, also $also:tt:
        $($name:ident = { $m:literal, $n:literal, $stages:ty, $cluster:ty, $consumers:ty $(, $cpu:ident)? };)+
    ) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ", `", stringify!($cluster), "`, `", stringify!($consumers), "`.")]
            #[cfg(all(feature = "hopper", any(not(target_arch = "nvptx64"), $condition)))]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type Kernel = Sm90<$types<$in, bf16>, K, K, K, Tile<$m, $n, 128>, $stages, $cluster, $consumers,
                    EpilogueTile<{ epilogue_n::<bf16>($n) }>>;

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($format), ".")]
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = <$cluster>::LAUNCH_BOUND,
                        arch = "sm_90a", also = $also, cpu = cpu_body!($format $($cpu)?))]
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

        #[doc = concat!("Kernels for batches and groups of ", stringify!($format), ".")]
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<$types<$in, bf16>, ScaledEpilogue>] =
            &[$(#[cfg(feature = "hopper")] Instance::new::<$name::Kernel>(&$name::$name),)+];
    };
}

for_formats! {
    scaled_groups! { PromotedInOut } E4M3_GROUPED, E5M2_GROUPED, E4M3_E5M2_GROUPED, E5M2_E4M3_GROUPED:
    e4m3_grouped_128x128x128_2x1_coop_outer, e5m2_grouped_128x128x128_2x1_coop_outer, e4m3e5m2_grouped_128x128x128_2x1_coop_outer, e5m2e4m3_grouped_128x128x128_2x1_coop_outer =
        { 128, 128, Stages<5>, Cluster<2, 1>, Cooperative<2> };
    e4m3_grouped_128x128x128_1x1_coop_outer, e5m2_grouped_128x128x128_1x1_coop_outer, e4m3e5m2_grouped_128x128x128_1x1_coop_outer, e5m2e4m3_grouped_128x128x128_1x1_coop_outer =
        { 128, 128, Stages<5>, Cluster<1, 1>, Cooperative<2>, cpu };
    e4m3_grouped_64x128x128_1x1_ws_outer, e5m2_grouped_64x128x128_1x1_ws_outer, e4m3e5m2_grouped_64x128x128_1x1_ws_outer, e5m2e4m3_grouped_64x128x128_1x1_ws_outer =
        { 64, 128, Stages<8>, Cluster<1, 1>, Cooperative<1>, cpu_both };
}

// Those whose sums have the bits that the tensor cores keep.
for_formats! {
    scaled_groups! { InOut } E4M3_GROUPED_FAST, E5M2_GROUPED_FAST, E4M3_E5M2_GROUPED_FAST, E5M2_E4M3_GROUPED_FAST:
    e4m3_grouped_128x128x128_2x1_coop_fast_outer, e5m2_grouped_128x128x128_2x1_coop_fast_outer, e4m3e5m2_grouped_128x128x128_2x1_coop_fast_outer, e5m2e4m3_grouped_128x128x128_2x1_coop_fast_outer =
        { 128, 128, Stages<5>, Cluster<2, 1>, Cooperative<2>, cpu };
}
