//! Picking, grouping and joining the modes of layouts and int tuples.

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::int_tuple::TupleBuilder;
use crate::layout::LayoutBuilder;
use crate::text::Text;
use crate::{IntTuple, Layout, try_composition};

/// The operations that layouts and int tuples share, written once over their builders.
macro_rules! mode_operations {
    ($type:ident, $builder:ident, $write:ident) => {
        impl $type {
            /// The tuple of some modes: `select(&[1, 3])`.
            ///
            /// # Panics
            /// If [`try_select`](Self::try_select) returns an error.
            #[track_caller]
            pub const fn select(&self, modes: &[usize]) -> $type {
                or_panic(self.try_select(modes))
            }

            /// The tuple of some modes, or the reason why there is none.
            ///
            /// # Errors
            /// If there is no such mode, or none is selected.
            pub const fn try_select(&self, modes: &[usize]) -> Result<$type, LayoutError> {
                let mut builder = $builder::new();
                builder.open();
                let mut i = 0;
                while i < modes.len() {
                    if modes[i] >= self.rank() {
                        return Err(out_of_range("select", modes[i], self.rank()));
                    }
                    builder.append_mode(self, modes[i]);
                    i += 1;
                }
                builder.close();
                if modes.is_empty() {
                    return Err(nothing_left("select"));
                }
                builder.finish()
            }

            /// The tuple of modes `begin..end`.
            ///
            /// # Panics
            /// If [`try_take`](Self::try_take) returns an error.
            #[track_caller]
            pub const fn take(&self, begin: usize, end: usize) -> $type {
                or_panic(self.try_take(begin, end))
            }

            /// The tuple of modes `begin..end`, or the reason why there is none.
            ///
            /// # Errors
            /// If the range is empty or reaches beyond the rank.
            pub const fn try_take(&self, begin: usize, end: usize) -> Result<$type, LayoutError> {
                if end > self.rank() {
                    return Err(out_of_range("take", end, self.rank()));
                }
                if begin >= end {
                    return Err(nothing_left("take"));
                }
                let mut builder = $builder::new();
                builder.open();
                let mut i = begin;
                while i < end {
                    builder.append_mode(self, i);
                    i += 1;
                }
                builder.close();
                builder.finish()
            }

            /// Modes `begin..end` grouped into one.
            ///
            /// # Panics
            /// If [`try_group`](Self::try_group) returns an error.
            #[track_caller]
            pub const fn group(&self, begin: usize, end: usize) -> $type {
                or_panic(self.try_group(begin, end))
            }

            /// Modes `begin..end` grouped into one, or the reason why not.
            ///
            /// # Errors
            /// If the range is empty or reaches beyond the rank, or the result has more than
            /// [`MAX_DEPTH`](crate::MAX_DEPTH) levels.
            pub const fn try_group(&self, begin: usize, end: usize) -> Result<$type, LayoutError> {
                if end > self.rank() {
                    return Err(out_of_range("group", end, self.rank()));
                }
                if begin >= end {
                    return Err(nothing_left("group"));
                }
                let mut builder = $builder::new();
                builder.open();
                let mut i = 0;
                while i < self.rank() {
                    if i == begin {
                        builder.open();
                    }
                    builder.append_mode(self, i);
                    if i + 1 == end {
                        builder.close();
                    }
                    i += 1;
                }
                builder.close();
                builder.finish()
            }

            /// The leaves as a flat tuple.
            pub const fn flatten(&self) -> $type {
                if self.profile().is_leaf() || self.num_leaves() == 0 {
                    return *self;
                }
                let mut builder = $builder::new();
                builder.open();
                let mut i = 0;
                while i < self.num_leaves() {
                    $write(&mut builder, self, i);
                    i += 1;
                }
                builder.close();
                or_panic(builder.finish())
            }

            /// The leaves of a flat tuple with the parentheses of a profile: the inverse of
            /// [`flatten`](Self::flatten).
            ///
            /// # Panics
            /// If the profile has another number of leaves.
            #[track_caller]
            pub const fn unflatten(&self, profile: &IntTuple) -> $type {
                or_panic(self.try_unflatten(profile))
            }

            /// The leaves of a flat tuple with the parentheses of a profile, or the reason why
            /// not.
            ///
            /// # Errors
            /// If the profile has another number of leaves.
            pub const fn try_unflatten(&self, profile: &IntTuple) -> Result<$type, LayoutError> {
                if profile.num_leaves() != self.num_leaves() {
                    let mut text = Text::new();
                    text.str("unflatten: ").number(self.num_leaves() as i64);
                    text.str(" leaves do not fit the profile ").tuple(profile);
                    text.str(": give one with as many leaves");
                    return Err(LayoutError::new(ErrorKind::Mismatch, &text));
                }
                let mut builder = $builder::new();
                let mut i = 0;
                while i < self.num_leaves() {
                    let mut level = 0;
                    while level < profile.profile().opens(i) {
                        builder.open();
                        level += 1;
                    }
                    $write(&mut builder, self, i);
                    level = 0;
                    while level < profile.profile().closes(i) {
                        builder.close();
                        level += 1;
                    }
                    i += 1;
                }
                builder.finish()
            }

            /// The tuple with `last` added behind the last mode.
            ///
            /// # Panics
            /// If the result has more than [`CAPACITY`](crate::CAPACITY) leaves.
            #[track_caller]
            pub const fn append(&self, last: &$type) -> $type {
                or_panic(self.try_append(last))
            }

            /// The tuple with `last` added behind the last mode, or the reason why there is none.
            ///
            /// # Errors
            /// If the result has more than [`CAPACITY`](crate::CAPACITY) leaves.
            pub const fn try_append(&self, last: &$type) -> Result<$type, LayoutError> {
                let mut builder = $builder::new();
                builder.open();
                let mut i = 0;
                while i < self.rank() {
                    builder.append_mode(self, i);
                    i += 1;
                }
                builder.append(last);
                builder.close();
                builder.finish()
            }

            /// The tuple with `first` added before the first mode.
            ///
            /// # Panics
            /// If the result has more than [`CAPACITY`](crate::CAPACITY) leaves.
            #[track_caller]
            pub const fn prepend(&self, first: &$type) -> $type {
                or_panic(self.try_prepend(first))
            }

            /// The tuple with `first` added before the first mode, or the reason why there is none.
            ///
            /// # Errors
            /// If the result has more than [`CAPACITY`](crate::CAPACITY) leaves.
            pub const fn try_prepend(&self, first: &$type) -> Result<$type, LayoutError> {
                let mut builder = $builder::new();
                builder.open();
                builder.append(first);
                let mut i = 0;
                while i < self.rank() {
                    builder.append_mode(self, i);
                    i += 1;
                }
                builder.close();
                builder.finish()
            }

            /// The tuple with mode `i` replaced.
            ///
            /// # Panics
            /// If [`try_replace`](Self::try_replace) returns an error.
            #[track_caller]
            pub const fn replace(&self, i: usize, mode: &$type) -> $type {
                or_panic(self.try_replace(i, mode))
            }

            /// The tuple with mode `i` replaced, or the reason why there is none.
            ///
            /// # Errors
            /// If there is no such mode, or the result has more than [`CAPACITY`](crate::CAPACITY)
            /// leaves.
            pub const fn try_replace(&self, i: usize, mode: &$type) -> Result<$type, LayoutError> {
                if i >= self.rank() {
                    return Err(out_of_range("replace", i, self.rank()));
                }
                if !self.profile().is_leaf() {
                    let mut builder = $builder::new();
                    builder.open();
                    let mut j = 0;
                    while j < self.rank() {
                        if j == i {
                            builder.append(mode);
                        } else {
                            builder.append_mode(self, j);
                        }
                        j += 1;
                    }
                    builder.close();
                    return builder.finish();
                }
                Ok(*mode)
            }
        }
    };
}
mode_operations!(Layout, LayoutBuilder, write_layout_leaf);
mode_operations!(IntTuple, TupleBuilder, write_tuple_leaf);

