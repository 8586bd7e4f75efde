//! Which bytes of a range of memory were written: a bit for each.

use std::sync::atomic::{AtomicU64, Ordering};

const WORD: usize = u64::BITS as usize;

/// A bit for each byte of a range.
#[derive(Debug)]
pub(crate) struct Written(Box<[AtomicU64]>);

impl Written {
    /// No byte of `bytes` was written.
    pub(crate) fn none(bytes: usize) -> Self {
        let words = Box::new_zeroed_slice(bytes.div_ceil(WORD));
        // SAFETY: an atomic of zero bytes is 0.
        Self(unsafe { words.assume_init() })
    }

    /// Notes that bytes were written.
    pub(crate) fn set(&self, offset: usize, bytes: usize) {
        for (word, mask) in words(offset, bytes) {
            // The bits of a word often are set already, and then its line stays shared.
            if self.0[word].load(Ordering::Relaxed) & mask != mask {
                self.0[word].fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// Whether all of these bytes were written.
    pub(crate) fn all(&self, offset: usize, bytes: usize) -> bool {
        words(offset, bytes).all(|(word, mask)| self.0[word].load(Ordering::Relaxed) & mask == mask)
    }
}

/// The words that have the bits of these bytes, each with a mask of the bits.
fn words(offset: usize, bytes: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + bytes;
    let touched = match bytes {
        0 => 0..0,
        _ => offset / WORD..end.div_ceil(WORD),
    };
    touched.map(move |word| {
        let first = offset.max(word * WORD) - word * WORD;
        let last = end.min((word + 1) * WORD) - word * WORD;
        // `last` is more than `first`, which is less than 64.
        let mask = (u64::MAX >> (WORD - (last - first))) << first;
        (word, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_one_by_one_and_across_words() {
        let written = Written::none(200);
        assert!(!written.all(0, 1));
        written.set(60, 16);
        assert!(written.all(60, 16) && written.all(63, 2));
        assert!(!written.all(59, 2) && !written.all(75, 2));
        written.set(0, 200);
        assert!(written.all(0, 200));
        assert!(written.all(8, 0));
    }
}
