//! The vector ring: equal vectors in shared memory, one for each stage of a pipeline.

use core::marker::PhantomData;

use cutlet_layout_core::StaticLayout;

use super::{StageCount, StageIdx};
use crate::{DeviceData, Shared, SharedStorage};

/// Consecutive vectors of `T`, one for each of the `S` stages of a [`Pipeline`](super::Pipeline). The layout `L` says
/// the places of a vector's elements.
#[derive(Debug)]
pub struct VectorRing<T, L, S> {
    first: Shared<T>,
    of: PhantomData<(L, S)>,
}

impl<T, L, S> Clone for VectorRing<T, L, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, L, S> Copy for VectorRing<T, L, S> {}

impl<T: DeviceData, L: StaticLayout, S: StageCount> VectorRing<T, L, S> {
    /// Bytes of a vector.
    pub const VECTOR_BYTES: u32 = {
        let bytes = L::SIZE * size_of::<T>();
        assert!(
            L::LAYOUT.cosize() == L::LAYOUT.size() && bytes.is_multiple_of(128),
            "the vectors of a ring have no gaps and a multiple of 128 bytes, so that TMA can load each"
        );
        bytes as u32
    };

    /// The vector of a stage.
    #[inline(always)]
    pub fn stage(self, stage: StageIdx) -> Shared<T> {
        self.first.offset(i64::from(stage.get()) * L::SIZE as i64)
    }
}

impl<T: DeviceData, L: StaticLayout, S: StageCount> SharedStorage for VectorRing<T, L, S> {
    const BYTES: u32 = S::STAGES as u32 * Self::VECTOR_BYTES;
    const ALIGN: u32 = 128;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            first: Shared::from_address(address),
            of: PhantomData,
        }
    }
}
