//! Kernels for 8-bit floats, for f32 whose operands TMA rounds to tf32, and for f32 as three products of tf32.
//! `wgmma` reads such operands K-major.
//!
//! Names are as those of the [kernels for 16-bit floats](super::instances). Behind the consumers, `fast` stands for
//! sums that are not [`Promoted`](super::Promoted), and `outer` for scales of rows and columns. C of 8-bit floats is of
//! bf16.

// As in `instances`.
#![cfg_attr(
    any(not(feature = "hopper"), not(feature = "cpu"), target_arch = "nvptx64"),
    allow(unused_imports, unused_macros)
)]

use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_device::tile::{KMajor as K, MnMajor as M};
use cutlet_device::tma::TensorMap;
use cutlet_device::{GlobalMut, instantiate};
use half::bf16;

use super::fp8_formats::for_formats;
#[cfg(not(target_arch = "nvptx64"))]
use super::instance::{Instance, concat, count, static_cluster};
#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
use super::instances::{ANY, clusters};
use super::instances::{cpu_body, instances_of, types_for};
use super::{
    ByTma, Config, InOut, OfTf32x3, OneProduct, PromotedInOut, Sm90, Storage, ToMatrix, gemm,
};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, DynamicCluster, EpilogueTile, PingPong, Stages, Tile,
    epilogue_n,
};
use crate::gemm::epilogue::{OuterScales, Scale, UnpairedOuterScales};

