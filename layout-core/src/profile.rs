//! The parentheses of an int tuple: one byte per leaf.

use crate::error::{ErrorKind, LayoutError};
use crate::text::Text;

/// The most leaves (integers) a shape, stride, coordinate or layout holds.
///
/// It makes a [`Layout`](crate::Layout) a `Copy` value of 1064 bytes without a heap. At run time a
/// copy costs some 20 ns, and an operation on layouts of six leaves takes 0.1 to 0.9 µs
/// (`cargo bench -p cutlet-layout-core`). In `const` evaluation, where kernels' layouts are
/// computed, a copy is almost free, and every step costs time. A hundred layouts of 6 to 12 leaves
/// add half a second to a build. Dividing and composing each of them adds another second.
pub const CAPACITY: usize = 32;

/// The deepest nesting of parentheses.
pub const MAX_DEPTH: usize = 15;

/// For each leaf, the number of parentheses that open before it and close behind it.
///
/// An integer is one leaf without parentheses; a tuple always has its outermost pair. A profile
/// without leaves is the empty tuple `()`, which cannot be inside another tuple.
#[derive(Clone, Copy)]
pub(crate) struct Profile {
    len: u8,
    parens: [u8; CAPACITY],
}

impl Profile {
    pub(crate) const EMPTY: Profile = Profile {
        len: 0,
        parens: [0; CAPACITY],
    };

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) const fn opens(&self, leaf: usize) -> usize {
        (self.parens[leaf] >> 4) as usize
    }

    pub(crate) const fn closes(&self, leaf: usize) -> usize {
        (self.parens[leaf] & 15) as usize
    }

    /// An integer rather than a tuple.
    pub(crate) const fn is_leaf(&self) -> bool {
        self.len == 1 && self.parens[0] == 0
    }

    pub(crate) const fn depth(&self) -> usize {
        if self.len == 0 {
            return 1;
        }
        let mut depth = 0;
        let mut deepest = 0;
        let mut i = 0;
        while i < self.len() {
            depth += self.opens(i);
            if depth > deepest {
                deepest = depth;
            }
            depth -= self.closes(i);
            i += 1;
        }
        deepest
    }

    pub(crate) const fn rank(&self) -> usize {
        let mut rank = 0;
        let mut start = 0;
        while start < self.len() {
            start = self.mode_end(start);
            rank += 1;
        }
        rank
    }

    /// The end of the top-level mode that begins at leaf `start`.
    pub(crate) const fn mode_end(&self, start: usize) -> usize {
        // Inside the outermost pair, the depth is 1.
        let mut depth = if self.is_leaf() || start == 0 { 0 } else { 1 };
        let mut i = start;
        while i < self.len() {
            depth = depth + self.opens(i) - self.closes(i);
            i += 1;
            if depth <= 1 {
                break;
            }
        }
        i
    }

    /// The range of leaves of top-level mode `i`, if there is one.
    pub(crate) const fn mode(&self, i: usize) -> Option<(usize, usize)> {
        let mut start = 0;
        let mut mode = 0;
        while start < self.len() {
            let end = self.mode_end(start);
            if mode == i {
                return Some((start, end));
            }
            start = end;
            mode += 1;
        }
        None
    }

    /// The parentheses of the outermost pair, which belongs to no mode: how many open before leaf
    /// `start`, and how many close behind the leaf before `end`.
    pub(crate) const fn around(&self, start: usize, end: usize) -> (usize, usize) {
        let pair = if self.is_leaf() { 0 } else { 1 };
        (
            if start == 0 { pair } else { 0 },
            if end == self.len() { pair } else { 0 },
        )
    }

    /// The parentheses of the top-level mode of leaves `start..end`.
    pub(crate) const fn part(&self, start: usize, end: usize) -> Profile {
        let mut part = Profile::EMPTY;
        part.len = (end - start) as u8;
        let mut i = start;
        while i < end {
            part.parens[i - start] = self.parens[i];
            i += 1;
        }
        let (before, behind) = self.around(start, end);
        part.parens[0] -= (before << 4) as u8;
        part.parens[end - start - 1] -= behind as u8;
        part
    }

    pub(crate) const fn eq(&self, other: &Profile) -> bool {
        if self.len != other.len {
            return false;
        }
        let mut i = 0;
        while i < self.len() {
            if self.parens[i] != other.parens[i] {
                return false;
            }
            i += 1;
        }
        true
    }
}

