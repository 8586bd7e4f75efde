//! A table of indices of 32 or 64 bits. A kernel learns at run time which, so that one kernel serves both.

use cutlet_device::Global;
use cutlet_layout_core::Engine;
#[cfg(not(target_arch = "nvptx64"))]
use cutlet_layout_core::Line;

/// A table of indices in global memory, read as numbers of 64 bits.
///
/// The words of several indices are under way at the same time, because no load is behind a branch.
#[derive(Clone, Copy, Debug)]
pub struct Indices {
    /// The index, or its lower word and its upper word.
    words: Global<i32>,
    wide: bool,
}

impl Indices {
    /// The indices in these words: two words are an index of 64 bits if `wide` is true.
    #[inline(always)]
    pub fn new(words: Global<i32>, wide: bool) -> Self {
        Self { words, wide }
    }

    /// The first word of an index.
    #[inline(always)]
    fn word(&self, index: i64) -> i64 {
        index << u32::from(self.wide)
    }
}

impl Engine for Indices {
    type Element = i64;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        let words = self.words.offset(self.word(index));
        Self { words, ..self }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn attribute_to(self, line: Line) -> Line {
        self.words.attribute_to(line)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(self, index: i64) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { self.load_if(index, true) }.unwrap_or(0)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_if(self, index: i64, condition: bool) -> Option<i64> {
        let first = self.word(index);
        // SAFETY: as promised by the caller. An index of 64 bits has two words.
        let [lower, upper] = unsafe {
            [
                self.words.load_if(first, condition),
                self.words.load_if(first + 1, condition && self.wide),
            ]
        };
        let upper = if self.wide { upper } else { lower >> 31 };
        let index = i64::from(upper) << 32 | i64::from(lower as u32);
        condition.then_some(index)
    }
}