/// Kernels for 8-bit floats of two formats: `name = { majors, tile, stages, cluster, consumers }`.
macro_rules! single {
    ({ $types:ident, $epilogue:ty } $list:ident of $format:ident: $in:ty => $transposed:ty, compiled if $condition:tt, also $also:tt:
        $($name:ident = { $majors:tt $m:literal, $n:literal, $stages:ty, $cluster:ty $(: $launched:tt)?,
            $consumers:ty $(, $cpu:ident)? };)+
    ) => {
        instances_of! {
            #[doc = concat!("Kernels for ", stringify!($format), ".")]
            $list of $format to bf16: $types<$in, bf16> => $types<$transposed, bf16>, $epilogue, k 128, compiled if $condition, also $also:
                $($name = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
    };
}

// Sums are promoted.
for_formats! {
    single! { PromotedInOut, Scale } E4M3, E5M2, E4M3_E5M2, E5M2_E4M3:
    e4m3_256x128x128_coop, e5m2_256x128x128_coop, e4m3e5m2_256x128x128_coop, e5m2e4m3_256x128x128_coop =
        { [K, K, K] 256, 128, Stages<4>, DynamicCluster: ANY, Cooperative<2, 2> };
    e4m3_128x128x128_coop, e5m2_128x128x128_coop, e4m3e5m2_128x128x128_coop, e5m2e4m3_128x128x128_coop =
        { [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, Cooperative<2> };
    e4m3_64x128x128_1x1_ws, e5m2_64x128x128_1x1_ws, e4m3e5m2_64x128x128_1x1_ws, e5m2e4m3_64x128x128_1x1_ws =
        { [K, K, K] 64, 128, Stages<8>, Cluster<1, 1>, Cooperative<1>, cpu_both };
    e4m3_128x64x128_coop_kkm, e5m2_128x64x128_coop_kkm, e5m2e4m3_128x64x128_coop_kkm, e4m3e5m2_128x64x128_coop_kkm =
        { [K, K, M] 128, 64, Stages<7>, DynamicCluster: ANY, Cooperative<2> };
    e4m3_64x32x128_ws_kkm, e5m2_64x32x128_ws_kkm, e5m2e4m3_64x32x128_ws_kkm, e4m3e5m2_64x32x128_ws_kkm =
        { [K, K, M] 64, 32, Stages<16>, DynamicCluster: ANY, Cooperative<1>, cpu_both };
}

// Sums have the bits that the tensor cores keep.
for_formats! {
    single! { InOut, Scale } E4M3_FAST, E5M2_FAST, E4M3_E5M2_FAST, E5M2_E4M3_FAST:
    e4m3_128x256x128_coop_fast, e5m2_128x256x128_coop_fast, e4m3e5m2_128x256x128_coop_fast, e5m2e4m3_128x256x128_coop_fast =
        { [K, K, K] 128, 256, Stages<4>, DynamicCluster: ANY, Cooperative<2> };
    e4m3_128x128x128_pingpong_fast, e5m2_128x128x128_pingpong_fast, e4m3e5m2_128x128x128_pingpong_fast, e5m2e4m3_128x128x128_pingpong_fast =
        { [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, PingPong<2>, cpu };
    e4m3_64x128x128_ws_fast, e5m2_64x128x128_ws_fast, e4m3e5m2_64x128x128_ws_fast, e5m2e4m3_64x128x128_ws_fast =
        { [K, K, K] 64, 128, Stages<8>, DynamicCluster: ANY, Cooperative<1> };
}

// Rows and columns have scales, and sums are promoted.
for_formats! {
    single! { PromotedInOut, OuterScales } E4M3_OUTER, E5M2_OUTER, E4M3_E5M2_OUTER, E5M2_E4M3_OUTER:
    e4m3_256x128x128_coop_outer, e5m2_256x128x128_coop_outer, e4m3e5m2_256x128x128_coop_outer, e5m2e4m3_256x128x128_coop_outer =
        { [K, K, K] 256, 128, Stages<4>, DynamicCluster: ANY, Cooperative<2, 2>, cpu };
    e4m3_128x128x128_coop_outer, e5m2_128x128x128_coop_outer, e4m3e5m2_128x128x128_coop_outer, e5m2e4m3_128x128x128_coop_outer =
        { [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, Cooperative<2> };
    e4m3_64x128x128_ws_outer, e5m2_64x128x128_ws_outer, e4m3e5m2_64x128x128_ws_outer, e5m2e4m3_64x128x128_ws_outer =
        { [K, K, K] 64, 128, Stages<8>, DynamicCluster: ANY, Cooperative<1>, cpu };
}

// Rows and columns have scales, sums are promoted, and kernels compute `Cᵀ = Bᵀ·Aᵀ`.
for_formats! {
    single! { PromotedInOut, UnpairedOuterScales } E4M3_TRANSPOSED_OUTER, E5M2_TRANSPOSED_OUTER, E4M3_E5M2_TRANSPOSED_OUTER, E5M2_E4M3_TRANSPOSED_OUTER:
    e4m3_128x128x128_coop_kkm_outer, e5m2_128x128x128_coop_kkm_outer, e5m2e4m3_128x128x128_coop_kkm_outer, e4m3e5m2_128x128x128_coop_kkm_outer =
        { [K, K, M] 128, 128, Stages<5>, DynamicCluster: ANY, Cooperative<2> };
    e4m3_128x64x128_coop_kkm_outer, e5m2_128x64x128_coop_kkm_outer, e5m2e4m3_128x64x128_coop_kkm_outer, e4m3e5m2_128x64x128_coop_kkm_outer =
        { [K, K, M] 128, 64, Stages<7>, DynamicCluster: ANY, Cooperative<2> };
    e4m3_64x32x128_ws_kkm_outer, e5m2_64x32x128_ws_kkm_outer, e5m2e4m3_64x32x128_ws_kkm_outer, e4m3e5m2_64x32x128_ws_kkm_outer =
        { [K, K, M] 64, 32, Stages<16>, DynamicCluster: ANY, Cooperative<1>, cpu };
}

// Rows and columns have scales, and sums have the bits that the tensor cores keep.
for_formats! {
    single! { InOut, OuterScales } E4M3_FAST_OUTER, E5M2_FAST_OUTER, E4M3_E5M2_FAST_OUTER, E5M2_E4M3_FAST_OUTER:
    e4m3_128x256x128_coop_fast_outer, e5m2_128x256x128_coop_fast_outer, e4m3e5m2_128x256x128_coop_fast_outer, e5m2e4m3_128x256x128_coop_fast_outer =
        { [K, K, K] 128, 256, Stages<4>, DynamicCluster: ANY, Cooperative<2> };
    e4m3_128x128x128_coop_fast_outer, e5m2_128x128x128_coop_fast_outer, e4m3e5m2_128x128x128_coop_fast_outer, e5m2e4m3_128x128x128_coop_fast_outer =
        { [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, Cooperative<2>, cpu };
    e4m3_64x128x128_ws_fast_outer, e5m2_64x128x128_ws_fast_outer, e4m3e5m2_64x128x128_ws_fast_outer, e5m2e4m3_64x128x128_ws_fast_outer =
        { [K, K, K] 64, 128, Stages<8>, DynamicCluster: ANY, Cooperative<1> };
}

instances_of! {
    /// Kernels for f32 as tf32.
    TF32 of tf32 to f32: f32, Scale, k 32, compiled if true, also []:
        tf32_128x256x32_coop = [K, K, K] 128, 256, Stages<4>, DynamicCluster: ANY, Cooperative<2>;
        tf32_128x192x32_pingpong = [K, K, K] 128, 192, Stages<4>, DynamicCluster: ANY, PingPong<2>;
        tf32_128x128x32_coop = [K, K, K] 128, 128, Stages<6>, DynamicCluster: ANY, Cooperative<2>;
        tf32_64x128x32_ws = [K, K, K] 64, 128, Stages<8>, DynamicCluster: ANY, Cooperative<1>;
        tf32_64x64x32_ws = [K, K, K] 64, 64, Stages<12>, DynamicCluster: ANY, Cooperative<1>, cpu_both;
}

instances_of! {
    /// Kernels for f32 as three products of tf32.
    TF32X3 of tf32x3 to f32: OfTf32x3, Scale, k 32, compiled if true, also []:
        tf32x3_256x96x32_coop = [K, K, K] 256, 96, Stages<3>, DynamicCluster: ANY, Cooperative<2, 2>;
        tf32x3_128x128x32_coop = [K, K, K] 128, 128, Stages<4>, DynamicCluster: ANY, Cooperative<2>, cpu_both;
}
