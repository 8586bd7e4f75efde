//! Models of the matrix instructions of Hopper: `wgmma`.

mod wgmma;

pub use wgmma::{
    WgmmaA, WgmmaArithmetic, WgmmaOperand, WgmmaRegisters, WgmmaShape, WgmmaSums, wgmma,
    wgmma_commit, wgmma_fence, wgmma_wait,
};

pub(crate) use wgmma::{check_not_read, thread_ends};
