//! What operations on rows that indices name have in common: checks of operands, the choice of an access, launches, and
//! the report of bad indices.

mod access;
mod index;
mod kept_misses;
mod launch;
mod misses;
mod operands;
mod out_of_range;
mod owners;
mod sorted;

pub use index::Index;
pub use kept_misses::check_indices;
pub use out_of_range::OutOfRange;

pub(crate) use access::{Access, Reach, Unit, tile_of, to_next_row};
pub(crate) use index::IndexView;
pub(crate) use kept_misses::with_kept_misses;
pub(crate) use launch::{RowKernel, RowKernels, RowOperation};
pub(crate) use misses::{Misses, Report, expect_no_capture};
pub(crate) use operands::Operands;
pub(crate) use owners::Owners;
pub(crate) use sorted::Sorted;
