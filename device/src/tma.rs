//! The tensor memory accelerator (TMA) copies boxes of tensors between global and shared memory when one thread asks
//! for it.
//!
//! A load completes on an [`Mbarrier`] that expects its bytes. A store belongs to the group that the thread's next
//! [`tma_store_commit`] closes, and threads wait for groups.
//!
//! A box begins at a multiple of 16 bytes of the tensor's innermost dimension, or the GPU ends the kernel. A load may
//! begin before the tensor, at negative coordinates. A store may not.
//!
//! Elements of a box outside the tensor are loaded as zero, and are not stored. But a store writes multiples of 16
//! bytes: if the tensor's innermost extent ends within 16 bytes, the store overwrites the bytes after it, up to the
//! next multiple of 16. A kernel that must not overwrite them stores such tensors by its threads.

mod tensor_map;

use cutlet_layout_core::TileIndex;

pub use tensor_map::{TensorMap, prefetch_tensor_map};

use crate::cluster::Multicast;
use crate::mbarrier::Mbarrier;
use crate::tile::{SharedTile, TmaLayout};
use crate::{DeviceData, Shared};

/// How long the L2 cache should keep the data of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheHint {
    /// Like any other data.
    #[default]
    Normal,
    /// Evicted first, for data that is read once.
    EvictFirst,
    /// Evicted last, for data that other blocks read soon.
    EvictLast,
}

/// Options of a load.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions {
    multicast: Option<Multicast>,
    hint: CacheHint,
}

impl LoadOptions {
    /// For the running block alone, without a hint.
    pub const DEFAULT: Self = Self {
        multicast: None,
        hint: CacheHint::Normal,
    };

    /// Copies the box to the same address in the shared memory of all these blocks. Its bytes count at the barrier with
    /// the same address in each block.
    #[inline(always)]
    pub const fn multicast(self, blocks: Multicast) -> Self {
        Self {
            multicast: Some(blocks),
            ..self
        }
    }

    /// With this hint to the L2 cache.
    #[inline(always)]
    pub const fn hint(self, hint: CacheHint) -> Self {
        Self { hint, ..self }
    }
}

/// Starts to copy a box to shared memory. `at` is the coordinate of the box's first element, innermost first. `R` is
/// the rank of the map's tensor: 2 to 5.
///
/// One thread calls it. The bytes of the whole box count at the barrier, even if a part of the box is outside the
/// tensor.
///
/// # Safety
/// On a GPU, the map must be a `#[grid_constant] map: &TensorMap` parameter or in global memory
/// ([`TensorMap::in_global`]), because TMA cannot read a copy. The tensor must exist. `to` must have room for the box,
/// and be aligned to 128 bytes, or to 8 swizzle spans. No thread may use it before the barrier's phase has ended. The
/// innermost coordinate must be a multiple of 16 bytes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn tma_load<T: DeviceData, const R: usize>(
    map: &TensorMap,
    at: [i32; R],
    to: Shared<T>,
    barrier: Mbarrier,
    options: LoadOptions,
) {
    const { check_rank(R) };
    // SAFETY: as promised by the caller.
    unsafe {
        imp::load(
            map,
            &at,
            to.address(),
            barrier.address(),
            options.multicast,
            options.hint,
        );
    }
}

/// Starts to copy a box from shared memory to the coordinate `at`, innermost first, as part of the thread's open group.
/// `R` is the rank of the map's tensor: 2 to 5.
///
/// One thread calls it. Before, the threads that wrote the box call [`fence_async_shared`](crate::fence_async_shared)
/// and meet this thread at a barrier.
///
/// # Safety
/// The map must be as for [`tma_load`]. The tensor must exist. No other thread may use the box's elements, or elements
/// that share 16 bytes with them. `from` must hold the box, aligned as for [`tma_load`], and must not change before
/// [`tma_store_wait_read`]. The innermost coordinate must be a multiple of 16 bytes, and no coordinate may be negative.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn tma_store<T: DeviceData, const R: usize>(
    map: &TensorMap,
    at: [i32; R],
    from: Shared<T>,
) {
    const { check_rank(R) };
    // SAFETY: as promised by the caller.
    unsafe { imp::store(map, &at, from.address()) };
}

