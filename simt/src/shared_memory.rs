//! A block's shared memory: allocated once per core, poisoned when a block starts.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{RefCell, RefMut};
use std::panic::Location;
use std::ptr::NonNull;

use crate::in_flight::InFlight;
use crate::shadow::{WORD, Word};
use crate::written::Written;

/// Alignment of the start: what the largest swizzle atom of an sm_90 tile needs.
const ALIGN: usize = 1024;

/// Fills shared memory before a block runs: NaN in every float format, -1 in integers.
const POISON: u8 = 0xFF;

/// The most shared memory that a launch can ask for: the most of any GPU, rounded up.
pub(crate) const MAX_SHARED_BYTES: u32 = 256 * 1024;

/// The shared memory of one block.
pub(crate) struct SharedMemory {
    start: NonNull<u8>,
    bytes: u32,
    pub(crate) in_flight: InFlight,
    /// The accesses to each word, made at the first one. Those of clusters before say which cluster they are of.
    shadow: RefCell<Vec<Word>>,
    written: Written,
    reserved: RefCell<Vec<Reservation>>,
}

/// Bytes of shared memory that the kernel keeps something in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Where the kernel says so.
    pub(crate) line: &'static Location<'static>,
}

impl SharedMemory {
    pub(crate) fn new(bytes: u32) -> Self {
        let layout = Self::layout(bytes);
        let start = if bytes == 0 {
            NonNull::<u128>::dangling().cast()
        } else {
            // SAFETY: the layout's size is not zero.
            let start = unsafe { alloc(layout) };
            NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout))
        };
        Self {
            start,
            bytes,
            in_flight: InFlight::default(),
            shadow: RefCell::default(),
            written: Written::none(bytes as usize),
            reserved: RefCell::default(),
        }
    }

    fn layout(bytes: u32) -> Layout {
        const { assert!(ALIGN.is_power_of_two()) };
        // SAFETY: the alignment is a power of two, and a u32 rounded up to it cannot overflow.
        unsafe { Layout::from_size_align_unchecked(bytes as usize, ALIGN) }
    }

    /// Host address of an offset that the caller has checked.
    #[inline]
    pub(crate) fn at(&self, offset: u32) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset as usize)
    }

    /// The last accesses to each word.
    #[inline]
    pub(crate) fn shadow(&self) -> RefMut<'_, Vec<Word>> {
        let mut shadow = self.shadow.borrow_mut();
        if shadow.is_empty() {
            shadow.resize((self.bytes as usize).div_ceil(WORD), Word::default());
        }
        shadow
    }

    /// Size in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Which bytes the block has written.
    #[inline]
    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// Notes that bytes are written. All threads that do so run on this OS thread.
    #[inline]
    pub(crate) fn set_written(&self, offset: u32, bytes: u32) {
        self.written.set_alone(offset as usize, bytes as usize);
    }

    /// Notes a reservation. All threads of a block usually make the same ones.
    pub(crate) fn reserve(&self, reservation: Reservation) {
        let mut all = self.reserved.borrow_mut();
        if !all.contains(&reservation) {
            all.push(reservation);
        }
    }

    /// The last reservation that has a byte.
    pub(crate) fn reservation_of(&self, offset: u32) -> Option<Reservation> {
        let all = self.reserved.borrow();
        let has =
            |reservation: &&Reservation| (reservation.start..reservation.end).contains(&offset);
        all.iter().rev().find(has).copied()
    }

    /// Overwrites what an earlier block left, and forgets what it did.
    pub(crate) fn poison(&mut self) {
        // SAFETY: the memory has `bytes` bytes (of zero bytes, any address will do), and no thread uses it yet.
        unsafe { self.start.write_bytes(POISON, self.bytes as usize) };
        self.in_flight = InFlight::default();
        self.written.clear();
        self.reserved.get_mut().clear();
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: `new` allocated the memory with the same layout.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
        }
    }
}
