//! The families of kernels for each combination of element types, and their list.

mod multistage;
mod simt;
mod sm80;
mod sm90;

use half::{bf16, f16};
pub use sm90::EpiloguePlan;

use cutlet_host::Device;

use super::registry::Family;
use super::sealed::Families;
use super::tune::model::DeviceSpeed;
use super::tune::table::H200;

/// A family of GEMM kernels for element types. [`Gemm::families`](super::Gemm::families) lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFamily {
    /// The name.
    pub name: &'static str,
    /// The element type of A and B.
    pub operands: &'static str,
    /// The element type of C.
    pub c: &'static str,
    /// Whether the device runs the kernels.
    pub runs: bool,
}

macro_rules! families {
    ($($operands:ty => $c:ty: $($family:expr),*;)+) => {
        $(
            impl Families<$c> for $operands {
                fn families() -> &'static [&'static dyn Family<Self, $c>] {
                    &[$(&$family),*]
                }
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
                    runs: family.supports(device).is_ok(),
                }));
            )+
            all
        }
    };
}
families! {
    f32 => f32: simt::ToF32, sm80::ToOwnType(sm80::Tf32), sm80::ToOwnType(sm80::Tf32x3);
    f32 => bf16: simt::ToOtherType, sm80::ToOtherType(sm80::Tf32), sm80::ToOtherType(sm80::Tf32x3);
    f32 => f16: simt::ToOtherType, sm80::ToOtherType(sm80::Tf32), sm80::ToOtherType(sm80::Tf32x3);
    bf16 => bf16: sm90::ToSameType, sm80::ToOwnType(sm80::Bf16);
    f16 => f16: sm90::ToSameType, sm80::ToOwnType(sm80::F16);
    bf16 => f32: sm90::ToF32, sm80::ToOtherType(sm80::Bf16);
    f16 => f32: sm90::ToF32, sm80::ToOtherType(sm80::F16);
    bf16 => f16: sm90::ToOtherType, sm80::ToOtherType(sm80::Bf16);
    f16 => bf16: sm90::ToOtherType, sm80::ToOtherType(sm80::F16);
    f64 => f64: sm80::ToOwnType(sm80::F64OnHopper), sm80::ToOwnType(sm80::F64);
    i8 => i32: sm80::ToOwnType(sm80::I8);
}

/// What estimates need to know of a device. If its driver states no rate of the memory, it is an H200's.
fn speed(device: &Device) -> DeviceSpeed {
    DeviceSpeed {
        multiprocessors: device.multiprocessors(),
        memory_rate: device.memory_rate().unwrap_or(H200.memory_rate),
    }
}

/// Bytes that the device's memory brings all multiprocessors in a clock, as its driver states it.
fn memory_rate(device: &Device) -> f64 {
    let speed = speed(device);
    speed.memory_rate * f64::from(speed.multiprocessors)
}
