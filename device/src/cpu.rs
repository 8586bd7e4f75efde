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

/// For the macros: the body that a [`CpuBody`](crate::CpuBody) asks for. Only that one is compiled, because an initializer
/// is evaluated by the compiler.
#[doc(hidden)]
#[cfg(feature = "cpu")]
#[macro_export]
macro_rules! __cpu_body {
    ($asked:expr, $plain:ident, $vector:ident) => {
        match $asked {
            $crate::CpuBody::None => ::core::option::Option::None,
            $crate::CpuBody::Plain => ::core::option::Option::Some($plain),
            $crate::CpuBody::Vector => ::core::option::Option::Some($vector),
        }
    };
}

/// Without the CPU backend, none is compiled.
#[doc(hidden)]
#[cfg(not(feature = "cpu"))]
#[macro_export]
macro_rules! __cpu_body {
    ($asked:expr, $plain:ident, $vector:ident) => {
        ::core::option::Option::None
    };
}
