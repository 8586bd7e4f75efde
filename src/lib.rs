//! GEMM and gather kernels written in Rust over CuTe layouts.
