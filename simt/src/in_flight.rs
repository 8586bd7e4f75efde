//! When the bytes of asynchronous copies arrive in shared memory.
//!
//! The model writes the bytes as soon as the copy is issued. On a GPU they are there only for a thread that has
//! synchronised with the event that completes the copy.

use std::cell::{Cell, OnceCell};

use crate::vector_clock::{Timeline, VectorClock};

/// Bytes per entry: the smallest asynchronous copy.
const WORD: u32 = 4;

/// The event that completes the last copy to a word.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) timeline: Timeline,
    /// Number of the event, counted from 1; 0 if nothing was copied to the word.
    pub(crate) event: u32,
}

impl Arrival {
    /// Whether a thread with this clock may use the word.
    #[inline]
    pub(crate) fn is_known_to(self, clock: &VectorClock) -> bool {
        self.event == 0 || clock.completed(self.timeline) >= self.event
    }
}

/// The arrivals of all words of a block's shared memory, made at the first copy to it.
#[derive(Default)]
pub(crate) struct InFlight(OnceCell<Box<[Cell<Arrival>]>>);

impl InFlight {
    /// The arrivals of the words that have one of these bytes; none before the first copy.
    #[inline]
    pub(crate) fn arrivals(&self, offset: u32, bytes: u32) -> &[Cell<Arrival>] {
        match self.0.get() {
            None => &[],
            Some(words) => {
                &words[(offset / WORD) as usize..(offset + bytes).div_ceil(WORD) as usize]
            }
        }
    }

    /// Notes a copy to these bytes of a shared memory that has `size` bytes.
    pub(crate) fn set(&self, size: u32, offset: u32, bytes: u32, arrival: Arrival) {
        let words = self.0.get_or_init(|| {
            let words = Box::new_zeroed_slice(size.div_ceil(WORD) as usize);
            // SAFETY: the fields of an arrival are integers.
            unsafe { words.assume_init() }
        });
        for word in &words[(offset / WORD) as usize..((offset + bytes) / WORD) as usize] {
            word.set(arrival);
        }
    }
}
