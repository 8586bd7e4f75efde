//! The kernels of the family that the library launches, each in a module of its own, so that a first launch compiles
//! one kernel. One declaration gives a kernel's configuration, its name and its [`Instance`].
//!
//! A name says the type, the tile, the cluster and the consumers: `bf16_128x256x64_2x1_coop`. Consumers are `coop` (two
//! cooperative warpgroups), `coop3` (three), `pingpong` (two), or `ws` (one: warp-specialised, and nothing else). A
//! kernel whose launches choose the cluster has no cluster in its name, but each of its instances has. A suffix such as
//! `_km` gives the majors of A and B where one is not K-major. A third letter is the major of a column-major C:
//! `bf16_128x160x64_1x1_coop_kkm` computes `Cᵀ = Bᵀ·Aᵀ`, so that the tile's 160 columns are rows of a row-major C. At the
//! end stands what is fused: `linear` (bias and residual), or an activation after it. There also stands `f32` if C is of
//! f32.
//!
//! Kernels for f16 have the same PTX as those for bf16 but for the format's name. They are not compiled: `also` has
//! their PTX derived. A build with `CUTLET_EACH_FORMAT=1` compiles them, and fails where they differ otherwise. GELU is
//! compiled for both: in bf16 it is computed by a cheaper approximation, whose error bf16 rounds away.

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
use super::instance::{Instance, concat, count, static_cluster};
use super::{ByTma, Config, InOut, OneProduct, Sm90, Storage, ToMatrix, gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{
    Cluster, ClusterShape, Cooperative, DynamicCluster, EpilogueTile, PingPong, Stages, Tile,
    epilogue_n,
};
use crate::gemm::epilogue::{AtLeast, Gelu, GeluForBf16, Linear, Scale, Silu, Then};

/// The body for the CPU of a kernel for a format, by the last word of its line. One kernel of each kind has a body. The
/// others have no code that these lack, and each would take a second to compile.
macro_rules! cpu_body {
    (bf16 cpu) => {
        crate::cpu::BODY
    };
    (e4m3 cpu) => {
        crate::cpu::BODY
    };
    ($format:ident cpu_both) => {
        crate::cpu::BODY
    };
    ($format:ident $($cpu:ident)?) => {
        cutlet_device::CpuBody::None
    };
}
pub(super) use cpu_body;

/// Kernels for bf16 and for f16: `name for bf16, name for f16 = [majors of A, B and C] tile, stages, cluster,
/// consumers`. Behind a `DynamicCluster:` stand the rows and columns of the clusters that it is launched in. At the end
/// stands `cpu` if there is a body for the CPU for bf16, and `cpu_both` if for f16 as well.
macro_rules! instances {
    (plain $bf16_list:ident, $f16_list:ident:
        $($bf16:ident, $f16:ident = $majors:tt Tile<$m:literal, $n:literal>, $stages:ty, $cluster:ty $(: $launched:tt)?,
            $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        instances_of! {
            /// Kernels for bf16.
            $bf16_list of bf16 to bf16: bf16, Scale, k 64, compiled if true, also ["f16 for bf16"]:
                $($bf16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
        instances_of! {
            /// Kernels for f16.
            $f16_list of f16 to f16: f16, Scale, k 64, compiled if each_format, also []:
                $($f16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
    };
    (plain to f32 $bf16_list:ident, $f16_list:ident:
        $($bf16:ident, $f16:ident = $majors:tt Tile<$m:literal, $n:literal>, $stages:ty, $cluster:ty $(: $launched:tt)?,
            $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        instances_of! {
            /// Kernels for bf16 that store a C of f32.
            $bf16_list of bf16 to f32: InOut<bf16, f32>, Scale, k 64, compiled if true, also ["f16 for bf16"]:
                $($bf16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
        instances_of! {
            /// Kernels for f16 that store a C of f32.
            $f16_list of f16 to f32: InOut<f16, f32>, Scale, k 64, compiled if each_format, also []:
                $($f16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
    };
    (fused $activation:ident, $bf16_list:ident, $f16_list:ident:
        $($bf16:ident, $f16:ident = $majors:tt Tile<$m:literal, $n:literal>, $stages:ty, $cluster:ty $(: $launched:tt)?,
            $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        instances_of! {
            #[doc = concat!("Kernels for bf16 that fuse [`Linear`] and [`", stringify!($activation), "`].")]
            $bf16_list of bf16 to bf16: bf16, Then<Linear<bf16>, $activation>, k 64, compiled if true, also ["f16 for bf16"]:
                $($bf16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
        instances_of! {
            #[doc = concat!("Kernels for f16 that fuse [`Linear`] and [`", stringify!($activation), "`].")]
            $f16_list of f16 to f16: f16, Then<Linear<f16>, $activation>, k 64, compiled if each_format, also []:
                $($f16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
    };
    (fused $for_bf16:ident or $for_f16:ident, $bf16_list:ident, $f16_list:ident:
        $($bf16:ident, $f16:ident = $majors:tt Tile<$m:literal, $n:literal>, $stages:ty, $cluster:ty $(: $launched:tt)?,
            $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        instances_of! {
            #[doc = concat!("Kernels for bf16 that fuse [`Linear`] and [`", stringify!($for_bf16), "`].")]
            $bf16_list of bf16 to bf16: bf16, Then<Linear<bf16>, $for_bf16>, k 64, compiled if true, also []:
                $($bf16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
        instances_of! {
            #[doc = concat!("Kernels for f16 that fuse [`Linear`] and [`", stringify!($for_f16), "`].")]
            $f16_list of f16 to f16: f16, Then<Linear<f16>, $for_f16>, k 64, compiled if true, also []:
                $($f16 = $majors $m, $n, $stages, $cluster $(: $launched)?, $consumers $(, $cpu)?;)+
        }
    };
}

/// The element types of a kernel by the major of its C: those of the product that it computes, which may be of Bᵀ and Aᵀ.
macro_rules! types_for {
    (M: $types:ty, $transposed:ty) => {
        $transposed
    };
    ($c:ident: $types:ty, $transposed:ty) => {
        $types
    };
}
pub(super) use types_for;

/// Kernels of element types (`=>` those of Bᵀ and Aᵀ, if they differ) with an epilogue; the k of their k-tiles; under which condition they are compiled for the GPU, and which other
/// kernels' PTX is derived from theirs.
macro_rules! instances_of {
    ($(#[$list_doc:meta])* $list:ident of $format:ident to $out:ident: $types:ty => $transposed:ty, $epilogue:ty, k $k:literal, compiled if $condition:tt, also $also:tt:
        $($name:ident = [$a:ident, $b:ident, $c:ident] $m:literal, $n:literal, $stages:ty,
            $cluster:ty $(: $launched:tt)?, $consumers:ty $(, $cpu:ident)?;)+
    ) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ", `", stringify!($cluster), "`, `", stringify!($consumers), "`.")]
            #[cfg(all(feature = "hopper", any(not(target_arch = "nvptx64"), $condition)))]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type Kernel = Sm90<types_for!($c: $types, $transposed), $a, $b, $c, Tile<$m, $n, $k>, $stages, $cluster, $consumers,
                    EpilogueTile<{ epilogue_n::<$out>($n) }>>;

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($format), ".")]
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, cluster = <$cluster>::LAUNCH_BOUND,
                        arch = "sm_90a", also = $also, cpu = cpu_body!($format $($cpu)?))]
                    pub unsafe fn $name(
                        #[grid_constant] map_a: &TensorMap,
                        #[grid_constant] map_b: &TensorMap,
                        #[grid_constant] map_c: &TensorMap,
                        c: GlobalMut<$out>,
                        workspace: GlobalMut<f32>,
                        args: Args,
                        epilogue: $epilogue,
                        #[shared] storage: Storage<Kernel>,
                    ) = gemm::<Kernel, OneProduct, ByTma, ToMatrix<$epilogue>>;
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
        pub static $list: &[Instance<$types, $epilogue>] = &{
            const OF_KERNELS: &[&[Instance<$types, $epilogue>]] = &[$(
                &Instance::in_clusters::<$name::Kernel, _>(&$name::$name, clusters!($name $(: $launched)?)),
            )+];
            concat::<_, _, { count(OF_KERNELS) }>(OF_KERNELS)
        };

        $(#[$list_doc])*
        #[cfg(all(not(feature = "hopper"), not(target_arch = "nvptx64")))]
        pub static $list: &[Instance<$types, $epilogue>] = &[];
    };
    ($(#[$list_doc:meta])* $list:ident of $format:ident to $out:ident: $types:ty, $($rest:tt)+) => {
        instances_of! {
            $(#[$list_doc])* $list of $format to $out: $types => $types, $($rest)+
        }
    };
}

pub(super) use instances_of;

/// Clusters of at most eight blocks, which every device of compute capability 9.0 runs.
#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
pub(super) const ANY: [[u32; 2]; 8] = [
    [1, 1],
    [2, 1],
    [1, 2],
    [2, 2],
    [4, 1],
    [1, 4],
    [4, 2],
    [2, 4],
];
/// Those of several blocks. The smallest tiles have a kernel of their own for one block, which takes less time to start.
#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
const SEVERAL: [[u32; 2]; 7] = [[2, 1], [1, 2], [2, 2], [4, 1], [1, 4], [4, 2], [2, 4]];
/// Those but the most frequent one of the largest tile, which has a kernel of its own.
#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
const BUT_2X1: [[u32; 2]; 7] = [[1, 1], [1, 2], [2, 2], [4, 1], [1, 4], [4, 2], [2, 4]];

/// The clusters that a kernel is launched in: those that are stated, or the one that it is compiled for.
#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
macro_rules! clusters {
    ($name:ident) => {
        [static_cluster::<$name::Kernel>()]
    };
    ($name:ident: $launched:tt) => {
        $launched
    };
}

#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
pub(super) use clusters;

instances! {
    plain BF16, F16:
    bf16_128x256x64_2x1_coop, f16_128x256x64_2x1_coop = [K, K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>, cpu;
    bf16_128x256x64_coop, f16_128x256x64_coop = [K, K, K] Tile<128, 256>, Stages<4>, DynamicCluster: BUT_2X1, Cooperative<2>;
    bf16_128x224x64_coop, f16_128x224x64_coop = [K, K, K] Tile<128, 224>, Stages<4>, DynamicCluster: ANY, Cooperative<2>;
    bf16_256x192x64_coop, f16_256x192x64_coop = [K, K, K] Tile<256, 192>, Stages<3>, DynamicCluster: ANY, Cooperative<2, 2>;
    bf16_256x160x64_coop, f16_256x160x64_coop = [K, K, K] Tile<256, 160>, Stages<4>, DynamicCluster: ANY, Cooperative<2, 2>, cpu;
    bf16_192x192x64_coop3, f16_192x192x64_coop3 = [K, K, K] Tile<192, 192>, Stages<4>, DynamicCluster: ANY, Cooperative<3>, cpu;
    bf16_128x192x64_pingpong, f16_128x192x64_pingpong = [K, K, K] Tile<128, 192>, Stages<4>, DynamicCluster: ANY, PingPong<2>;
    bf16_128x176x64_pingpong, f16_128x176x64_pingpong = [K, K, K] Tile<128, 176>, Stages<5>, DynamicCluster: ANY, PingPong<2>;
    bf16_128x160x64_pingpong, f16_128x160x64_pingpong = [K, K, K] Tile<128, 160>, Stages<5>, DynamicCluster: ANY, PingPong<2>;
    bf16_128x128x64_pingpong, f16_128x128x64_pingpong = [K, K, K] Tile<128, 128>, Stages<6>, DynamicCluster: ANY, PingPong<2>, cpu;
    bf16_64x224x64_pingpong, f16_64x224x64_pingpong = [K, K, K] Tile<64, 224>, Stages<5>, DynamicCluster: ANY, PingPong, cpu;
    bf16_128x128x64_coop, f16_128x128x64_coop = [K, K, K] Tile<128, 128>, Stages<6>, DynamicCluster: ANY, Cooperative<2>;
    bf16_128x112x64_coop, f16_128x112x64_coop = [K, K, K] Tile<128, 112>, Stages<6>, DynamicCluster: ANY, Cooperative<2>, cpu;
    bf16_64x160x64_ws, f16_64x160x64_ws = [K, K, K] Tile<64, 160>, Stages<7>, DynamicCluster: ANY, Cooperative<1>;
    bf16_64x128x64_ws, f16_64x128x64_ws = [K, K, K] Tile<64, 128>, Stages<8>, DynamicCluster: ANY, Cooperative<1>;
    bf16_64x96x64_ws, f16_64x96x64_ws = [K, K, K] Tile<64, 96>, Stages<10>, DynamicCluster: ANY, Cooperative<1>;
    bf16_64x64x64_ws, f16_64x64x64_ws = [K, K, K] Tile<64, 64>, Stages<12>, DynamicCluster: SEVERAL, Cooperative<1>, cpu;
    bf16_64x80x64_ws, f16_64x80x64_ws = [K, K, K] Tile<64, 80>, Stages<10>, DynamicCluster: ANY, Cooperative<1>;
    bf16_64x64x64_1x1_ws, f16_64x64x64_1x1_ws = [K, K, K] Tile<64, 64>, Stages<12>, Cluster<1, 1>, Cooperative<1>, cpu_both;
    bf16_64x48x64_1x1_ws, f16_64x48x64_1x1_ws = [K, K, K] Tile<64, 48>, Stages<14>, Cluster<1, 1>, Cooperative<1>, cpu;
    bf16_64x32x64_1x1_ws, f16_64x32x64_1x1_ws = [K, K, K] Tile<64, 32>, Stages<16>, Cluster<1, 1>, Cooperative<1>, cpu;
    bf16_128x208x64_coop_kkm, f16_128x208x64_coop_kkm = [K, K, M] Tile<128, 208>, Stages<5>, DynamicCluster: ANY, Cooperative<2>;
    bf16_128x192x64_coop_kkm, f16_128x192x64_coop_kkm = [K, K, M] Tile<128, 192>, Stages<4>, DynamicCluster: ANY, Cooperative<2>;
    bf16_128x176x64_coop_kkm, f16_128x176x64_coop_kkm = [K, K, M] Tile<128, 176>, Stages<5>, DynamicCluster: ANY, Cooperative<2>;
    bf16_128x160x64_coop_kkm, f16_128x160x64_coop_kkm = [K, K, M] Tile<128, 160>, Stages<5>, DynamicCluster: ANY, Cooperative<2>;
    bf16_128x112x64_coop_kkm, f16_128x112x64_coop_kkm = [K, K, M] Tile<128, 112>, Stages<6>, DynamicCluster: ANY, Cooperative<2>;
    bf16_128x96x64_coop_kkm, f16_128x96x64_coop_kkm = [K, K, M] Tile<128, 96>, Stages<6>, DynamicCluster: ANY, Cooperative<2>;
    bf16_128x80x64_coop_kkm, f16_128x80x64_coop_kkm = [K, K, M] Tile<128, 80>, Stages<7>, DynamicCluster: ANY, Cooperative<2>, cpu;
    bf16_256x112x64_coop_kkm, f16_256x112x64_coop_kkm = [K, K, M] Tile<256, 112>, Stages<4>, DynamicCluster: ANY, Cooperative<2, 2>, cpu;
    bf16_128x136x64_coop_kkm, f16_128x136x64_coop_kkm = [K, K, M] Tile<128, 136>, Stages<6>, DynamicCluster: ANY, Cooperative<2>;
    bf16_64x128x64_ws_kkm, f16_64x128x64_ws_kkm = [K, K, M] Tile<64, 128>, Stages<8>, DynamicCluster: ANY, Cooperative<1>;
    bf16_64x112x64_ws_kkm, f16_64x112x64_ws_kkm = [K, K, M] Tile<64, 112>, Stages<10>, DynamicCluster: ANY, Cooperative<1>;
    bf16_64x32x64_ws_kkm, f16_64x32x64_ws_kkm = [K, K, M] Tile<64, 32>, Stages<16>, DynamicCluster: ANY, Cooperative<1>, cpu_both;
    bf16_128x256x64_2x1_coop_km, f16_128x256x64_2x1_coop_km = [K, M, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_128x128x64_2x1_pingpong_km, f16_128x128x64_2x1_pingpong_km = [K, M, K] Tile<128, 128>, Stages<6>, Cluster<2, 1>, PingPong<2>, cpu;
    bf16_64x128x64_1x1_ws_km, f16_64x128x64_1x1_ws_km = [K, M, K] Tile<64, 128>, Stages<8>, Cluster<1, 1>, Cooperative<1>;
    bf16_64x64x64_1x1_ws_km, f16_64x64x64_1x1_ws_km = [K, M, K] Tile<64, 64>, Stages<12>, Cluster<1, 1>, Cooperative<1>, cpu;
    bf16_128x256x64_2x1_coop_mk, f16_128x256x64_2x1_coop_mk = [M, K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_128x128x64_2x1_pingpong_mk, f16_128x128x64_2x1_pingpong_mk = [M, K, K] Tile<128, 128>, Stages<6>, Cluster<2, 1>, PingPong<2>;
    bf16_64x128x64_1x1_ws_mk, f16_64x128x64_1x1_ws_mk = [M, K, K] Tile<64, 128>, Stages<8>, Cluster<1, 1>, Cooperative<1>;
    bf16_64x64x64_1x1_ws_mk, f16_64x64x64_1x1_ws_mk = [M, K, K] Tile<64, 64>, Stages<12>, Cluster<1, 1>, Cooperative<1>, cpu;
    bf16_128x256x64_2x1_coop_mm, f16_128x256x64_2x1_coop_mm = [M, M, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_128x128x64_2x1_pingpong_mm, f16_128x128x64_2x1_pingpong_mm = [M, M, K] Tile<128, 128>, Stages<6>, Cluster<2, 1>, PingPong<2>;
    bf16_64x128x64_1x1_ws_mm, f16_64x128x64_1x1_ws_mm = [M, M, K] Tile<64, 128>, Stages<8>, Cluster<1, 1>, Cooperative<1>;
    bf16_64x64x64_1x1_ws_mm, f16_64x64x64_1x1_ws_mm = [M, M, K] Tile<64, 64>, Stages<12>, Cluster<1, 1>, Cooperative<1>, cpu;
}

instances! {
    plain to f32 BF16_TO_F32, F16_TO_F32:
    bf16_128x256x64_2x1_coop_f32, f16_128x256x64_2x1_coop_f32 = [K, K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_128x192x64_pingpong_f32, f16_128x192x64_pingpong_f32 = [K, K, K] Tile<128, 192>, Stages<4>, DynamicCluster: ANY, PingPong<2>;
    bf16_128x128x64_pingpong_f32, f16_128x128x64_pingpong_f32 = [K, K, K] Tile<128, 128>, Stages<6>, DynamicCluster: ANY, PingPong<2>, cpu;
    bf16_64x128x64_ws_f32, f16_64x128x64_ws_f32 = [K, K, K] Tile<64, 128>, Stages<8>, DynamicCluster: ANY, Cooperative<1>;
    bf16_64x64x64_1x1_ws_f32, f16_64x64x64_1x1_ws_f32 = [K, K, K] Tile<64, 64>, Stages<12>, Cluster<1, 1>, Cooperative<1>, cpu_both;
}

instances! {
    fused AtLeast, LINEAR_BF16, LINEAR_F16:
    bf16_128x256x64_2x1_coop_linear, f16_128x256x64_2x1_coop_linear = [K, K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_64x128x64_1x1_ws_linear, f16_64x128x64_1x1_ws_linear = [K, K, K] Tile<64, 128>, Stages<8>, Cluster<1, 1>, Cooperative<1>, cpu_both;
    bf16_128x128x64_2x1_coop_linear, f16_128x128x64_2x1_coop_linear = [K, K, K] Tile<128, 128>, Stages<6>, Cluster<2, 1>, Cooperative<2>, cpu;
    bf16_64x160x64_2x1_ws_linear, f16_64x160x64_2x1_ws_linear = [K, K, K] Tile<64, 160>, Stages<7>, Cluster<2, 1>, Cooperative<1>;
    bf16_64x128x64_2x1_ws_linear, f16_64x128x64_2x1_ws_linear = [K, K, K] Tile<64, 128>, Stages<8>, Cluster<2, 1>, Cooperative<1>;
}

instances! {
    fused GeluForBf16 or Gelu, GELU_BF16, GELU_F16:
    bf16_128x256x64_2x1_coop_gelu, f16_128x256x64_2x1_coop_gelu = [K, K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_64x128x64_1x1_ws_gelu, f16_64x128x64_1x1_ws_gelu = [K, K, K] Tile<64, 128>, Stages<8>, Cluster<1, 1>, Cooperative<1>, cpu_both;
    bf16_128x128x64_2x1_coop_gelu, f16_128x128x64_2x1_coop_gelu = [K, K, K] Tile<128, 128>, Stages<6>, Cluster<2, 1>, Cooperative<2>;
    bf16_64x160x64_2x1_ws_gelu, f16_64x160x64_2x1_ws_gelu = [K, K, K] Tile<64, 160>, Stages<7>, Cluster<2, 1>, Cooperative<1>;
    bf16_64x128x64_2x1_ws_gelu, f16_64x128x64_2x1_ws_gelu = [K, K, K] Tile<64, 128>, Stages<8>, Cluster<2, 1>, Cooperative<1>;
}

instances! {
    fused Silu, SILU_BF16, SILU_F16:
    bf16_128x256x64_2x1_coop_silu, f16_128x256x64_2x1_coop_silu = [K, K, K] Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>;
    bf16_64x128x64_1x1_ws_silu, f16_64x128x64_1x1_ws_silu = [K, K, K] Tile<64, 128>, Stages<8>, Cluster<1, 1>, Cooperative<1>, cpu;
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{format, string::String};

    use super::*;
    use crate::gemm::sm90::ElementTypes;

    /// The name that a configuration asks for.
    fn name<T: ElementTypes, E>(format: &str, instance: &Instance<T, E>, fused: &str) -> String {
        let [m, n] = instance.traits.tile;
        let [rows, columns] = instance.traits.cluster;
        let cluster = format!("{rows}x{columns}");
        let consumers = match (instance.traits.is_pingpong, instance.traits.consumers) {
            (true, _) => "pingpong",
            (false, 1) => "ws",
            (false, 2) => "coop",
            (false, _) => "coop3",
        };
        let major = |is_k: bool| if is_k { "k" } else { "m" };
        let [a, b] = instance.traits.k_major.map(major);
        let majors = match (a, b, instance.traits.transposed) {
            ("k", "k", false) => String::new(),
            (a, b, false) => format!("_{a}{b}"),
            (a, b, true) => format!("_{a}{b}m"),
        };
        format!("{format}_{m}x{n}x64_{cluster}_{consumers}{majors}{fused}")
    }

    fn check_names<T: ElementTypes, E>(format: &str, instances: &[Instance<T, E>], fused: &str) {
        for instance in instances {
            assert_eq!(instance.name(), name(format, instance, fused));
        }
    }

    #[test]
    fn names_say_the_configuration() {
        check_names("bf16", BF16, "");
        check_names("f16", F16, "");
        check_names("bf16", BF16_TO_F32, "_f32");
        check_names("f16", F16_TO_F32, "_f32");
        check_names("bf16", LINEAR_BF16, "_linear");
        check_names("f16", LINEAR_F16, "_linear");
        check_names("bf16", GELU_BF16, "_gelu");
        check_names("f16", GELU_F16, "_gelu");
        check_names("bf16", SILU_BF16, "_silu");
        check_names("f16", SILU_F16, "_silu");
    }
}
