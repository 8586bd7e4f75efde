//! CuTe layouts, their algebra, and tensors over them.
//!
//! A [`Layout`] is an ordinary `Copy` value without a heap behind it, and the whole algebra is
//! `const fn`: the layouts of a kernel are computed by the compiler, and the same functions take
//! the same values at run time. An operation whose result no layout can express is refused, with
//! the reason: as a compile error in a `const`, as a panic at run time, or as a [`LayoutError`]
//! from its `try_` twin.
#![no_std]

mod coalesce;
mod composition;
mod error;
mod int;
mod int_tuple;
mod layout;
mod major;
mod notation;
mod profile;
mod text;

pub use coalesce::{
    coalesce, coalesce_by_mode, filter, filter_by_mode, filter_zeros, try_coalesce_by_mode,
    try_filter_by_mode,
};
pub use composition::{composition, try_composition};
pub use error::{ErrorKind, LayoutError};
pub use int::{Basis, Int};
pub use int_tuple::IntTuple;
pub use layout::Layout;
pub use major::{identity, try_identity};
pub use profile::{CAPACITY, MAX_DEPTH};
