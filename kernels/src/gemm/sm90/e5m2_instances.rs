//! Kernels for 8-bit floats of which A, B or both are e5m2. Sums are [`Promoted`](super::Promoted), and C is of bf16.
//!
//! Names are as those of [other kernels for 8-bit floats](super::k_major_instances). `e4m3e5m2` has an A of e4m3 and a B
//! of e5m2.

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

#[cfg(not(target_arch = "nvptx64"))]
use super::instance::{Instance, concat, count};
#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
use super::instances::{ANY, clusters};
use super::instances::{cpu_body, instances_of};
use super::{ByTma, Config, OneProduct, PromotedInOut, Sm90, Storage, ToMatrix, gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{
    ClusterShape, Cooperative, DynamicCluster, EpilogueTile, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::Scale;

instances_of! {
    /// Kernels for e5m2.
    E5M2 of e5m2 to bf16: PromotedInOut<F8E5M2, bf16>, Scale, k 128, compiled if true, also []:
        e5m2_256x128x128_coop = [K, K, K] 256, 128, Stages<4>, DynamicCluster: ANY, Cooperative<2, 2>;
        e5m2_128x128x128_coop = [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, Cooperative<2>, cpu_both;
}

instances_of! {
    /// Kernels for an A of e4m3 and a B of e5m2.
    E4M3_E5M2 of e4m3e5m2 to bf16: PromotedInOut<MixedF8<F8E4M3, F8E5M2>, bf16>, Scale, k 128, compiled if true, also []:
        e4m3e5m2_256x128x128_coop = [K, K, K] 256, 128, Stages<4>, DynamicCluster: ANY, Cooperative<2, 2>;
        e4m3e5m2_128x128x128_coop = [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, Cooperative<2>, cpu_both;
}

instances_of! {
    /// Kernels for an A of e5m2 and a B of e4m3.
    E5M2_E4M3 of e5m2e4m3 to bf16: PromotedInOut<MixedF8<F8E5M2, F8E4M3>, bf16>, Scale, k 128, compiled if true, also []:
        e5m2e4m3_256x128x128_coop = [K, K, K] 256, 128, Stages<4>, DynamicCluster: ANY, Cooperative<2, 2>;
        e5m2e4m3_128x128x128_coop = [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, Cooperative<2>, cpu_both;
}
