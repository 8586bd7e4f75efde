//! The kernels of the family for batches and groups of products. Names are those of [`instances`](super::instances), with
//! `grouped` in front of what follows the type.

// A build without the family has no instances, which use these imports. Not all are compiled for all targets.
#![cfg_attr(any(not(gemm_sm90), target_arch = "nvptx64"), allow(unused_imports))]

use cutlet_device::sm90::{KMajor as K, MnMajor as M, TensorMap};
use cutlet_device::{GlobalMut, instantiate};

#[cfg(not(target_arch = "nvptx64"))]
use super::instance::{GroupedArguments, Instance};
use super::{Config, Sm90, Storage, grouped_gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, EpilogueTile, PingPong, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::Scale;
use crate::gemm::scheduler::GroupArgs;

/// Kernels of an element type; under which condition they are compiled for the GPU, and which other kernels' PTX is derived
/// from theirs.
macro_rules! instances_of {
    ($(#[$list_doc:meta])* $list:ident of $element:ty, compiled if $condition:tt, also $also:tt:
        $($name:ident = [$a:ident, $b:ident] $m:literal, $n:literal, $stages:ty, $cluster:ty, $consumers:ty;)+
    ) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ", `", stringify!($cluster), "`, `", stringify!($consumers), "`.")]
            #[cfg(all(gemm_sm90, any(not(target_arch = "nvptx64"), $condition)))]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type Kernel = Sm90<$element, $a, $b, K, Tile<$m, $n>, $stages, $cluster, $consumers,
                    EpilogueTile<{ epilogue_n($n) }>>;

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($element), ".")]
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = <$cluster>::BLOCKS as u32,
                        arch = "sm_90a", also = $also)]
                    pub unsafe fn $name(
                        #[grid_constant] map_a: &TensorMap,
                        #[grid_constant] map_b: &TensorMap,
                        #[grid_constant] map_c: &TensorMap,
                        c: GlobalMut<$element>,
                        workspace: GlobalMut<f32>,
                        args: Args,
                        epilogue: Scale,
                        groups: GroupArgs,
                        #[shared] storage: Storage<Kernel>,
                    ) = grouped_gemm::<Kernel, Scale>;
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<$element, Scale, GroupedArguments<$element, Scale>>] =
            &[$(#[cfg(gemm_sm90)] Instance::new::<$name::Kernel>(&$name::$name),)+];
    };
}

/// Kernels for bf16 and for f16: `name for bf16, name for f16 = [majors of A and B] tile, stages, cluster, consumers`.
macro_rules! instances {
    ($($bf16:ident, $f16:ident = $majors:tt Tile<$m:literal, $n:literal>, $stages:ty, $cluster:ty, $consumers:ty;)+) => {
        instances_of! {
            /// Kernels for bf16.
            GROUPED_BF16 of half::bf16, compiled if true, also ["f16 for bf16"]:
                $($bf16 = $majors $m, $n, $stages, $cluster, $consumers;)+
        }
        instances_of! {
            /// Kernels for f16.
            GROUPED_F16 of half::f16, compiled if each_format, also []:
                $($f16 = $majors $m, $n, $stages, $cluster, $consumers;)+
        }
    };
}

instances! {
    bf16_grouped_128x256x64_2x1_coop, f16_grouped_128x256x64_2x1_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_grouped_128x256x64_1x2_coop, f16_grouped_128x256x64_1x2_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<1, 2>, Cooperative<2>;
    bf16_grouped_128x256x64_1x1_coop, f16_grouped_128x256x64_1x1_coop = [K, K] Tile<128, 256>, Stages<4>, Cluster<1, 1>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_coop, f16_grouped_128x128x64_1x1_coop = [K, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_pingpong, f16_grouped_128x128x64_1x1_pingpong = [K, K] Tile<128, 128>, Stages<6>, Cluster<1, 1>, PingPong<2>;
    bf16_grouped_64x128x64_1x1_pingpong, f16_grouped_64x128x64_1x1_pingpong = [K, K] Tile<64, 128>, Stages<7>, Cluster<1, 1>, PingPong;
    bf16_grouped_64x64x64_1x1_ws, f16_grouped_64x64x64_1x1_ws = [K, K] Tile<64, 64>, Stages<10>, Cluster<1, 1>, Cooperative<1>;
    bf16_grouped_128x256x64_2x1_coop_km, f16_grouped_128x256x64_2x1_coop_km = [K, M] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_grouped_128x256x64_1x2_coop_km, f16_grouped_128x256x64_1x2_coop_km = [K, M] Tile<128, 256>, Stages<4>, Cluster<1, 2>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_coop_km, f16_grouped_128x128x64_1x1_coop_km = [K, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, Cooperative<2>;
    bf16_grouped_128x128x64_1x1_pingpong_km, f16_grouped_128x128x64_1x1_pingpong_km = [K, M] Tile<128, 128>, Stages<6>, Cluster<1, 1>, PingPong<2>;
    bf16_grouped_64x64x64_1x1_ws_km, f16_grouped_64x64x64_1x1_ws_km = [K, M] Tile<64, 64>, Stages<10>, Cluster<1, 1>, Cooperative<1>;
}
