//! Kernels for 8-bit floats (e4m3) with scales of blocks. C is of bf16, or quantised to e4m3.
//!
//! Names are as those of [other kernels for e4m3](super::k_major_instances), with `blocks` at the end, and `blocks_e4m3`
//! if C is quantised. As those of [other kernels for groups](super::grouped_instances), they have `grouped` behind the
//! type. Kernels with `kkm` in their names compute `Cᵀ = Bᵀ·Aᵀ`, for an A of few rows: these are then the columns of
//! tiles.

// As in `instances`.
#![cfg_attr(
    any(not(feature = "hopper"), not(feature = "cpu"), target_arch = "nvptx64"),
    allow(unused_imports, unused_macros)
)]

use cutlet_device::fp8::F8E4M3;
use cutlet_device::tile::{KMajor as K, MnMajor as M};
use cutlet_device::tma::TensorMap;
use cutlet_device::{GlobalMut, instantiate};
use half::bf16;

#[cfg(not(target_arch = "nvptx64"))]
use super::instance::BlockScaledInstance;
use super::instances::cpu_body;
use super::{
    BlockScaled, Config, Groups, OneProduct, QuantizedC, ScalesOfBlocks, Sm90, Storage, ToMatrix,
    ToQuantized, TransposedBlockScaled, gemm_with_block_scales,
};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, DynamicCluster, EpilogueTile, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::Scale;

/// Kernels: `name = element types, major of C, tile, stages, cluster: [clusters that it is launched in], consumers`.
macro_rules! instances {
    ($(#[$list_doc:meta])* $list:ident of $products:ty, by $store:ty, $epilogue:ty:
        $($name:ident = $types:ty, $c:ident, $m:literal, $n:literal, $stages:ty, $cluster:ty: [$($launched:expr),+],
            $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ", `", stringify!($cluster), "`, `", stringify!($consumers), "`.")]
            #[cfg(feature = "hopper")]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type Kernel = Sm90<$types, K, K, $c, Tile<$m, $n, 128>, $stages, $cluster, $consumers,
                    EpilogueTile<{ epilogue_n::<bf16>($n) }>>;

                instantiate! {
                    /// The kernel.
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = <$cluster>::LAUNCH_BOUND,
                        arch = "sm_90a", cpu = cpu_body!(e4m3 $($cpu)?))]
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

        $(#[$list_doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[BlockScaledInstance<$epilogue>] =
            &[$($(
                #[cfg(feature = "hopper")]
                BlockScaledInstance::in_cluster::<$name::Kernel>(&$name::$name, $launched),
            )+)+];
    };
}
/// Both operands' types, and C's.
#[cfg(feature = "hopper")]
type OfRows<const BEFORE: usize> = BlockScaled<F8E4M3, bf16, BEFORE>;
/// The same where the kernel computes Cᵀ.
#[cfg(feature = "hopper")]
type OfColumns = TransposedBlockScaled<F8E4M3, bf16>;

instances! {
    /// Kernels for e4m3 with scales of blocks.
    E4M3_BLOCKS of OneProduct, by ToMatrix<Scale>, Scale:
    e4m3_256x128x128_2x1_coop_blocks = OfRows<0>, K, 256, 128, Stages<4>, Cluster<2, 1>: [[2, 1]], Cooperative<2, 2>, cpu_both;
    e4m3_128x128x128_2x1_coop_blocks = OfRows<0>, K, 128, 128, Stages<5>, Cluster<2, 1>: [[2, 1]], Cooperative<2>;
    e4m3_64x128x128_1x1_ws_blocks = OfRows<0>, K, 64, 128, Stages<8>, Cluster<1, 1>: [[1, 1]], Cooperative<1>, cpu_both;
    e4m3_64x64x128_1x1_ws_blocks = OfRows<0>, K, 64, 64, Stages<12>, Cluster<1, 1>: [[1, 1]], Cooperative<1>;
    e4m3_128x128x128_coop_kkm_blocks = OfColumns, M, 128, 128, Stages<5>,
        DynamicCluster: [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1]], Cooperative<2>;
    e4m3_128x64x128_coop_kkm_blocks = OfColumns, M, 128, 64, Stages<7>,
        DynamicCluster: [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1]], Cooperative<2>;
    e4m3_64x32x128_ws_kkm_blocks = OfColumns, M, 64, 32, Stages<16>,
        DynamicCluster: [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1]], Cooperative<1>, cpu_both;
}

instances! {
    /// Kernels for groups of rows of e4m3 with scales of blocks.
    E4M3_GROUPED_BLOCKS of Groups, by ToMatrix<Scale>, Scale:
    e4m3_grouped_128x128x128_1x1_coop_blocks = OfRows<4>, K, 128, 128, Stages<5>, Cluster<1, 1>: [[1, 1]], Cooperative<2>, cpu_both;
    e4m3_grouped_64x128x128_1x1_ws_blocks = OfRows<4>, K, 64, 128, Stages<8>, Cluster<1, 1>: [[1, 1]], Cooperative<1>;
}

instances! {
    /// Kernels for e4m3 with scales of blocks that quantise C.
    E4M3_BLOCKS_TO_E4M3 of OneProduct, by ToQuantized, QuantizedC:
    e4m3_256x128x128_2x1_coop_blocks_e4m3 = OfRows<0>, K, 256, 128, Stages<4>, Cluster<2, 1>: [[2, 1]], Cooperative<2, 2>, cpu_both;
    e4m3_64x128x128_1x1_ws_blocks_e4m3 = OfRows<0>, K, 64, 128, Stages<8>, Cluster<1, 1>: [[1, 1]], Cooperative<1>, cpu_both;
}
