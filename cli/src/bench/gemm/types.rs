//! The element types of GEMMs, with cutlet's kernel for each.

use cutlet::{Gemm, Matrix, MatrixMut, Order, Stream};
use cutlet_cli::cublas::{Compute, Element};
use cutlet_device::sm90::F8E4M3;
use half::{bf16, f16};

use super::epilogue::Epilogue;
use crate::bench::check::Nearest;
use crate::bench::dtype::Dtype;
use crate::bench::random::Fill;

/// Element types of a GEMM. New types are one implementation of this trait.
pub trait Types: 'static {
    /// The element type of A and B.
    type In: Fill + Element + Nearest;
    /// The element type of C.
    type Out: Fill + Element + Nearest;
    /// Their name.
    const DTYPE: Dtype;
    /// The baseline's way of computing the same.
    const COMPUTE: Compute;
    /// Another computation of the baseline library, to be shown beside.
    const ASIDE: Option<Compute> = None;
    /// cutlet's GEMM `C = A·B`, if there is one.
    const KERNEL: Option<Kernel<Self>>;

    /// cutlet's kernel instances for the orders of A and B and an epilogue.
    const INSTANCES: fn(Order, Order, Epilogue) -> Vec<&'static str> = |_, _, _| Vec::new();
}

/// cutlet's GEMM of some types.
pub type Kernel<T> = fn(
    &Gemm<'_, <T as Types>::Out>,
    &Stream,
    Matrix<'_, <T as Types>::In>,
    Matrix<'_, <T as Types>::In>,
    MatrixMut<'_, <T as Types>::Out>,
) -> cutlet::Result<()>;

/// [`Types::INSTANCES`] of types that cutlet has instances for.
fn instances<T: cutlet::Element>(a: Order, b: Order, epilogue: Epilogue) -> Vec<&'static str> {
    match epilogue.is_none() {
        true => Gemm::instances::<T>(a, b),
        false => Gemm::fused_instances::<T>(a, b, epilogue.activation),
    }
}

/// [`Types::KERNEL`] of types that cutlet multiplies.
fn multiply<T: cutlet::Element>(
    gemm: &Gemm<'_, T>,
    stream: &Stream,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: MatrixMut<'_, T>,
) -> cutlet::Result<()> {
    gemm.run(stream, 1.0, a, b, 0.0, c)
}

/// f32 throughout.
pub struct F32;
impl Types for F32 {
    type In = f32;
    type Out = f32;
    const DTYPE: Dtype = Dtype::F32;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: fn(Order, Order, Epilogue) -> Vec<&'static str> = instances::<f32>;
}

/// f32 in memory, tf32 in the tensor cores.
pub struct Tf32;
impl Types for Tf32 {
    type In = f32;
    type Out = f32;
    const DTYPE: Dtype = Dtype::Tf32;
    const COMPUTE: Compute = Compute::Tf32;
    const KERNEL: Option<Kernel<Self>> = None;
}

/// f16 in and out.
pub struct F16;
impl Types for F16 {
    type In = f16;
    type Out = f16;
    const DTYPE: Dtype = Dtype::F16;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: fn(Order, Order, Epilogue) -> Vec<&'static str> = instances::<f16>;
}

/// bf16 in and out.
pub struct Bf16;
impl Types for Bf16 {
    type In = bf16;
    type Out = bf16;
    const DTYPE: Dtype = Dtype::Bf16;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: fn(Order, Order, Epilogue) -> Vec<&'static str> = instances::<bf16>;
}

/// fp8 (e4m3) in, bf16 out. The baseline accumulates as the tensor cores do, and in f32 for the aside.
pub struct E4m3;
impl Types for E4m3 {
    type In = F8E4M3;
    type Out = bf16;
    const DTYPE: Dtype = Dtype::E4m3;
    const COMPUTE: Compute = Compute::FastF8;
    const ASIDE: Option<Compute> = Some(Compute::F32);
    const KERNEL: Option<Kernel<Self>> = None;
}

/// Bytes of an element of A and B, and of C.
pub fn element_bytes(dtype: Dtype) -> (usize, usize) {
    match dtype {
        Dtype::F32 | Dtype::Tf32 => (4, 4),
        Dtype::F16 | Dtype::Bf16 => (2, 2),
        Dtype::E4m3 => (1, 2),
    }
}
