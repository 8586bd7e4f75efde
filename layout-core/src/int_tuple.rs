//! Int tuples: an integer, or a tuple of int tuples.

use core::fmt;

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::profile::{Profile, ProfileBuilder};
use crate::text::Text;
use crate::{CAPACITY, Int};

/// An integer or a nested tuple of integers: shapes, strides, coordinates and steps are int tuples.
///
/// A leaf may also be the underscore `_`, which stands for a whole mode in a coordinate.
/// Equality compares values and parentheses, not staticness, as CuTe's `==` does.
///
/// ```
/// use cutlet_layout_core::{IntTuple, shape};
///
/// const S: IntTuple = shape!((3, (6, 2), 8));
/// assert_eq!(S.to_string(), "(_3,(_6,_2),_8)");
/// assert_eq!((S.rank(), S.depth(), S.size()), (3, 2, 288));
/// assert_eq!(S.get(&[1, 0]).to_string(), "_6");
/// ```
#[derive(Clone, Copy)]
pub struct IntTuple {
    ints: [Int; CAPACITY],
    underscores: u32,
    profile: Profile,
}

impl IntTuple {
    /// The empty tuple `()`.
    pub const EMPTY: IntTuple = IntTuple {
        ints: [Int::ZERO; CAPACITY],
        underscores: 0,
        profile: Profile::EMPTY,
    };

    /// The underscore `_`.
    pub const UNDERSCORE: IntTuple = {
        let mut tuple = IntTuple::int(Int::ZERO);
        tuple.underscores = 1;
        tuple
    };

    /// One integer.
    pub const fn int(int: Int) -> IntTuple {
        let mut builder = TupleBuilder::new();
        builder.leaf(int);
        or_panic(builder.finish())
    }

    /// A flat tuple of static integers.
    ///
    /// # Panics
    /// If there are more than [`CAPACITY`] integers.
    #[track_caller]
    pub const fn fixed(values: &[i64]) -> IntTuple {
        let mut builder = TupleBuilder::new();
        builder.open();
        let mut i = 0;
        while i < values.len() {
            builder.leaf(Int::fixed(values[i]));
            i += 1;
        }
        builder.close();
        or_panic(builder.finish())
    }

    /// A flat tuple of dynamic integers.
    ///
    /// # Panics
    /// If there are more than [`CAPACITY`] integers.
    #[track_caller]
    pub const fn dynamic(values: &[i64]) -> IntTuple {
        let mut builder = TupleBuilder::new();
        builder.open();
        let mut i = 0;
        while i < values.len() {
            builder.leaf(Int::dynamic(values[i]));
            i += 1;
        }
        builder.close();
        or_panic(builder.finish())
    }

    /// The tuple of some int tuples.
    ///
    /// # Panics
    /// If there are more than [`CAPACITY`] leaves or [`MAX_DEPTH`](crate::MAX_DEPTH) levels.
    #[track_caller]
    pub const fn tuple(modes: &[IntTuple]) -> IntTuple {
        let mut builder = TupleBuilder::new();
        builder.open();
        let mut i = 0;
        while i < modes.len() {
            builder.append(&modes[i]);
            i += 1;
        }
        builder.close();
        or_panic(builder.finish())
    }

    /// The same integers, all dynamic.
    pub const fn to_dynamic(&self) -> IntTuple {
        self.with_static(false)
    }

    /// The same integers, all static.
    pub const fn to_static(&self) -> IntTuple {
        self.with_static(true)
    }

    const fn with_static(&self, is_static: bool) -> IntTuple {
        let mut tuple = *self;
        let mut i = 0;
        while i < self.num_leaves() {
            tuple.ints[i] = self.ints[i].with_static(is_static);
            i += 1;
        }
        tuple
    }

    pub(crate) const fn from_parts(ints: [Int; CAPACITY], profile: Profile) -> IntTuple {
        IntTuple {
            ints,
            underscores: 0,
            profile,
        }
    }

    pub(crate) const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The number of modes: 1 for an integer.
    pub const fn rank(&self) -> usize {
        self.profile.rank()
    }

    /// The number of levels of parentheses: 0 for an integer.
    pub const fn depth(&self) -> usize {
        self.profile.depth()
    }

