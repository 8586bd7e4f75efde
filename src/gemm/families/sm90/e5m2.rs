//! GEMM of 8-bit floats of which A, B or both are e5m2.

use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_host::{Device, Stream, TensorMapElement};
use cutlet_kernels::gemm::sm90::e5m2_instances::{E4M3_E5M2, E5M2, E5M2_E4M3};
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::{OperandElement, PromotedInOut};
use half::{bf16, f16};

use super::NAME;
use super::k_major::{built_for, of_query, to_f32, to_other_type, to_own_type};
use crate::Result;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::operand::Operand;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, KernelQuery, LaunchPlan};
use crate::gemm::scales::ScalesKind;

/// Kernels for e5m2, alone and beside e4m3.
#[derive(Debug)]
pub struct E5m2;

/// An element type of A and B, and its kernels.
pub trait OfE5m2: Operand<Factor = f32> + TensorMapElement + OperandElement {
    /// The kernels.
    fn kernels() -> &'static [Instance<PromotedInOut<Self, bf16>>];
}

macro_rules! of_e5m2 {
    ($($element:ty: $kernels:ident;)+) => {$(
        impl OfE5m2 for $element {
            fn kernels() -> &'static [Instance<PromotedInOut<Self, bf16>>] {
                $kernels
            }
        }
    )+};
}
of_e5m2! {
    F8E5M2: E5M2;
    MixedF8<F8E4M3, F8E5M2>: E4M3_E5M2;
    MixedF8<F8E5M2, F8E4M3>: E5M2_E4M3;
}

macro_rules! families {
    ($($c:ty: $plan:ident;)+) => {$(
        impl<T: OfE5m2> Family<T, $c> for E5m2 {
            fn name(&self) -> &'static str {
                NAME
            }

            fn supports(&self, device: &Device) -> Result<()> {
                built_for(device)
            }

            fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
                match query.scales {
                    ScalesKind::None => of_query(T::kernels(), query),
                    ScalesKind::Blocks | ScalesKind::Outer { .. } => Vec::new(),
                }
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, T, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<LaunchPlan<T, $c>>> {
                match problem.scales.kind() {
                    ScalesKind::None => $plan(T::kernels(), stream, problem, Named::of(kernel)),
                    ScalesKind::Blocks | ScalesKind::Outer { .. } => Ok(None),
                }
            }
        }
    )+};
}
families! {
    bf16: to_own_type;
    f16: to_other_type;
    f32: to_f32;
}
