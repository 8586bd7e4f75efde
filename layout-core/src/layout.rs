//! Layouts: a shape and a stride, which together map coordinates to indices.

use core::fmt;

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::flat_modes::{Knowledge, Modes};
use crate::int_tuple::mismatch;
use crate::profile::{Profile, ProfileBuilder};
use crate::text::Text;
use crate::{Basis, CAPACITY, Int, IntTuple};

/// A function from coordinates to indices, written `shape:stride`.
///
/// Shape and stride are congruent int tuples. The natural form of a coordinate has one integer per
/// leaf of the shape, and its index is the inner product with the stride. A 1-D coordinate counts
/// colexicographically: the leftmost leaf runs fastest. Strides may step in a basis direction
/// ([`Basis`]); the result is then a coordinate.
///
/// The construction of a layout checks that its extents are at least 1, and that its size and all
/// indices fit 64 bits. Equality compares values and parentheses, not staticness; the text shows
/// staticness too.
///
/// ```
/// use cutlet_layout_core::{Layout, layout};
///
/// const ROW_MAJOR: Layout = layout!((2, 4):(4, 1));
/// assert_eq!(ROW_MAJOR.at(3), 5); // 1-D coordinate 3 is (1, 1)
/// assert_eq!(ROW_MAJOR.to_string(), "(_2,_4):(_4,_1)");
/// assert_eq!("(2,4):(4,1)".parse(), Ok(ROW_MAJOR));
/// ```
#[derive(Clone, Copy)]
pub struct Layout {
    shape: [Int; CAPACITY],
    stride: [Int; CAPACITY],
    profile: Profile,
}

impl Layout {
    /// No leaves: a blank for builders, not a layout.
    const EMPTY: Layout = Layout {
        shape: [Int::ZERO; CAPACITY],
        stride: [Int::ZERO; CAPACITY],
        profile: Profile::EMPTY,
    };

    /// `_1:_0`, the result of operations that leave no mode.
    pub const UNIT: Layout = Layout::static_mode(1, 0);

    /// The static mode `_shape:_stride`.
    ///
    /// # Panics
    /// If the extent is below 1 or the span does not fit 64 bits.
    #[track_caller]
    pub const fn static_mode(shape: i64, stride: i64) -> Layout {
        Layout::leaf(Int::fixed(shape), Int::fixed(stride))
    }

    /// The static mode `_shape:_stride@b`, which steps in direction `b` of a coordinate.
    ///
    /// # Panics
    /// If the extent is below 1 or the span does not fit 64 bits.
    #[track_caller]
    pub const fn static_basis_mode(shape: i64, stride: i64, b: usize) -> Layout {
        Layout::leaf(Int::fixed(shape), Int::fixed(stride).along(Basis::new(b)))
    }

    /// The layout of one mode.
    ///
    /// # Panics
    /// If the extent is below 1 or the span does not fit 64 bits.
    #[track_caller]
    pub const fn leaf(shape: Int, stride: Int) -> Layout {
        let mut builder = LayoutBuilder::new();
        builder.leaf(shape, stride);
        or_panic(builder.finish())
    }

    /// A layout of a shape and a congruent stride.
    ///
    /// # Panics
    /// If [`try_from_shape_stride`](Self::try_from_shape_stride) returns an error.
    #[track_caller]
    pub const fn from_shape_stride(shape: &IntTuple, stride: &IntTuple) -> Layout {
        or_panic(Layout::try_from_shape_stride(shape, stride))
    }

    /// A layout of a shape and a congruent stride.
    ///
    /// # Errors
    /// If shape and stride are not congruent, an extent is below 1, or the size or an index does
    /// not fit 64 bits.
    pub const fn try_from_shape_stride(
        shape: &IntTuple,
        stride: &IntTuple,
    ) -> Result<Layout, LayoutError> {
        if !shape.profile().eq(stride.profile()) {
            return Err(mismatch(
                "layout",
                shape,
                ":",
                stride,
                "shape and stride need the same parentheses (congruent)",
            ));
        }
        if shape.has_underscore() || stride.has_underscore() {
            let why = "`_` belongs in coordinates and tilers: give an integer";
            return Err(mismatch("layout", shape, ":", stride, why));
        }
        let mut builder = LayoutBuilder::new();
        let mut i = 0;
        while i < shape.num_leaves() {
            builder.leaf_like(shape.profile(), i, shape.leaf(i), stride.leaf(i));
            i += 1;
        }
        builder.finish()
    }

