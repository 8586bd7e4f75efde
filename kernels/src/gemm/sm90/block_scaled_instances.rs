//! Kernels for 8-bit floats with scales of blocks. C is of bf16, or quantised to e4m3.
//!
//! Names are as those of [other kernels for 8-bit floats](super::k_major_instances), with `blocks` at the end, and `blocks_e4m3`
//! if C is quantised. As those of [other kernels for groups](super::grouped_instances), they have `grouped` behind the
//! type. Kernels with `kkm` in their names compute `Cᵀ = Bᵀ·Aᵀ`, for an A of few rows: these are then the columns of
//! tiles.

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
use super::instance::BlockScaledInstance;
use super::instances::{cpu_body, types_for};
use super::{
    BlockScaled, Config, Groups, OneProduct, QuantizedC, ScalesOfBlocks, Sm90, Storage, ToMatrix,
    ToQuantized, TransposedBlockScaled, gemm_with_block_scales,
};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, DynamicCluster, EpilogueTile, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::Scale;

/// Kernels for 8-bit floats of two formats: `name = { element types, major of C, tile, stages, cluster: [clusters that it
/// is launched in], consumers }`.
macro_rules! block_scaled {
    ({ $products:ty, by $store:ty, $epilogue:ty }
        $list:ident of $format:ident: $in:ty => $transposed:ty, compiled if $condition:tt, also $also:tt:
        $($name:ident = { $types:ident, $c:ident, $m:literal, $n:literal, $stages:ty,
            $cluster:ty: [$($launched:expr),+], $consumers:ty $(, $cpu:ident)? };)+
    ) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ", `", stringify!($cluster), "`, `", stringify!($consumers), "`.")]
            #[cfg(all(feature = "hopper", any(not(target_arch = "nvptx64"), $condition)))]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type Kernel = Sm90<types_for!($c: $types<$in>, $types<$transposed>), K, K, $c, Tile<$m, $n, 128>, $stages, $cluster, $consumers,
                    EpilogueTile<{ epilogue_n::<bf16>($n) }>>;

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($format), ".")]
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = <$cluster>::LAUNCH_BOUND,
                        arch = "sm_90a", also = $also, cpu = cpu_body!($format $($cpu)?))]
                    pub unsafe fn $name(
                        #[grid_constant] map_a: &TensorMap,
                        #[grid_constant] map_b: &TensorMap,
                        #[grid_constant] map_c: &TensorMap,
                        #[grid_constant] map_scales: &TensorMap,
                        scales_of_blocks: ScalesOfBlocks,
                        c: GlobalMut<bf16>,
                        workspace: GlobalMut<f32>,
                        args: Args,
                        epilogue: $epilogue,
                        #[shared] storage: Storage<Kernel>,
                    ) = gemm_with_block_scales::<Kernel, $products, $store>;
                }
            }
        )+

        #[doc = concat!("Kernels for ", stringify!($format), ".")]
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[BlockScaledInstance<$epilogue>] =
            &[$($(
                #[cfg(feature = "hopper")]
                BlockScaledInstance::in_cluster::<$name::Kernel>(&$name::$name, $launched),
            )+)+];
    };
}

/// The types of A and B, and C's.
#[cfg(feature = "hopper")]
type OfRows<In> = BlockScaled<In, bf16>;
/// The same in groups.
#[cfg(feature = "hopper")]
type OfGroups<In> = BlockScaled<In, bf16, 4>;
/// The same where the kernel computes Cᵀ.
#[cfg(feature = "hopper")]
type OfColumns<In> = TransposedBlockScaled<In, bf16>;

