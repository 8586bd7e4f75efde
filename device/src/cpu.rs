//! Features of the processor that runs the CPU backend.

/// Whether the processor has AVX2 and fused multiply-add. [`#[kernel]`](macro@crate::kernel) compiles a kernel's body a
/// second time for these. Without fused multiply-add, every [`fma`](crate::fma) calls the C library, which makes a GEMM
/// 14 times slower.
#[doc(hidden)]
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn __has_avx2_and_fma() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}
