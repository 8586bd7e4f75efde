//! Accesses to global memory by the running thread, checked against the buffers that the launch was given.

use std::cell::UnsafeCell;
use std::fmt::{self, Display};

use crate::buffers::{Buffer, Buffers, untagged};
use crate::context::{Thread, current_or_null, fault};
use crate::live_memory::{Range, describe, with_range};

/// How a thread accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic operation, which reads and writes.
    Atomic,
}

impl Display for MemoryAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "a load",
            Self::Store => "a store",
            Self::Atomic => "an atomic operation",
        })
    }
}

/// An access to global memory: what happens to which bytes.
#[derive(Clone, Copy)]
struct Access {
    kind: MemoryAccess,
    address: usize,
    bytes: usize,
}

/// Host address of the `bytes` bytes of global memory that a kernel's pointer leads to, for an access of at most 16 of
/// them. The address is a multiple of `align`.
///
/// In a launch with [`Buffers`], a pointer into one of them is checked against its extent. Other pointers must lead
/// into [`LiveMemory`](crate::LiveMemory). Outside of a kernel nothing is checked.
///
/// # Panics
/// If the bytes are not in the buffer or not alive, if the address is not a multiple of `align`, or if a thread loads
/// what nothing has written. If the thread is already unwinding, the result is the address of memory that nothing uses.
#[inline]
#[track_caller]
pub fn global_bytes(pointer: *const u8, bytes: usize, align: usize, kind: MemoryAccess) -> *mut u8 {
    let address = untagged(pointer.addr());
    let memory = host_pointer(pointer, address);
    let access = Access {
        kind,
        address,
        bytes,
    };
    // SAFETY: as in `current`. Outside of a kernel there are no buffers to check against.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        return memory;
    };
    match access.check(thread, pointer.addr(), align) {
        Ok(()) => memory,
        Err(message) => {
            if std::thread::panicking() {
                return nowhere();
            }
            fault(thread, message())
        }
    }
}

/// Checks that the running thread may access these bytes of global memory, as [`global_bytes`] does. `address` has no
/// tag, and there may be any number of bytes.
///
/// # Panics
/// As [`global_bytes`].
#[track_caller]
pub(crate) fn check_global(address: usize, bytes: usize, kind: MemoryAccess) {
    let access = Access {
        kind,
        address,
        bytes,
    };
    // SAFETY: as in `current`.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        return;
    };
    if let Err(message) = access.check(thread, address, 1) {
        fault(thread, message());
    }
}

/// A pointer to `address`, with the provenance of a kernel's pointer.
fn host_pointer(pointer: *const u8, address: usize) -> *mut u8 {
    pointer.with_addr(address).cast_mut()
}

/// Memory that stands for memory that does not exist, while a thread unwinds: its destructor's access must not end the
/// process.
fn nowhere() -> *mut u8 {
    #[repr(align(16))]
    struct Nowhere(UnsafeCell<[u8; 16]>);
    thread_local! {
        static NOWHERE: Nowhere = const { Nowhere(UnsafeCell::new([0; 16])) };
    }
    NOWHERE.with(|memory| memory.0.get().cast())
}

impl Access {
    /// Whether a thread may access the bytes that a pointer leads to, or else the message to make.
    #[inline]
    fn check(
        self,
        thread: &Thread,
        tagged: usize,
        align: usize,
    ) -> Result<(), impl FnOnce() -> String + use<>> {
        let launch = thread.block().launch();
        let buffer = launch.buffers.and_then(|buffers| buffers.of(tagged));
        let place = match buffer {
            Some(buffer) if buffer.has(self.address, self.bytes) => {
                self.check_contents().unwrap_or(Place::Fine)
            }
            Some(_) => Place::OutOfBounds,
            None => match self.check_contents() {
                Some(place) => place,
                None if self.is_known(launch.buffers) => Place::Fine,
                None => Place::Nowhere,
            },
        };
        let is_aligned = self.address & (align - 1) == 0;
        if place == Place::Fine && is_aligned {
            return Ok(());
        }
        let buffer = buffer.copied();
        Err(move || self.message(place, buffer, align))
    }

    /// Looks the bytes up in live memory: whether they hold what they are read for. Notes a write. `None` if nothing
    /// lives there.
    #[inline]
    fn check_contents(self) -> Option<Place> {
        with_range(self.address, self.bytes, |range| self.check_written(range))
    }

    #[inline]
    fn check_written(self, range: &Range) -> Place {
        let Some(written) = &range.written else {
            return Place::Fine;
        };
        let offset = self.address - range.start;
        match self.kind {
            MemoryAccess::Store => written.set(offset, self.bytes),
            MemoryAccess::Load | MemoryAccess::Atomic => {
                if !written.all(offset, self.bytes) {
                    return Place::Unwritten;
                }
            }
        }
        Place::Fine
    }

    /// Whether memory that does not live may be accessed: in a launch that was given no list of buffers, and in a
    /// buffer that it was given.
    fn is_known(self, buffers: Option<&Buffers>) -> bool {
        buffers.is_none_or(|buffers| buffers.with(self.address, self.bytes).is_some())
    }

    #[cold]
    fn message(self, place: Place, buffer: Option<Buffer>, align: usize) -> String {
        let Self {
            kind,
            address,
            bytes,
        } = self;
        let at = At { address, buffer };
        match place {
            Place::OutOfBounds => format!(
                "{kind} of {bytes} bytes {at} is out of bounds: check the index against the extent, or pass a longer \
                 buffer"
            ),
            Place::Nowhere => format!(
                "{kind} of {bytes} bytes {at} is outside of every buffer: {}",
                describe(address)
            ),
            Place::Unwritten => format!(
                "{kind} of {bytes} bytes {at} reads what nothing has written: write the elements first, or fill the \
                 memory by `fill_bytes`"
            ),
            Place::Fine => format!(
                "{kind} of {bytes} bytes {at} is misaligned: its address {address:#x} is not a multiple of {align}; \
                 use narrower accesses, or begin at a multiple"
            ),
        }
    }
}

/// What was found at the bytes of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Fine,
    OutOfBounds,
    Nowhere,
    Unwritten,
}

/// Where an access is, in a message.
struct At {
    address: usize,
    buffer: Option<Buffer>,
}

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(buffer) = self.buffer else {
            return write!(f, "at {:#x} of global memory", self.address);
        };
        let Buffer {
            start,
            bytes,
            element_bytes,
            argument,
        } = buffer;
        let offset = self.address.wrapping_sub(start) as isize;
        let index = offset.div_euclid(element_bytes as isize);
        write!(
            f,
            "at element {index} of argument {argument}, which has {} elements of {element_bytes} bytes,",
            bytes / element_bytes
        )
    }
}