for_formats! {
    block_scaled! { OneProduct, by ToMatrix<Scale>, Scale }
    E4M3_BLOCKS, E5M2_BLOCKS, E4M3_E5M2_BLOCKS, E5M2_E4M3_BLOCKS:
    e4m3_256x128x128_2x1_coop_blocks, e5m2_256x128x128_2x1_coop_blocks, e4m3e5m2_256x128x128_2x1_coop_blocks, e5m2e4m3_256x128x128_2x1_coop_blocks =
        { OfRows, K, 256, 128, Stages<4>, Cluster<2, 1>: [[2, 1]], Cooperative<2, 2>, cpu };
    e4m3_128x128x128_2x1_coop_blocks, e5m2_128x128x128_2x1_coop_blocks, e4m3e5m2_128x128x128_2x1_coop_blocks, e5m2e4m3_128x128x128_2x1_coop_blocks =
        { OfRows, K, 128, 128, Stages<5>, Cluster<2, 1>: [[2, 1]], Cooperative<2> };
    e4m3_64x128x128_1x1_ws_blocks, e5m2_64x128x128_1x1_ws_blocks, e4m3e5m2_64x128x128_1x1_ws_blocks, e5m2e4m3_64x128x128_1x1_ws_blocks =
        { OfRows, K, 64, 128, Stages<8>, Cluster<1, 1>: [[1, 1]], Cooperative<1>, cpu_both };
    e4m3_64x64x128_1x1_ws_blocks, e5m2_64x64x128_1x1_ws_blocks, e4m3e5m2_64x64x128_1x1_ws_blocks, e5m2e4m3_64x64x128_1x1_ws_blocks =
        { OfRows, K, 64, 64, Stages<12>, Cluster<1, 1>: [[1, 1]], Cooperative<1> };
    e4m3_128x128x128_coop_kkm_blocks, e5m2_128x128x128_coop_kkm_blocks, e5m2e4m3_128x128x128_coop_kkm_blocks, e4m3e5m2_128x128x128_coop_kkm_blocks =
        { OfColumns, M, 128, 128, Stages<5>, DynamicCluster: [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1]], Cooperative<2> };
    e4m3_128x64x128_coop_kkm_blocks, e5m2_128x64x128_coop_kkm_blocks, e5m2e4m3_128x64x128_coop_kkm_blocks, e4m3e5m2_128x64x128_coop_kkm_blocks =
        { OfColumns, M, 128, 64, Stages<7>, DynamicCluster: [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1]], Cooperative<2> };
    e4m3_64x32x128_ws_kkm_blocks, e5m2_64x32x128_ws_kkm_blocks, e5m2e4m3_64x32x128_ws_kkm_blocks, e4m3e5m2_64x32x128_ws_kkm_blocks =
        { OfColumns, M, 64, 32, Stages<16>, DynamicCluster: [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1]], Cooperative<1>, cpu_both };
}

// Groups of rows.
for_formats! {
    block_scaled! { Groups, by ToMatrix<Scale>, Scale }
    E4M3_GROUPED_BLOCKS, E5M2_GROUPED_BLOCKS, E4M3_E5M2_GROUPED_BLOCKS, E5M2_E4M3_GROUPED_BLOCKS:
    e4m3_grouped_128x128x128_1x1_coop_blocks, e5m2_grouped_128x128x128_1x1_coop_blocks, e4m3e5m2_grouped_128x128x128_1x1_coop_blocks, e5m2e4m3_grouped_128x128x128_1x1_coop_blocks =
        { OfGroups, K, 128, 128, Stages<5>, Cluster<1, 1>: [[1, 1]], Cooperative<2>, cpu_both };
    e4m3_grouped_64x128x128_1x1_ws_blocks, e5m2_grouped_64x128x128_1x1_ws_blocks, e4m3e5m2_grouped_64x128x128_1x1_ws_blocks, e5m2e4m3_grouped_64x128x128_1x1_ws_blocks =
        { OfGroups, K, 64, 128, Stages<8>, Cluster<1, 1>: [[1, 1]], Cooperative<1> };
}

// Those that quantise C.
block_scaled! {
    { OneProduct, by ToQuantized, QuantizedC } E4M3_BLOCKS_TO_E4M3 of e4m3: F8E4M3 => F8E4M3, compiled if true, also []:
    e4m3_256x128x128_2x1_coop_blocks_e4m3 =
        { OfRows, K, 256, 128, Stages<4>, Cluster<2, 1>: [[2, 1]], Cooperative<2, 2>, cpu };
    e4m3_64x128x128_1x1_ws_blocks_e4m3 =
        { OfRows, K, 64, 128, Stages<8>, Cluster<1, 1>: [[1, 1]], Cooperative<1>, cpu };
}
