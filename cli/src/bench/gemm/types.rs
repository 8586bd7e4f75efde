//! The element types of GEMMs, with cutlet's kernel for each.

use cutlet::{Buffer, Gemm, Operand, Order, Precision, Stream, Tensor, TensorMut};
use cutlet_cli::cublas::{Compute, Element};
use cutlet_device::DeviceData;
use cutlet_device::fp8::F8E4M3;
use cutlet_host::Backend;
use half::{bf16, f16};

use crate::measure::check::Nearest;
use crate::measure::dtype::Dtype;
use crate::measure::epilogue::Epilogue;
use crate::measure::random::Fill;
use crate::measure::scales::{DeviceScales, scale};

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
    const ALTERNATIVE: Option<Compute> = None;
    /// cutlet's GEMM `C = A·B`, if there is one.
    const KERNEL: Option<Kernel<Self>>;

    /// cutlet's kernel instances for a problem.
    const INSTANCES: Instances = |_| Vec::new();
}

/// cutlet's GEMM of some types.
pub type Kernel<T> = fn(Product<'_, T>, &Stream) -> cutlet::Result<()>;

/// A batch of products with an epilogue: of A (M, K, L), B (K, N, L) and C (M, N, L).
pub struct Product<'a, T: Types + ?Sized> {
    pub a: Tensor<'a, T::In>,
    pub b: Tensor<'a, T::In>,
    pub c: TensorMut<'a, T::Out>,
    pub epilogue: Epilogue,
    /// A number for each column of C. It is added if the epilogue has a bias.
    pub bias: &'a Buffer<T::Out>,
    /// The scales of A and B, if the types have some.
    pub scales: &'a DeviceScales,
    /// The kernel instance, instead of the one that is estimated to be the fastest.
    pub instance: Option<&'a str>,
}

impl<'a, T: Types<In: Operand>> Product<'a, T> {
    /// cutlet's GEMM of these operands.
    pub fn gemm(self) -> Gemm<'a, T::In, T::Out> {
        let gemm = Gemm::new(self.a, self.b, self.c);
        let gemm = self.epilogue.fuse(gemm, self.bias);
        match self.instance {
            Some(name) => gemm.instance(name),
            None => gemm,
        }
    }
}

/// A list of the names of cutlet's kernel instances.
pub type Instances = fn(InstancesFor) -> Vec<&'static str>;

/// What kernel instances are asked for.
#[derive(Clone, Copy, Debug)]
pub struct InstancesFor {
    pub backend: Backend,
    /// The orders of A and B.
    pub orders: [Order; 2],
    pub epilogue: Epilogue,
    /// Whether they compute several products in one launch.
    pub of_batches: bool,
}

/// The instances of these types and this precision for [`Types::INSTANCES`]. Those for batches fuse nothing.
fn instances<T: cutlet::Element<D>, D: DeviceData>(
    asked: InstancesFor,
    precision: Precision,
) -> Vec<&'static str> {
    let InstancesFor {
        backend,
        orders: [a, b],
        epilogue,
        of_batches,
    } = asked;
    match (of_batches, epilogue.is_none()) {
        (false, true) => Gemm::<T, D>::instances(backend, a, b, precision),
        (false, false) => {
            Gemm::<T, D>::fused_instances(backend, a, b, precision, epilogue.activation)
        }
        (true, true) => Gemm::<T, D>::batched_instances(backend, a, b, precision),
        (true, false) => Vec::new(),
    }
}

/// [`Types::INSTANCES`] of exact products.
fn exact<T: cutlet::Element<D>, D: DeviceData>(asked: InstancesFor) -> Vec<&'static str> {
    instances::<T, D>(asked, Precision::Exact)
}

/// [`Types::KERNEL`] of types that cutlet multiplies.
fn multiply<T: Types<In: cutlet::Element<T::Out>>>(
    product: Product<'_, T>,
    stream: &Stream,
) -> cutlet::Result<()> {
    product.gemm().run(stream)
}

/// f32 throughout.
pub struct F32;
impl Types for F32 {
    type In = f32;
    type Out = f32;
    const DTYPE: Dtype = Dtype::F32;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: Instances = exact::<f32, f32>;
}

