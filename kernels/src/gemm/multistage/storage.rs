//! What a block of a multistage kernel keeps in shared memory.

use core::marker::PhantomData;

use cutlet_device::{Shared, SharedStorage, SharedUnion};
use cutlet_layout_core::StaticLayout;

use super::config::Config;
use super::staging::Staging;
use super::store::SubtileStorage;
use crate::gemm::config::StageCount;

/// What a block keeps in shared memory: the stages of both operands, then the epilogue subtiles in their place.
pub type Storage<C> = SharedUnion<Rings<C>, SubtileStorage<<C as Config>::Product>>;

/// The stages of A, and those of B.
pub type Rings<C> = (
    StageRing<<C as Config>::A, <C as Config>::Stages>,
    StageRing<<C as Config>::B, <C as Config>::Stages>,
);

/// The stages of an operand in shared memory. `N` is their number.
pub struct StageRing<S: Staging, N> {
    first: Shared<S::Element>,
    stages: PhantomData<N>,
}

impl<S: Staging, N: StageCount> SharedStorage for StageRing<S, N> {
    const BYTES: u32 = (N::STAGES * stage_elements::<S>() * size_of::<S::Element>()) as u32;
    const ALIGN: u32 = 1024;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            first: Shared::from_address(address),
            stages: PhantomData,
        }
    }
}

impl<S: Staging, N> StageRing<S, N> {
    /// The first element of the first stage.
    #[inline(always)]
    pub(super) fn first(&self) -> Shared<S::Element> {
        self.first
    }
}

/// Elements from a stage to the next: stages start at multiples of 1024 bytes, as swizzles need.
pub(super) const fn stage_elements<S: Staging>() -> usize {
    assert!(
        !S::Layout::LAYOUT.maps_below_zero(),
        "a stage begins with its layout's index 0"
    );
    let elements = S::Layout::LAYOUT.cosize() as usize;
    elements.next_multiple_of(1024 / size_of::<S::Element>())
}
