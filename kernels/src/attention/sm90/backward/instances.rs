//! The kernels of the library.

use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{Global, GlobalMut, Kernel, instantiate};
use half::{bf16, f16};

use super::args::{BackwardArgs, QueriesArgs, StatisticsArgs};
use super::config::{Config, KEYS, Sm90Backward, Storage, SumsOfBlock, boxes};
use super::kernel::backward;
use super::{queries, statistics};
use crate::attention::sm90::config::CONSUMERS;
use cutlet_layout_core::StaticLayout;

/// The arguments of the kernel of keys: maps of queries, keys, values, the output's gradient and the statistics, dK, dV,
/// and the arguments.
pub type Arguments<T> = (
    TensorMap,
    TensorMap,
    TensorMap,
    TensorMap,
    TensorMap,
    GlobalMut<T>,
    GlobalMut<T>,
    BackwardArgs,
);

/// The kernels for heads of up to so many features, and what launches must know of them.
#[derive(Debug)]
pub struct Instance<T: 'static> {
    /// Writes the statistics. A block of threads for each block of queries.
    pub statistics: &'static Kernel<(Global<T>, Global<T>, StatisticsArgs)>,
    /// Writes dK and dV, and adds up dQ.
    pub keys: &'static Kernel<Arguments<T>>,
    /// Writes dQ. A block of threads for each block of queries.
    pub queries: &'static Kernel<(GlobalMut<T>, QueriesArgs)>,
    /// The most features of a head.
    pub features: usize,
    /// Queries of a block.
    pub queries_of_block: usize,
    /// Keys of a tile.
    pub keys_of_tile: usize,
    /// The boxes of the maps of queries and gradients, of keys, of values, and of the statistics.
    pub boxes: [TmaBox; 4],
    /// Sums of dQ of a block of queries.
    pub sums_of_block: usize,
}

macro_rules! instances {
    ($($(#[$doc:meta])* $list:ident: $type:ty = [$($name:ident: $statistics:ident, $queries:ident, $features:literal, $block:literal;)+];)+) => {
        $(
            $(
                #[doc = concat!("Heads of up to ", $features, " features, in blocks of ", $block, " queries.")]
                #[cfg(any(not(target_arch = "nvptx64"), feature = "attention"))]
                pub mod $name {
                    use super::*;

                    /// The configuration.
                    pub type Kernel = Sm90Backward<$type, $features, $block>;

                    instantiate! {
                        /// The statistics.
                        #[kernel(threads = statistics::THREADS, arch = "sm_90a", cpu = crate::cpu::BODY)]
                        pub unsafe fn $statistics(
                            output: Global<$type>,
                            gradient: Global<$type>,
                            args: StatisticsArgs,
                        ) = statistics::statistics::<Kernel>;
                    }

                    instantiate! {
                        /// dK, dV and the sums of dQ.
                        #[kernel(threads = Kernel::THREADS, min_blocks = 1, arch = "sm_90a", cpu = crate::cpu::BODY)]
                        pub unsafe fn $name(
                            #[grid_constant] queries: &TensorMap,
                            #[grid_constant] keys: &TensorMap,
                            #[grid_constant] values: &TensorMap,
                            #[grid_constant] gradient: &TensorMap,
                            #[grid_constant] statistics: &TensorMap,
                            of_keys: GlobalMut<$type>,
                            of_values: GlobalMut<$type>,
                            args: BackwardArgs,
                            #[shared] storage: Storage<Kernel>,
                        ) = backward::<Kernel>;
                    }

                    instantiate! {
                        /// dQ.
                        #[kernel(threads = queries::THREADS, arch = "sm_90a", cpu = crate::cpu::BODY)]
                        pub unsafe fn $queries(
                            to: GlobalMut<$type>,
                            args: QueriesArgs,
                            #[shared] storage: queries::Storage<Kernel>,
                        ) = queries::queries::<Kernel>;
                    }

                    /// The kernels.
                    #[cfg(not(target_arch = "nvptx64"))]
                    pub static INSTANCE: Instance<$type> = Instance {
                        statistics: &$statistics,
                        keys: &$name,
                        queries: &$queries,
                        features: $features,
                        queries_of_block: $block,
                        keys_of_tile: KEYS,
                        boxes: boxes::<Kernel>(),
                        sums_of_block: CONSUMERS * SumsOfBlock::SIZE,
                    };
                }
            )+

            $(#[$doc])*
            #[cfg(not(target_arch = "nvptx64"))]
            pub static $list: &[&Instance<$type>] = &[$(&$name::INSTANCE,)+];
        )+
    };
}
instances! {
    /// Kernels for bf16, by the most features of a head.
    BF16: bf16 = [
        attention_backward_bf16_64: attention_backward_bf16_64_statistics, attention_backward_bf16_64_queries, 64, 128;
        attention_backward_bf16_128: attention_backward_bf16_128_statistics, attention_backward_bf16_128_queries, 128, 64;
    ];
    /// Kernels for f16.
    F16: f16 = [
        attention_backward_f16_64: attention_backward_f16_64_statistics, attention_backward_f16_64_queries, 64, 128;
        attention_backward_f16_128: attention_backward_f16_128_statistics, attention_backward_f16_128_queries, 128, 64;
    ];
}