    /// The concatenation of layouts, each a mode: CuTe's `make_layout(a, b, …)`.
    ///
    /// # Panics
    /// If [`try_concat`](Self::try_concat) returns an error.
    #[track_caller]
    pub const fn concat(modes: &[Layout]) -> Layout {
        or_panic(Layout::try_concat(modes))
    }

    /// The concatenation of layouts, each a mode: CuTe's `make_layout(a, b, …)`.
    ///
    /// # Errors
    /// If there are no layouts, more than [`CAPACITY`] leaves or more than
    /// [`MAX_DEPTH`](crate::MAX_DEPTH) levels, or if the size or an index does not fit 64 bits.
    pub const fn try_concat(modes: &[Layout]) -> Result<Layout, LayoutError> {
        if modes.is_empty() {
            return Err(LayoutError::of(
                ErrorKind::Invalid,
                "concat: there are no layouts to concatenate: give at least one",
            ));
        }
        let mut builder = LayoutBuilder::new();
        builder.open();
        let mut i = 0;
        while i < modes.len() {
            builder.append(&modes[i]);
            i += 1;
        }
        builder.close();
        builder.finish()
    }

    /// `(a, b)`, the concatenation of two layouts.
    ///
    /// # Panics
    /// If [`try_concat`](Self::try_concat) returns an error.
    #[track_caller]
    pub const fn concat2(a: &Layout, b: &Layout) -> Layout {
        or_panic(Layout::try_concat2(a, b))
    }

    pub(crate) const fn try_concat2(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
        let mut builder = LayoutBuilder::new();
        builder.open();
        builder.append(a);
        builder.append(b);
        builder.close();
        builder.finish()
    }

    /// The number of modes.
    pub const fn rank(&self) -> usize {
        self.profile.rank()
    }

    /// The number of levels of parentheses: 0 for a layout like `8:1`.
    pub const fn depth(&self) -> usize {
        self.profile.depth()
    }

    /// The number of coordinates: the product of the extents.
    pub const fn size(&self) -> i64 {
        self.size_int().value()
    }

    /// The size, with its staticness.
    pub const fn size_int(&self) -> Int {
        let mut size = Int::ONE;
        let mut i = 0;
        while i < self.num_leaves() {
            size = match size.checked_mul(self.shape[i]) {
                Some(size) => size,
                None => unreachable!(),
            };
            i += 1;
        }
        size
    }

    /// The number of indices from the least to the greatest: the length of an array that holds the
    /// layout. It is `self(size - 1) + 1` unless strides are negative, and as in CuTe a negative
    /// stride counts as its absolute value: indices of `8:-1` go from -7 to 0, so its cosize is 8.
    ///
    /// # Panics
    /// If strides are in basis directions, which have no indices, or the cosize does not fit 64 bits.
    pub const fn cosize(&self) -> i64 {
        self.cosize_int().value()
    }

    /// The cosize, with its staticness.
    ///
    /// # Panics
    /// As [`cosize`](Self::cosize).
    pub const fn cosize_int(&self) -> Int {
        assert!(
            !self.has_basis(),
            "cosize: strides in basis directions have no last index"
        );
        // Indices fit 64 bits, but their number may not.
        let mut cosize: u64 = 1;
        let mut is_static = true;
        let mut i = 0;
        while i < self.num_leaves() {
            let steps = (self.shape[i].value() - 1).unsigned_abs();
            cosize += steps * self.stride[i].value().unsigned_abs();
            is_static = is_static && self.shape[i].is_static() && self.stride[i].is_static();
            i += 1;
        }
        assert!(
            cosize <= i64::MAX as u64,
            "cosize: the number of indices does not fit 64 bits"
        );
        Int::dynamic(cosize as i64).with_static(is_static)
    }

    /// Whether some coordinate has an index below 0: a stride is negative where the extent is not 1.
    /// Memory that holds the layout then begins before index 0.
    pub const fn maps_below_zero(&self) -> bool {
        let mut i = 0;
        while i < self.num_leaves() {
            if self.stride[i].value() < 0 && self.shape[i].value() > 1 {
                return true;
            }
            i += 1;
        }
        false
    }

    /// The shape.
    pub const fn shape(&self) -> IntTuple {
        IntTuple::from_parts(self.shape, self.profile)
    }

    /// The stride.
    pub const fn stride(&self) -> IntTuple {
        IntTuple::from_parts(self.stride, self.profile)
    }

