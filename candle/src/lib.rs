#![doc = include_str!("../README.md")]

mod attention;
mod context;
mod embedding;
mod fp8_linear;
mod ids;
mod index_add;
mod linear;
mod matmul;
mod matrices;
mod moe;
mod operation;
mod place;
mod swiglu;

pub use attention::attention;
pub use cutlet::{Activation, Precision};
pub use embedding::embedding;
pub use fp8_linear::Fp8Linear;
pub use index_add::index_add;
pub use linear::Linear;
pub use matmul::matmul;
pub use moe::Moe;
pub use swiglu::swiglu;
