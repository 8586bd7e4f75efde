//! Models of the matrix instructions of Ampere and newer: `mma.sync`.

mod mma_sync;

pub use mma_sync::{MmaOperand, MmaShape, MmaSums, mma_sync};
