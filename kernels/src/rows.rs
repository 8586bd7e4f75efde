//! rows: operations on each row of a tensor, with arithmetic in f32.
//!
//! The last mode of a tensor is its row. The other modes say where rows begin: they are part of a tensor's inner
//! transform ([`Rows`]), so that a batch of strided slices is tiled and partitioned as a matrix is. A [`Shape`] says
//! which threads have a row: a warp has a short one, a block a long one. They hold the first tile of it in registers,
//! and read what is left of a longer row again.
//!
//! | operation | module |
//! |---|---|
//! | `x / √(mean of x² + ε) · w`, `(x − mean) / √(variance + ε) · w + b` | [`norm`] |
//! | `e^(x − max) / Σ e^(x − max)` and its logarithm | [`softmax`] |
//! | pairs of elements, rotated by angles of the row's position | [`rope`] |
//! | the same of new tokens, whose keys and values a cache gets | [`rope_append`] |
//! | functions of elements, of one's own by [`map`] | [`functions`] |
//! | elements of another type | [`cast`] |
//! | sums, means and extremes, and where these are | [`reduce`] |
//! | the same of columns | [`reduce_columns`] |
//! | e4m3 with scales of rows or blocks | [`quantize`] |
//! | a random element of each row, by the softmax of its logits | [`sample`], [`sample_split`] |
//!
//! GPUs of all generations run the kernels for the oldest one: a row comes from memory once, so newer instructions would
//! gain nothing, but for those of dependent launches and of e4m3, which newer GPUs get.

#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod cast;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod functions;
pub mod map;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod norm;
mod number;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod quantize;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod reduce;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod reduce_columns;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod rope;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod rope_append;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod sample;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod sample_split;
mod shapes;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
pub mod softmax;
mod space;
mod team;

pub use number::{Number, narrowed};
pub use shapes::{
    Block4, Block8, BlockAny, Held, Shape, THREADS, Warp4, Warp8, WarpAny, fetch_ahead, held,
    of_access,
};
pub use space::{BoundRows, RowStrides, Rows, Space};
pub use team::{OfBlock, OfWarp, Team};

/// Declares the kernels of an operation: those of each element type are a module, with a kernel of each shape. Their
/// names are those of a warp and of a block that access vectors, then of those that access rows of any alignment.
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
macro_rules! row_instances {
    ($function:ident, $arguments:tt, $shared:ident: $combined:ty;
        $($module:ident of $element:ty, $warp_shape:ident $block_shape:ident: $($name:ident)+;)+) => {$(
        super::row_instances! { @module $function, $arguments, $shared: $combined;
            $module of $element, $warp_shape $block_shape: $($name)+ }
    )+};
    (@module $function:ident, { $T:ident; $($argument:ident: $type:ty,)+ }, $shared:ident: $combined:ty;
        $module:ident of $element:ty, $warp_shape:ident $block_shape:ident:
        $warp:ident $block:ident $warp_any:ident $block_any:ident) => {
        #[doc = concat!("The kernels for rows of `", stringify!($element), "`.")]
        pub mod $module {
            use super::*;

            type $T = $element;

            cutlet_device::instantiate! {
                /// A warp has a row, whose vectors are aligned.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $warp($($argument: $type,)+ #[shared] $shared: crate::rows::OfWarp<$combined>)
                    = super::$function::<crate::rows::$warp_shape, $T, _>(cutlet_device::thread_idx(), ..);

                /// A block has a row, whose vectors are aligned.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $block($($argument: $type,)+ #[shared] $shared: crate::rows::OfBlock<$combined>)
                    = super::$function::<crate::rows::$block_shape, $T, _>(cutlet_device::thread_idx(), ..);

                /// A warp has a row of any alignment.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $warp_any($($argument: $type,)+ #[shared] $shared: crate::rows::OfWarp<$combined>)
                    = super::$function::<crate::rows::WarpAny, $T, _>(cutlet_device::thread_idx(), ..);

                /// A block has a row of any alignment.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $block_any($($argument: $type,)+ #[shared] $shared: crate::rows::OfBlock<$combined>)
                    = super::$function::<crate::rows::BlockAny, $T, _>(cutlet_device::thread_idx(), ..);
            }
        }
    };
}
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "rows", not(target_feature = "sm_90"))
))]
use row_instances;
