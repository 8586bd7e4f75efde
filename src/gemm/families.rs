//! The families of kernels for each combination of element types.

mod simt;
mod sm90;

use half::{bf16, f16};
pub use sm90::EpiloguePlan;

use super::registry::Family;
use super::sealed::Families;

macro_rules! families {
    ($($operands:ty => $c:ty: $($family:expr),+;)+) => {$(
        impl Families<$c> for $operands {
            fn families() -> &'static [&'static dyn Family<Self, $c>] {
                &[$(&$family),+]
            }
        }
    )+};
}
families! {
    f32 => f32: simt::ToF32;
    f32 => bf16: simt::ToOtherType;
    f32 => f16: simt::ToOtherType;
    bf16 => bf16: sm90::ToSameType;
    f16 => f16: sm90::ToSameType;
    bf16 => f32: sm90::ToF32;
    f16 => f32: sm90::ToF32;
    bf16 => f16: sm90::ToOtherType;
    f16 => bf16: sm90::ToOtherType;
}
