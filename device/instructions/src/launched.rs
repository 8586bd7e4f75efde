//! Kernels that tests launch, on the CPU and on a GPU if there is one: small kernels that show a part of the device
//! crate which no kernel of the library uses.

pub mod boxes;
pub mod chained;
pub mod register_operand;
