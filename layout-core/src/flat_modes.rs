//! A flat list of modes, on which the algebra computes.

use crate::{CAPACITY, Int};

/// The modes of a layout without its parentheses.
#[derive(Clone, Copy)]
pub(crate) struct Modes {
    pub(crate) shape: [Int; CAPACITY],
    pub(crate) stride: [Int; CAPACITY],
    pub(crate) len: usize,
}

/// The integers that a simplification may look at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// Static integers only, so that the form of the result does not depend on dynamic values.
    Static,
    /// All integers.
    Values,
}

impl Modes {
    pub(crate) const EMPTY: Modes = Modes {
        shape: [Int::ZERO; CAPACITY],
        stride: [Int::ZERO; CAPACITY],
        len: 0,
    };

    /// Adds a mode. The caller makes sure that there is room.
    pub(crate) const fn push(&mut self, shape: Int, stride: Int) {
        self.shape[self.len] = shape;
        self.stride[self.len] = stride;
        self.len += 1;
    }

    /// Removes a mode.
    pub(crate) const fn remove(&mut self, mode: usize) {
        self.len -= 1;
        let mut i = mode;
        while i < self.len {
            self.shape[i] = self.shape[i + 1];
            self.stride[i] = self.stride[i + 1];
            i += 1;
        }
    }

    /// Reverses the list.
    pub(crate) const fn reverse(&mut self) {
        let mut i = 0;
        while i + 1 < self.len - i {
            let j = self.len - 1 - i;
            (self.shape[i], self.shape[j]) = (self.shape[j], self.shape[i]);
            (self.stride[i], self.stride[j]) = (self.stride[j], self.stride[i]);
            i += 1;
        }
    }

    /// Merges modes that continue each other and drops modes of extent 1, as far as `knowledge`
    /// allows. Goes from the right, as CuTe does; the direction decides which dynamic modes remain.
    pub(crate) const fn coalesce(&mut self, knowledge: Knowledge) {
        // Finished modes are gathered at the end of the list, then moved to its beginning.
        let end = self.len;
        let mut first = end;
        let mut i = end;
        while i > 0 {
            i -= 1;
            let (shape, stride) = (self.shape[i], self.stride[i]);
            if is_one(shape, knowledge) {
                continue;
            }
            if first < end
                && continues(
                    shape,
                    stride,
                    self.shape[first],
                    self.stride[first],
                    knowledge,
                )
            {
                // An extent that stands for an unbounded one may be too large to be merged.
                if let Some(merged) = shape.checked_mul(self.shape[first]) {
                    self.shape[first] = merged;
                    self.stride[first] = stride;
                    continue;
                }
            }
            first -= 1;
            self.shape[first] = shape;
            self.stride[first] = stride;
        }
        self.len = end - first;
        i = 0;
        while i < self.len {
            self.shape[i] = self.shape[first + i];
            self.stride[i] = self.stride[first + i];
            i += 1;
        }
    }

    /// Drops modes that repeat: those of stride `_0`, or of any stride 0.
    pub(crate) const fn drop_repetitions(&mut self, knowledge: Knowledge) {
        let mut i = 0;
        while i < self.len {
            let known = self.stride[i].is_static() || matches!(knowledge, Knowledge::Values);
            if known && self.stride[i].value() == 0 {
                self.remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// Whether these modes and those of `other` from `begin` on are the same function of 1-D
    /// coordinates.
    pub(crate) const fn computes_the_same(&self, other: &Modes, begin: usize) -> bool {
        let (mut i, mut j) = (0, begin);
        // Usually the modes are identical.
        while i < self.len && j < other.len && self.is_same_mode(i, other, j) {
            (i, j) = (i + 1, j + 1);
        }
        if i == self.len && j == other.len {
            return true;
        }
        (i, j) = (0, begin);
        loop {
            let (a, next_i) = self.merged(i);
            let (b, next_j) = other.merged(j);
            let (shape, stride) = (a.0.value(), a.1.value());
            if shape != b.0.value() || stride != b.1.value() {
                return false;
            }
            if stride != 0 && !a.1.same_direction(b.1) {
                return false;
            }
            if next_i == i && next_j == j {
                return true;
            }
            (i, j) = (next_i, next_j);
        }
    }

    const fn is_same_mode(&self, i: usize, other: &Modes, j: usize) -> bool {
        self.shape[i].value() == other.shape[j].value() && self.stride[i].eq(other.stride[j])
    }

    /// The modes from `start` on merged into one, as far as their values continue each other, and
    /// the position after them. At the end of the list this position is `start`.
    const fn merged(&self, start: usize) -> ((Int, Int), usize) {
        let mut merged = (Int::ONE, Int::ZERO);
        let mut i = start;
        while i < self.len {
            let (shape, stride) = (self.shape[i], self.stride[i]);
            if shape.value() != 1 {
                if merged.0.value() == 1 {
                    merged = (shape, stride);
                } else if continues(merged.0, merged.1, shape, stride, Knowledge::Values)
                    && let Some(product) = merged.0.checked_mul(shape)
                {
                    merged.0 = product;
                } else {
                    return (merged, i);
                }
            }
            i += 1;
        }
        (merged, i)
    }
}

const fn is_one(shape: Int, knowledge: Knowledge) -> bool {
    shape.value() == 1 && (shape.is_static() || matches!(knowledge, Knowledge::Values))
}

/// Whether the next mode continues the mode `shape:stride`, as far as `knowledge` tells.
const fn continues(
    shape: Int,
    stride: Int,
    next_shape: Int,
    next_stride: Int,
    knowledge: Knowledge,
) -> bool {
    let Some(end) = shape.value().checked_mul(stride.value()) else {
        return false;
    };
    let known = matches!(knowledge, Knowledge::Values)
        || (next_shape.is_static()
            && next_stride.is_static()
            && (stride.is_constant(0) || (shape.is_static() && stride.is_static())));
    // A stride of 0 fits any direction.
    let same_direction =
        stride.same_direction(next_stride) || (end == 0 && next_stride.value() == 0);
    known && same_direction && end == next_stride.value()
}