/// Starts to fetch a box into the L2 cache. `at` is the coordinate of the box's first element, innermost first. `R` is
/// the rank of the map's tensor: 2 to 5.
///
/// One thread calls it. The kernel reads nothing: a later load sees writes to the box after the prefetch. So a kernel
/// may call it before it waits for the kernels before it.
///
/// ```
/// use cutlet_device::tma::{TensorMap, tma_prefetch};
/// use cutlet_device::{block_idx, kernel, thread_idx};
///
/// /// Fetches a box of each matrix of a tensor of rank 4.
/// ///
/// /// # Safety
/// /// The tensor of `map` must exist.
/// #[kernel(threads = 32, arch = "sm_90a")]
/// pub unsafe fn fetch(#[grid_constant] map: &TensorMap) {
///     let (head, batch) = (block_idx().x.get() as i32, block_idx().y.get() as i32);
///     if thread_idx().get() == 0 {
///         // SAFETY: as promised by the caller.
///         unsafe { tma_prefetch(map, [0, 0, head, batch]) };
///     }
/// }
/// assert_eq!(fetch.bounds().threads(), 32);
/// ```
///
/// # Safety
/// The map and the innermost coordinate must be as for [`tma_load`]. The tensor must exist.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn tma_prefetch<const R: usize>(map: &TensorMap, at: [i32; R]) {
    const { check_rank(R) };
    // SAFETY: as promised by the caller.
    unsafe { imp::prefetch(map, &at) };
}

const fn check_rank(rank: usize) {
    assert!(
        2 <= rank && rank <= 5,
        "TMA copies boxes of tensors of rank 2 to 5"
    );
}

/// Closes the running thread's group of stores.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn tma_store_commit() {
    imp::store_commit();
}

/// Waits until all but the running thread's latest `PENDING` groups of stores have read their boxes, which may then be
/// overwritten. A thread waits for all its stores before it ends.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn tma_store_wait_read<const PENDING: u32>() {
    imp::store_wait_read::<PENDING>();
}

/// Waits until all but the running thread's latest `PENDING` groups of stores have written to global memory.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn tma_store_wait<const PENDING: u32>() {
    imp::store_wait::<PENDING>();
}

/// The boxes by which a tile is copied. The tensor map must be made for them.
///
/// A tile in shared memory is a matrix, so its boxes have two dimensions. A box may have as many as the tensor, `R`.
/// Its elements lie in shared memory in the order of its dimensions, the innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TmaBox<const R: usize = 2> {
    /// Elements along the tensor's consecutive dimension, along the next dimension, and so on. A box has one element
    /// along each dimension of the tensor that is not here.
    pub extent: [u32; R],
    /// The swizzle span in bytes. 16 is no swizzle.
    pub swizzle_bytes: u32,
}

impl<T: DeviceData, L: TmaLayout> SharedTile<T, L, L::Swizzle> {
    /// Elements of a line, which has one swizzle span.
    const LINE: usize = L::SWIZZLE_BYTES / size_of::<T>();

    /// The boxes by which each of `parts` equal parts of the tile's rows is copied. `parts` is 1 if one block loads the
    /// whole tile.
    ///
    /// # Panics
    /// If the tile does not divide into such parts.
    pub const fn tile_box(parts: usize) -> TmaBox {
        let outer = if L::IS_K_MAJOR {
            assert!(
                Self::divides_into(parts),
                "each part of a K-major tile has a multiple of 8 rows"
            );
            L::MN / parts
        } else {
            assert!(
                Self::divides_into(parts),
                "each part of an MN-major tile has a whole number of swizzle spans of rows"
            );
            L::K
        };
        assert!(
            outer <= 256,
            "a TMA box has at most 256 elements along a dimension: copy the tile in parts"
        );
        TmaBox {
            extent: [Self::LINE as u32, outer as u32],
            swizzle_bytes: L::SWIZZLE_BYTES as u32,
        }
    }

    /// The boxes by which `blocks` blocks of a cluster load the tile with [`load_multicast`](Self::load_multicast).
    pub const fn multicast_box(blocks: usize) -> TmaBox {
        Self::tile_box(Self::multicast_parts(blocks))
    }

    /// The number of parts into which `blocks` blocks divide the tile's rows: `blocks`, or 1 if no box can load such a
    /// part.
    #[inline(always)]
    const fn multicast_parts(blocks: usize) -> usize {
        // A mask, because a cluster's shape may be known at the launch alone. All three are powers of two.
        match L::MN & (blocks * Self::LEAST_ROWS - 1) {
            0 => blocks,
            _ => 1,
        }
    }

