//! Where the running thread's shared addresses lead: to which block of its cluster, and to which offset there.

use std::fmt;
use std::panic::Location;

use crate::context::{Block, current, fault, no_such_block};
use crate::shared_address::{self, address_in, window, window_of};
use crate::shared_memory::Reservation;

/// Size of the running block's shared memory in bytes.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn shared_size() -> u32 {
    current().block().shared.bytes()
}

/// Says that the kernel keeps something in `bytes` bytes of its shared memory from offset `start` on. Messages about
/// these bytes name the caller's line.
///
/// # Panics
/// If the block has fewer bytes, or outside of a kernel.
#[inline]
#[track_caller]
pub fn reserve_shared(start: u32, bytes: u32) {
    let thread = current();
    let shared = &thread.block().shared;
    let has = shared.bytes();
    let end = u64::from(start) + u64::from(bytes);
    match u32::try_from(end) {
        Ok(end) if end <= has => shared.reserve(Reservation {
            start,
            end,
            line: Location::caller(),
        }),
        _ => fault(
            thread,
            format!(
                "takes {end} bytes of shared memory, but the kernel has {has}: declare it as a parameter, \
                 `#[shared] storage: SharedArray<T, N>`, or raise the kernel's `shared`"
            ),
        ),
    }
}

/// The shared address of the first byte of the running block's shared memory.
///
/// It is 0 without clusters. In a cluster its upper bits say whose memory it is in, as on the hardware. A field that
/// has room for the offset alone, such as that of a matrix descriptor, must drop these bits.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn shared_base() -> u32 {
    address_in(current().block().shared_window, 0)
}

/// Translates the address of an object in the running block's shared memory to the address of the same object in the
/// block with rank `rank` of its cluster.
///
/// # Panics
/// If the cluster has no such rank, or outside of a kernel.
#[track_caller]
pub fn map_shared_rank(address: u32, rank: u32) -> u32 {
    let blocks = current().block().dims.cluster;
    if rank >= blocks {
        no_such_block(rank, blocks);
    }
    address_in(window_of(rank), shared_address::offset(address))
}

/// The block in whose shared memory `address` is, and the offset there, for an access to `bytes` bytes. Copies to
/// these bytes may still be in flight.
///
/// # Panics
/// If the range is not inside the block's shared memory, if `align` is no power of two, if `address` is not a multiple
/// of it, or outside of a kernel.
#[inline]
#[track_caller]
pub(crate) fn locate<'a>(address: u32, bytes: u32, align: u32) -> (&'a Block, u32) {
    let own = current().block();
    let window = window(address);
    let block = if window == 0 || window == own.shared_window {
        own
    } else {
        other_block(own, address)
    };
    let offset = shared_address::offset(address);
    if u64::from(offset) + u64::from(bytes) > u64::from(block.shared.bytes())
        || !align.is_power_of_two()
        || offset & (align - 1) != 0
    {
        bad_access(block, offset, bytes, align);
    }
    (block, offset)
}

#[cold]
#[track_caller]
fn other_block(own: &Block, address: u32) -> &Block {
    let blocks = own.all_of_cluster();
    let block = shared_address::rank(address).and_then(|rank| blocks.get(rank as usize));
    match block {
        Some(block) => block,
        None => panic!(
            "{address:#x} is not an address in shared memory: addresses are offsets from the block's base, or come \
             from a mapping to another block of the cluster"
        ),
    }
}

#[cold]
#[track_caller]
fn bad_access(block: &Block, offset: u32, bytes: u32, align: u32) -> ! {
    let size = block.shared.bytes();
    if u64::from(offset) + u64::from(bytes) > u64::from(size) {
        let message = format!(
            "access to {bytes} bytes at offset {offset} of shared memory, but the block has {size} bytes: check the \
             index, or launch with more shared memory"
        );
        fault(current(), message);
    }
    assert!(
        align.is_power_of_two(),
        "access to shared memory with an alignment of {align}: give a power of two"
    );
    let message = format!(
        "access to {bytes} bytes of shared memory at offset {offset}, which is not a multiple of {align} bytes: align \
         the object"
    );
    fault(current(), message)
}

/// The rank of the block in whose memory an address is; `None` for the running block.
pub(crate) fn other_rank(address: u32) -> Option<u32> {
    let rank = shared_address::rank(address)?;
    (rank != current().block().rank).then_some(rank)
}

/// A shared address in a message: its offset, and the block if it is not the running one.
#[derive(Clone, Copy)]
pub(crate) struct SharedAddress(pub(crate) u32);

impl SharedAddress {
    /// The address of an offset in a block's memory.
    pub(crate) fn of(block: &Block, offset: u32) -> Self {
        Self(address_in(block.shared_window, offset))
    }
}

impl fmt::Display for SharedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = shared_address::offset(self.0);
        match other_rank(self.0) {
            None => write!(f, "{offset}"),
            Some(rank) => write!(f, "{offset} of block {rank} of the cluster"),
        }
    }
}
