//! The tile ring: equal tiles in shared memory, one for each stage of a pipeline.

use cutlet_layout_core::{StaticLayout, StaticSwizzle, TileIndex};

use core::marker::PhantomData;

use super::{StageCount, StageIdx};
use crate::operand::{Operand, OperandA, OperandB};
use crate::tile::SharedTile;
use crate::{DeviceData, SharedMemory, SharedMma, SharedStorage};

/// Consecutive tiles: one for each stage of a [`Pipeline`](super::Pipeline), or one for each warpgroup. `S` is their
/// number, as [`Stages`](super::Stages).
#[derive(Debug)]
pub struct TileRing<T: DeviceData, L, W, S> {
    first: SharedTile<T, L, W>,
    tiles: PhantomData<S>,
}

impl<T: DeviceData, L, W, S> Clone for TileRing<T, L, W, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: DeviceData, L, W, S> Copy for TileRing<T, L, W, S> {}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle, S: StageCount> SharedStorage
    for TileRing<T, L, W, S>
{
    const BYTES: u32 = {
        let bytes = SharedTile::<T, L, W>::BYTES;
        assert!(
            bytes.is_multiple_of(1024),
            "the tiles of a ring have a multiple of 1024 bytes, so that each is aligned for its swizzle"
        );
        S::STAGES as u32 * bytes
    };
    const ALIGN: u32 = 1024;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            first: SharedStorage::at(address),
            tiles: PhantomData,
        }
    }
}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle, S: StageCount> TileRing<T, L, W, S> {
    /// Takes the tiles from the next bytes of shared memory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        shared.take_storage()
    }

    /// The tile of a stage.
    #[inline(always)]
    pub fn stage(self, stage: StageIdx) -> SharedTile<T, L, W> {
        self.tile(stage.get())
    }

    /// The tile with this index.
    #[inline(always)]
    pub fn tile(self, index: impl TileIndex) -> SharedTile<T, L, W> {
        SharedTile::from_shared(
            self.first
                .start()
                .offset(index.index() as i64 * L::SIZE as i64),
        )
    }

    /// The tile of a stage as operand A of the instruction `I`.
    #[inline(always)]
    pub fn operand_a<I: SharedMma<A = T>>(self, stage: StageIdx) -> Operand<OperandA<I>, L, W> {
        self.first.operand_a::<I>().skip_tiles(stage.get())
    }

    /// The tile of a stage as operand B of the instruction `I`.
    #[inline(always)]
    pub fn operand_b<I: SharedMma<B = T>>(self, stage: StageIdx) -> Operand<OperandB<I>, L, W> {
        self.first.operand_b::<I>().skip_tiles(stage.get())
    }
}
