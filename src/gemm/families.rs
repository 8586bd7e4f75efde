//! The families of kernels for each combination of element types, and their list.

mod gemv;
mod multistage;
mod scaled;
mod simt;
mod sm80;
mod sm90;

use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use half::{bf16, f16};
pub use sm90::EpiloguePlan;

use cutlet_host::Device;

use super::element_type::{ElementType, HasElementType};
use super::registry::Family;
use super::sealed::Families;

/// A family of GEMM kernels for element types. [`Gemm::families`](super::Gemm::families) lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFamily {
    /// The name.
    pub name: &'static str,
    /// The element type of A and B.
    pub operands: &'static str,
    /// The element type of C.
    pub c: &'static str,
    /// Why the device does not run the kernels. None if it does.
    pub refusal: Option<String>,
    /// Whether there are kernels for products of all extents.
    pub is_general: bool,
}

macro_rules! families {
    ($($operands:ty => $c:ty: $($family:expr),*;)+) => {
        $(
            impl Families<$c> for $operands {
                fn families() -> &'static [&'static dyn Family<Self, $c>] {
                    &[$(&$family),*]
                }

                const TYPES: [ElementType; 2] = [<$operands>::TYPE, <$c>::TYPE];
            }
        )+

        /// All families for all element types.
        pub fn all(device: &Device) -> Vec<KernelFamily> {
            let mut all = Vec::new();
            $(
                let families = <$operands as Families<$c>>::families().iter();
                all.extend(families.map(|family| KernelFamily {
                    name: family.name(),
                    operands: stringify!($operands),
                    c: stringify!($c),
                    refusal: family.supports(device).err().map(|error| error.to_string()),
                    is_general: family.is_general(),
                }));
            )+
            all
        }
    };
}
families! {
    f32 => f32: gemv::ToOwnType, simt::ToF32, sm90::Tf32, sm80::ToOwnType(sm80::Tf32), sm80::ToOwnType(sm80::Tf32x3);
    f32 => bf16: simt::ToOtherType, sm80::ToOtherType(sm80::Tf32), sm80::ToOtherType(sm80::Tf32x3);
    f32 => f16: simt::ToOtherType, sm80::ToOtherType(sm80::Tf32), sm80::ToOtherType(sm80::Tf32x3);
    bf16 => bf16: gemv::ToOwnType, sm90::ToSameType, sm80::ToOwnType(sm80::Bf16);
    f16 => f16: gemv::ToOwnType, sm90::ToSameType, sm80::ToOwnType(sm80::F16);
    bf16 => f32: sm90::ToF32, sm80::ToOtherType(sm80::Bf16);
    f16 => f32: sm90::ToF32, sm80::ToOtherType(sm80::F16);
    bf16 => f16: sm90::ToOtherType, sm80::ToOtherType(sm80::Bf16);
    f16 => bf16: sm90::ToOtherType, sm80::ToOtherType(sm80::F16);
    F8E4M3 => bf16: sm90::Fp8, scaled::BySecondKernel;
    F8E4M3 => f16: sm90::Fp8, scaled::BySecondKernel;
    F8E4M3 => f32: sm90::Fp8, scaled::BySecondKernel;
    F8E4M3 => F8E4M3: sm90::QuantizedE4m3;
    F8E5M2 => bf16: sm90::Fp8, scaled::BySecondKernel;
    F8E5M2 => f16: sm90::Fp8, scaled::BySecondKernel;
    F8E5M2 => f32: sm90::Fp8, scaled::BySecondKernel;
    MixedF8<F8E4M3, F8E5M2> => bf16: sm90::Fp8, scaled::BySecondKernel;
    MixedF8<F8E4M3, F8E5M2> => f16: sm90::Fp8, scaled::BySecondKernel;
    MixedF8<F8E4M3, F8E5M2> => f32: sm90::Fp8, scaled::BySecondKernel;
    MixedF8<F8E5M2, F8E4M3> => bf16: sm90::Fp8, scaled::BySecondKernel;
    MixedF8<F8E5M2, F8E4M3> => f16: sm90::Fp8, scaled::BySecondKernel;
    MixedF8<F8E5M2, F8E4M3> => f32: sm90::Fp8, scaled::BySecondKernel;
    f64 => f64: sm80::ToOwnType(sm80::F64OnHopper), sm80::ToOwnType(sm80::F64);
    i8 => i32: sm90::I8, sm80::ToOwnType(sm80::I8);
    i8 => bf16: sm90::I8, scaled::BySecondKernel;
    i8 => f16: sm90::I8, scaled::BySecondKernel;
    i8 => f32: scaled::BySecondKernel;
}