    /// Mode `i`; a layout like `8:1` is its own mode 0.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub const fn mode(&self, i: usize) -> Layout {
        match self.profile.mode(i) {
            Some((start, end)) => self.part(start, end),
            None => self.no_mode(i).panic(),
        }
    }

    /// [`mode`](Self::mode), or the reason why there is none.
    ///
    /// # Errors
    /// If `i` is not below the rank.
    pub const fn try_mode(&self, i: usize) -> Result<Layout, LayoutError> {
        match self.profile.mode(i) {
            Some((start, end)) => Ok(self.part(start, end)),
            None => Err(self.no_mode(i)),
        }
    }

    const fn no_mode(&self, i: usize) -> LayoutError {
        let mut text = Text::new();
        text.layout(self).str(" has no mode ").number(i as i64);
        text.str(": its rank is ").number(self.rank() as i64);
        LayoutError::new(ErrorKind::Mismatch, &text)
    }

    const fn part(&self, start: usize, end: usize) -> Layout {
        let mut part = Layout::EMPTY;
        part.profile = self.profile.part(start, end);
        let mut i = start;
        while i < end {
            part.shape[i - start] = self.shape[i];
            part.stride[i - start] = self.stride[i];
            i += 1;
        }
        part
    }

    /// The layout at a path: `get(&[1, 0])` is mode 0 of mode 1.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub const fn get(&self, path: &[usize]) -> Layout {
        or_panic(self.try_get(path))
    }

    /// [`get`](Self::get), or the reason why there is none.
    ///
    /// # Errors
    /// If the path leads to no mode.
    pub const fn try_get(&self, path: &[usize]) -> Result<Layout, LayoutError> {
        let mut layout = *self;
        let mut i = 0;
        while i < path.len() {
            layout = tri!(layout.try_mode(path[i]));
            i += 1;
        }
        Ok(layout)
    }

    /// The number of leaves, at any depth.
    pub const fn num_leaves(&self) -> usize {
        self.profile.len()
    }

    /// The extent of leaf `i` from the left.
    pub const fn leaf_shape(&self, i: usize) -> Int {
        assert!(
            i < self.num_leaves(),
            "leaf_shape: the layout has no such leaf: leaves are counted from 0, below num_leaves()"
        );
        self.shape[i]
    }

    /// The stride of leaf `i` from the left.
    pub const fn leaf_stride(&self, i: usize) -> Int {
        assert!(
            i < self.num_leaves(),
            "leaf_stride: the layout has no such leaf: leaves are counted from 0, below num_leaves()"
        );
        self.stride[i]
    }

    pub(crate) const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The leaves as a list, for computations.
    pub(crate) const fn modes(&self) -> Modes {
        Modes {
            shape: self.shape,
            stride: self.stride,
            len: self.num_leaves(),
        }
    }

    /// Whether every extent and stride is static.
    pub const fn is_static(&self) -> bool {
        let mut i = 0;
        while i < self.num_leaves() {
            if !self.shape[i].is_static() || !self.stride[i].is_static() {
                return false;
            }
            i += 1;
        }
        true
    }

    /// The same layout, all static.
    pub const fn to_static(&self) -> Layout {
        self.with_static(true)
    }

    /// The same layout, all dynamic.
    pub const fn to_dynamic(&self) -> Layout {
        self.with_static(false)
    }

    const fn with_static(&self, is_static: bool) -> Layout {
        let mut layout = *self;
        let mut i = 0;
        while i < self.num_leaves() {
            layout.shape[i] = self.shape[i].with_static(is_static);
            layout.stride[i] = self.stride[i].with_static(is_static);
            i += 1;
        }
        layout
    }

    /// Whether any mode steps in a basis direction. Modes of extent 1 or stride 0 do not step.
    pub const fn has_basis(&self) -> bool {
        let mut i = 0;
        while i < self.num_leaves() {
            let moves = self.shape[i].value() > 1 && self.stride[i].value() != 0;
            if moves && !self.stride[i].basis().is_none() {
                return true;
            }
            i += 1;
        }
        false
    }

    /// The index of a 1-D coordinate.
    ///
    /// A coordinate may lie beyond the size: the last mode continues, so `(6,4):(1,7)` maps 24 to
    /// 28, and `(6,1):(1,7)` maps 6 to 7.
    ///
    /// # Panics
    /// If the coordinate is negative, the index does not fit 64 bits, or strides are in basis
    /// directions ([`at_basis`](Self::at_basis) is for those).
    pub const fn at(&self, c: i64) -> i64 {
        assert!(
            !self.steps_in_a_direction(c),
            "at: the strides are in basis directions, so there is an index per direction: use at_basis"
        );
        self.component_at(c, 0)
    }

    /// Component `b` of the result for a 1-D coordinate, if strides are in basis directions. A
    /// plain stride counts in component 0.
    ///
    /// # Panics
    /// If the coordinate is negative, the result does not fit 64 bits, or a direction lies within
    /// another, such as `1@0@1` ([`call`](Self::call) is for those).
    pub const fn at_basis(&self, c: i64, b: usize) -> i64 {
        self.assert_components(
            "at_basis: a stride is in a direction within another, which no component has: use call",
        );
        self.component_at(c, b)
    }

    /// Panics if a stride is in a direction within another, whose components are not integers.
    pub(crate) const fn assert_components(&self, why: &str) {
        let mut i = 0;
        while i < self.num_leaves() {
            assert!(self.stride[i].basis().depth() <= 1, "{}", why);
            i += 1;
        }
    }

    /// Whether any stride has a component `b`.
    pub(crate) const fn steps_along(&self, b: usize) -> bool {
        let mut i = 0;
        while i < self.num_leaves() {
            if self.stride[i].component(b) != 0 {
                return true;
            }
            i += 1;
        }
        false
    }

    const fn component_at(&self, c: i64, b: usize) -> i64 {
        assert!(
            c >= 0,
            "at: the 1-D coordinate is negative: give one of at least 0"
        );
        match self.try_component(c, b) {
            Some(index) => index,
            None => panic!("at: the index does not fit 64 bits"),
        }
    }

    /// [`at`](Self::at), or `None` for a negative coordinate, strides in basis directions, or an
    /// index beyond 64 bits.
    pub const fn try_at(&self, c: i64) -> Option<i64> {
        if c < 0 || self.steps_in_a_direction(c) {
            None
        } else {
            self.try_component(c, 0)
        }
    }

    /// Whether any mode that leads to a 1-D coordinate steps in a basis direction. Beyond the size,
    /// the last mode does, whatever its extent is.
    const fn steps_in_a_direction(&self, c: i64) -> bool {
        let last = self.stride[self.num_leaves() - 1];
        let runs_on = last.value() != 0 && !last.basis().is_none();
        self.has_basis() || (runs_on && c >= self.size())
    }

    /// [`at_basis`](Self::at_basis) of each of the first `count` coordinates; the rest of the array
    /// is 0. The compiler makes this table with one addition per entry, without splitting
    /// coordinates.
    ///
    /// ```
    /// use cutlet_layout_core::{L, StaticLayout};
    ///
    /// const TABLE: [i64; 6] = <L!((2, 3):(3, 1))>::LAYOUT.first_indices(6, 0);
    /// assert_eq!(TABLE, [0, 3, 1, 4, 2, 5]);
    /// ```
    ///
    /// # Panics
    /// If the array is too short, an index does not fit 64 bits, or a direction lies within another.
    pub const fn first_indices<const N: usize>(&self, count: usize, b: usize) -> [i64; N] {
        self.assert_components(
            "first_indices: a stride is in a direction within another, which no component has: use call",
        );
        assert!(
            count <= N,
            "first_indices: count is larger than the array: use a longer one"
        );
        let mut table = [0; N];
        let last = self.num_leaves() - 1;
        // Each leaf repeats the entries so far, one stride further each time.
        let mut period = 1;
        let mut i = 0;
        while i <= last && period < count {
            let stride = self.stride[i].component(b);
            let extent = self.shape[i].value() as usize;
            let end = if extent > count / period {
                count
            } else {
                period * extent
            };
            let mut at = period;
            // These indices are within the size, so they fit.
            while at < end {
                table[at] = table[at - period] + stride;
                at += 1;
            }
            // The last mode continues.
            while i == last && at < count {
                table[at] = match table[at - period].checked_add(stride) {
                    Some(index) => index,
                    None => panic!("first_indices: an index does not fit 64 bits"),
                };
                at += 1;
            }
            period = at;
            i += 1;
        }
        table
    }

    const fn try_component(&self, c: i64, b: usize) -> Option<i64> {
        let last = self.num_leaves() - 1;
        let mut rest = c;
        let mut index: i64 = 0;
        let mut i = 0;
        while i <= last && rest > 0 {
            let extent = self.shape[i].value();
            let digit = if i == last { rest } else { rest % extent };
            rest /= extent;
            let offset = match digit.checked_mul(self.stride[i].component(b)) {
                Some(offset) => offset,
                None => return None,
            };
            index = match index.checked_add(offset) {
                Some(index) => index,
                None => return None,
            };
            i += 1;
        }
        Some(index)
    }

    /// Checks that extents are at least 1, and that the size and every index fit 64 bits.
    const fn check(&self) -> Result<(), LayoutError> {
        if self.num_leaves() == 0 {
            return Err(LayoutError::of(
                ErrorKind::Invalid,
                "layout: there are no modes: give at least one",
            ));
        }
        let mut size: i64 = 1;
        let mut low: i64 = 0;
        let mut high: i64 = 0;
        let mut i = 0;
        while i < self.num_leaves() {
            let extent = self.shape[i].value();
            if extent < 1 || !self.shape[i].basis().is_none() {
                let mut text = Text::new();
                text.str("layout: ").layout(self).str(" has the extent ");
                text.int(self.shape[i])
                    .str(": extents are plain integers of at least 1");
                return Err(LayoutError::new(ErrorKind::Invalid, &text));
            }
            let fits = match (
                size.checked_mul(extent),
                self.stride[i].value().checked_mul(extent - 1),
            ) {
                (Some(product), Some(span)) => {
                    size = product;
                    let sum = if span < 0 {
                        low.checked_add(span)
                    } else {
                        high.checked_add(span)
                    };
                    match sum {
                        Some(sum) if span < 0 => {
                            low = sum;
                            true
                        }
                        Some(sum) if sum < i64::MAX => {
                            high = sum;
                            true
                        }
                        _ => false,
                    }
                }
                _ => false,
            };
            if !fits {
                let mut text = Text::new();
                text.str("layout: the size or an index of ").layout(self);
                text.str(" does not fit 64 bits");
                return Err(LayoutError::new(ErrorKind::Overflow, &text));
            }
            i += 1;
        }
        Ok(())
    }

    /// Equality of values and parentheses, in `const`.
    pub const fn eq(&self, other: &Layout) -> bool {
        self.shape().eq(&other.shape()) && self.stride().eq(&other.stride())
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Layout) -> bool {
        Layout::eq(self, other)
    }
}

