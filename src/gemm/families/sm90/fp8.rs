//! GEMM of 8-bit floats: e4m3, e5m2, and one and the other.

use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_host::{Device, Stream, TensorMapElement};
use cutlet_kernels::gemm::sm90::block_scaled_instances::{
    E4M3_BLOCKS, E4M3_E5M2_BLOCKS, E4M3_E5M2_GROUPED_BLOCKS, E4M3_GROUPED_BLOCKS, E5M2_BLOCKS,
    E5M2_E4M3_BLOCKS, E5M2_E4M3_GROUPED_BLOCKS, E5M2_GROUPED_BLOCKS,
};
use cutlet_kernels::gemm::sm90::fp8_group_instances::{
    E4M3_E5M2_GROUPED, E4M3_E5M2_GROUPED_FAST, E4M3_GROUPED, E4M3_GROUPED_FAST, E5M2_E4M3_GROUPED,
    E5M2_E4M3_GROUPED_FAST, E5M2_GROUPED, E5M2_GROUPED_FAST, ScaledEpilogue,
};
use cutlet_kernels::gemm::sm90::instance::{BlockScaledInstance, Instance};
use cutlet_kernels::gemm::sm90::k_major_instances::{
    E4M3, E4M3_E5M2, E4M3_E5M2_FAST, E4M3_E5M2_FAST_OUTER, E4M3_E5M2_OUTER,
    E4M3_E5M2_TRANSPOSED_OUTER, E4M3_FAST, E4M3_FAST_OUTER, E4M3_OUTER, E4M3_TRANSPOSED_OUTER,
    E5M2, E5M2_E4M3, E5M2_E4M3_FAST, E5M2_E4M3_FAST_OUTER, E5M2_E4M3_OUTER,
    E5M2_E4M3_TRANSPOSED_OUTER, E5M2_FAST, E5M2_FAST_OUTER, E5M2_OUTER, E5M2_TRANSPOSED_OUTER,
};
use cutlet_kernels::gemm::sm90::{InOut, OperandElement, PromotedInOut};
use half::{bf16, f16};

use super::k_major::{built_for, of_query, to_f32, to_other_type, to_own_type};
use super::outer_scaled::{self, Instances};
use super::{NAME, block_scaled, scaled_groups};
use crate::Result;
use crate::gemm::choice::decomposition::Named;
use crate::gemm::operand::{BlockScaledOperand, Operand};
use crate::gemm::precision::Precision;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, Fused, IndexedOperand, KernelQuery, LaunchPlan};
use crate::gemm::scales::{Scales, ScalesKind};

/// Kernels for 8-bit floats.
#[derive(Debug)]
pub struct Fp8;

/// An element type of A and B, and its kernels. They store a C of bf16.
pub trait Float8:
    BlockScaledOperand + Operand<Factor = f32> + TensorMapElement + OperandElement
{
    /// Those without scales, whose sums are promoted.
    fn promoted() -> &'static [Instance<PromotedInOut<Self, bf16>>];
    /// Those with scales of rows and columns, whose sums are promoted.
    fn outer_scaled() -> Instances<PromotedInOut<Self, bf16>>;
    /// Those without scales, whose sums have the bits that the tensor cores keep.
    fn fast() -> &'static [Instance<InOut<Self, bf16>>];
    /// Those with scales of rows and columns, whose sums have the bits that the tensor cores keep.
    fn fast_outer_scaled() -> Instances<InOut<Self, bf16>>;
    /// Those with scales of blocks.
    fn block_scaled() -> &'static [BlockScaledInstance];
    /// Those for groups, with scales of rows and columns, or one factor.
    fn grouped() -> &'static [Instance<PromotedInOut<Self, bf16>, ScaledEpilogue>];
    /// The same, whose sums have the bits that the tensor cores keep.
    fn fast_groups() -> &'static [Instance<InOut<Self, bf16>, ScaledEpilogue>];
    /// Those for groups, with scales of blocks.
    fn block_scaled_groups() -> &'static [BlockScaledInstance];
}

