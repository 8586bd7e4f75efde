//! gather: operations on rows that a table of indices names.
//!
//! In each of them, the table is the inner transform of a tensor ([`Gather`](cutlet_layout_core::Gather)): a load
//! through the tensor gathers, and a store through it scatters. The layouts that tile and partition the tensor are
//! those of a plain matrix.
//!
//! | operation | module |
//! |---|---|
//! | `output[r] = table[indices[r]]` | [`rows`] |
//! | `table[indices[r]] = source[r]` | [`scatter`] |
//! | `table[indices[r]] += source[r]` | [`scatter_add`], over [`combined`] and [`sets`] |
//! | `table[indices[r]] += source[r]`, in order | [`sorting`], then [`ordered_add`] |
//! | `output[…, i, …] = table[…, indices[…, i, …], …]` | [`elements`] |
//! | `destination[c] = source[c]` for two layouts, without indices | [`permute`] |
//! | a mixture of experts: choices, and the rows of each expert | [`routing`] or [`long_top_k`], [`sorting`], then [`rows`] |
//! | `output[b] = Σ table[indices[p]]` for `p` in bag `b` | [`embedding_bag`] |

mod args;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod combined;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "gather", not(target_feature = "sm_90"))
))]
pub mod elements;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod embedding_bag;
mod indices;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "gather", not(target_feature = "sm_90"))
))]
pub mod long_top_k;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod ordered_add;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod owners;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "gather", not(target_feature = "sm_90"))
))]
pub mod permute;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod routing;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "gather", not(target_feature = "sm_90"))
))]
pub mod rows;
#[cfg(any(
    not(target_arch = "nvptx64"),
    all(feature = "gather", not(target_feature = "sm_90"))
))]
pub mod scatter;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod scatter_add;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod sets;
pub mod shapes;
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
pub mod sorting;

pub(crate) use args::report_miss;
pub use args::{OutOfRange, RowArgs};
pub use indices::Indices;
pub use shapes::Shape;

/// Declares the instances of a row operation: `NAME = SHAPE, UNIT;` for each.
///
/// Two blocks on a multiprocessor allow 128 registers. No instance needs as many, but told so, the assembler does not
/// spill to have more blocks.
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
macro_rules! row_instances {
    ($operation:ident: $($(#[$doc:meta])* $name:ident = $shape:ident, $unit:ty;)+) => {
        cutlet_device::instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 256, min_blocks = 2, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                from: cutlet_device::Global<$unit>,
                indices: cutlet_device::Global<i32>,
                to: cutlet_device::GlobalMut<$unit>,
                first_miss: cutlet_device::GlobalMut<u64>,
                args: super::RowArgs,
            ) = $operation::<super::shapes::$shape, $unit>(cutlet_device::thread_idx(), ..);
        )+}
    };
}
#[cfg(any(not(target_arch = "nvptx64"), feature = "gather"))]
use row_instances;
