//! The matrix instructions of Ampere and newer, `mma.sync`. Kernels that use them run on every GPU from sm_80 on.
//!
//! | topic | functions and types |
//! |---|---|
//! | matrix instructions of a warp | [`WarpMma`], [`Mma16816`], [`Mma1688Tf32`], [`Mma16832`], [`Mma884F64`] |
//! | those that need a newer GPU | [`Mma16832`] of 8-bit floats (sm_89), [`Mma1688F64`], [`Mma16816F64`] (sm_90) |
//! | conversion to tf32 | [`to_tf32`] |
//! | accumulators of one product as operand A of the next | [`accumulators_to_a`] |

mod accumulators_to_a;
mod mma_sync;

pub use accumulators_to_a::accumulators_to_a;
pub use mma_sync::{
    Mma884F64, Mma1688F64, Mma1688Tf32, Mma16816, Mma16816F64, Mma16832, WarpMma, to_tf32,
};
