//! Products by a kernel that a test may name.

use cutlet::{DeviceData, Gemm, Operand};

/// The product by the kernel of this name, or by the one that is estimated to be the fastest.
pub fn by_kernel<'a, T: Operand, D: DeviceData>(
    kernel: Option<&'a str>,
    gemm: Gemm<'a, T, D>,
) -> Gemm<'a, T, D> {
    match kernel {
        Some(name) => gemm.instance(name),
        None => gemm,
    }
}
