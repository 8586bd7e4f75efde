//! The tile ring: equal tiles in shared memory, one for each stage of a pipeline.

use cutlet_layout_core::{StaticLayout, StaticSwizzle, TileIndex};

use super::StageIdx;
use crate::sm90::{Operand, OperandA, OperandB, SharedTile, WgmmaInstruction};
use crate::{DeviceData, SharedMemory};

/// Consecutive tiles: one for each stage of a [`Pipeline`](super::Pipeline), or one for each warpgroup.
#[derive(Debug)]
pub struct TileRing<T: DeviceData, L, W> {
    first: SharedTile<T, L, W>,
}

impl<T: DeviceData, L, W> Clone for TileRing<T, L, W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: DeviceData, L, W> Copy for TileRing<T, L, W> {}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle> TileRing<T, L, W> {
    const IS_ALIGNED: () = assert!(
        SharedTile::<T, L, W>::BYTES.is_multiple_of(1024),
        "the tiles of a ring have a multiple of 1024 bytes, so that each is aligned for its swizzle"
    );

    /// Takes `tiles` tiles from the next bytes of shared memory.
    #[inline(always)]
    pub fn take(shared: &mut SharedMemory, tiles: usize) -> Self {
        let () = Self::IS_ALIGNED;
        Self {
            first: SharedTile::from_shared(shared.take_aligned::<T, 1024>(tiles * L::SIZE)),
        }
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
    pub fn operand_a<I: WgmmaInstruction<A = T>>(
        self,
        stage: StageIdx,
    ) -> Operand<OperandA<I>, L, W> {
        self.first.operand_a::<I>().skip_tiles(stage.get())
    }

    /// The tile of a stage as operand B of the instruction `I`.
    #[inline(always)]
    pub fn operand_b<I: WgmmaInstruction<B = T>>(
        self,
        stage: StageIdx,
    ) -> Operand<OperandB<I>, L, W> {
        self.first.operand_b::<I>().skip_tiles(stage.get())
    }
}