macro_rules! float8 {
    ($($element:ty: $promoted:ident, $outer:ident, $transposed_outer:ident, $fast:ident, $fast_outer:ident, $blocks:ident,
        $grouped:ident, $fast_groups:ident, $grouped_blocks:ident;)+) => {$(
        impl Float8 for $element {
            fn promoted() -> &'static [Instance<PromotedInOut<Self, bf16>>] {
                $promoted
            }
            fn outer_scaled() -> Instances<PromotedInOut<Self, bf16>> {
                Instances {
                    direct: $outer,
                    transposed: $transposed_outer,
                }
            }
            fn fast() -> &'static [Instance<InOut<Self, bf16>>] {
                $fast
            }
            fn fast_outer_scaled() -> Instances<InOut<Self, bf16>> {
                Instances {
                    direct: $fast_outer,
                    transposed: &[],
                }
            }
            fn block_scaled() -> &'static [BlockScaledInstance] {
                $blocks
            }
            fn grouped() -> &'static [Instance<PromotedInOut<Self, bf16>, ScaledEpilogue>] {
                $grouped
            }
            fn fast_groups() -> &'static [Instance<InOut<Self, bf16>, ScaledEpilogue>] {
                $fast_groups
            }
            fn block_scaled_groups() -> &'static [BlockScaledInstance] {
                $grouped_blocks
            }
        }
    )+};
}
float8! {
    F8E4M3: E4M3, E4M3_OUTER, E4M3_TRANSPOSED_OUTER, E4M3_FAST, E4M3_FAST_OUTER,
        E4M3_BLOCKS, E4M3_GROUPED, E4M3_GROUPED_FAST, E4M3_GROUPED_BLOCKS;
    F8E5M2: E5M2, E5M2_OUTER, E5M2_TRANSPOSED_OUTER, E5M2_FAST, E5M2_FAST_OUTER,
        E5M2_BLOCKS, E5M2_GROUPED, E5M2_GROUPED_FAST, E5M2_GROUPED_BLOCKS;
    MixedF8<F8E4M3, F8E5M2>: E4M3_E5M2, E4M3_E5M2_OUTER, E4M3_E5M2_TRANSPOSED_OUTER, E4M3_E5M2_FAST, E4M3_E5M2_FAST_OUTER,
        E4M3_E5M2_BLOCKS, E4M3_E5M2_GROUPED, E4M3_E5M2_GROUPED_FAST, E4M3_E5M2_GROUPED_BLOCKS;
    MixedF8<F8E5M2, F8E4M3>: E5M2_E4M3, E5M2_E4M3_OUTER, E5M2_E4M3_TRANSPOSED_OUTER, E5M2_E4M3_FAST, E5M2_E4M3_FAST_OUTER,
        E5M2_E4M3_BLOCKS, E5M2_E4M3_GROUPED, E5M2_E4M3_GROUPED_FAST, E5M2_E4M3_GROUPED_BLOCKS;
}

/// The time of products whose sums are promoted, relative to others.
const PROMOTION: f64 = 1.15;

macro_rules! families {
    ($($c:ty: $plan:ident, $promoted:expr, $with_blocks:ident, $with_outer:expr, of several $of_several:expr, $names_of_several:expr;)+) => {$(
        impl<T: Float8> Family<T, $c> for Fp8 {
            fn name(&self) -> &'static str {
                NAME
            }

            fn supports(&self, device: &Device) -> Result<()> {
                built_for(device)
            }

            fn candidates(&self, query: KernelQuery) -> Vec<&'static str> {
                match query.of_batches {
                    false => of_one::<T>(query),
                    true => $names_of_several(query),
                }
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, T, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<LaunchPlan<T, $c>>> {
                let named = Named::of(kernel);
                match problem.scales {
                    _ if !problem.rows.are_own() => Ok(None),
                    Scales::None | Scales::Outer(_) if !problem.groups.are_one() => {
                        $of_several(stream, problem, named)
                    }
                    Scales::Blocks(_) => block_scaled::$with_blocks(stream, problem, named),
                    Scales::Outer(_) => $with_outer(stream, problem, named),
                    Scales::None => with_fast(
                        problem.precision,
                        $promoted(stream, problem, named)?,
                        || $plan(T::fast(), stream, problem, named),
                    ),
                }
            }
        }
    )+};
}
families! {
    bf16: to_own_type, promoted_to_bf16, to_bf16, outer_to_bf16,
        of several scaled_groups::to_bf16, of_several::<T>;
    f16: to_other_type, |stream, problem, named| to_other_type(T::promoted(), stream, problem, named), to_any_type,
        |_, _, _| Ok(None), of several |_, _, _| Ok(None), |_| Vec::new();
    f32: to_f32, |stream, problem, named| to_f32(T::promoted(), stream, problem, named), to_f32, |_, _, _| Ok(None),
        of several |_, _, _| Ok(None), |_| Vec::new();
}

