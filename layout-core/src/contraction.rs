//! Contractions as layouts: sums of products over modes of two tensors, in einsum's notation.
//!
//! A contraction is `C = A·Bᵀ` of tensors whose modes are (M, K, L), (N, K, L) and (M, N, L), as CUTLASS orders them.
//! Each of these modes may be a tuple. [`Layouts`] are those of a [`Notation`] and the tensors' own layouts:
//!
//! ```
//! use cutlet_layout_core::contraction::Layouts;
//! use cutlet_layout_core::layout;
//!
//! // Queries and keys of 16 batches, 2048 positions, 16 heads and 128 dimensions, side by side with values.
//! let qkv = layout!((16, 2048, 16, 128):(12582912, 6144, 128, 1));
//! let scores = layout!((16, 16, 2048, 2048):(67108864, 4194304, 2048, 1));
//! const NOTATION: &str = "bshd,bthd->bhst";
//! let contraction = Layouts::try_new(NOTATION, &qkv, &qkv, &scores)?;
//! assert_eq!(contraction.a().to_string(), "(_2048,_128,(_16,_16)):(_6144,_1,(_128,_12582912))");
//! assert_eq!(contraction.modes().to_string(), "M = s 2048, N = t 2048, K = d 128, L = (h 16, b 16)");
//! # Ok::<(), cutlet_layout_core::LayoutError>(())
//! ```

mod layouts;
mod modes;
mod names;
mod notation;
mod parts;

pub use layouts::Layouts;
pub use modes::{Mode, Modes, Role};
pub use names::Names;
pub use notation::Notation;

/// The names of the tensors 0, 1 and 2.
pub const TENSORS: [&str; 3] = ["A", "B", "C"];
