//! The kernels of the family for rows of A, or of C, that are those of a table that indices name. Names are those of
//! [`instances`](super::instances), with `rows` after the type. There are few of each type: one for each order of B
//! that takes any alignment, and faster ones for 16-bit elements.

// A build without the family has no instances, which use these imports. Not all are compiled for all targets.
#![cfg_attr(
    any(not(feature = "ampere"), target_arch = "nvptx64"),
    allow(unused_imports)
)]

use cutlet_device::sm80::{Mma16816, Mma16832};
use cutlet_device::tile::{KMajor as K, MnMajor as Mn};
use cutlet_device::{Global, GlobalMut, instantiate, thread_idx};
use half::{bf16, f16};

use super::arithmetic::Double;
use super::{Named, Sm80, Unaligned as Un};
use crate::gemm::config::{Stages, Tile};
use crate::gemm::epilogue::FusedWithOld;
#[cfg(not(target_arch = "nvptx64"))]
use crate::gemm::multistage::instance::Instance;
use crate::gemm::multistage::warps::Warps;
use crate::gemm::multistage::{Config, MultistageArgs, Storage, named_rows_gemm};

/// Kernels of an arithmetic, for operands of one type and a C of another.
macro_rules! instances {
    ($(#[$list_doc:meta])* $list:ident by $arithmetic:ty, $element:ty => $c:ty, of $acc:ty:
        $($name:ident = [$a:ty, $b:ty] Tile<$m:literal, $n:literal, $k:literal>, Stages<$stages:literal>,
            Warps<$wm:literal, $wn:literal>, $threads:literal x $min_blocks:literal, $speed:literal;)+
    ) => {
        $(
            #[doc = concat!("[`", stringify!($name), "`](self) and its configuration.")]
            #[cfg(all(feature = "ampere", any(not(target_arch = "nvptx64"), not(target_feature = "sm_90"))))]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type C = Sm80<$arithmetic, Named<$a, { $m * $k / $threads }>, $b, Tile<$m, $n, $k>, Stages<$stages>,
                    Warps<$wm, $wn>, $threads>;

                instantiate! {
                    /// `C = epilogue(A·B)`, with rows of tables.
                    #[kernel(threads = <C as Config>::THREADS, min_blocks = $min_blocks, cpu = crate::cpu::BODY)]
                    pub unsafe fn $name(
                        a: Global<$element>,
                        b: Global<$element>,
                        c: GlobalMut<$c>,
                        partials: GlobalMut<$acc>,
                        args: MultistageArgs,
                        epilogue: FusedWithOld<$c>,
                        #[shared] storage: Storage<C>,
                    ) = named_rows_gemm::<C, $c, FusedWithOld<$c>>(thread_idx(), ..);
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<$element, $c, FusedWithOld<$c>>] =
            &[$(#[cfg(feature = "ampere")] Instance::new::<$name::C>(&$name::$name, $min_blocks, $speed),)+];
    };
}

instances! {
    /// The kernels for bf16.
    BF16 by Mma16816<bf16>, bf16 => bf16, of f32:
    mma_bf16_rows_64x64x64_kk = [K, K] Tile<64, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 3, 0.28;
    mma_bf16_rows_any_kk = [Un<K>, Un<K>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.05;
    mma_bf16_rows_any_kn = [Un<K>, Un<Mn>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.05;
}

instances! {
    /// The kernels for f16.
    F16 by Mma16816<f16>, f16 => f16, of f32:
    mma_f16_rows_64x64x64_kk = [K, K] Tile<64, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 3, 0.28;
    mma_f16_rows_any_kk = [Un<K>, Un<K>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.05;
    mma_f16_rows_any_kn = [Un<K>, Un<Mn>] Tile<32, 64, 64>, Stages<3>, Warps<2, 2>, 128 x 2, 0.05;
}

instances! {
    /// The kernels for f64, on every GPU.
    F64 by Double, f64 => f64, of f64:
    mma_f64_rows_any_kk = [Un<K>, Un<K>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.4;
    mma_f64_rows_any_kn = [Un<K>, Un<Mn>] Tile<64, 64, 16>, Stages<4>, Warps<2, 2>, 128 x 2, 0.4;
}

instances! {
    /// The kernels for i8.
    I8 by Mma16832<i8>, i8 => i32, of i32:
    mma_i8_rows_any_kk = [Un<K>, Un<K>] Tile<32, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 2, 0.05;
    mma_i8_rows_any_kn = [Un<K>, Un<Mn>] Tile<32, 64, 64>, Stages<4>, Warps<2, 2>, 128 x 2, 0.05;
}
