//! Kernels for i8, whose sums are of i32. `wgmma` reads such operands K-major.
//!
//! Names are as those of the [kernels for 16-bit floats](super::instances). At the end stands C's type if it is not of
//! i32. Such kernels multiply by [`OuterScales`].

// As in `instances`.
#![cfg_attr(
    any(not(feature = "hopper"), not(feature = "cpu"), target_arch = "nvptx64"),
    allow(unused_imports, unused_macros)
)]

use cutlet_device::tile::{KMajor as K, MnMajor as M};
use cutlet_device::tma::TensorMap;
use cutlet_device::{GlobalMut, instantiate};
use half::{bf16, f16};

#[cfg(not(target_arch = "nvptx64"))]
use super::instance::{Instance, concat, count};
#[cfg(all(feature = "hopper", not(target_arch = "nvptx64")))]
use super::instances::{ANY, clusters};
use super::instances::{cpu_body, instances_of, types_for};
use super::{ByTma, Config, OfI8, OneProduct, Sm90, Storage, ToMatrix, gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{
    ClusterShape, Cooperative, DynamicCluster, EpilogueTile, PingPong, Stages, Tile, epilogue_n,
};
use crate::gemm::epilogue::{OuterScales, Scale};

instances_of! {
    /// Kernels for i8 that store a C of i32.
    I8 of i8 to i32: OfI8<i32>, Scale<i32>, k 128, compiled if true, also []:
        i8_128x256x128_coop = [K, K, K] 128, 256, Stages<4>, DynamicCluster: ANY, Cooperative<2>;
        i8_128x192x128_pingpong = [K, K, K] 128, 192, Stages<4>, DynamicCluster: ANY, PingPong<2>;
        i8_128x128x128_pingpong = [K, K, K] 128, 128, Stages<5>, DynamicCluster: ANY, PingPong<2>, cpu_both;
        i8_64x128x128_ws = [K, K, K] 64, 128, Stages<8>, DynamicCluster: ANY, Cooperative<1>;
        i8_64x64x128_ws = [K, K, K] 64, 64, Stages<12>, DynamicCluster: ANY, Cooperative<1>, cpu_both;
        i8_64x32x128_ws_kkm = [K, K, M] 64, 32, Stages<16>, DynamicCluster: ANY, Cooperative<1>, cpu_both;
}

/// Kernels for i8 with scales of rows and columns, into bf16 and into f16: `name for bf16, name for f16 = tile, stages,
/// cluster, consumers`.
macro_rules! scaled_instances {
    ($($bf16:ident, $f16:ident = $m:literal, $n:literal, $stages:ty, $consumers:ty $(, $cpu:ident)?;)+) => {
        instances_of! {
            /// Kernels for i8 with scales of rows and columns, and a C of bf16.
            I8_TO_BF16 of i8 to bf16: OfI8<bf16>, OuterScales, k 128, compiled if true, also ["f16 for bf16"]:
                $($bf16 = [K, K, K] $m, $n, $stages, DynamicCluster: ANY, $consumers $(, $cpu)?;)+
        }
        instances_of! {
            /// Kernels for i8 with scales of rows and columns, and a C of f16.
            I8_TO_F16 of i8 to f16: OfI8<f16>, OuterScales, k 128, compiled if each_format, also []:
                $($f16 = [K, K, K] $m, $n, $stages, DynamicCluster: ANY, $consumers $(, $cpu)?;)+
        }
    };
}
scaled_instances! {
    i8_128x256x128_coop_bf16, i8_128x256x128_coop_f16 = 128, 256, Stages<4>, Cooperative<2>;
    i8_128x128x128_coop_bf16, i8_128x128x128_coop_f16 = 128, 128, Stages<5>, Cooperative<2>, cpu_both;
    i8_64x128x128_ws_bf16, i8_64x128x128_ws_f16 = 64, 128, Stages<8>, Cooperative<1>;
    i8_64x64x128_ws_bf16, i8_64x64x128_ws_f16 = 64, 64, Stages<12>, Cooperative<1>, cpu_both;
}
