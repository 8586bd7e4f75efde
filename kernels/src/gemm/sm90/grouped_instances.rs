//! The kernels of the family for batches and groups of products. Names are those of [`instances`](super::instances),
//! with the operation in front of what follows the type:
//!
//! | operation | |
//! |---|---|
//! | `grouped` | products of matrices |
//! | `gathered` | rows of A are those of a table that indices name |
//! | `scattered` | rows of C are those of a table that indices name |
//! | `swiglu` | columns are interleaved gates and ups |
//!
//! One kernel serves single products and groups.

// A build without the family has no instances, which use these imports. Not all are compiled for all targets. Without
// the CPU backend, none has a body for it.
#![cfg_attr(
    any(not(feature = "hopper"), not(feature = "cpu"), target_arch = "nvptx64"),
    allow(unused_imports, unused_macros)
)]

use cutlet_device::tile::{KMajor as K, MnMajor as M};
use cutlet_device::tma::TensorMap;
use cutlet_device::{GlobalMut, instantiate};
use half::{bf16, f16};

#[cfg(not(target_arch = "nvptx64"))]
use super::instance::Instance;
use super::instances::cpu_body;
use super::{ByRows, ByTma, Config, Groups, Sm90, Storage, ToMatrix, ToRows, ToSwiglu, gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, EpilogueTile, PingPong, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::Scale;

/// Kernels of an operation for an element type, by a loader of A and a store; under which condition they are compiled for the GPU, and which other
/// kernels' PTX is derived from theirs.
macro_rules! instances_of {
    ($(#[$list_doc:meta])* $list:ident of $format:ident, [$loader:ty, $store:ty],
        compiled if $condition:tt, also $also:tt:
        $($name:ident = [$a:ident, $b:ident] $m:literal, $n:literal, $stages:ty, $cluster:ty, $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ", `", stringify!($cluster), "`, `", stringify!($consumers), "`.")]
            #[cfg(all(feature = "hopper", any(not(target_arch = "nvptx64"), $condition)))]
            pub mod $name {
                use super::*;

                /// The configuration of a tile of so many columns.
                type OfColumns<const N: usize, const EPI_N: usize> =
                    Sm90<$format, $a, $b, K, Tile<$m, N>, $stages, $cluster, $consumers, EpilogueTile<EPI_N>>;
                /// The configuration.
                pub type Kernel = OfColumns<$n, { epilogue_n::<$format>($n) }>;
                /// The configuration with half the columns.
                #[allow(dead_code, reason = "few operations use it")]
                type Half = OfColumns<{ $n / 2 }, { epilogue_n::<$format>($n / 2) }>;

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($format), ".")]
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = <$cluster>::LAUNCH_BOUND,
                        arch = "sm_90a", also = $also, cpu = cpu_body!($format $($cpu)?))]
                    pub unsafe fn $name(
                        #[grid_constant] map_a: &TensorMap,
                        #[grid_constant] map_b: &TensorMap,
                        #[grid_constant] map_c: &TensorMap,
                        c: GlobalMut<$format>,
                        workspace: GlobalMut<f32>,
                        args: Args,
                        epilogue: Scale,
                        #[shared] storage: Storage<Kernel>,
                    ) = gemm::<Kernel, Groups, $loader, $store>;
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<$format>] =
            &[$(#[cfg(feature = "hopper")] Instance::new::<$name::Kernel>(&$name::$name),)+];
    };
}

