//! Accesses to global memory by the running thread, checked against the buffers that the launch was given.

use std::cell::UnsafeCell;
use std::fmt::{self, Display};

use crate::buffers::{Buffer, Buffers, untagged};
use crate::context::{Thread, current_or_null, fault};
use crate::live_memory::{Range, describe, with_range};
use crate::outputs::note_write;
use crate::races;
use crate::relaxed::store_elements;
use crate::report::Memory;
use crate::shadow::{Accessor, MemoryAccess, Race};
use crate::site::Site;
use crate::traffic::{self, note_bulk};

/// An access to global memory: what happens to which bytes.
#[derive(Clone, Copy)]
struct Access {
    kind: MemoryAccess,
    address: usize,
    bytes: usize,
}

/// Host address of the `bytes` bytes of global memory that a kernel's pointer leads to, for an access of the given
/// kind. The address is a multiple of `align`.
///
/// In a launch with [`Buffers`], a pointer into one of them is checked against its extent. Other pointers must lead
/// into [`LiveMemory`](crate::LiveMemory). Outside of a kernel nothing is checked.
///
/// # Panics
/// If the bytes are not in the buffer or not alive, or if the address is not a multiple of `align`. If a thread loads
/// what nothing has written. If the access races with another one ([`check_races`](crate::check_races)). If the thread
/// is already unwinding, the result is the address of memory that nothing uses.
#[inline]
#[track_caller]
pub fn global_bytes(pointer: *const u8, bytes: usize, align: usize, kind: MemoryAccess) -> *mut u8 {
    let (access, memory) = Access::of(pointer, bytes, kind);
    // SAFETY: as in `current`. Outside of a kernel there are no buffers to check against.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        return memory;
    };
    thread.end_if_cancelled();
    let site = Site::of(thread.line());
    let checked = access
        .check(thread, pointer.addr(), align)
        .and_then(|buffer| access.note(thread, buffer, site));
    access.count(thread, site);
    match checked {
        Ok(()) => memory,
        Err(_) if std::thread::panicking() => nowhere(),
        Err(message) => fault(thread, message),
    }
}