/// Plans a C of bf16 without scales. The kernels for scales that compute Cᵀ multiply by alpha alone, and have a tile that
/// others lack.
fn promoted_to_bf16<T: Float8>(
    stream: &Stream,
    problem: &Problem<'_, T, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, bf16>>> {
    let plain = to_own_type(T::promoted(), stream, problem, named)?;
    let scaled = Instances {
        direct: &[],
        ..T::outer_scaled()
    };
    let time = outer_scaled::microseconds_of_transposed(scaled, stream, problem, named);
    match (plain, time) {
        (Some(plain), Some(time)) if plain.microseconds <= time => Ok(Some(plain)),
        (plain, None) => Ok(plain),
        (_, Some(_)) => outer_scaled::to_own_type(scaled, stream, problem, named),
    }
}

/// Plans a C of bf16 with scales of rows and columns.
fn outer_to_bf16<T: Float8>(
    stream: &Stream,
    problem: &Problem<'_, T, bf16>,
    named: Named<'_>,
) -> Result<Option<LaunchPlan<T, bf16>>> {
    let promoted = outer_scaled::to_own_type(T::outer_scaled(), stream, problem, named)?;
    with_fast(problem.precision, promoted, || {
        outer_scaled::to_own_type(T::fast_outer_scaled(), stream, problem, named)
    })
}

/// The names of the kernels for single products that the query asks for.
fn of_one<T: Float8>(query: KernelQuery) -> Vec<&'static str> {
    let (mut all, fast) = match query.scales {
        _ if query.fused != Fused::Nothing || query.indexed != IndexedOperand::None => {
            return Vec::new();
        }
        ScalesKind::Blocks => {
            let names = block_scaled::names(T::block_scaled(), query.backend);
            (names, Vec::new())
        }
        ScalesKind::Outer { .. } => {
            let Instances { direct, transposed } = T::outer_scaled();
            let names = [of_query(direct, query), of_query(transposed, query)].concat();
            (names, of_query(T::fast_outer_scaled().direct, query))
        }
        ScalesKind::None => (of_query(T::promoted(), query), of_query(T::fast(), query)),
    };
    if query.precision == Precision::FastAccumulation {
        all.extend(fast);
    }
    all
}

/// The names of the kernels for batches and groups that the query asks for.
fn of_several<T: Float8>(query: KernelQuery) -> Vec<&'static str> {
    match (query.fused, query.indexed, query.scales) {
        (Fused::Nothing, IndexedOperand::None, ScalesKind::Blocks) => {
            block_scaled::names(T::block_scaled_groups(), query.backend)
        }
        (Fused::Nothing, IndexedOperand::None, _) => scaled_groups::names::<T>(query),
        _ => Vec::new(),
    }
}

/// The plan with promoted sums, or the fast one if the precision allows it and it is faster. The model does not know
/// what promotion costs.
pub(super) fn with_fast<T: Operand, D: DeviceData>(
    precision: Precision,
    promoted: Option<LaunchPlan<T, D>>,
    fast: impl FnOnce() -> Result<Option<LaunchPlan<T, D>>>,
) -> Result<Option<LaunchPlan<T, D>>> {
    let fast = match precision {
        Precision::FastAccumulation => fast()?,
        _ => None,
    };
    Ok(match (promoted, fast) {
        (Some(promoted), Some(fast)) if PROMOTION * promoted.microseconds < fast.microseconds => {
            Some(promoted)
        }
        (promoted, None) => promoted,
        (_, fast) => fast,
    })
}
