//! The processor that runs kernels on the CPU backend.

/// Whether the processor has the instructions for which [`#[kernel]`](macro@crate::kernel) compiles
/// a kernel's body a second time: AVX2 and fused multiply-add. Without the latter, every
/// [`fma`](crate::fma) is a call into the C library, which makes a GEMM 14 times slower.
#[doc(hidden)]
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn __has_avx2_and_fma() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}
