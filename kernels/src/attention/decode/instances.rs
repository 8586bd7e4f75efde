//! The kernels of the library.

use cutlet_device::collective::Stages;
use cutlet_device::{Global, GlobalMut, Kernel, instantiate};
use half::{bf16, f16};

use super::args::DecodeArgs;
use super::combine;
use super::kernel::{decode, threads};
use super::storage::Storage;
use super::warps::Warps;

/// The kernel that attends: queries, keys, values, output and arguments.
pub type Attend<T> = Kernel<(Global<T>, Global<T>, Global<T>, GlobalMut<T>, DecodeArgs)>;
/// The kernel that combines splits: output and arguments.
pub type Combine<T> = Kernel<(GlobalMut<T>, DecodeArgs)>;

/// The kernels for heads of some features.
#[derive(Debug)]
pub struct Instance<T: 'static> {
    /// Attends to the keys of a split.
    pub attend: &'static Attend<T>,
    /// Combines splits.
    pub combine: &'static Combine<T>,
    /// The most features of a head.
    pub features: usize,
    /// Warps of a block that attends.
    pub warps: u32,
}

/// Features, blocks of 64 of them, warps of a block, and how many blocks must fit on a multiprocessor.
macro_rules! instances {
    ($(
        $(#[$doc:meta])*
        $list:ident: $type:ty = [$($attend:ident, $combine:ident: $features:literal, $blocks:literal, $warps:literal, $min_blocks:literal;)+];
    )+) => {
        $(
            $(
                instantiate! {
                    #[doc = concat!("Attends with heads of up to ", $features, " features.")]
                    #[cfg(any(not(target_arch = "nvptx64"), all(feature = "attention", not(target_feature = "sm_90"))))]
                    #[kernel(threads = threads::<Stages<$warps>>(), min_blocks = $min_blocks, cpu = crate::cpu::VECTOR_BODY)]
                    pub unsafe fn $attend(
                        queries: Global<$type>,
                        keys: Global<$type>,
                        values: Global<$type>,
                        output: GlobalMut<$type>,
                        args: DecodeArgs,
                        #[shared] storage: Storage<$type, Stages<$warps>, $features>,
                    ) = decode::<$type, Stages<$warps>, $features, $blocks>;
                }

                instantiate! {
                    #[doc = concat!("Combines splits of heads of up to ", $features, " features.")]
                    #[cfg(any(not(target_arch = "nvptx64"), all(feature = "attention", not(target_feature = "sm_90"))))]
                    #[kernel(threads = combine::THREADS, cpu = crate::cpu::VECTOR_BODY)]
                    pub unsafe fn $combine(
                        output: GlobalMut<$type>,
                        args: DecodeArgs,
                    ) = combine::combine::<$type, $features, $blocks>;
                }
            )+

            $(#[$doc])*
            #[cfg(not(target_arch = "nvptx64"))]
            pub static $list: &[Instance<$type>] = &[
                $(Instance {
                    attend: &$attend,
                    combine: &$combine,
                    features: $features,
                    warps: Stages::<$warps>::WARPS,
                },)+
            ];
        )+
    };
}
instances! {
    /// Kernels for bf16, by the most features of a head.
    BF16: bf16 = [
        decode_bf16_64, decode_combine_bf16_64: 64, 1, 4, 4;
        decode_bf16_128, decode_combine_bf16_128: 128, 2, 4, 2;
        decode_bf16_256, decode_combine_bf16_256: 256, 4, 2, 2;
    ];
    /// Kernels for f16.
    F16: f16 = [
        decode_f16_64, decode_combine_f16_64: 64, 1, 4, 4;
        decode_f16_128, decode_combine_f16_128: 128, 2, 4, 2;
        decode_f16_256, decode_combine_f16_256: 256, 4, 2, 2;
    ];
}
