//! Shared addresses: an offset in a block's shared memory, and above it the window that says which block's.

/// Bits of the offset.
const OFFSET_BITS: u32 = 24;

/// The window of the block with a rank in its cluster. Window 0 is the running block's own memory.
///
/// The hardware has the rank itself there. A kernel that loses the window bits goes wrong in all blocks but rank 0 on
/// the hardware, and in all blocks here.
pub(crate) const fn window_of(rank: u32) -> u32 {
    rank + 1
}

/// The window of a block's addresses to its own memory.
pub(crate) fn own_window(rank: u32, cluster: u32) -> u32 {
    if cluster > 1 { window_of(rank) } else { 0 }
}

/// The address of an offset in a window.
#[inline]
pub(crate) const fn address_in(window: u32, offset: u32) -> u32 {
    window << OFFSET_BITS | offset
}

/// The window of an address.
#[inline]
pub(crate) const fn window(address: u32) -> u32 {
    address >> OFFSET_BITS
}

/// The offset of an address in its block's shared memory.
#[inline]
pub(crate) const fn offset(address: u32) -> u32 {
    address & ((1 << OFFSET_BITS) - 1)
}

/// The rank of the block in whose memory an address is; `None` in window 0.
pub(crate) const fn rank(address: u32) -> Option<u32> {
    window(address).checked_sub(window_of(0))
}
