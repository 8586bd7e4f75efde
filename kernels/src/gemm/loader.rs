//! The loader's seam: how the k-tiles of A and B reach shared memory.

use cutlet_device::collective::Filling;

use super::scheduler::GroupOrigin;

/// A loader, for the producing thread of a block.
pub trait Loader {
    /// Bytes that a k-tile's loads bring to this block.
    fn bytes(&self) -> u32;

    /// Starts to load a k-tile of A and of B into a stage. The tile of C begins at `begin`, as
    /// [`TileScheduler::begin`](super::scheduler::TileScheduler::begin) counts, in this group if there are groups.
    ///
    /// # Safety
    /// The stage must be empty.
    unsafe fn load(
        &mut self,
        filling: Filling,
        begin: (u32, u32),
        k_tile: u32,
        group: Option<GroupOrigin>,
    );
}
