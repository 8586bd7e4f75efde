//! Arithmetic that has an instruction of its own.

/// `a * b + c`, rounded once.
///
/// The compiler never makes one of `a * b + c` by itself.
#[inline(always)]
pub fn fma<F: Fma>(a: F, b: F, c: F) -> F {
    F::fma(a, b, c)
}

/// A type with a fused multiply-add.
pub trait Fma: Copy {
    /// `a * b + c`, rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! fma {
    ($type:ty, $intrinsic:literal) => {
        impl Fma for $type {
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn fma(a: Self, b: Self, c: Self) -> Self {
                unsafe extern "C" {
                    #[link_name = $intrinsic]
                    fn fma(a: $type, b: $type, c: $type) -> $type;
                }
                // SAFETY: arithmetic.
                unsafe { fma(a, b, c) }
            }

            #[cfg(not(target_arch = "nvptx64"))]
            #[inline(always)]
            fn fma(a: Self, b: Self, c: Self) -> Self {
                a.mul_add(b, c)
            }
        }
    };
}
fma!(f32, "llvm.fma.f32");
fma!(f64, "llvm.fma.f64");