impl Eq for Layout {}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape(), self.stride())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Layout> for IntTuple {
    /// The layout's shape, which stands for the layout where a shape is expected.
    fn from(layout: Layout) -> IntTuple {
        layout.shape()
    }
}

impl Modes {
    /// The fewest modes that compute the same function as a layout, as far as `knowledge` allows.
    pub(crate) const fn coalesced(layout: &Layout, knowledge: Knowledge) -> Modes {
        let mut modes = layout.modes();
        modes.coalesce(knowledge);
        modes
    }

    /// The layout of the list: a leaf for a single mode, `_1:_0` for none, a flat tuple otherwise.
    pub(crate) const fn to_layout(&self) -> Result<Layout, LayoutError> {
        if self.len == 0 {
            Ok(Layout::UNIT)
        } else {
            let mut builder = LayoutBuilder::new();
            builder.append_list(self);
            builder.finish()
        }
    }

    /// The coalesced layout of the list, simplified by static integers only. The list itself is
    /// coalesced, too.
    pub(crate) const fn to_coalesced(&mut self) -> Result<Layout, LayoutError> {
        self.coalesce(Knowledge::Static);
        self.to_layout()
    }
}

/// Writes a [`Layout`] from left to right; [`finish`](Self::finish) checks it.
#[derive(Clone, Copy)]
pub(crate) struct LayoutBuilder {
    /// The layout so far. Its profile is filled in at the end.
    layout: Layout,
    profile: ProfileBuilder,
}