/// Kernels for bf16 and for f16, by a loader of A and a store: `name for bf16, name for f16 = [majors of A and B] tile,
/// stages, cluster, consumers`.
macro_rules! instances {
    ($bf16_list:ident, $f16_list:ident by $roles:tt:
        $($bf16:ident, $f16:ident = $majors:tt Tile<$m:literal, $n:literal>, $stages:ty, $cluster:ty, $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        instances_of! {
            /// Kernels for bf16.
            $bf16_list of bf16, $roles, compiled if true, also ["f16 for bf16"]:
                $($bf16 = $majors $m, $n, $stages, $cluster, $consumers $(, $cpu)?;)+
        }
        instances_of! {
            /// Kernels for f16.
            $f16_list of f16, $roles, compiled if each_format, also []:
                $($f16 = $majors $m, $n, $stages, $cluster, $consumers $(, $cpu)?;)+
        }
    };
}

instances! {
    GROUPED_BF16, GROUPED_F16 by [ByTma, ToMatrix<Scale>]:
    bf16_grouped_128x256x64_2x1_coop, f16_grouped_128x256x64_2x1_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>, cpu;
    bf16_grouped_128x256x64_1x2_coop, f16_grouped_128x256x64_1x2_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<1, 2>, Cooperative<2>;
    bf16_grouped_128x256x64_1x1_coop, f16_grouped_128x256x64_1x1_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<1, 1>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_coop, f16_grouped_128x128x64_1x1_coop = [K, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>, cpu;
    bf16_grouped_128x128x64_1x1_pingpong, f16_grouped_128x128x64_1x1_pingpong = [K, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, PingPong<2>, cpu;
    bf16_grouped_64x128x64_1x1_pingpong, f16_grouped_64x128x64_1x1_pingpong = [K, K] Tile<64, 128>, Stages<7>, Cluster<1, 1>, PingPong;
    bf16_grouped_64x64x64_1x1_ws, f16_grouped_64x64x64_1x1_ws = [K, K] Tile<64, 64>, Stages<10>, Cluster<1, 1>, Cooperative<1>, cpu_both;
    bf16_grouped_128x256x64_2x1_coop_km, f16_grouped_128x256x64_2x1_coop_km = [K, M] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_grouped_128x256x64_1x2_coop_km, f16_grouped_128x256x64_1x2_coop_km = [K, M] Tile<128, 256>, Stages<4>, Cluster<1, 2>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_coop_km, f16_grouped_128x128x64_1x1_coop_km = [K, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_pingpong_km, f16_grouped_128x128x64_1x1_pingpong_km = [K, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, PingPong<2>;
    bf16_grouped_64x64x64_1x1_ws_km, f16_grouped_64x64x64_1x1_ws_km = [K, M] Tile<64, 64>, Stages<10>, Cluster<1, 1>, Cooperative<1>, cpu;
    bf16_grouped_128x256x64_2x1_coop_mk, f16_grouped_128x256x64_2x1_coop_mk = [M, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_grouped_128x256x64_1x2_coop_mk, f16_grouped_128x256x64_1x2_coop_mk = [M, K] Tile<128, 256>, Stages<4>, Cluster<1, 2>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_pingpong_mk, f16_grouped_128x128x64_1x1_pingpong_mk = [M, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, PingPong<2>;
    bf16_grouped_64x64x64_1x1_ws_mk, f16_grouped_64x64x64_1x1_ws_mk = [M, K] Tile<64, 64>, Stages<10>, Cluster<1, 1>, Cooperative<1>, cpu;
    bf16_grouped_128x256x64_2x1_coop_mm, f16_grouped_128x256x64_2x1_coop_mm = [M, M] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_grouped_128x256x64_1x2_coop_mm, f16_grouped_128x256x64_1x2_coop_mm = [M, M] Tile<128, 256>, Stages<4>, Cluster<1, 2>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_pingpong_mm, f16_grouped_128x128x64_1x1_pingpong_mm = [M, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, PingPong<2>;
    bf16_grouped_64x64x64_1x1_ws_mm, f16_grouped_64x64x64_1x1_ws_mm = [M, M] Tile<64, 64>, Stages<10>, Cluster<1, 1>, Cooperative<1>, cpu;
}

instances! {
    GATHERED_BF16, GATHERED_F16 by [ByRows, ToMatrix<Scale>]:
    bf16_gathered_128x256x64_2x1_coop, f16_gathered_128x256x64_2x1_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>, cpu;
    bf16_gathered_128x128x64_1x1_coop, f16_gathered_128x128x64_1x1_coop = [K, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>, cpu_both;
    bf16_gathered_128x256x64_2x1_coop_km, f16_gathered_128x256x64_2x1_coop_km = [K, M] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_gathered_128x128x64_1x1_coop_km, f16_gathered_128x128x64_1x1_coop_km = [K, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>, cpu;
}

instances! {
    SCATTERED_BF16, SCATTERED_F16 by [ByTma, ToRows<Scale>]:
    bf16_scattered_128x256x64_2x1_coop, f16_scattered_128x256x64_2x1_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>, cpu;
    bf16_scattered_128x128x64_1x1_coop, f16_scattered_128x128x64_1x1_coop = [K, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>, cpu_both;
    bf16_scattered_128x256x64_2x1_coop_km, f16_scattered_128x256x64_2x1_coop_km = [K, M] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_scattered_128x128x64_1x1_coop_km, f16_scattered_128x128x64_1x1_coop_km = [K, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>, cpu;
}

instances! {
    SWIGLU_BF16, SWIGLU_F16 by [ByTma, ToSwiglu<Half>]:
    bf16_swiglu_128x256x64_2x1_coop, f16_swiglu_128x256x64_2x1_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>, cpu;
    bf16_swiglu_128x256x64_1x2_coop, f16_swiglu_128x256x64_1x2_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<1, 2>, Cooperative<2>;
    bf16_swiglu_128x128x64_1x1_coop, f16_swiglu_128x128x64_1x1_coop = [K, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>, cpu_both;
    bf16_swiglu_128x256x64_2x1_coop_km, f16_swiglu_128x256x64_2x1_coop_km = [K, M] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_swiglu_128x128x64_1x1_coop_km, f16_swiglu_128x128x64_1x1_coop_km = [K, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>, cpu;
}
