//! The element types of a kernel: of A and B, of C, and whether A and B have scales.

use core::marker::PhantomData;

use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_device::sm90::{RegisterElement, StoredAccumulator};
use cutlet_device::{DeviceData, ReduceAddElement};

use half::{bf16, f16};

use super::block_scales::BlockScales;
use super::promotion::Promoted;
use super::scaling::{Scaling, Unscaled};
use super::tf32x3::Tf32x3;
use super::transposed_block_scales::TransposedBlockScales;
use crate::gemm::epilogue::{Accumulator, ElementC, FromSums};

/// The element types of a kernel: a type that A, B and C have, or an [`InOut`], [`PromotedInOut`], [`BlockScaled`],
/// [`TransposedBlockScaled`], [`OfTf32x3`] or [`OfI8`].
pub trait ElementTypes: Copy + 'static {
    /// Elements of A and B.
    type In: OperandElement;
    /// Elements of C.
    type Out: StoredAccumulator<Acc = AccOf<Self>> + ElementC<Acc = AccOf<Self>>;
    /// The scales of A and B.
    type Scaling: Scaling;
}

/// An element type of A and B, and the types that `wgmma` multiplies it as.
pub trait OperandElement: DeviceData + Default {
    /// Elements of A.
    type A: RegisterElement + Default;
    /// Elements of B.
    type B: DeviceData + Default;
}

macro_rules! operand_elements {
    ($($element:ty),*) => {$(
        impl OperandElement for $element {
            type A = Self;
            type B = Self;
        }
    )*};
}
operand_elements!(bf16, f16, f32, F8E4M3, F8E5M2, i8);

impl<A: RegisterElement + Default, B: DeviceData + Default> OperandElement for MixedF8<A, B> {
    type A = A;
    type B = B;
}

impl<T: StoredF32 + OperandElement> ElementTypes for T {
    type In = T;
    type Out = T;
    type Scaling = Unscaled;
}

/// The type of the accumulators that the epilogue gets.
pub type AccOf<T> = <<T as ElementTypes>::Scaling as Scaling>::Acc;

/// A type of C whose accumulators are of `f32`.
pub trait StoredF32: StoredAccumulator<Acc = f32> + ElementC<Acc = f32> {}
impl<T: StoredAccumulator<Acc = f32> + ElementC<Acc = f32>> StoredF32 for T {}

/// Elements `In` of A and B, and `Out` of C.
#[derive(Clone, Copy, Debug)]
pub struct InOut<In, Out>(PhantomData<(In, Out)>);

impl<In: OperandElement, Out: StoredF32> ElementTypes for InOut<In, Out> {
    type In = In;
    type Out = Out;
    type Scaling = Unscaled;
}

/// Elements `In` of A and B, whose sums are [`Promoted`], and `Out` of C.
#[derive(Clone, Copy, Debug)]
pub struct PromotedInOut<In, Out>(PhantomData<(In, Out)>);

impl<In: OperandElement, Out: StoredF32> ElementTypes for PromotedInOut<In, Out> {
    type In = In;
    type Out = Out;
    type Scaling = Promoted;
}

/// Elements `f32` of A, B and C, whose products are of [`Tf32x3`].
#[derive(Clone, Copy, Debug)]
pub struct OfTf32x3;

impl ElementTypes for OfTf32x3 {
    type In = f32;
    type Out = f32;
    type Scaling = Tf32x3;
}

/// Elements `In` of A and B with [`BlockScales`], and `Out` of C.
#[derive(Clone, Copy, Debug)]
pub struct BlockScaled<In, Out, const BEFORE: usize = 0>(PhantomData<(In, Out)>);

impl<In: OperandElement, Out: StoredF32, const BEFORE: usize> ElementTypes
    for BlockScaled<In, Out, BEFORE>
{
    type In = In;
    type Out = Out;
    type Scaling = BlockScales<BEFORE>;
}

/// Elements `In` of A and B with [`TransposedBlockScales`], and `Out` of C.
#[derive(Clone, Copy, Debug)]
pub struct TransposedBlockScaled<In, Out>(PhantomData<(In, Out)>);

impl<In: OperandElement, Out: StoredF32> ElementTypes for TransposedBlockScaled<In, Out> {
    type In = In;
    type Out = Out;
    type Scaling = TransposedBlockScales;
}

/// Elements `i8` of A and B, whose sums are of `i32`, and `Out` of C: `i32`, or a float, whose epilogue gets the sums
/// as `f32`.
#[derive(Clone, Copy, Debug)]
pub struct OfI8<Out>(PhantomData<Out>);

impl<Out> ElementTypes for OfI8<Out>
where
    Out: StoredAccumulator + ElementC<Acc = <Out as StoredAccumulator>::Acc>,
    <Out as StoredAccumulator>::Acc: Accumulator + ReduceAddElement + FromSums<i32>,
{
    type In = i8;
    type Out = Out;
    type Scaling = Unscaled<i32, <Out as StoredAccumulator>::Acc>;
}