impl LayoutBuilder {
    pub(crate) const fn new() -> LayoutBuilder {
        LayoutBuilder {
            layout: Layout::EMPTY,
            profile: ProfileBuilder::new(),
        }
    }

    pub(crate) const fn open(&mut self) {
        self.profile.open();
    }

    pub(crate) const fn opens(&mut self, times: usize) {
        let mut i = 0;
        while i < times {
            self.open();
            i += 1;
        }
    }

    pub(crate) const fn close(&mut self) {
        self.profile.close();
    }

    pub(crate) const fn closes(&mut self, times: usize) {
        let mut i = 0;
        while i < times {
            self.close();
            i += 1;
        }
    }

    pub(crate) const fn leaf(&mut self, shape: Int, stride: Int) {
        let at = self.profile.leaf();
        self.place(at, shape, stride);
    }

    /// Adds a leaf with the parentheses of leaf `like` of a profile.
    pub(crate) const fn leaf_like(
        &mut self,
        profile: &Profile,
        like: usize,
        shape: Int,
        stride: Int,
    ) {
        let at = self
            .profile
            .leaf_in(profile.opens(like), profile.closes(like));
        self.place(at, shape, stride);
    }

    const fn place(&mut self, at: Option<usize>, shape: Int, stride: Int) {
        if let Some(at) = at {
            self.layout.shape[at] = shape;
            self.layout.stride[at] = stride;
        }
    }

