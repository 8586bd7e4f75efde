//! The parentheses of an int tuple: one byte a leaf.

use crate::error::{ErrorKind, LayoutError};
use crate::text::Text;

/// The most leaves (integers) a shape, stride, coordinate or layout holds.
///
/// A [`Layout`](crate::Layout) is a `Copy` value of 1064 bytes because of it, with no heap behind
/// it. That costs some twenty nanoseconds a copy at run time, where an operation on layouts of six
/// leaves takes 0.1 to 0.9 µs (`cargo bench -p cutlet-layout-core`). In `const` evaluation, which
/// is where layouts of kernels live, a copy costs next to nothing and every step counts: a hundred
/// layouts of 6 to 12 leaves add half a second to a build, and a second more if each of them is
/// divided and composed.
pub const CAPACITY: usize = 32;

/// The deepest nesting of parentheses.
pub const MAX_DEPTH: usize = 15;

/// For each leaf, how many parentheses open before it and close behind it.
///
/// An integer is one leaf without parentheses; a tuple always has its outermost pair, so the two
/// are told apart. No leaves at all is the empty tuple `()`, which exists on its own only.
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

    /// Where the top-level mode that begins at a leaf ends.
    pub(crate) const fn mode_end(&self, start: usize) -> usize {
        // Inside the outermost pair, which is around everything and so counts as depth 1.
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

    /// The leaves of top-level mode `i`, from and to, if there is one.
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

    /// How many parentheses before the first and behind the last of some top-level modes' leaves
    /// are the pair around everything, which belongs to no mode.
    pub(crate) const fn around(&self, start: usize, end: usize) -> (usize, usize) {
        let pair = if self.is_leaf() { 0 } else { 1 };
        (
            if start == 0 { pair } else { 0 },
            if end == self.len() { pair } else { 0 },
        )
    }

    /// The parentheses of the top-level mode that spans some leaves.
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

/// Writes a [`Profile`] from left to right: parentheses and leaves as they come.
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

    /// Adds a leaf and says where it goes; `None` when there is no room, which
    /// [`finish`](Self::finish) reports.
    pub(crate) const fn leaf(&mut self) -> Option<usize> {
        self.leaf_in(0, 0)
    }

    /// Adds a leaf with the parentheses that open before it and close behind it, which is all
    /// there is to copying a profile, in one step.
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

    /// The number of leaves that there was room for.
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
                " (MAX_DEPTH) are held: flatten some modes",
            ));
        }
        if self.empty_inside || (self.deepest > 0 && self.leaves == 0 && self.deepest > 1) {
            return Err(LayoutError::of(
                ErrorKind::Invalid,
                "an empty tuple `()` stands on its own only, not inside another tuple",
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
