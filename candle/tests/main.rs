//! Operations against candle's own, on a GPU if the build has the feature `cuda` and there is one.

mod close;
mod on_device;

mod attention;
mod embedding;
mod fp8_linear;
mod gradients;
mod index_add;
mod linear;
mod matmul;
mod moe;
mod swiglu;
mod threads;
