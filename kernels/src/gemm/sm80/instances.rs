//! The kernels of the family that the library launches. A name says the type, the tile with its k-tiles, and how A and
//! B are read: `k` where k is consecutive, `m` or `n` where rows or columns are. `any` comes before kernels for any
//! alignment.
//!
//! Kernels are compiled for sm_80, whose text newer GPUs run, too. [`F64_SM90`] alone is for Hopper, which has larger
//! instructions for f64. Kernels for f16 are not derived from those for bf16: sm_80 has no instruction that widens a
//! bf16. The number at the end of a line is the share of the tensor cores' peak that a large problem reaches, measured
//! on an H100.

// A build without the family has no instances, which use these imports. Not all are compiled for all targets. Without
// the CPU backend, none has a body for it.
#![cfg_attr(
    any(not(feature = "ampere"), not(feature = "cpu"), target_arch = "nvptx64"),
    allow(dead_code, unused_imports)
)]

use cutlet_device::sm80::{Mma1688F64, Mma16816, Mma16832};
use cutlet_device::tile::{KMajor as K, MnMajor as Mn};
use cutlet_device::{CpuBody, Global, GlobalMut, instantiate, thread_idx};
use half::{bf16, f16};

use super::arithmetic::{Double, Tf32, Tf32x3};
use super::{Sm80, Unaligned as Un, Words as Wo};
#[cfg(not(target_arch = "nvptx64"))]
use crate::cpu::BODY;
use crate::gemm::config::{Stages, Tile, TileShape};
use crate::gemm::epilogue::Fused;
#[cfg(not(target_arch = "nvptx64"))]
use crate::gemm::multistage::instance::Instance;
use crate::gemm::multistage::warps::Warps;
use crate::gemm::multistage::{Config, MultistageArgs, Storage, gemm};

/// The body for the CPU of a kernel with this configuration. Larger tiles have none: they have no code that small ones
/// lack, and each would take a second to compile. The model of `mma` picks the processor's vector instructions itself.
#[cfg(not(target_arch = "nvptx64"))]
const fn cpu_body<C: Config>() -> CpuBody {
    match C::Tile::M * C::Tile::N <= 64 * 64 {
        true => BODY,
        false => CpuBody::None,
    }
}