const fn write_layout_leaf(builder: &mut LayoutBuilder, layout: &Layout, i: usize) {
    builder.leaf(layout.leaf_shape(i), layout.leaf_stride(i));
}

const fn write_tuple_leaf(builder: &mut TupleBuilder, tuple: &IntTuple, i: usize) {
    if tuple.is_underscore(i) {
        builder.underscore();
    } else {
        builder.leaf(tuple.leaf(i));
    }
}

const fn out_of_range(operation: &str, mode: usize, rank: usize) -> LayoutError {
    let mut text = Text::new();
    text.str(operation).str(": ").number(mode as i64);
    text.str(" is out of range for a rank of ")
        .number(rank as i64);
    LayoutError::new(ErrorKind::Mismatch, &text)
}

const fn nothing_left(operation: &str) -> LayoutError {
    let mut text = Text::new();
    text.str(operation)
        .str(": no mode is named: name at least one");
    LayoutError::new(ErrorKind::Invalid, &text)
}

impl Layout {
    /// The layout seen with another shape of the same size, column-major over its 1-D
    /// coordinates: `composition(self, col_major(shape))`.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, shape};
    ///
    /// let row_major = layout!((4, 6):(6, 1));
    /// assert_eq!(row_major.with_shape(&shape!((2, 2, 6))).to_string(), "(_2,_2,_6):(_6,_12,_1)");
    /// ```
    ///
    /// # Panics
    /// If [`try_with_shape`](Self::try_with_shape) returns an error.
    #[track_caller]
    pub const fn with_shape(&self, shape: &IntTuple) -> Layout {
        or_panic(self.try_with_shape(shape))
    }

    /// [`with_shape`](Self::with_shape), or the reason why there is none.
    ///
    /// # Errors
    /// If [`try_composition`] returns an error.
    pub const fn try_with_shape(&self, shape: &IntTuple) -> Result<Layout, LayoutError> {
        try_composition(self, &tri!(Layout::try_col_major(shape)))
    }
}
