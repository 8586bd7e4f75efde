//! GEMM of f32 on CUDA cores. Products are exact, which suits every precision. A C of another type takes an epilogue
//! pass.

use cutlet_host::{Device, Stream};
use cutlet_kernels::gemm::simt::instances::F32;
use cutlet_kernels::gemm::simt::row_instances;

use super::multistage::{self, Kernels};
use crate::gemm::partials::Output;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, KernelQuery, LaunchPlan};
use crate::{Error, Result};

/// The family's name.
const NAME: &str = "gemm-simt";
/// A multiprocessor has 128 cores.
const PEAK: f64 = 128.0;

macro_rules! family {
    ($(#[$doc:meta])* $name:ident, <$($d:ident: $bound:path)?> to $c:ty, plan $plan:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl<$($d: $bound)?> Family<f32, $c> for $name {
            fn name(&self) -> &'static str {
                NAME
            }

            fn supports(&self, _: &Device) -> Result<()> {
                match F32.is_empty() {
                    false => Ok(()),
                    true => Err(Error::NotBuilt {
                        operation: "gemm",
                        family: NAME,
                        feature: "simt",
                    }),
                }
            }

            fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
                multistage::names(F32, row_instances::F32, query)
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, f32, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<LaunchPlan<f32, $c>>> {
                let kernels = Kernels {
                    plain: F32,
                    named: row_instances::F32,
                };
                multistage::$plan(kernels, PEAK, stream, problem, kernel)
            }
        }
    };
}
family! {
    /// C of f32.
    ToF32, <> to f32, plan to_own_type
}
family! {
    /// C of another type.
    ToOtherType, <D: Output<Acc = f32>> to D, plan to_any_type
}