    /// Rows of which a part of the tile has a multiple.
    const LEAST_ROWS: usize = if L::IS_K_MAJOR { 8 } else { Self::LINE };

    /// Whether boxes can load each of `parts` equal parts of the tile's rows.
    const fn divides_into(parts: usize) -> bool {
        L::MN.is_multiple_of(parts * Self::LEAST_ROWS)
    }

    /// Starts to load the tile from the coordinate `at`: (mn, k), and the indices along the third to fifth dimensions
    /// if the map has them. The whole tile's bytes count at the barrier.
    ///
    /// # Safety
    /// As [`tma_load`]. The map must have been made for the tile's [`tile_box`](Self::tile_box)`(1)`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load<const R: usize>(
        self,
        map: &TensorMap,
        at: [i32; R],
        barrier: Mbarrier,
        options: LoadOptions,
    ) {
        // SAFETY: as promised by the caller.
        unsafe { self.load_multicast(1, 0, 0, map, at, barrier, options) };
    }

    /// Starts the share of block `block` in a load of the tile to `blocks` blocks of a cluster: it multicasts its part
    /// of the rows to all of them. If no box can load such a part (a K-major part must have a multiple of 8 rows, an
    /// MN-major part whole swizzle spans), the blocks take turns to load whole tiles. `nth` counts the tiles. `blocks` is
    /// a power of two.
    ///
    /// # Safety
    /// As [`load`](Self::load), with a map made for [`multicast_box`](Self::multicast_box)`(blocks)`. The blocks must
    /// agree on `nth`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    #[allow(
        clippy::too_many_arguments,
        reason = "the arguments of a load, and which share of it this is"
    )]
    pub unsafe fn load_multicast<const R: usize>(
        self,
        blocks: usize,
        block: u32,
        nth: u32,
        map: &TensorMap,
        at: [i32; R],
        barrier: Mbarrier,
        options: LoadOptions,
    ) {
        let from = |mn| move |k| Self::innermost_first(at, [mn, k]);
        // SAFETY: as promised by the caller.
        unsafe { self.load_boxes((blocks, block, nth), map, from, (barrier, options)) };
    }

    /// [`load_multicast`](Self::load_multicast) of boxes whose coordinates, innermost first, are `from(mn)(k)` for
    /// their first (mn, k) in the tile. `share` is the number of blocks, the block's index, and the tile's.
    ///
    /// # Safety
    /// As [`load_multicast`](Self::load_multicast).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn load_boxes<const R: usize, K: Fn(i32) -> [i32; R]>(
        self,
        share: (usize, u32, u32),
        map: &TensorMap,
        from: impl Fn(i32) -> K,
        (barrier, options): (Mbarrier, LoadOptions),
    ) {
        let (blocks, block, nth) = share;
        let (part, rows) = if Self::multicast_parts(blocks) == blocks {
            (block, L::MN >> blocks.trailing_zeros())
        } else if nth & (blocks as u32 - 1) == block {
            (0, L::MN)
        } else {
            return;
        };
        self.for_each_box(part, rows, from, |at, shared| {
            // SAFETY: as promised by the caller.
            unsafe { tma_load(map, at, shared, barrier, options) };
        });
    }

    /// Starts to store the tile to the coordinate `at`: (mn, k), and the indices along the third to fifth dimensions if
    /// the map has them.
    ///
    /// # Safety
    /// As [`tma_store`]. The map must have been made for the tile's [`tile_box`](Self::tile_box)`(1)`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store<const R: usize>(self, map: &TensorMap, at: [i32; R]) {
        // SAFETY: as promised by the caller.
        unsafe { self.store_part::<1, R>(0u32, map, at) };
    }

    /// [`store`](Self::store) of part `part` of `PARTS` equal parts of the tile's rows: the part that one warpgroup
    /// wrote, for instance. `at` is the coordinate of the whole tile.
    ///
    /// # Safety
    /// As [`store`](Self::store), with a map made for [`tile_box`](Self::tile_box)`(PARTS)`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_part<const PARTS: usize, const R: usize>(
        self,
        part: impl TileIndex,
        map: &TensorMap,
        at: [i32; R],
    ) {
        let to = |mn| move |k| Self::innermost_first(at, [mn, k]);
        // SAFETY: as promised by the caller.
        unsafe { self.store_boxes::<PARTS, R, _>(part.index(), map, to) };
    }

    /// [`store_part`](Self::store_part) of boxes whose coordinates, innermost first, are `to(mn)(k)` for their first
    /// (mn, k) in the tile.
    ///
    /// # Safety
    /// As [`store_part`](Self::store_part).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn store_boxes<const PARTS: usize, const R: usize, K: Fn(i32) -> [i32; R]>(
        self,
        part: u32,
        map: &TensorMap,
        to: impl Fn(i32) -> K,
    ) {
        const {
            Self::tile_box(PARTS);
        }
        self.for_each_box(part, L::MN / PARTS, to, |at, shared| {
            // SAFETY: as promised by the caller.
            unsafe { tma_store(map, at, shared) };
        });
    }

    /// The coordinate, innermost first, of (mn, k) in a tile at the coordinate `at`, which begins with (mn, k).
    #[inline(always)]
    fn innermost_first<const R: usize>(at: [i32; R], [mn, k]: [i32; 2]) -> [i32; R] {
        let (mn, k) = (at[0] + mn, at[1] + k);
        let mut coordinate = at;
        [coordinate[0], coordinate[1]] = if L::IS_K_MAJOR { [k, mn] } else { [mn, k] };
        coordinate
    }

    /// Calls `each` with the coordinate and the shared memory of every box of a part of the tile. Each part has `rows`
    /// rows. The coordinate is `at(mn)(k)` for the first (mn, k) of the box.
    #[inline(always)]
    fn for_each_box<const R: usize, K: Fn(i32) -> [i32; R]>(
        self,
        part: u32,
        rows: usize,
        at: impl Fn(i32) -> K,
        mut each: impl FnMut([i32; R], Shared<T>),
    ) {
        let (line, rows) = (Self::LINE as i32, rows as i32);
        let part = part as i32;
        if L::IS_K_MAJOR {
            let at = at(part * rows);
            let mut block = 0;
            while block < (L::K / Self::LINE) as i32 {
                let index = block * L::MN as i32 * line + part * rows * line;
                each(at(block * line), self.start().offset(index as i64));
                block += 1;
            }
        } else {
            let blocks = rows / line;
            let mut block = 0;
            while block < blocks {
                let nth = part * blocks + block;
                let index = nth * L::K as i32 * line;
                each(at(nth * line)(0), self.start().offset(index as i64));
                block += 1;
            }
        }
    }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use super::{CacheHint, TensorMap};
    use crate::cluster::Multicast;

    /// The cache policy of a hint, as the hardware encodes it.
    #[inline(always)]
    const fn policy(hint: CacheHint) -> u64 {
        match hint {
            CacheHint::Normal => 0x1000_0000_0000_0000,
            CacheHint::EvictFirst => 0x12F0_0000_0000_0000,
            CacheHint::EvictLast => 0x14F0_0000_0000_0000,
        }
    }

    /// Expands `$instruction!` with the rank, the coordinate's operands, and the indices of its components.
    macro_rules! of_rank {
        ($rank:ident, $instruction:ident) => {
            if const { $rank == 2 } {
                $instruction!("2", "{{{0}, {1}}}", 0 1)
            } else if const { $rank == 3 } {
                $instruction!("3", "{{{0}, {1}, {2}}}", 0 1 2)
            } else if const { $rank == 4 } {
                $instruction!("4", "{{{0}, {1}, {2}, {3}}}", 0 1 2 3)
            } else {
                $instruction!("5", "{{{0}, {1}, {2}, {3}, {4}}}", 0 1 2 3 4)
            }
        };
    }

    /// It takes the coordinate by reference. By value, the compiler would pack it into a register and unpack it again.
    #[inline(always)]
    pub unsafe fn load<const R: usize>(
        map: &TensorMap,
        at: &[i32; R],
        to: u32,
        barrier: u32,
        multicast: Option<Multicast>,
        hint: CacheHint,
    ) {
        let map = core::ptr::from_ref(map);
        macro_rules! load {
            ($rank:literal, $coordinate:literal, $($c:literal)+) => {
                match multicast {
                    None => asm!(
                        concat!("cp.async.bulk.tensor.", $rank, "d.shared::cluster.global.tile",
                            ".mbarrier::complete_tx::bytes.L2::cache_hint [{to}], [{map}, ", $coordinate,
                            "], [{barrier}], {policy};"),
                        $(in(reg32) at[$c],)+ to = in(reg32) to, map = in(reg64) map,
                        barrier = in(reg32) barrier, policy = in(reg64) policy(hint), options(nostack)
                    ),
                    Some(blocks) => asm!(
                        concat!("cp.async.bulk.tensor.", $rank, "d.shared::cluster.global.tile",
                            ".mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [{to}], [{map}, ",
                            $coordinate, "], [{barrier}], {blocks}, {policy};"),
                        $(in(reg32) at[$c],)+ to = in(reg32) to, map = in(reg64) map,
                        barrier = in(reg32) barrier, blocks = in(reg16) blocks.mask(),
                        policy = in(reg64) policy(hint), options(nostack)
                    ),
                }
            };
        }
        // SAFETY: as promised by the caller.
        unsafe {
            of_rank!(R, load);
        }
    }

    #[inline(always)]
    pub unsafe fn store<const R: usize>(map: &TensorMap, at: &[i32; R], from: u32) {
        let map = core::ptr::from_ref(map);
        macro_rules! store {
            ($rank:literal, $coordinate:literal, $($c:literal)+) => {
                asm!(
                    concat!("cp.async.bulk.tensor.", $rank, "d.global.shared::cta.tile.bulk_group [{map}, ",
                        $coordinate, "], [{from}];"),
                    $(in(reg32) at[$c],)+ map = in(reg64) map, from = in(reg32) from, options(nostack)
                )
            };
        }
        // SAFETY: as promised by the caller.
        unsafe { of_rank!(R, store) }
    }

    #[inline(always)]
    pub unsafe fn prefetch<const R: usize>(map: &TensorMap, at: &[i32; R]) {
        let map = core::ptr::from_ref(map);
        macro_rules! prefetch {
            ($rank:literal, $coordinate:literal, $($c:literal)+) => {
                asm!(
                    concat!("cp.async.bulk.prefetch.tensor.", $rank, "d.L2.global.tile [{map}, ", $coordinate,
                        "];"),
                    $(in(reg32) at[$c],)+ map = in(reg64) map, options(nostack)
                )
            };
        }
        // SAFETY: as promised by the caller.
        unsafe { of_rank!(R, prefetch) }
    }

    #[inline(always)]
    pub fn store_commit() {
        // SAFETY: the callers of `tma_store` promised that its boxes stay as they are.
        unsafe { asm!("cp.async.bulk.commit_group;", options(nostack)) };
    }

    #[inline(always)]
    pub fn store_wait_read<const PENDING: u32>() {
        // SAFETY: waits only.
        unsafe { asm!("cp.async.bulk.wait_group.read {};", const PENDING, options(nostack)) };
    }

    #[inline(always)]
    pub fn store_wait<const PENDING: u32>() {
        // SAFETY: waits only.
        unsafe { asm!("cp.async.bulk.wait_group {};", const PENDING, options(nostack)) };
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use super::{CacheHint, TensorMap};
    use crate::cluster::Multicast;
    pub use cutlet_simt::bulk_store_commit as store_commit;

    #[track_caller]
    pub unsafe fn load<const R: usize>(
        map: &TensorMap,
        at: &[i32; R],
        to: u32,
        barrier: u32,
        multicast: Option<Multicast>,
        _: CacheHint,
    ) {
        // SAFETY: as promised by the caller.
        unsafe {
            cutlet_simt::tma_load(map.words(), at, to, barrier, multicast.map(Multicast::mask));
        }
    }

    #[track_caller]
    pub unsafe fn store<const R: usize>(map: &TensorMap, at: &[i32; R], from: u32) {
        // SAFETY: as promised by the caller.
        unsafe { cutlet_simt::tma_store(map.words(), at, from) };
    }

    #[track_caller]
    pub unsafe fn prefetch<const R: usize>(map: &TensorMap, at: &[i32; R]) {
        cutlet_simt::tma_prefetch(map.words(), at);
    }

    #[track_caller]
    pub fn store_wait_read<const PENDING: u32>() {
        cutlet_simt::bulk_store_wait(PENDING);
    }

    #[track_caller]
    pub fn store_wait<const PENDING: u32>() {
        cutlet_simt::bulk_store_wait(PENDING);
    }
}