/// Kernels of an arithmetic, for operands of one type and a C of another.
macro_rules! instances {
    ($(#[$list_doc:meta])* $list:ident by $arithmetic:ty, $element:ty => $c:ty, of $acc:ty, if $target:meta:
        $($name:ident = [$a:ty, $b:ty] Tile<$m:literal, $n:literal, $k:literal>, Stages<$stages:literal>,
            Warps<$wm:literal, $wn:literal>, $threads:literal x $min_blocks:literal, $speed:literal;)+
    ) => {
        $(
            #[doc = concat!("[`", stringify!($name), "`](self) and its configuration.")]
            #[cfg(all(feature = "ampere", any(not(target_arch = "nvptx64"), $target)))]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type C = Sm80<$arithmetic, $a, $b, Tile<$m, $n, $k>, Stages<$stages>, Warps<$wm, $wn>, $threads>;

                instantiate! {
                    /// `C = epilogue(A·B)`.
                    #[kernel(threads = <C as Config>::THREADS, min_blocks = $min_blocks, cpu = cpu_body::<C>())]
                    pub unsafe fn $name(
                        a: Global<$element>,
                        b: Global<$element>,
                        c: GlobalMut<$c>,
                        partials: GlobalMut<$acc>,
                        args: MultistageArgs,
                        epilogue: Fused<$c>,
                        #[shared] storage: Storage<C>,
                    ) = gemm::<C, $c, Fused<$c>>(thread_idx(), ..);
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(all(feature = "ampere", not(target_arch = "nvptx64")))]
        pub static $list: &[Instance<$element, $c, Fused<$c>>] =
            &[$(Instance::new::<$name::C>(&$name::$name, $min_blocks, $speed),)+];

        $(#[$list_doc])*
        #[cfg(all(not(feature = "ampere"), not(target_arch = "nvptx64")))]
        pub static $list: &[Instance<$element, $c, Fused<$c>>] = &[];
    };
}

/// Kernels for bf16 and for f16: `name for bf16, name for f16 = configuration`.
macro_rules! of_16_bits {
    ($($bf16:ident, $f16:ident = [$a:ty, $b:ty] Tile<$m:literal, $n:literal, $k:literal>, Stages<$stages:literal>,
        Warps<$wm:literal, $wn:literal>, $threads:literal x $min_blocks:literal, $speed:literal;)+
    ) => {
        instances! {
            /// The kernels for bf16.
            BF16 by Mma16816<bf16>, bf16 => bf16, of f32, if not(target_feature = "sm_90"):
                $($bf16 = [$a, $b] Tile<$m, $n, $k>, Stages<$stages>, Warps<$wm, $wn>,
                    $threads x $min_blocks, $speed;)+
        }
        instances! {
            /// The kernels for f16.
            F16 by Mma16816<f16>, f16 => f16, of f32, if not(target_feature = "sm_90"):
                $($f16 = [$a, $b] Tile<$m, $n, $k>, Stages<$stages>, Warps<$wm, $wn>,
                    $threads x $min_blocks, $speed;)+
        }
    };
}

of_16_bits! {
    mma_bf16_128x256x64_kk, mma_f16_128x256x64_kk = [K, K] Tile<128, 256, 64>, Stages<3>, Warps<2, 4>, 256 x 1, 0.49;
    mma_bf16_128x128x64_kk, mma_f16_128x128x64_kk = [K, K] Tile<128, 128, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.48;
    mma_bf16_128x128x32_kk, mma_f16_128x128x32_kk = [K, K] Tile<128, 128, 32>, Stages<4>, Warps<2, 2>, 128 x 2, 0.47;
    mma_bf16_64x64x64_kk, mma_f16_64x64x64_kk = [K, K] Tile<64, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 3, 0.3;
    mma_bf16_16x128x64_kk, mma_f16_16x128x64_kk = [K, K] Tile<16, 128, 64>, Stages<4>, Warps<1, 4>, 128 x 3, 0.15;
    mma_bf16_128x128x32_kn, mma_f16_128x128x32_kn = [K, Mn] Tile<128, 128, 32>, Stages<4>, Warps<2, 2>, 128 x 2, 0.47;
    mma_bf16_64x64x64_kn, mma_f16_64x64x64_kn = [K, Mn] Tile<64, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 3, 0.3;
    mma_bf16_16x128x64_kn, mma_f16_16x128x64_kn = [K, Mn] Tile<16, 128, 64>, Stages<4>, Warps<1, 4>, 128 x 3, 0.15;
    mma_bf16_128x128x32_mn, mma_f16_128x128x32_mn = [Mn, Mn] Tile<128, 128, 32>, Stages<4>, Warps<2, 2>, 128 x 2, 0.47;
    mma_bf16_64x64x64_mn, mma_f16_64x64x64_mn = [Mn, Mn] Tile<64, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 3, 0.3;
    mma_bf16_words_kk, mma_f16_words_kk = [Wo<K>, Wo<K>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 3, 0.10;
    mma_bf16_words_kn, mma_f16_words_kn = [Wo<K>, Wo<Mn>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 3, 0.10;
    mma_bf16_words_mn, mma_f16_words_mn = [Wo<Mn>, Wo<Mn>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 3, 0.10;
    mma_bf16_any_kk, mma_f16_any_kk = [Un<K>, Un<K>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.05;
    mma_bf16_any_kn, mma_f16_any_kn = [Un<K>, Un<Mn>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.05;
    mma_bf16_any_mn, mma_f16_any_mn = [Un<Mn>, Un<Mn>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.05;
}

instances! {
    /// The kernels for f32 that round operands to tf32.
    TF32 by Tf32, f32 => f32, of f32, if not(target_feature = "sm_90"):
    mma_tf32_128x128x32_kk = [K, K] Tile<128, 128, 32>, Stages<3>, Warps<2, 2>, 128 x 2, 0.42;
    mma_tf32_128x128x32_kn = [K, Mn] Tile<128, 128, 32>, Stages<3>, Warps<2, 2>, 128 x 2, 0.42;
    mma_tf32_128x128x32_mn = [Mn, Mn] Tile<128, 128, 32>, Stages<3>, Warps<2, 2>, 128 x 2, 0.42;
    mma_tf32_64x64x32_kk = [K, K] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 3, 0.25;
    mma_tf32_any_kk = [Un<K>, Un<K>] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 3, 0.15;
    mma_tf32_any_kn = [Un<K>, Un<Mn>] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 3, 0.15;
    mma_tf32_any_mn = [Un<Mn>, Un<Mn>] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 3, 0.15;
}

instances! {
    /// The kernels for f32 that add three products of tf32.
    TF32X3 by Tf32x3, f32 => f32, of f32, if not(target_feature = "sm_90"):
    mma_3xtf32_128x64x16_kk = [K, K] Tile<128, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.138;
    mma_3xtf32_128x64x16_kn = [K, Mn] Tile<128, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.138;
    mma_3xtf32_128x64x16_mn = [Mn, Mn] Tile<128, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.138;
    mma_3xtf32_64x64x32_kk = [K, K] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 2, 0.13;
    mma_3xtf32_any_kk = [Un<K>, Un<K>] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 2, 0.08;
    mma_3xtf32_any_kn = [Un<K>, Un<Mn>] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 2, 0.08;
    mma_3xtf32_any_mn = [Un<Mn>, Un<Mn>] Tile<64, 64, 32>, Stages<4>, Warps<2, 2>, 128 x 2, 0.08;
}

instances! {
    /// The kernels for f64.
    F64 by Double, f64 => f64, of f64, if not(target_feature = "sm_90"):
    mma_f64_128x64x16_kk = [K, K] Tile<128, 64, 16>, Stages<4>, Warps<4, 2>, 256 x 1, 0.6;
    mma_f64_64x64x16_kk = [K, K] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.5;
    mma_f64_64x64x16_kn = [K, Mn] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.5;
    mma_f64_64x64x16_mn = [Mn, Mn] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.5;
    mma_f64_any_kk = [Un<K>, Un<K>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.4;
    mma_f64_any_kn = [Un<K>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.4;
    mma_f64_any_mn = [Un<Mn>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.4;
}

instances! {
    /// The kernels for f64 on Hopper.
    F64_SM90 by Mma1688F64, f64 => f64, of f64, if target_feature = "sm_90":
    mma_f64_sm90_128x64x16_kk = [K, K] Tile<128, 64, 16>, Stages<4>, Warps<4, 2>, 256 x 1, 0.92;
    mma_f64_sm90_128x64x16_mn = [Mn, Mn] Tile<128, 64, 16>, Stages<4>, Warps<4, 2>, 256 x 1, 0.92;
    mma_f64_sm90_64x64x16_kk = [K, K] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.91;
    mma_f64_sm90_64x64x16_kn = [K, Mn] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.91;
    mma_f64_sm90_64x64x16_mn = [Mn, Mn] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.91;
    mma_f64_sm90_any_kk = [Un<K>, Un<K>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.76;
    mma_f64_sm90_any_kn = [Un<K>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.76;
    mma_f64_sm90_any_mn = [Un<Mn>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.76;
}

instances! {
    /// The kernels for i8.
    I8 by Mma16832<i8>, i8 => i32, of i32, if not(target_feature = "sm_90"):
    mma_i8_128x128x128_kk = [K, K] Tile<128, 128, 128>, Stages<3>, Warps<2, 2>, 128 x 2, 0.47;
    mma_i8_64x64x128_kk = [K, K] Tile<64, 64, 128>, Stages<4>, Warps<2, 2>, 128 x 3, 0.20;
    mma_i8_any_kk = [Un<K>, Un<K>] Tile<32, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 2, 0.05;
    mma_i8_any_kn = [Un<K>, Un<Mn>] Tile<32, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 2, 0.05;
    mma_i8_any_mn = [Un<Mn>, Un<Mn>] Tile<32, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 2, 0.05;
}