/// f32 in memory, tf32 in the tensor cores.
pub struct Tf32;
impl Types for Tf32 {
    type In = f32;
    type Out = f32;
    const DTYPE: Dtype = Dtype::Tf32;
    const COMPUTE: Compute = Compute::Tf32;
    const KERNEL: Option<Kernel<Self>> =
        Some(|product, stream| product.gemm().precision(Precision::Tf32).run(stream));
    const INSTANCES: Instances = |asked| instances::<f32, f32>(asked, Precision::Tf32);
}

/// f32 in memory, three products of tf32 in the tensor cores.
pub struct Tf32x3;
impl Types for Tf32x3 {
    type In = f32;
    type Out = f32;
    const DTYPE: Dtype = Dtype::Tf32x3;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> =
        Some(|product, stream| product.gemm().precision(Precision::Tf32x3).run(stream));
    const INSTANCES: Instances = |asked| instances::<f32, f32>(asked, Precision::Tf32x3);
}

/// f16 in and out.
pub struct F16;
impl Types for F16 {
    type In = f16;
    type Out = f16;
    const DTYPE: Dtype = Dtype::F16;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: Instances = exact::<f16, f16>;
}

/// bf16 in and out.
pub struct Bf16;
impl Types for Bf16 {
    type In = bf16;
    type Out = bf16;
    const DTYPE: Dtype = Dtype::Bf16;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: Instances = exact::<bf16, bf16>;
}

/// fp8 (e4m3) in, bf16 out, accumulated in f32.
pub struct E4m3;
impl Types for E4m3 {
    type In = F8E4M3;
    type Out = bf16;
    const DTYPE: Dtype = Dtype::E4m3;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: Instances = exact::<F8E4M3, bf16>;
}

/// fp8 (e4m3) in, bf16 out, accumulated as the tensor cores do.
pub struct E4m3Fast;
impl Types for E4m3Fast {
    type In = F8E4M3;
    type Out = bf16;
    const DTYPE: Dtype = Dtype::E4m3Fast;
    const COMPUTE: Compute = Compute::FastF8;
    const KERNEL: Option<Kernel<Self>> = Some(|product, stream| {
        let mut gemm = product.gemm().precision(Precision::FastAccumulation);
        gemm.run(stream)
    });
    const INSTANCES: Instances =
        |asked| instances::<F8E4M3, bf16>(asked, Precision::FastAccumulation);
}

/// [`Types::KERNEL`] of e4m3 with scales.
fn multiply_scaled<T: Types<In = F8E4M3, Out = bf16>>(
    product: Product<'_, T>,
    stream: &Stream,
) -> cutlet::Result<()> {
    let scales = product.scales;
    scale(product.gemm(), scales)?.run(stream)
}

/// fp8 (e4m3) with scales of rows and columns in, bf16 out, accumulated in f32.
pub struct E4m3Outer;
impl Types for E4m3Outer {
    type In = F8E4M3;
    type Out = bf16;
    const DTYPE: Dtype = Dtype::E4m3Outer;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply_scaled);
}

/// fp8 (e4m3) with scales of blocks in, bf16 out, accumulated in f32.
pub struct E4m3Blocks;
impl Types for E4m3Blocks {
    type In = F8E4M3;
    type Out = bf16;
    const DTYPE: Dtype = Dtype::E4m3Blocks;
    const COMPUTE: Compute = Compute::F32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply_scaled);
}

/// f64 throughout.
pub struct F64;
impl Types for F64 {
    type In = f64;
    type Out = f64;
    const DTYPE: Dtype = Dtype::F64;
    const COMPUTE: Compute = Compute::F64;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: Instances = exact::<f64, f64>;
}

/// i8 in, i32 out.
pub struct I8;
impl Types for I8 {
    type In = i8;
    type Out = i32;
    const DTYPE: Dtype = Dtype::I8;
    const COMPUTE: Compute = Compute::I32;
    const KERNEL: Option<Kernel<Self>> = Some(multiply);
    const INSTANCES: Instances = exact::<i8, i32>;
}

/// Bytes of an element of A and B, and of C.
pub fn element_bytes(dtype: Dtype) -> (usize, usize) {
    match dtype {
        Dtype::F64 => (8, 8),
        Dtype::F32 | Dtype::Tf32 | Dtype::Tf32x3 => (4, 4),
        Dtype::F16 | Dtype::Bf16 => (2, 2),
        Dtype::E4m3 | Dtype::E4m3Fast | Dtype::E4m3Outer | Dtype::E4m3Blocks => (1, 2),
        Dtype::I8 => (1, 4),
    }
}
