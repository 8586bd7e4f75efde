//! GEMM on tensor cores from Ampere on, by `mma.sync`. A C of another type than the kernels write takes an epilogue
//! pass.

use cutlet_host::{Device, Stream};
use cutlet_kernels::gemm::sm80::{instances, row_instances};
use half::{bf16, f16};

use super::multistage::{self, Instance, Kernels, NamedInstance};
use crate::gemm::operand::Operand;
use crate::gemm::partials::Output;
use crate::gemm::precision::Precision;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, KernelQuery, LaunchPlan};
use crate::{Error, Result};

/// The family's name.
const NAME: &str = "gemm-sm80";
/// The products of 16-bit elements that a multiprocessor's tensor cores add in a clock, at their peak.
fn peak(device: &Device) -> f64 {
    match device.compute_capability() {
        Some((8, 0)) => 1024.0,
        Some((9 | 10, _)) => 2048.0,
        _ => 512.0,
    }
}

/// The GPUs that run kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Those since Ampere.
    AmpereAndLater,
    /// Hopper alone.
    Hopper,
}

impl For {
    fn includes(self, capability: (u32, u32)) -> bool {
        match self {
            For::AmpereAndLater => capability >= (8, 0),
            For::Hopper => capability == (9, 0),
        }
    }
}

/// An arithmetic of the family: a type of operands, and how exactly they are multiplied.
pub trait Arithmetic: Sync + 'static {
    /// The elements of A and B.
    type Operand: Operand;
    /// The C that the kernels write.
    type Own: Output<Acc = <Self::Operand as Operand>::Factor>;
    /// Its products for each product of 16-bit elements, at the tensor cores' peak.
    const PEAK: f64;
    /// The precisions for which it is exact enough.
    const PRECISIONS: &'static [Precision];
    /// The GPUs for which its kernels are compiled.
    const FOR: For;

    /// The kernels.
    fn instances() -> &'static [Instance<Self::Operand, Self::Own>];

    /// The kernels for rows of tables, if the arithmetic has some.
    fn named() -> &'static [NamedInstance<Self::Operand, Self::Own>];
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident: $operand:ty => $own:ty, $instances:ident, $named:expr, at $peak:literal,
        for $precisions:expr, $for:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Arithmetic for $name {
            type Operand = $operand;
            type Own = $own;
            const PEAK: f64 = $peak;
            const PRECISIONS: &'static [Precision] = &$precisions;
            const FOR: For = For::$for;

            fn instances() -> &'static [Instance<$operand, $own>] {
                instances::$instances
            }

            fn named() -> &'static [NamedInstance<$operand, $own>] {
                $named
            }
        }
    )+};
}
arithmetic! {
    /// bf16.
    Bf16: bf16 => bf16, BF16, row_instances::BF16, at 1.0, for [Precision::Exact], AmpereAndLater;
    /// f16.
    F16: f16 => f16, F16, row_instances::F16, at 1.0, for [Precision::Exact], AmpereAndLater;
    /// f32 that is rounded to tf32.
    Tf32: f32 => f32, TF32, &[], at 0.5, for [Precision::Tf32], AmpereAndLater;
    /// f32 as the sum of two tf32.
    Tf32x3: f32 => f32, TF32X3, &[], at 0.5, for [Precision::Tf32, Precision::Tf32x3], AmpereAndLater;
    /// f64.
    F64: f64 => f64, F64, row_instances::F64, at 0.0625, for [Precision::Exact], AmpereAndLater;
    /// f64 on Hopper.
    F64OnHopper: f64 => f64, F64_SM90, &[], at 0.0625, for [Precision::Exact], Hopper;
    /// i8.
    I8: i8 => i32, I8, row_instances::I8, at 2.0, for [Precision::Exact], AmpereAndLater;
}

/// C of the type that the kernels write.
#[derive(Debug)]
pub struct ToOwnType<R>(pub R);

/// C of another type.
#[derive(Debug)]
pub struct ToOtherType<R>(pub R);

macro_rules! family {
    ($name:ident <$r:ident $(, $d:ident)?> to $c:ty, plan $plan:ident) => {
        impl<$r: Arithmetic $(, $d: Output<Acc = <$r::Operand as Operand>::Factor>)?> Family<$r::Operand, $c>
            for $name<$r>
        {
            fn name(&self) -> &'static str {
                NAME
            }

            fn supports(&self, device: &Device) -> Result<()> {
                supports::<$r>(device)
            }

            fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
                let has_them = $r::PRECISIONS.contains(&query.precision);
                match has_them {
                    true => multistage::names($r::instances(), $r::named(), query),
                    false => Vec::new(),
                }
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, $r::Operand, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<LaunchPlan<$r::Operand, $c>>> {
                match $r::PRECISIONS.contains(&problem.least_precision(kernel)) {
                    true => {
                        let peak = $r::PEAK * peak(stream.device());
                        let kernels = Kernels {
                            plain: $r::instances(),
                            named: $r::named(),
                        };
                        let mut plan = multistage::$plan(kernels, peak, stream, problem, kernel)?;
                        if let Some(plan) = &mut plan {
                            plan.microseconds *= beside_wgmma::<$r>(stream.device());
                        }
                        Ok(plan)
                    },
                    false => Ok(None),
                }
            }
        }
    };
}
/// The factor of estimates where Hopper has kernels with `wgmma`. This family's estimates are about two thirds of the
/// times of small problems: at 36 random shapes on an H100 it was chosen at five, and it was the fastest at none.
fn beside_wgmma<R: Arithmetic>(device: &Device) -> f64 {
    match device.compute_capability() {
        Some((9, 0)) if size_of::<R::Operand>() <= 2 => 1.5,
        _ => 1.0,
    }
}

family!(ToOwnType<R> to R::Own, plan to_own_type);
family!(ToOtherType<R, D> to D, plan to_any_type);

/// Refuses a GPU that the kernels are not for, and a build without them.
fn supports<R: Arithmetic>(device: &Device) -> Result<()> {
    if R::instances().is_empty() {
        return Err(Error::NotBuilt {
            operation: "gemm",
            family: NAME,
            feature: "ampere",
        });
    }
    match device.compute_capability() {
        Some(capability) if !R::FOR.includes(capability) => Err(Error::Device {
            asked: match R::FOR {
                For::AmpereAndLater => {
                    "gemm on tensor cores, whose kernels are for compute capability 8.0 and later,"
                }
                For::Hopper => {
                    "gemm on tensor cores of Hopper, whose kernels are for compute capability 9.0,"
                }
            },
            found: format!(
                "{}, compute capability {}.{}",
                device.describe(),
                capability.0,
                capability.1
            ),
        }),
        _ => Ok(()),
    }
}