/// Stores `values`, at most 16 bytes, where a kernel's pointer leads to, after the checks of [`global_bytes`]. The
/// address is a multiple of their number of bytes. Stores of the same values do not race. Of values that race otherwise,
/// each element of `element_bytes` bytes is that of one store.
///
/// # Safety
/// The memory exists, if the launch does not check it. `element_bytes` is a power of two that divides the bytes of the
/// values.
///
/// # Panics
/// As [`global_bytes`]. If the thread is already unwinding, nothing is stored instead.
#[inline]
#[track_caller]
pub unsafe fn store_global(pointer: *mut u8, element_bytes: usize, values: &[u8]) {
    let (access, memory) = Access::of(pointer, values.len(), MemoryAccess::Store);
    // SAFETY: as in `current`.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        // SAFETY: the caller promises the memory, and the values are the thread's own.
        unsafe { store_elements(values.as_ptr(), memory, values.len(), element_bytes) };
        return;
    };
    thread.end_if_cancelled();
    let site = Site::of(thread.line());
    let elements = (values, element_bytes);
    // SAFETY: the memory was checked, or the caller promises it.
    let stored = access
        .check(thread, pointer.addr(), values.len())
        .and_then(|buffer| unsafe { access.store(thread, buffer, site, memory, elements) });
    access.count(thread, site);
    if let Err(message) = stored
        && !std::thread::panicking()
    {
        fault(thread, message);
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
    // SAFETY: as in `current`. Outside of a kernel there are no buffers to check against.
    let Some(thread) = (unsafe { current_or_null().as_ref() }) else {
        return;
    };
    let site = Site::of(thread.line());
    let checked = access
        .check(thread, address, 1)
        .and_then(|buffer| access.note(thread, buffer, site));
    if kind.writes() {
        note_write(thread, address, bytes);
    }
    note_bulk(thread, bytes);
    if let Err(message) = checked {
        fault(thread, message);
    }
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
    /// An access through a kernel's pointer, and the host's pointer to the memory.
    #[inline]
    fn of(pointer: *const u8, bytes: usize, kind: MemoryAccess) -> (Self, *mut u8) {
        let address = untagged(pointer.addr());
        let access = Self {
            kind,
            address,
            bytes,
        };
        // The provenance is that of the kernel's pointer.
        (access, pointer.with_addr(address).cast_mut())
    }

    /// Checks that a thread may access the bytes that a pointer leads to. Returns the buffer that the pointer names.
    /// The error is a message.
    #[inline]
    fn check(self, thread: &Thread, tagged: usize, align: usize) -> Result<Option<Buffer>, String> {
        let launch = thread.block().launch();
        let buffer = launch.buffers.and_then(|buffers| buffers.of(tagged));
        let place = match buffer {
            Some(buffer) if buffer.has(self.address, self.bytes) => {
                let missing = match buffer.is_known {
                    true => Place::Freed,
                    false => Place::Fine,
                };
                self.check_contents().unwrap_or(missing)
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
            return Ok(buffer.copied());
        }
        Err(self.message(place, buffer.copied(), launch.buffers, align))
    }

    /// Counts the access in the launch's report.
    #[inline]
    fn count(self, thread: &Thread, site: Site) {
        if self.kind.writes() {
            note_write(thread, self.address, self.bytes);
        }
        traffic::note(
            thread,
            Memory::Global,
            self.address,
            self.bytes,
            self.kind,
            site,
        );
    }

    /// Notes the access. The error says what it races with.
    #[inline]
    fn note(self, thread: &Thread, buffer: Option<Buffer>, site: Site) -> Result<(), String> {
        let block = thread.block();
        let Some(shadow) = &block.launch().shadow else {
            return Ok(());
        };
        if self.kind == MemoryAccess::Unordered {
            return Ok(());
        }
        let clock = thread.clock.borrow();
        let Some(by) = Accessor::new(block.cluster_number, &clock, site) else {
            return Ok(());
        };
        let raced = shadow.access(&by, self.address, self.bytes, self.kind);
        raced.map_err(|race| self.race_message(thread, buffer, race))
    }

    /// Stores the values of the access, and notes it. The error says what it races with.
    ///
    /// # Safety
    /// The memory exists. The values are elements of so many bytes.
    #[inline]
    unsafe fn store(
        self,
        thread: &Thread,
        buffer: Option<Buffer>,
        site: Site,
        memory: *mut u8,
        (values, element_bytes): (&[u8], usize),
    ) -> Result<(), String> {
        let block = thread.block();
        let clock = thread.clock.borrow();
        let by = Accessor::new(block.cluster_number, &clock, site);
        let (Some(shadow), Some(by)) = (&block.launch().shadow, by) else {
            // SAFETY: as promised by the caller, and the values are the thread's own.
            unsafe { store_elements(values.as_ptr(), memory, values.len(), element_bytes) };
            return Ok(());
        };
        // SAFETY: as promised by the caller. An aligned access of at most 16 bytes is within a chunk.
        let raced = unsafe { shadow.store(&by, memory, values, element_bytes) };
        raced.map_err(|race| self.race_message(thread, buffer, race))
    }

    #[cold]
    fn race_message(
        self,
        thread: &Thread,
        buffer: Option<Buffer>,
        (race, address): (Race, usize),
    ) -> String {
        let buffers = thread.block().launch().buffers;
        let with = |buffers: &Buffers| buffers.with(address, 1).copied();
        let buffer = buffer.or_else(|| buffers.and_then(with));
        let what = format!("{} of {} bytes", self.kind.name(), self.bytes);
        let at = At {
            address,
            buffer,
            buffers,
        };
        let place = at.to_string();
        races::message(thread, &what, &place, race)
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
            MemoryAccess::Store | MemoryAccess::AtomicStore => written.set(offset, self.bytes),
            MemoryAccess::Load
            | MemoryAccess::AtomicLoad
            | MemoryAccess::Atomic
            | MemoryAccess::Unordered => {
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
    fn message(
        self,
        place: Place,
        buffer: Option<Buffer>,
        buffers: Option<&Buffers>,
        align: usize,
    ) -> String {
        let Self {
            kind,
            address,
            bytes,
        } = self;
        let kind = kind.name();
        let at = At {
            address,
            buffer,
            buffers,
        };
        let extent = Extent(buffer);
        let what = format!("{kind} of {bytes} bytes at {at}{extent}");
        match place {
            Place::OutOfBounds => format!(
                "{what} is out of bounds: check the index against the extent, or pass a longer \
                 buffer"
            ),
            Place::Freed => format!("{what} is too late: {}", describe(address)),
            Place::Nowhere => format!("{what} is outside of every buffer: {}", describe(address)),
            Place::Unwritten => format!(
                "{what} reads what nothing has written: write the elements first, or fill the \
                 memory by `fill_bytes`"
            ),
            Place::Fine => format!(
                "{what} is misaligned: its address {address:#x} is not a multiple of {align}; \
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
    Freed,
    Nowhere,
    Unwritten,
}

/// Where an access is, in a message.
struct At<'b> {
    address: usize,
    buffer: Option<Buffer>,
    /// All buffers of the launch, which know the names of arguments.
    buffers: Option<&'b Buffers>,
}

impl Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(buffer) = self.buffer else {
            let place = with_range(self.address, 1, |range| {
                (self.address - range.start, range.bytes)
            });
            return match place {
                Some((byte, bytes)) => write!(f, "byte {byte} of a buffer of {bytes} bytes"),
                None => write!(f, "{:#x} of global memory", self.address),
            };
        };
        let offset = self.address.wrapping_sub(buffer.start) as isize;
        let index = offset.div_euclid(buffer.element_bytes as isize);
        let name = self.buffers.map(|buffers| buffers.name(buffer.argument));
        write!(f, "element {index} of {}", name.unwrap_or_default())
    }
}

/// The extent of the buffer of an access, in a message.
struct Extent(Option<Buffer>);

impl Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(buffer) = self.0 else {
            return Ok(());
        };
        let bytes = buffer.element_bytes;
        let elements = buffer.bytes / bytes;
        write!(f, ", which has {elements} elements of {bytes} bytes,")
    }
}
