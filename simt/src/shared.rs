//! A block's shared memory: poisoned when the block starts, checked at every access.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;

use crate::context::{Block, current};
use crate::hopper::check_arrived;

/// Alignment of the start of shared memory, what the largest swizzle of a Hopper tile needs.
const ALIGN: usize = 1024;

/// What fills shared memory before a block runs: NaN in every float format, -1 in integers.
const POISON: u8 = 0xFF;

/// Bits of a shared address that hold the offset; those above, the window, say whose memory it is in.
const OFFSET_BITS: u32 = 24;

/// The window of a block of a cluster; 0 is the running block's own memory. The hardware has the rank
/// itself there: what forgets about it goes wrong in all blocks but the first, and here in all.
const fn window_of(rank: u32) -> u32 {
    rank + 1
}

/// The most shared memory a launch can ask for: the largest any GPU has, rounded up.
pub(crate) const MAX_SHARED_BYTES: u32 = 256 * 1024;

/// The shared memory of one block.
pub(crate) struct SharedMemory {
    start: NonNull<u8>,
    bytes: u32,
}

impl SharedMemory {
    pub(crate) fn new(bytes: u32) -> Self {
        let layout = Self::layout(bytes);
        if bytes == 0 {
            return Self {
                start: NonNull::<u128>::dangling().cast(),
                bytes,
            };
        }
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Self { start, bytes }
    }

    fn layout(bytes: u32) -> Layout {
        const { assert!(ALIGN.is_power_of_two()) };
        // SAFETY: the alignment is a power of two and a u32 rounded up to it cannot overflow.
        unsafe { Layout::from_size_align_unchecked(bytes as usize, ALIGN) }
    }

    /// Host address of an offset that was checked before.
    #[inline]
    pub(crate) fn at(&self, offset: u32) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset as usize)
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Makes whatever an earlier block left unreadable.
    pub(crate) fn poison(&mut self) {
        // SAFETY: the memory is `bytes` long (zero bytes may be written anywhere) and no thread
        // runs on it yet.
        unsafe { self.start.write_bytes(POISON, self.bytes as usize) };
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: allocated in `new` with the same layout.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
        }
    }
}

/// Bytes of shared memory the running block has.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn shared_size() -> u32 {
    current().block().shared.bytes
}

/// The shared address of the first byte of the running block's shared memory: 0, or in a cluster, as
/// on the hardware, one that says whose memory it is in. What has room for an offset only, as a matrix
/// descriptor has, must do without those bits.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn shared_base() -> u32 {
    current().block().shared_window << OFFSET_BITS
}

/// The window of the addresses of a block's own memory.
pub(crate) fn own_window(rank: u32, cluster: u32) -> u32 {
    if cluster > 1 { window_of(rank) } else { 0 }
}

/// Host address of `bytes` bytes at the shared address `address`.
///
/// An address is an offset from the start of the running block's shared memory, the same after
/// [`shared_base`], or one made by [`map_shared_rank`] for another block of the cluster.
///
/// The memory is that of the block, valid while it runs, and is shared with the block's other
/// threads: read and write it through the pointer, do not keep references to it across a wait.
///
/// # Panics
/// If the range is not inside the block's shared memory, if `address` is not a multiple of `align`
/// (a power of two), if bytes are on their way there that the thread has not waited for, or outside of a
/// kernel.
#[inline]
#[track_caller]
pub fn shared_bytes(address: u32, bytes: u32, align: u32) -> *mut u8 {
    let (block, offset) = shared_place(address, bytes, align);
    check_arrived(block, offset, bytes);
    block.shared.at(offset)
}

/// The block in whose shared memory `address` is, and the offset there, for `bytes` bytes: as
/// [`shared_bytes`], but they may still be on their way.
#[inline]
#[track_caller]
pub(crate) fn shared_place<'a>(address: u32, bytes: u32, align: u32) -> (&'a Block, u32) {
    let own = current().block();
    let window = address >> OFFSET_BITS;
    let block = if window == 0 || window == own.shared_window {
        own
    } else {
        owner(own, address)
    };
    let offset = offset_of(address);
    if u64::from(offset) + u64::from(bytes) > u64::from(block.shared.bytes)
        || offset & (align - 1) != 0
    {
        bad_access(block, offset, bytes, align);
    }
    (block, offset)
}

/// The address by which the running block reaches what `address` is in its own shared memory, in
/// that of the block with rank `rank` in its cluster.
///
/// # Panics
/// If the cluster has no such rank, or outside of a kernel.
#[track_caller]
pub fn map_shared_rank(address: u32, rank: u32) -> u32 {
    let block = current().block();
    assert!(
        rank < block.dims.cluster,
        "there is no block {rank} in a cluster of {} blocks",
        block.dims.cluster
    );
    offset_of(address) | window_of(rank) << OFFSET_BITS
}

/// Where in its block's shared memory an address is.
pub(crate) fn offset_of(address: u32) -> u32 {
    address & ((1 << OFFSET_BITS) - 1)
}

/// The rank of the block whose memory an address is in, if that is not the running block.
pub(crate) fn other_rank(address: u32) -> Option<u32> {
    let rank = (address >> OFFSET_BITS).checked_sub(window_of(0))?;
    (rank != current().block().rank).then_some(rank)
}

/// A shared address in a message: the offset, and whose memory it is if not the running block's.
pub(crate) struct Place(pub(crate) u32);

impl Place {
    pub(crate) fn of(block: &Block, offset: u32) -> Self {
        Self(block.shared_window << OFFSET_BITS | offset)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = offset_of(self.0);
        match other_rank(self.0) {
            None => write!(f, "{offset}"),
            Some(rank) => write!(f, "{offset} of block {rank} of the cluster"),
        }
    }
}

#[cold]
#[track_caller]
fn owner(own: &Block, address: u32) -> &Block {
    let rank = (address >> OFFSET_BITS) - window_of(0);
    match own.all_of_cluster().get(rank as usize) {
        Some(block) => block,
        None => panic!("{address:#x} is no address in shared memory"),
    }
}

#[cold]
#[track_caller]
fn bad_access(block: &Block, offset: u32, bytes: u32, align: u32) -> ! {
    let size = block.shared.bytes;
    if u64::from(offset) + u64::from(bytes) > u64::from(size) {
        panic!(
            "access to {bytes} bytes at offset {offset} of shared memory, but the block has {size} bytes"
        );
    }
    panic!("access to shared memory at offset {offset}, which is not a multiple of {align} bytes");
}
