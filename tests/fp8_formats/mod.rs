//! The formats of 8-bit floats in A and B, by which tests are written once for all of them.

use crate::convert::Convert;
use cutlet::{
    BlockScaledOperand, Element, F8E4M3, F8E5M2, Gemm, IntoTensor, IntoTensorMut, MixedF8, Operand,
    bf16, f16,
};

/// A format of A and one of B.
pub trait Formats {
    type A: Convert;
    type B: Convert;
    /// The element type of both.
    type Both: BlockScaledOperand
        + Operand<Factor = f32>
        + Element<bf16>
        + Element<f16>
        + Element<f32>;
    /// How names of kernels begin.
    const NAME: &'static str;
    /// How names of kernels begin that compute `Cᵀ = Bᵀ·Aᵀ`.
    const TRANSPOSED: &'static str;

    /// The product.
    fn gemm<'a, D: Convert>(
        a: impl IntoTensor<'a, Element = Self::A>,
        b: impl IntoTensor<'a, Element = Self::B>,
        c: impl IntoTensorMut<'a, Element = D>,
    ) -> Gemm<'a, Self::Both, D>;

    /// The name of a kernel for these formats, without them in front.
    fn kernel(name: &str) -> String {
        match name.contains("kkm") {
            false => format!("{}_{name}", Self::NAME),
            true => format!("{}_{name}", Self::TRANSPOSED),
        }
    }
}

macro_rules! formats {
    ($($name:ident: $a:ty, $b:ty => $both:ty, $new:ident, $prefix:literal, $transposed:literal;)+) => {$(
        pub struct $name;
        impl Formats for $name {
            type A = $a;
            type B = $b;
            type Both = $both;
            const NAME: &'static str = $prefix;
            const TRANSPOSED: &'static str = $transposed;

            fn gemm<'a, D: Convert>(
                a: impl IntoTensor<'a, Element = $a>,
                b: impl IntoTensor<'a, Element = $b>,
                c: impl IntoTensorMut<'a, Element = D>,
            ) -> Gemm<'a, $both, D> {
                Gemm::<$both, D>::$new(a, b, c)
            }
        }
    )+};
}
formats! {
    E4m3: F8E4M3, F8E4M3 => F8E4M3, new, "e4m3", "e4m3";
    E5m2: F8E5M2, F8E5M2 => F8E5M2, new, "e5m2", "e5m2";
    E4m3ByE5m2: F8E4M3, F8E5M2 => MixedF8<F8E4M3, F8E5M2>, mixed, "e4m3e5m2", "e5m2e4m3";
    E5m2ByE4m3: F8E5M2, F8E4M3 => MixedF8<F8E5M2, F8E4M3>, mixed, "e5m2e4m3", "e4m3e5m2";
}
