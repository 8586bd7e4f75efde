//! Names of modes: letters in an order.

use core::fmt;

use crate::CAPACITY;
use crate::text::Text;

/// Letters, each the name of a mode.
///
/// ```
/// use cutlet_layout_core::contraction::Notation;
///
/// let notation = Notation::parse("bshd,bthd->bhst").unwrap();
/// assert_eq!(notation.names(2).as_str(), "bhst");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Names {
    /// Zeros behind the last letter.
    letters: [u8; CAPACITY],
    len: u8,
}

impl Names {
    /// No letters.
    pub const EMPTY: Names = Names {
        letters: [0; CAPACITY],
        len: 0,
    };

    /// The letters of a text.
    ///
    /// # Panics
    /// If the text has other characters than letters from a to z and A to Z, or more than [`CAPACITY`] of them.
    pub const fn new(text: &str) -> Names {
        let bytes = text.as_bytes();
        let mut names = Names::EMPTY;
        let mut i = 0;
        while i < bytes.len() {
            assert!(
                bytes[i].is_ascii_alphabetic() && names.push(bytes[i]),
                "names are up to 32 letters: one for each mode"
            );
            i += 1;
        }
        names
    }

    /// The letters as a text.
    pub const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.letters.split_at(self.len()).0) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        }
    }

    /// How many letters there are.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Letter `i`, of which there are [`len`](Self::len).
    pub(super) const fn letter(&self, i: usize) -> u8 {
        self.letters[i]
    }

    /// How many of the first `end` letters are this one.
    pub(super) const fn count(&self, letter: u8, end: usize) -> usize {
        let mut count = 0;
        let mut i = 0;
        while i < end {
            if self.letters[i] == letter {
                count += 1;
            }
            i += 1;
        }
        count
    }

    pub(super) const fn has(&self, letter: u8) -> bool {
        self.count(letter, self.len()) > 0
    }

    /// Adds a letter, if there is room.
    pub(super) const fn push(&mut self, letter: u8) -> bool {
        if self.len() == CAPACITY {
            return false;
        }
        self.letters[self.len()] = letter;
        self.len += 1;
        true
    }

    /// The letters with others behind them. Parts of one mode that meet again share its letter.
    pub(super) const fn followed_by(&self, others: &Names) -> Names {
        let mut names = *self;
        let mut i = 0;
        while i < others.len() {
            let is_same = !names.is_empty() && names.letters[names.len() - 1] == others.letters[i];
            if !is_same {
                names.push(others.letters[i]);
            }
            i += 1;
        }
        names
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Text {
    /// The name of a mode.
    pub(super) const fn letter(&mut self, letter: u8) -> &mut Text {
        let letter = [letter];
        match core::str::from_utf8(&letter) {
            Ok(text) => self.str(text),
            Err(_) => unreachable!(),
        }
    }
}