/// Writes a [`Profile`] from left to right: parentheses and leaves in order.
#[derive(Clone, Copy)]
pub(crate) struct ProfileBuilder {
    profile: Profile,
    leaves: usize,
    depth: usize,
    deepest: usize,
    pending: usize,
    empty_inside: bool,
}

impl ProfileBuilder {
    pub(crate) const fn new() -> ProfileBuilder {
        ProfileBuilder {
            profile: Profile::EMPTY,
            leaves: 0,
            depth: 0,
            deepest: 0,
            pending: 0,
            empty_inside: false,
        }
    }

    pub(crate) const fn open(&mut self) {
        self.pending += 1;
        self.depth += 1;
        if self.depth > self.deepest {
            self.deepest = self.depth;
        }
    }

    /// Adds a leaf and returns its position; `None` if there is no room, which
    /// [`finish`](Self::finish) reports.
    pub(crate) const fn leaf(&mut self) -> Option<usize> {
        self.leaf_in(0, 0)
    }

    /// Adds a leaf, the parentheses that open before it and those that close behind it, in one
    /// step.
    pub(crate) const fn leaf_in(&mut self, opens: usize, closes: usize) -> Option<usize> {
        let at = self.leaves;
        self.leaves += 1;
        let opens = self.pending + opens;
        self.depth += opens - self.pending;
        self.pending = 0;
        if self.depth > self.deepest {
            self.deepest = self.depth;
        }
        self.depth -= closes;
        if at >= CAPACITY || self.deepest > MAX_DEPTH {
            return None;
        }
        self.profile.parens[at] = ((opens << 4) | closes) as u8;
        self.profile.len += 1;
        Some(at)
    }

    /// The number of leaves that found room.
    pub(crate) const fn num_leaves(&self) -> usize {
        self.profile.len()
    }

    pub(crate) const fn close(&mut self) {
        self.depth -= 1;
        if self.pending > 0 {
            self.pending -= 1;
            self.empty_inside = self.empty_inside || self.depth > 0;
        } else if self.leaves <= CAPACITY && self.leaves > 0 && self.deepest <= MAX_DEPTH {
            self.profile.parens[self.leaves - 1] += 1;
        }
    }

    pub(crate) const fn finish(&self) -> Result<Profile, LayoutError> {
        if self.leaves > CAPACITY {
            return Err(no_room(
                self.leaves,
                " leaves are needed, but a layout holds at most ",
                CAPACITY,
                " (CAPACITY): coalesce it, or split the work",
            ));
        }
        if self.deepest > MAX_DEPTH {
            return Err(no_room(
                self.deepest,
                " levels of parentheses are needed, but at most ",
                MAX_DEPTH,
                " (MAX_DEPTH) are possible: flatten some modes",
            ));
        }
        if self.empty_inside || (self.deepest > 0 && self.leaves == 0 && self.deepest > 1) {
            return Err(LayoutError::of(
                ErrorKind::Invalid,
                "an empty tuple `()` cannot be inside another tuple: leave it out",
            ));
        }
        Ok(self.profile)
    }
}

const fn no_room(needed: usize, what: &str, limit: usize, advice: &str) -> LayoutError {
    let mut text = Text::new();
    text.number(needed as i64)
        .str(what)
        .number(limit as i64)
        .str(advice);
    LayoutError::new(ErrorKind::Capacity, &text)
}