    /// Adds a layout as one mode.
    pub(crate) const fn append(&mut self, layout: &Layout) {
        self.append_leaves(layout, 0, layout.num_leaves(), 0, 0);
    }

    /// Adds mode `i` of a layout as one mode.
    pub(crate) const fn append_mode(&mut self, layout: &Layout, i: usize) {
        let Some((start, end)) = layout.profile.mode(i) else {
            layout.no_mode(i).panic()
        };
        let (before, behind) = layout.profile.around(start, end);
        self.append_leaves(layout, start, end, before, behind);
    }

    /// Adds a list of modes as one mode.
    pub(crate) const fn append_list(&mut self, modes: &Modes) {
        let grouped = if modes.len > 1 { 1 } else { 0 };
        self.opens(grouped);
        let mut i = 0;
        while i < modes.len {
            self.leaf(modes.shape[i], modes.stride[i]);
            i += 1;
        }
        self.closes(grouped);
    }

    /// Adds modes `start..end` of a list as one mode, with the parentheses of leaf `like` of a
    /// profile.
    pub(crate) const fn append_range(
        &mut self,
        profile: &Profile,
        like: usize,
        modes: &Modes,
        start: usize,
        end: usize,
    ) {
        let grouped = if end - start > 1 { 1 } else { 0 };
        let mut i = start;
        while i < end {
            let opens = if i == start {
                profile.opens(like) + grouped
            } else {
                0
            };
            let closes = if i + 1 == end {
                profile.closes(like) + grouped
            } else {
                0
            };
            let at = self.profile.leaf_in(opens, closes);
            self.place(at, modes.shape[i], modes.stride[i]);
            i += 1;
        }
    }

    /// Adds the modes of a layout, without the parentheses around them.
    pub(crate) const fn append_modes(&mut self, layout: &Layout) {
        let (before, behind) = layout.profile.around(0, layout.num_leaves());
        self.append_leaves(layout, 0, layout.num_leaves(), before, behind);
    }

    /// Adds leaves `start..end`, without the outermost `before` parentheses of the first and
    /// `behind` parentheses of the last.
    pub(crate) const fn append_leaves(
        &mut self,
        layout: &Layout,
        start: usize,
        end: usize,
        before: usize,
        behind: usize,
    ) {
        let mut i = start;
        while i < end {
            let opens = layout.profile.opens(i) - if i == start { before } else { 0 };
            let closes = layout.profile.closes(i) - if i + 1 == end { behind } else { 0 };
            let at = self.profile.leaf_in(opens, closes);
            self.place(at, layout.shape[i], layout.stride[i]);
            i += 1;
        }
    }

    /// Checks the layout that was written.
    pub(crate) const fn check(&mut self) -> Result<(), LayoutError> {
        tri!(self.close_list());
        self.layout.check()
    }

    /// Checks only the parentheses: the leaves may be those of several layouts.
    pub(crate) const fn close_list(&mut self) -> Result<(), LayoutError> {
        self.layout.profile = tri!(self.profile.finish());
        Ok(())
    }

    /// The layout that was written and checked, by reference.
    pub(crate) const fn written(&self) -> &Layout {
        &self.layout
    }

    /// The number of leaves that were written, at most [`CAPACITY`].
    pub(crate) const fn num_leaves(&self) -> usize {
        self.profile.num_leaves()
    }

    /// The layout that was written, checked.
    pub(crate) const fn finish(&mut self) -> Result<Layout, LayoutError> {
        tri!(self.check());
        Ok(self.layout)
    }
}

impl Text {
    /// A layout: `(2,4):(12,1)`.
    pub(crate) const fn layout(&mut self, layout: &Layout) -> &mut Text {
        self.tuple(&layout.shape()).str(":").tuple(&layout.stride())
    }
}
