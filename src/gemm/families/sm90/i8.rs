//! GEMM of i8 on Hopper: into i32, and with scales into bf16 and f16. `wgmma` reads i8 K-major: others are copied first.

use cutlet_host::{Device, Stream};
use cutlet_kernels::gemm::sm90::i8_instances::{I8 as TO_I32, I8_TO_BF16, I8_TO_F16};
use half::{bf16, f16};

use super::NAME;
use super::k_major::{built_for, of_query, to_own_type};
use super::outer_scaled::{Instances, to_own_type as to_scaled_type};
use crate::Result;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, KernelQuery, LaunchPlan};

/// Kernels for i8.
#[derive(Debug)]
pub struct I8;

impl Family<i8, i32> for I8 {
    fn name(&self) -> &'static str {
        NAME
    }

    /// i8 has kernels for all devices with tensor cores.
    fn is_general(&self) -> bool {
        false
    }

    fn supports(&self, device: &Device) -> Result<()> {
        built_for(device)
    }

    fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
        of_query(TO_I32, query)
    }

    fn plan(
        &self,
        stream: &Stream,
        problem: &Problem<'_, i8, i32>,
        kernel: Option<&str>,
    ) -> Result<Option<LaunchPlan<i8, i32>>> {
        to_own_type(TO_I32, stream, problem, Named::of(kernel))
    }
}

macro_rules! with_scales {
    ($($c:ty: $all:ident;)+) => {$(
        impl Family<i8, $c> for I8 {
            fn name(&self) -> &'static str {
                NAME
            }

            fn is_general(&self) -> bool {
                false
            }

            fn supports(&self, device: &Device) -> Result<()> {
                built_for(device)
            }

            fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
                of_query($all, query)
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, i8, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<LaunchPlan<i8, $c>>> {
                let all = Instances {
                    direct: $all,
                    transposed: &[],
                };
                to_scaled_type(all, stream, problem, Named::of(kernel))
            }
        }
    )+};
}
with_scales! {
    bf16: I8_TO_BF16;
    f16: I8_TO_F16;
}
