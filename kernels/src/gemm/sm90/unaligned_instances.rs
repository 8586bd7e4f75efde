//! The kernels of the family for an A and a B whose rows begin where TMA cannot read them. Names are those of
//! [`instances`](super::instances), with `unaligned` in front of what follows the type.

// A build without the family has no instances, which use these imports. Not all are compiled for all targets.
#![cfg_attr(
    any(not(gemm_sm90), target_arch = "nvptx64"),
    allow(unused_imports, unused_macros)
)]

use cutlet_device::sm90::KMajor as K;
use cutlet_device::{Global, GlobalMut, instantiate};

#[cfg(not(target_arch = "nvptx64"))]
use super::instance::{Instance, UnalignedArguments};
use super::{Config, Sm90, UnalignedStorage, unaligned_gemm};
use crate::gemm::args::Args;
use crate::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile, epilogue_n};
use crate::gemm::epilogue::Scale;

/// Kernels for an element type; under which condition they are compiled for the GPU, and which other kernels' PTX is
/// derived from theirs.
macro_rules! instances_of {
    ($(#[$list_doc:meta])* $list:ident of $element:ty, compiled if $condition:tt, also $also:tt:
        $($name:ident = $m:literal, $n:literal, $stages:ty;)+
    ) => {
        $(
            #[doc = concat!("A tile of ", $m, "×", $n, ".")]
            #[cfg(all(gemm_sm90, any(not(target_arch = "nvptx64"), $condition)))]
            pub mod $name {
                use super::*;

                /// The configuration.
                pub type Kernel = Sm90<$element, K, K, K, Tile<$m, $n>, $stages, Cluster<1, 1>, Cooperative<1>,
                    EpilogueTile<{ epilogue_n($n) }>>;

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($element), ".")]
                    #[kernel(threads = Kernel::THREADS, min_blocks = 1, arch = "sm_90a", also = $also)]
                    pub unsafe fn $name(
                        a: Global<$element>,
                        b: Global<$element>,
                        c: GlobalMut<$element>,
                        workspace: GlobalMut<f32>,
                        ld_a: i64,
                        ld_b: i64,
                        k: i32,
                        args: Args,
                        epilogue: Scale,
                        #[shared] storage: UnalignedStorage<Kernel>,
                    ) = unaligned_gemm::<Kernel, Scale>;
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<$element, Scale, UnalignedArguments<$element, Scale>>] =
            &[$(#[cfg(gemm_sm90)] Instance::new::<$name::Kernel>(&$name::$name),)+];
    };
}

/// Kernels for bf16 and for f16: `name for bf16, name for f16 = tile, stages`. They have one consumer, whose threads store C.
macro_rules! instances {
    ($($bf16:ident, $f16:ident = Tile<$m:literal, $n:literal>, $stages:ty;)+) => {
        instances_of! {
            /// Kernels for bf16.
            UNALIGNED_BF16 of half::bf16, compiled if true, also ["f16 for bf16"]:
                $($bf16 = $m, $n, $stages;)+
        }
        instances_of! {
            /// Kernels for f16.
            UNALIGNED_F16 of half::f16, compiled if each_format, also []:
                $($f16 = $m, $n, $stages;)+
        }
    };
}

instances! {
    bf16_unaligned_64x32x64_1x1_ws, f16_unaligned_64x32x64_1x1_ws = Tile<64, 32>, Stages<14>;
    bf16_unaligned_64x64x64_1x1_ws, f16_unaligned_64x64x64_1x1_ws = Tile<64, 64>, Stages<12>;
    bf16_unaligned_64x128x64_1x1_ws, f16_unaligned_64x128x64_1x1_ws = Tile<64, 128>, Stages<8>;
}