    /// The product of all leaves; an underscore counts as 1.
    ///
    /// # Panics
    /// If the product does not fit 64 bits.
    pub const fn size(&self) -> i64 {
        match self.checked_size() {
            Some(size) => size,
            None => panic!("size: the product of the integers does not fit 64 bits"),
        }
    }

    pub(crate) const fn checked_size(&self) -> Option<i64> {
        let mut size: i64 = 1;
        let mut i = 0;
        while i < self.num_leaves() {
            if !self.is_underscore(i) {
                size = match size.checked_mul(self.ints[i].value()) {
                    Some(size) => size,
                    None => return None,
                };
            }
            i += 1;
        }
        Some(size)
    }

    /// The number of integers, at any depth.
    pub const fn num_leaves(&self) -> usize {
        self.profile.len()
    }

    /// Integer `i` from the left, at any depth.
    ///
    /// # Panics
    /// If there is none, or it is an underscore.
    pub const fn leaf(&self, i: usize) -> Int {
        assert!(
            i < self.num_leaves(),
            "leaf: the int tuple has no such leaf: leaves are counted from 0, below num_leaves()"
        );
        assert!(
            !self.is_underscore(i),
            "leaf: this leaf is `_`, not an integer: ask is_underscore first"
        );
        self.ints[i]
    }

    /// Whether leaf `i` is the underscore.
    pub const fn is_underscore(&self, i: usize) -> bool {
        self.underscores >> i & 1 == 1
    }

    /// Whether any leaf is the underscore.
    pub const fn has_underscore(&self) -> bool {
        self.underscores != 0
    }

    /// Whether this is an integer rather than a tuple.
    pub const fn is_int(&self) -> bool {
        self.profile.is_leaf() && self.underscores == 0
    }

    /// Whether this is a tuple rather than an integer or an underscore.
    pub const fn is_tuple(&self) -> bool {
        !self.profile.is_leaf()
    }

    /// Whether every integer is static.
    pub const fn is_static(&self) -> bool {
        let mut i = 0;
        while i < self.num_leaves() {
            if !self.ints[i].is_static() {
                return false;
            }
            i += 1;
        }
        true
    }

    /// The integer, if this is one.
    pub const fn as_int(&self) -> Option<Int> {
        if self.is_int() {
            Some(self.ints[0])
        } else {
            None
        }
    }

    /// Mode `i`; an integer is its own mode 0.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub const fn mode(&self, i: usize) -> IntTuple {
        let (start, end) = self.mode_range(i);
        self.part(start, end)
    }

    #[track_caller]
    const fn mode_range(&self, i: usize) -> (usize, usize) {
        match self.profile.mode(i) {
            Some(range) => range,
            None => {
                let mut text = Text::new();
                text.tuple(self).str(" has no mode ").number(i as i64);
                text.str(": its rank is ").number(self.rank() as i64);
                LayoutError::new(ErrorKind::Mismatch, &text).panic()
            }
        }
    }

    const fn part(&self, start: usize, end: usize) -> IntTuple {
        let mut part = IntTuple::EMPTY;
        part.profile = self.profile.part(start, end);
        let mut i = start;
        while i < end {
            part.ints[i - start] = self.ints[i];
            if self.is_underscore(i) {
                part.underscores |= 1 << (i - start);
            }
            i += 1;
        }
        part
    }

    /// The int tuple at a path: `get(&[1, 0])` is mode 0 of mode 1.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub const fn get(&self, path: &[usize]) -> IntTuple {
        let mut tuple = *self;
        let mut i = 0;
        while i < path.len() {
            tuple = tuple.mode(path[i]);
            i += 1;
        }
        tuple
    }

    /// Equality of values and parentheses, in `const`.
    pub const fn eq(&self, other: &IntTuple) -> bool {
        if !self.profile.eq(&other.profile) || self.underscores != other.underscores {
            return false;
        }
        let mut i = 0;
        while i < self.num_leaves() {
            if !self.is_underscore(i) && !self.ints[i].eq(other.ints[i]) {
                return false;
            }
            i += 1;
        }
        true
    }
}

impl PartialEq for IntTuple {
    fn eq(&self, other: &IntTuple) -> bool {
        IntTuple::eq(self, other)
    }
}

impl Eq for IntTuple {}

impl From<Int> for IntTuple {
    fn from(int: Int) -> IntTuple {
        IntTuple::int(int)
    }
}

