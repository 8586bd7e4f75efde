//! Loads and stores of shared memory by the running thread, checked against copies, products and other threads.

use crate::access::locate_arrived;
use crate::context::{current, fault};
use crate::races;
use crate::report::Memory;
use crate::shadow::MemoryAccess;
use crate::site::Site;
use crate::sm90::check_not_read;
use crate::traffic;
use crate::unwritten::{self, Reader};

/// [`shared_bytes`](crate::shared_bytes) for an access of the given kind, which is checked for races.
///
/// # Panics
/// As [`shared_bytes`](crate::shared_bytes), if `wgmma` may still read what a store overwrites, and if the access races
/// with another one ([`check_races`](crate::check_races)).
#[inline]
#[track_caller]
pub fn access_shared(address: u32, bytes: u32, align: u32, kind: MemoryAccess) -> *mut u8 {
    access(address, bytes, align, kind, None)
}

/// Stores `values` at a shared address, after the checks of [`access_shared`]. Stores of the same values do not race.
///
/// # Panics
/// As [`access_shared`].
#[inline]
#[track_caller]
pub fn store_shared(address: u32, align: u32, values: &[u8]) {
    let Ok(bytes) = u32::try_from(values.len()) else {
        too_many(values.len())
    };
    let to = access(address, bytes, align, MemoryAccess::Store, Some(values));
    // SAFETY: the range was checked. It is no memory of the values, which a block's shared memory is not part of.
    unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
}

#[cold]
#[track_caller]
fn too_many(bytes: usize) -> ! {
    let has = current().block().shared.bytes();
    let message = format!(
        "a store of {bytes} bytes to shared memory, but the block has {has} bytes: store fewer at a time"
    );
    fault(current(), message)
}

/// [`access_shared`], for a store with the values that it writes.
#[inline]
#[track_caller]
fn access(
    address: u32,
    bytes: u32,
    align: u32,
    kind: MemoryAccess,
    values: Option<&[u8]>,
) -> *mut u8 {
    let (block, offset) = locate_arrived(address, bytes, align);
    let thread = current();
    thread.end_if_cancelled();
    if kind.writes() {
        check_not_read(block, offset, bytes);
    }
    let memory = block.shared.at(offset);
    let repeats = values.is_some_and(|values| {
        // SAFETY: the range was checked, and all threads that use it run on this OS thread.
        let old = unsafe { std::slice::from_raw_parts(memory, values.len()) };
        old == values
    });
    let line = thread.line();
    use MemoryAccess::{Atomic, AtomicLoad, Load};
    if matches!(kind, Load | AtomicLoad | Atomic) {
        let what = Reader::Access(kind);
        unwritten::note_read(thread, block, (offset, bytes), what, line);
    }
    if kind.writes() {
        block.shared.set_written(offset, bytes);
    }
    let site = Site::of(line);
    let raced = races::access_shared(thread, block, offset, bytes, kind, site, repeats);
    let (address, size) = (offset as usize, bytes as usize);
    traffic::note(thread, Memory::Shared, address, size, kind, site);
    if let Err(message) = raced
        && !std::thread::panicking()
    {
        fault(thread, message);
    }
    memory
}
