//! Kernels that tests launch, on the CPU and on a GPU if there is one: small kernels that show a part of the device
//! crate which no kernel of the library uses.

pub mod approximations;
pub mod boxes;
pub mod chained;
pub mod column_sums;
pub mod flags;
pub mod reductions;
pub mod register_operand;
pub mod tiled;
