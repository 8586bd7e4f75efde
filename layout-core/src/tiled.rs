//! Tiled operations as types: an instruction, repeated over the threads of a block and over a tile.
//!
//! A [`TiledMma`] says which thread holds which elements of A, B and C, and a [`TiledCopy`] which thread copies which.
//! Both are types without values, so the compiler computes their layouts, by the algebra of [`MmaTiling`] and
//! [`CopyTiling`], and a kernel contains immediates alone. They partition tiles like any thread-value layout.
//!
//! [`MmaTiling`]: crate::MmaTiling
//! [`CopyTiling`]: crate::CopyTiling

mod copy;
mod extent;
mod matrices;
mod mma;
mod rows;
mod stored_matrices;

pub use copy::{CopyPartition, CopyWidth, ThreadCopy, TiledCopy};
pub use extent::{Divided, Half, Repeats, TileShape, Tiled};
pub use matrices::{Matrices, MatrixRows};
pub use mma::{
    Arrangement, InOrder, OperandA, OperandB, OperandC, PartitionA, PartitionB, PartitionC,
    PartitionValues, Permutation, Steps, ThreadMma, TiledMma,
};
pub use rows::PartitionRows;
pub use stored_matrices::StoredMatrices;
