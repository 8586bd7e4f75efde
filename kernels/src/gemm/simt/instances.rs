//! The kernels of the family that the library launches. A name says the type, the tile, and how A and B lie: `k` where
//! k is consecutive, `m` or `n` where rows or columns are. `any` is for any alignment. They are compiled for sm_80
//! alone, whose PTX runs on all later GPUs. The number at the end of a line is the share of the cores' multiply-adds
//! that a large problem reaches, measured on an H100.

// A build without the family has no instances, which use these imports. Not all are compiled for all targets.
#![cfg_attr(
    any(not(feature = "simt"), target_arch = "nvptx64"),
    allow(unused_imports)
)]

use cutlet_device::tile::{KMajor as K, MnMajor as Mn};
use cutlet_device::{Global, GlobalMut, instantiate, thread_idx};

use super::{Lanes, Simt, ThreadTile, Transposed as Tr, Unaligned as Un};
use crate::gemm::config::{Stages, Tile};
use crate::gemm::epilogue::Fused;
#[cfg(not(target_arch = "nvptx64"))]
use crate::gemm::multistage::instance::Instance;
use crate::gemm::multistage::warps::Warps;
use crate::gemm::multistage::{Config, MultistageArgs, Storage, gemm};

macro_rules! instances {
    ($list:ident: $($name:ident = [$a:ty, $b:ty] Tile<$m:literal, $n:literal, $k:literal>, Stages<$stages:literal>,
        ThreadTile<$tm:literal, $tn:literal, $tk:literal>, Lanes<$lm:literal, $ln:literal>, Warps<$wm:literal, $wn:literal>,
        $threads:literal x $min_blocks:literal, $speed:literal;)+) => {$(
        #[doc = concat!("[`", stringify!($name), "`](self) and its configuration.")]
        #[cfg(all(feature = "simt", any(not(target_arch = "nvptx64"), not(target_feature = "sm_90"))))]
        pub mod $name {
            use super::*;

            /// The configuration.
            pub type C = Simt<$a, $b, Tile<$m, $n, $k>, Stages<$stages>, ThreadTile<$tm, $tn, $tk>, Lanes<$lm, $ln>,
                Warps<$wm, $wn>, $threads>;

            instantiate! {
                /// `C = epilogue(A·B)`.
                #[kernel(threads = <C as Config>::THREADS, min_blocks = $min_blocks,
                    cpu = crate::cpu::VECTOR_BODY)]
                pub unsafe fn $name(
                    a: Global<f32>,
                    b: Global<f32>,
                    c: GlobalMut<f32>,
                    partials: GlobalMut<f32>,
                    args: MultistageArgs,
                    epilogue: Fused<f32>,
                    #[shared] storage: Storage<C>,
                ) = gemm::<C, f32, Fused<f32>>(thread_idx(), ..);
            }
        }
    )+

        /// The kernels for f32.
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<f32, f32, Fused<f32>>] =
            &[$(#[cfg(feature = "simt")] Instance::new::<$name::C>(&$name::$name, $min_blocks, $speed),)+];
    };
}

instances! {
    F32:
    f32_256x128_kk = [Tr, Tr] Tile<256, 128, 16>, Stages<2>, ThreadTile<16, 8, 1>, Lanes<4, 8>, Warps<4, 2>, 256 x 1, 0.69;
    f32_128x128_kk = [Tr, Tr] Tile<128, 128, 16>, Stages<2>, ThreadTile<8, 8, 1>, Lanes<4, 8>, Warps<4, 2>, 256 x 1, 0.6;
    f32_128x128_kn = [Tr, Mn] Tile<128, 128, 16>, Stages<4>, ThreadTile<8, 16, 1>, Lanes<4, 8>, Warps<4, 1>, 128 x 2, 0.735;
    f32_128x128_mk = [Mn, Tr] Tile<128, 128, 16>, Stages<4>, ThreadTile<8, 16, 1>, Lanes<4, 8>, Warps<4, 1>, 128 x 2, 0.72;
    f32_128x128_mn = [Mn, Mn] Tile<128, 128, 16>, Stages<4>, ThreadTile<8, 16, 1>, Lanes<4, 8>, Warps<4, 1>, 128 x 2, 0.755;
    f32_64x64_kk = [K, K] Tile<64, 64, 32>, Stages<3>, ThreadTile<8, 4, 4>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.595;
    f32_64x64_kn = [K, Mn] Tile<64, 64, 32>, Stages<3>, ThreadTile<8, 4, 4>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.63;
    f32_64x64_mk = [Mn, K] Tile<64, 64, 32>, Stages<3>, ThreadTile<8, 4, 4>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.63;
    f32_64x64_mn = [Mn, Mn] Tile<64, 64, 32>, Stages<3>, ThreadTile<8, 4, 4>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.64;
    f32_16x128_kk = [K, K] Tile<16, 128, 32>, Stages<4>, ThreadTile<8, 2, 4>, Lanes<2, 16>, Warps<1, 4>, 128 x 3, 0.42;
    f32_16x128_kn = [K, Mn] Tile<16, 128, 32>, Stages<4>, ThreadTile<8, 2, 4>, Lanes<2, 16>, Warps<1, 4>, 128 x 3, 0.42;
    f32_16x128_mk = [Mn, K] Tile<16, 128, 32>, Stages<4>, ThreadTile<8, 2, 4>, Lanes<2, 16>, Warps<1, 4>, 128 x 3, 0.42;
    f32_8x256_kk = [K, K] Tile<8, 256, 32>, Stages<3>, ThreadTile<8, 2, 4>, Lanes<1, 32>, Warps<1, 4>, 128 x 2, 0.42;
    f32_8x256_kn = [K, Mn] Tile<8, 256, 32>, Stages<3>, ThreadTile<8, 2, 4>, Lanes<1, 32>, Warps<1, 4>, 128 x 2, 0.42;
    f32_8x256_mk = [Mn, K] Tile<8, 256, 32>, Stages<3>, ThreadTile<8, 2, 4>, Lanes<1, 32>, Warps<1, 4>, 128 x 2, 0.42;
    f32_64x64_kk_any = [Un<K>, Un<K>] Tile<64, 64, 16>, Stages<4>, ThreadTile<8, 4, 1>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.555;
    f32_64x64_kn_any = [Un<K>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, ThreadTile<8, 4, 1>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.50;
    f32_64x64_mk_any = [Un<Mn>, Un<K>] Tile<64, 64, 16>, Stages<4>, ThreadTile<8, 4, 1>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.50;
    f32_64x64_mn_any = [Un<Mn>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, ThreadTile<8, 4, 1>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.50;
}
