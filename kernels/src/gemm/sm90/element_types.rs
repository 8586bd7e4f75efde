//! The element types of a kernel: of A and B, of C, and whether A and B have scales.

use core::marker::PhantomData;

use cutlet_device::DeviceData;
use cutlet_device::sm90::StoredAccumulator;

use super::block_scales::BlockScales;
use super::promotion::Promoted;
use super::scaling::{Scaling, Unscaled};

/// The element types of a kernel: a type that A, B and C have, an [`InOut`], or [`PromotedInOut`] or [`BlockScaled`]
/// ones.
pub trait ElementTypes: Copy + 'static {
    /// Elements of A and B.
    type In: DeviceData + Default;
    /// Elements of C.
    type Out: StoredAccumulator + Default;
    /// The scales of A and B.
    type Scaling: Scaling;
}

impl<T: StoredAccumulator + Default> ElementTypes for T {
    type In = T;
    type Out = T;
    type Scaling = Unscaled;
}

/// Elements `In` of A and B, and `Out` of C.
#[derive(Clone, Copy, Debug)]
pub struct InOut<In, Out>(PhantomData<(In, Out)>);

impl<In: DeviceData + Default, Out: StoredAccumulator + Default> ElementTypes for InOut<In, Out> {
    type In = In;
    type Out = Out;
    type Scaling = Unscaled;
}

/// Elements `In` of A and B, whose sums are [`Promoted`], and `Out` of C.
#[derive(Clone, Copy, Debug)]
pub struct PromotedInOut<In, Out>(PhantomData<(In, Out)>);

impl<In: DeviceData + Default, Out: StoredAccumulator + Default> ElementTypes
    for PromotedInOut<In, Out>
{
    type In = In;
    type Out = Out;
    type Scaling = Promoted;
}

/// Elements `In` of A and B with [`BlockScales`], and `Out` of C.
#[derive(Clone, Copy, Debug)]
pub struct BlockScaled<In, Out>(PhantomData<(In, Out)>);

impl<In: DeviceData + Default, Out: StoredAccumulator + Default> ElementTypes
    for BlockScaled<In, Out>
{
    type In = In;
    type Out = Out;
    type Scaling = BlockScales;
}
