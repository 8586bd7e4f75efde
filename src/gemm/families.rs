//! The families of kernels for each combination of element types, and their list.

mod gemv;
mod multistage;
mod simt;
mod sm80;
mod sm90;

use half::{bf16, f16};
pub use sm90::EpiloguePlan;

use cutlet_host::Device;

use super::choice::cost::DeviceSpeed;
use super::choice::measured::H200;
use super::element_type::{ElementType, HasElementType};
use super::registry::Family;
use super::sealed::Families;
use super::tuning_file::installed;

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
    f32 => f32: gemv::ToOwnType, simt::ToF32, sm80::ToOwnType(sm80::Tf32), sm80::ToOwnType(sm80::Tf32x3);
    f32 => bf16: simt::ToOtherType, sm80::ToOtherType(sm80::Tf32), sm80::ToOtherType(sm80::Tf32x3);
    f32 => f16: simt::ToOtherType, sm80::ToOtherType(sm80::Tf32), sm80::ToOtherType(sm80::Tf32x3);
    bf16 => bf16: gemv::ToOwnType, sm90::ToSameType, sm80::ToOwnType(sm80::Bf16);
    f16 => f16: gemv::ToOwnType, sm90::ToSameType, sm80::ToOwnType(sm80::F16);
    bf16 => f32: sm90::ToF32, sm80::ToOtherType(sm80::Bf16);
    f16 => f32: sm90::ToF32, sm80::ToOtherType(sm80::F16);
    bf16 => f16: sm90::ToOtherType, sm80::ToOtherType(sm80::Bf16);
    f16 => bf16: sm90::ToOtherType, sm80::ToOtherType(sm80::F16);
    f64 => f64: sm80::ToOwnType(sm80::F64OnHopper), sm80::ToOwnType(sm80::F64);
    i8 => i32: sm80::ToOwnType(sm80::I8);
}

/// The share of the stated rate that a large copy reaches on the H200 that the estimates were fitted to: 4220 of
/// 4917·10⁹ bytes a second.
const COPY_OF_STATED: f64 = 0.858;

/// What estimates need to know of a device. The rate of its memory is what its driver states, or would state where a
/// copy was measured. If neither is known, it is an H200's.
fn speed(device: &Device) -> DeviceSpeed {
    let stated = || device.memory_rate().unwrap_or(H200.memory_rate);
    DeviceSpeed {
        multiprocessors: device.multiprocessors(),
        memory_rate: measured_memory_rate(device).unwrap_or_else(stated),
        clusters: [1, 2, 4, 8].map(|blocks| clusters_at_a_time(device, blocks)),
    }
}

/// Clusters of so many blocks that run at the same time. A device that has no such clusters is refused at the launch.
fn clusters_at_a_time(device: &Device, blocks: u32) -> u32 {
    let fitting = device.multiprocessors() / blocks;
    device
        .clusters_at_a_time(blocks)
        .map_or(fitting, |it| it.min(fitting))
}

/// Bytes that the device's memory brings all multiprocessors in a clock.
fn memory_rate(device: &Device) -> f64 {
    let speed = speed(device);
    speed.memory_rate * f64::from(speed.multiprocessors)
}

/// The rate that a driver would state for memory that a copy was measured on, in bytes a clock for each multiprocessor.
fn measured_memory_rate(device: &Device) -> Option<f64> {
    let clock = device.highest_clock()?;
    let gigabytes = installed::memory_gigabytes(device)?;
    Some(stated_from_copy(gigabytes, clock) / f64::from(device.multiprocessors()))
}

/// The rate in bytes a clock that a driver would state where a copy reads and writes so many 10⁹ bytes a second. The
/// clock is in Hz.
fn stated_from_copy(gigabytes: f64, clock: f64) -> f64 {
    gigabytes * 1e9 / clock / COPY_OF_STATED
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the device of the fit, the measured rate and the stated one give the same estimates.
    #[test]
    fn an_h200s_copy_gives_the_rate_that_its_driver_states() {
        let stated = H200.memory_rate * f64::from(H200.multiprocessors);
        let measured = stated_from_copy(4220.0, 1.98e9);
        assert!(
            (measured / stated - 1.0).abs() < 0.005,
            "{measured} {stated}"
        );
    }
}
