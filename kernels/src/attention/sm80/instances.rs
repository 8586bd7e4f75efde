//! The kernels of the library.

use cutlet_device::{Global, GlobalMut, Kernel, instantiate, thread_idx};
use half::{bf16, f16};

use super::kernel::{THREADS, attention, queries};
use super::storage::Storage;
use crate::attention::args::{Args, OperandStrides};
use crate::attention::score_mod::{Modifications, Unmodified};

/// The arguments of a kernel: queries, keys, values, the output, the arguments, the operands' strides, and the function
/// of scores.
pub type Arguments<T, M> = (
    Global<T>,
    Global<T>,
    Global<T>,
    GlobalMut<T>,
    Args,
    OperandStrides,
    M,
);

/// A kernel, and what a launch must know of it.
#[derive(Debug)]
pub struct Instance<T: 'static, M: 'static> {
    /// The kernel.
    pub kernel: &'static Kernel<Arguments<T, M>>,
    /// The most features of a head.
    pub features: usize,
    /// Queries of a tile.
    pub queries: u32,
}

/// Kernels of an element type; under which condition they are compiled for the GPU, and which other kernels' PTX is
/// derived from theirs.
macro_rules! instances {
    ($(
        $(#[$doc:meta])*
        $list:ident: $type:ty, $mod:ty, compiled if $condition:tt, also $also:tt =
            [$($name:ident: $features:literal, $blocks:literal, $atoms:literal, $stages:literal;)+];
    )+) => {
        $(
            $(
                #[doc = concat!("Heads of up to ", $features, " features.")]
                #[cfg(any(
                    not(target_arch = "nvptx64"),
                    all(feature = "attention", not(target_feature = "sm_90"), $condition)
                ))]
                pub mod $name {
                    use super::*;

                    instantiate! {
                        /// The kernel.
                        #[kernel(threads = THREADS, min_blocks = 2, also = $also, cpu = crate::cpu::BODY)]
                        pub unsafe fn $name(
                            queries: Global<$type>,
                            keys: Global<$type>,
                            values: Global<$type>,
                            output: GlobalMut<$type>,
                            args: Args,
                            strides: OperandStrides,
                            score_mod: $mod,
                            #[shared] storage: Storage<$type, $blocks, $atoms, $stages>,
                        ) = attention::<$type, $mod, $blocks, $atoms, $stages>(thread_idx(), ..);
                    }
                }
            )+

            $(#[$doc])*
            #[cfg(not(target_arch = "nvptx64"))]
            pub static $list: &[Instance<$type, $mod>] = &[
                $(Instance { kernel: &$name::$name, features: $features, queries: queries($atoms) },)+
            ];
        )+
    };
}
instances! {
    /// Kernels for bf16, by the most features of a head.
    BF16: bf16, Unmodified, compiled if true, also ["f16 for bf16"] = [
        attention_mma_bf16_64: 64, 1, 2, 3;
        attention_mma_bf16_128: 128, 2, 2, 3;
        attention_mma_bf16_256: 256, 4, 1, 2;
    ];
    /// Kernels for f16.
    F16: f16, Unmodified, compiled if each_format, also [] = [
        attention_mma_f16_64: 64, 1, 2, 3;
        attention_mma_f16_128: 128, 2, 2, 3;
        attention_mma_f16_256: 256, 4, 1, 2;
    ];
    /// Kernels for bf16 that modify scores.
    BF16_MODIFIED: bf16, Modifications, compiled if true, also ["f16 for bf16"] = [
        attention_mma_bf16_64_modified: 64, 1, 1, 3;
        attention_mma_bf16_128_modified: 128, 2, 1, 3;
        attention_mma_bf16_256_modified: 256, 4, 1, 2;
    ];
    /// Kernels for f16 that modify scores.
    F16_MODIFIED: f16, Modifications, compiled if each_format, also [] = [
        attention_mma_f16_64_modified: 64, 1, 1, 3;
        attention_mma_f16_128_modified: 128, 2, 1, 3;
        attention_mma_f16_256_modified: 256, 4, 1, 2;
    ];
}
