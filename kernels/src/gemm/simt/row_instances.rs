//! The kernels of the family for rows of A, or of C, that are those of a table that indices name. Names are those of
//! [`instances`](super::instances), with `rows` after the type.

// A build without the family has no instances, which use these imports. Not all are compiled for all targets.
#![cfg_attr(
    any(not(feature = "simt"), target_arch = "nvptx64"),
    allow(unused_imports)
)]

use cutlet_device::tile::{KMajor as K, MnMajor as Mn};
use cutlet_device::{Global, GlobalMut, instantiate, thread_idx};

use super::{Lanes, Named, Simt, ThreadTile, Unaligned as Un};
use crate::gemm::config::{Stages, Tile};
use crate::gemm::epilogue::FusedWithOld;
#[cfg(not(target_arch = "nvptx64"))]
use crate::gemm::multistage::instance::Instance;
use crate::gemm::multistage::warps::Warps;
use crate::gemm::multistage::{Config, MultistageArgs, Storage, named_rows_gemm};

macro_rules! instances {
    ($list:ident: $($name:ident = [$a:ty, $b:ty] Tile<$m:literal, $n:literal, $k:literal>, Stages<$stages:literal>,
        ThreadTile<$tm:literal, $tn:literal, $tk:literal>, Lanes<$lm:literal, $ln:literal>, Warps<$wm:literal, $wn:literal>,
        $threads:literal x $min_blocks:literal, $speed:literal;)+) => {$(
        #[doc = concat!("[`", stringify!($name), "`](self) and its configuration.")]
        #[cfg(all(feature = "simt", any(not(target_arch = "nvptx64"), not(target_feature = "sm_90"))))]
        pub mod $name {
            use super::*;

            /// The configuration.
            pub type C = Simt<Named<$a, { $m * $k / $threads }>, $b, Tile<$m, $n, $k>, Stages<$stages>,
                ThreadTile<$tm, $tn, $tk>, Lanes<$lm, $ln>, Warps<$wm, $wn>, $threads>;

            instantiate! {
                /// `C = epilogue(A·B)`, with rows of tables.
                #[kernel(threads = <C as Config>::THREADS, min_blocks = $min_blocks,
                    cpu = crate::cpu::VECTOR_BODY)]
                pub unsafe fn $name(
                    a: Global<f32>,
                    b: Global<f32>,
                    c: GlobalMut<f32>,
                    partials: GlobalMut<f32>,
                    args: MultistageArgs,
                    epilogue: FusedWithOld<f32>,
                    #[shared] storage: Storage<C>,
                ) = named_rows_gemm::<C, f32, FusedWithOld<f32>>(thread_idx(), ..);
            }
        }
    )+

        /// The kernels for f32.
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<f32, f32, FusedWithOld<f32>>] =
            &[$(#[cfg(feature = "simt")] Instance::new::<$name::C>(&$name::$name, $min_blocks, $speed),)+];
    };
}

instances! {
    F32:
    f32_rows_64x64_kk = [K, K] Tile<64, 64, 32>, Stages<3>, ThreadTile<8, 4, 4>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.55;
    f32_rows_64x64_kn = [K, Mn] Tile<64, 64, 32>, Stages<3>, ThreadTile<8, 4, 4>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.58;
    f32_rows_64x64_kk_any = [Un<K>, Un<K>] Tile<64, 64, 16>, Stages<4>, ThreadTile<8, 4, 1>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.50;
    f32_rows_64x64_kn_any = [Un<K>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, ThreadTile<8, 4, 1>, Lanes<4, 8>, Warps<2, 2>, 128 x 3, 0.45;
}
