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

    /// [`set`](Self::set) of a range that one OS thread uses alone.
    #[inline]
    pub(crate) fn set_alone(&self, offset: usize, bytes: usize) {
        let set = |(word, mask): (usize, u64)| {
            let bits = self.0[word].load(Ordering::Relaxed);
            self.0[word].store(bits | mask, Ordering::Relaxed);
        };
        match in_one_word(offset, bytes) {
            Some(word) => set(word),
            None => words(offset, bytes).for_each(set),
        }
    }

    /// Forgets what was written.
    pub(crate) fn clear(&mut self) {
        self.0.fill_with(Default::default);
    }

    /// The first of these bytes that was not written.
    pub(crate) fn first_unwritten(&self, offset: usize, bytes: usize) -> Option<usize> {
        words(offset, bytes).find_map(|(word, mask)| {
            let missing = !self.0[word].load(Ordering::Relaxed) & mask;
            (missing != 0).then(|| word * WORD + missing.trailing_zeros() as usize)
        })
    }

    /// Whether all of these bytes were written.
    #[inline]
    pub(crate) fn all(&self, offset: usize, bytes: usize) -> bool {
        let are_set =
            |(word, mask): (usize, u64)| self.0[word].load(Ordering::Relaxed) & mask == mask;
        match in_one_word(offset, bytes) {
            Some(word) => are_set(word),
            None => words(offset, bytes).all(are_set),
        }
    }
}

/// The word that has the bits of these bytes, with a mask of the bits, if it is only one. Those of a thread's access are
/// in one word, because it is aligned.
#[inline]
fn in_one_word(offset: usize, bytes: usize) -> Option<(usize, u64)> {
    let first = offset % WORD;
    (bytes > 0 && first + bytes <= WORD)
        .then(|| (offset / WORD, (u64::MAX >> (WORD - bytes)) << first))
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
        let written = Written::none(300);
        written.set(10, 90);
        written.set(101, 199);
        let first = |offset, bytes| written.first_unwritten(offset, bytes);
        assert_eq!(
            (first(0, 300), first(10, 290), first(9, 50)),
            (Some(0), Some(100), Some(9))
        );
        assert_eq!(
            (first(10, 90), first(101, 199), first(5, 0)),
            (None, None, None)
        );
        let mut written = Written::none(200);
        written.set_alone(62, 4);
        assert!(written.all(62, 4) && !written.all(61, 2) && !written.all(65, 2));
        written.clear();
        assert!(!written.all(62, 1));
    }
}