impl From<i64> for IntTuple {
    /// A number that comes from run time is dynamic.
    fn from(value: i64) -> IntTuple {
        IntTuple::int(Int::dynamic(value))
    }
}

impl fmt::Display for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.num_leaves() == 0 {
            return f.write_str("()");
        }
        for i in 0..self.num_leaves() {
            if i > 0 {
                f.write_str(",")?;
            }
            for _ in 0..self.profile.opens(i) {
                f.write_str("(")?;
            }
            if self.is_underscore(i) {
                f.write_str("_")?;
            } else {
                write!(f, "{}", self.ints[i])?;
            }
            for _ in 0..self.profile.closes(i) {
                f.write_str(")")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes an [`IntTuple`] from left to right.
#[derive(Clone, Copy)]
pub(crate) struct TupleBuilder {
    ints: [Int; CAPACITY],
    underscores: u32,
    profile: ProfileBuilder,
}

impl TupleBuilder {
    pub(crate) const fn new() -> TupleBuilder {
        TupleBuilder {
            ints: [Int::ZERO; CAPACITY],
            underscores: 0,
            profile: ProfileBuilder::new(),
        }
    }

    pub(crate) const fn open(&mut self) {
        self.profile.open();
    }

    pub(crate) const fn close(&mut self) {
        self.profile.close();
    }

    pub(crate) const fn leaf(&mut self, int: Int) {
        if let Some(at) = self.profile.leaf() {
            self.ints[at] = int;
        }
    }

    pub(crate) const fn underscore(&mut self) {
        if let Some(at) = self.profile.leaf() {
            self.underscores |= 1 << at;
        }
    }

    /// Adds an int tuple as it is.
    pub(crate) const fn append(&mut self, tuple: &IntTuple) {
        if tuple.num_leaves() == 0 {
            self.open();
            self.close();
        }
        self.append_leaves(tuple, 0, tuple.num_leaves(), 0, 0);
    }

    /// Adds mode `i` of an int tuple.
    pub(crate) const fn append_mode(&mut self, tuple: &IntTuple, i: usize) {
        let (start, end) = tuple.mode_range(i);
        let (before, behind) = tuple.profile.around(start, end);
        self.append_leaves(tuple, start, end, before, behind);
    }

    /// Adds leaves `start..end`, without the outermost `before` parentheses of the first and
    /// `behind` parentheses of the last.
    const fn append_leaves(
        &mut self,
        tuple: &IntTuple,
        start: usize,
        end: usize,
        before: usize,
        behind: usize,
    ) {
        let mut i = start;
        while i < end {
            let opens = tuple.profile.opens(i) - if i == start { before } else { 0 };
            let closes = tuple.profile.closes(i) - if i + 1 == end { behind } else { 0 };
            if let Some(at) = self.profile.leaf_in(opens, closes) {
                self.ints[at] = tuple.ints[i];
                self.underscores |= (tuple.underscores >> i & 1) << at;
            }
            i += 1;
        }
    }

    pub(crate) const fn finish(&self) -> Result<IntTuple, LayoutError> {
        let profile = tri!(self.profile.finish());
        Ok(IntTuple {
            ints: self.ints,
            underscores: self.underscores,
            profile,
        })
    }
}

/// The error of an operation on two int tuples that do not fit each other.
pub(crate) const fn mismatch(
    operation: &str,
    a: &IntTuple,
    between: &str,
    b: &IntTuple,
    why: &str,
) -> LayoutError {
    let mut text = Text::new();
    text.str(operation)
        .str(": ")
        .tuple(a)
        .str(between)
        .tuple(b)
        .str(": ")
        .str(why);
    LayoutError::new(ErrorKind::Mismatch, &text)
}

impl Text {
    /// An int tuple: `(2,(3,4))`.
    pub(crate) const fn tuple(&mut self, tuple: &IntTuple) -> &mut Text {
        if tuple.num_leaves() == 0 {
            return self.str("()");
        }
        let mut i = 0;
        while i < tuple.num_leaves() {
            if i > 0 {
                self.str(",");
            }
            let mut level = 0;
            while level < tuple.profile().opens(i) {
                self.str("(");
                level += 1;
            }
            if tuple.is_underscore(i) {
                self.str("_");
            } else {
                self.int(tuple.leaf(i));
            }
            level = 0;
            while level < tuple.profile().closes(i) {
                self.str(")");
                level += 1;
            }
            i += 1;
        }
        self
    }
}
