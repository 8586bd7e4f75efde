//! The kernels of the library.

use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{GlobalMut, Kernel, instantiate};
use half::{bf16, f16};

use super::config::{Config, Sm90, Storage, boxes};
use super::kernel::attention;
use crate::attention::args::Args;
use crate::attention::score_mod::{Modifications, Unmodified};

/// The arguments of a kernel: maps of queries, keys and values, the output, the arguments, and the function of scores.
pub type Arguments<T, M> = (TensorMap, TensorMap, TensorMap, GlobalMut<T>, Args, M);

/// A kernel, and what a launch must know of it.
#[derive(Debug)]
pub struct Instance<T: 'static, M: 'static> {
    /// The kernel.
    pub kernel: &'static Kernel<Arguments<T, M>>,
    /// The most features of a head.
    pub features: usize,
    /// Queries of a tile.
    pub queries: u32,
    /// Keys of a block.
    pub keys: usize,
    /// The boxes of the maps of queries, keys and values.
    pub boxes: [TmaBox; 3],
}

impl<T, M> Instance<T, M> {
    /// The instance of a kernel of configuration `C`.
    pub const fn new<C: Config<Element = T>>(kernel: &'static Kernel<Arguments<T, M>>) -> Self {
        Self {
            kernel,
            features: C::FEATURES,
            queries: C::QUERIES,
            keys: C::KEYS,
            boxes: boxes::<C>(),
        }
    }
}

macro_rules! instances {
    ($($(#[$doc:meta])* $list:ident: $type:ty, $mod:ty = [$($name:ident: $features:literal, $keys:literal, $stages:literal;)+];)+) => {
        $(
            $(
                #[doc = concat!("Heads of up to ", $features, " features, in blocks of ", $keys, " keys.")]
                #[cfg(any(not(target_arch = "nvptx64"), feature = "attention"))]
                pub mod $name {
                    use super::*;

                    /// The configuration.
                    pub type Kernel = Sm90<$type, $features, $keys, $stages>;

                    instantiate! {
                        /// The kernel.
                        #[kernel(threads = Kernel::THREADS, min_blocks = 1, arch = "sm_90a", cpu = crate::cpu::BODY)]
                        pub unsafe fn $name(
                            #[grid_constant] queries: &TensorMap,
                            #[grid_constant] keys: &TensorMap,
                            #[grid_constant] values: &TensorMap,
                            output: GlobalMut<$type>,
                            args: Args,
                            score_mod: $mod,
                            #[shared] storage: Storage<Kernel>,
                        ) = attention::<Kernel, $mod>;
                    }
                }
            )+

            $(#[$doc])*
            #[cfg(not(target_arch = "nvptx64"))]
            pub static $list: &[Instance<$type, $mod>] = &[$(Instance::new::<$name::Kernel>(&$name::$name),)+];
        )+
    };
}
instances! {
    /// Kernels for bf16, by the most features of a head. Long blocks take less time a key, and compute more keys that
    /// queries do not see.
    BF16: bf16, Unmodified = [
        attention_bf16_64: 64, 128, 3;
        attention_bf16_64_long: 64, 176, 2;
        attention_bf16_128: 128, 128, 2;
        attention_bf16_128_long: 128, 176, 2;
        attention_bf16_256: 256, 80, 2;
    ];
    /// Kernels for f16.
    F16: f16, Unmodified = [
        attention_f16_64: 64, 128, 3;
        attention_f16_64_long: 64, 176, 2;
        attention_f16_128: 128, 128, 2;
        attention_f16_128_long: 128, 176, 2;
        attention_f16_256: 256, 80, 2;
    ];
    /// Kernels for bf16 that modify scores.
    BF16_MODIFIED: bf16, Modifications = [
        attention_bf16_64_modified: 64, 64, 3;
        attention_bf16_128_modified: 128, 64, 2;
        attention_bf16_256_modified: 256, 32, 2;
    ];
    /// Kernels for f16 that modify scores.
    F16_MODIFIED: f16, Modifications = [
        attention_f16_64_modified: 64, 64, 3;
        attention_f16_128_modified: 128, 64, 2;
        attention_f16_256_modified: 256, 32, 2;
    ];
}
