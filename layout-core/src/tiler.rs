//! Tilers: the operands by which layouts are composed, divided and multiplied, mode by mode.

use core::fmt;

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::layout::LayoutBuilder;
use crate::profile::{Profile, ProfileBuilder};
use crate::text::Text;
use crate::{CAPACITY, Int, IntTuple, Layout};

/// A layout, a tuple of tilers `<a, b, …>`, or `_`, which leaves a mode as it is.
///
/// A shape is a tiler too: a tuple of layouts of stride 1. [`tile!`](crate::tile!) reads tilers in
/// CuTe's notation.
///
/// ```
/// use cutlet_layout_core::{Tiler, tile};
///
/// const T: Tiler = tile!(<3:4, (2, 4):(1, 8), _>);
/// assert_eq!(T.to_string(), "<_3:_4,(_2,_4):(_1,_8),_>");
/// assert_eq!(T.rank(), 3);
/// ```
#[derive(Clone, Copy)]
pub struct Tiler {
    /// The angle brackets, with one leaf for each layout or underscore.
    angles: Profile,
    underscores: u32,
    /// The end of each item's leaves.
    ends: [u8; CAPACITY],
    /// The layouts' leaves, one layout behind the other. If the tiler is a layout, this is the
    /// layout.
    leaves: Layout,
}

/// The kind of a [`Tiler`] at its outermost level.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is no heap to put a layout on"
)]
pub enum TilerKind {
    /// A layout, which tiles a layout as a function of 1-D coordinates.
    Layout(Layout),
    /// `_`: the mode is left as it is.
    Underscore,
    /// A tuple: mode by mode.
    Tuple,
}

/// The kind of a mode of a [`Tiler`]: a [`TilerKind`] without the layout.
pub(crate) enum ModeKind {
    Layout,
    Underscore,
    Tuple,
}

impl Tiler {
    /// `_`.
    pub const UNDERSCORE: Tiler = {
        let mut builder = TilerBuilder::new();
        builder.underscore();
        or_panic(builder.finish())
    };

    /// A layout as a tiler.
    pub const fn layout(layout: &Layout) -> Tiler {
        let mut builder = TilerBuilder::new();
        builder.layout(layout);
        or_panic(builder.finish())
    }

    /// A shape as a tiler: integers are layouts of stride 1, `_` leaves its mode
    /// as it is.
    ///
    /// # Panics
    /// If [`try_shape`](Self::try_shape) returns an error.
    #[track_caller]
    pub const fn shape(shape: &IntTuple) -> Tiler {
        or_panic(Tiler::try_shape(shape))
    }

    /// A shape as a tiler: integers are layouts of stride 1, `_` leaves its mode
    /// as it is.
    ///
    /// # Errors
    /// If an extent is below 1, or the tuple is empty.
    pub const fn try_shape(shape: &IntTuple) -> Result<Tiler, LayoutError> {
        let mut builder = TilerBuilder::new();
        let mut i = 0;
        while i < shape.num_leaves() {
            let mut level = 0;
            while level < shape.profile().opens(i) {
                builder.open();
                level += 1;
            }
            if shape.is_underscore(i) {
                builder.underscore();
            } else {
                let mut mode = LayoutBuilder::new();
                mode.leaf(shape.leaf(i), Int::ONE);
                builder.layout(&tri!(mode.finish()));
            }
            level = 0;
            while level < shape.profile().closes(i) {
                builder.close();
                level += 1;
            }
            i += 1;
        }
        builder.finish()
    }

    /// `<a, b, …>`.
    ///
    /// # Panics
    /// If [`try_tuple`](Self::try_tuple) returns an error.
    #[track_caller]
    pub const fn tuple(items: &[Tiler]) -> Tiler {
        or_panic(Tiler::try_tuple(items))
    }

    /// `<a, b, …>`.
    ///
    /// # Errors
    /// If the tuple is empty, or has more than [`CAPACITY`] leaves or
    /// [`MAX_DEPTH`](crate::MAX_DEPTH) levels.
    pub const fn try_tuple(items: &[Tiler]) -> Result<Tiler, LayoutError> {
        let mut builder = TilerBuilder::new();
        builder.open();
        let mut i = 0;
        while i < items.len() {
            builder.append(&items[i]);
            i += 1;
        }
        builder.close();
        builder.finish()
    }

    /// The kind at the outermost level.
    pub const fn kind(&self) -> TilerKind {
        if self.is_tuple() {
            TilerKind::Tuple
        } else if self.underscores & 1 == 1 {
            TilerKind::Underscore
        } else {
            TilerKind::Layout(self.item(0))
        }
    }

    /// The layout, if the tiler is one.
    pub const fn as_layout(&self) -> Option<&Layout> {
        if self.angles.is_leaf() && self.underscores == 0 {
            Some(&self.leaves)
        } else {
            None
        }
    }

    pub(crate) const fn is_tuple(&self) -> bool {
        !self.angles.is_leaf()
    }

    /// The number of modes that are tiled: 1 for a layout or `_`.
    pub const fn rank(&self) -> usize {
        self.angles.rank()
    }

    /// The number of elements of a tile; `None` if a mode is `_` or the size does not fit 64 bits.
    ///
    /// ```
    /// use cutlet_layout_core::{Int, tile};
    ///
    /// assert_eq!(tile!(<3:4, (2, 4):(1, 8)>).size(), Some(Int::fixed(24)));
    /// assert_eq!(tile!(<4, _>).size(), None);
    /// ```
    pub const fn size(&self) -> Option<Int> {
        let mut size = Int::ONE;
        let mut item = 0;
        while item < self.num_items() {
            if self.is_underscore(item) {
                return None;
            }
            item += 1;
        }
        let mut i = 0;
        while i < self.leaves.num_leaves() {
            size = match size.checked_mul(self.leaves.leaf_shape(i)) {
                Some(size) => size,
                None => return None,
            };
            i += 1;
        }
        Some(size)
    }

    /// The tiler of mode `i`, CuTe's `get<i>`. [`as_layout`](Self::as_layout) has its layout.
    ///
    /// # Panics
    /// If [`try_mode`](Self::try_mode) returns an error.
    #[track_caller]
    pub const fn mode(&self, i: usize) -> Tiler {
        or_panic(self.try_mode(i))
    }

    /// [`mode`](Self::mode), or the reason why there is none.
    ///
    /// # Errors
    /// If `i` is not below the rank.
    pub const fn try_mode(&self, i: usize) -> Result<Tiler, LayoutError> {
        let Some((start, end)) = self.angles.mode(i) else {
            let mut text = Text::new();
            text.str("mode: the tiler has no mode ").number(i as i64);
            text.str(": its rank is ")
                .number(self.rank() as i64)
                .str(", and modes are counted from 0");
            return Err(LayoutError::new(ErrorKind::Mismatch, &text));
        };
        let part = self.angles.part(start, end);
        let mut builder = TilerBuilder::new();
        let mut item = start;
        while item < end {
            builder.item_of(self, item, &part, item - start);
            item += 1;
        }
        builder.finish()
    }

    /// The tiler at a path: `get(&[1, 0])` is mode 0 of mode 1.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, tile};
    ///
    /// let tiler = tile!(<3:4, <8:2, _>>);
    /// assert_eq!(tiler.get(&[1, 0]).as_layout(), Some(&layout!(8:2)));
    /// ```
    ///
    /// # Panics
    /// If [`try_get`](Self::try_get) returns an error.
    #[track_caller]
    pub const fn get(&self, path: &[usize]) -> Tiler {
        or_panic(self.try_get(path))
    }

    /// [`get`](Self::get), or the reason why there is none.
    ///
    /// # Errors
    /// If the path leads to no mode.
    pub const fn try_get(&self, path: &[usize]) -> Result<Tiler, LayoutError> {
        let mut tiler = *self;
        let mut i = 0;
        while i < path.len() {
            tiler = tri!(tiler.try_mode(path[i]));
            i += 1;
        }
        Ok(tiler)
    }

    /// The [`kind`](Self::kind) of mode `i`. A layout is written to the empty `builder`, and
    /// checked.
    pub(crate) const fn mode_kind(&self, i: usize, builder: &mut LayoutBuilder) -> ModeKind {
        match self.angles.mode(i) {
            Some((item, end)) if end == item + 1 && !self.is_nested(item) => {
                if self.is_underscore(item) {
                    return ModeKind::Underscore;
                }
                let (start, end) = self.range(item);
                builder.append_leaves(&self.leaves, start, end, 0, 0);
                or_panic(builder.check());
                ModeKind::Layout
            }
            _ => ModeKind::Tuple,
        }
    }

    /// Whether an item that is a mode on its own has angle brackets of its own, as in `<<4:1>,8:1>`.
    const fn is_nested(&self, item: usize) -> bool {
        let (before, _) = self.angles.around(item, item + 1);
        self.angles.opens(item) > before
    }

    /// The static tiler that [`tile!`](crate::tile!) was given.
    #[doc(hidden)]
    #[track_caller]
    pub const fn of_notation(text: &str) -> Tiler {
        or_panic(Tiler::parse(text)).to_static()
    }

    /// The tiler with every integer static.
    pub const fn to_static(&self) -> Tiler {
        Tiler {
            leaves: self.leaves.to_static(),
            ..*self
        }
    }

    /// The range of an item's leaves.
    const fn range(&self, item: usize) -> (usize, usize) {
        let start = if item == 0 {
            0
        } else {
            self.ends[item - 1] as usize
        };
        (start, self.ends[item] as usize)
    }

    const fn item(&self, item: usize) -> Layout {
        let (start, end) = self.range(item);
        let mut builder = LayoutBuilder::new();
        builder.append_leaves(&self.leaves, start, end, 0, 0);
        or_panic(builder.finish())
    }

    const fn num_items(&self) -> usize {
        self.angles.len()
    }

    const fn is_underscore(&self, item: usize) -> bool {
        self.underscores >> item & 1 == 1
    }
}

impl From<Layout> for Tiler {
    fn from(layout: Layout) -> Tiler {
        Tiler::layout(&layout)
    }
}

impl fmt::Display for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in 0..self.num_items() {
            if item > 0 {
                f.write_str(",")?;
            }
            for _ in 0..self.angles.opens(item) {
                f.write_str("<")?;
            }
            if self.is_underscore(item) {
                f.write_str("_")?;
            } else {
                write!(f, "{}", self.item(item))?;
            }
            for _ in 0..self.angles.closes(item) {
                f.write_str(">")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes a [`Tiler`] from left to right.
#[derive(Clone, Copy)]
pub(crate) struct TilerBuilder {
    angles: ProfileBuilder,
    leaves: LayoutBuilder,
    underscores: u32,
    ends: [u8; CAPACITY],
}

impl TilerBuilder {
    pub(crate) const fn new() -> TilerBuilder {
        TilerBuilder {
            angles: ProfileBuilder::new(),
            leaves: LayoutBuilder::new(),
            underscores: 0,
            ends: [0; CAPACITY],
        }
    }

    pub(crate) const fn open(&mut self) {
        self.angles.open();
    }

    pub(crate) const fn close(&mut self) {
        self.angles.close();
    }

    pub(crate) const fn underscore(&mut self) {
        if let Some(item) = self.angles.leaf() {
            self.underscores |= 1 << item;
            self.ends[item] = self.leaves.num_leaves() as u8;
        }
    }

    pub(crate) const fn layout(&mut self, layout: &Layout) {
        self.layouts(layout, 0, layout.num_leaves());
    }

    /// Adds an item: leaves `start..end` of `layouts`.
    const fn layouts(&mut self, layouts: &Layout, start: usize, end: usize) {
        self.leaves.append_leaves(layouts, start, end, 0, 0);
        if let Some(item) = self.angles.leaf() {
            self.ends[item] = self.leaves.num_leaves() as u8;
        }
    }

    pub(crate) const fn append(&mut self, tiler: &Tiler) {
        let mut item = 0;
        while item < tiler.num_items() {
            self.item_of(tiler, item, &tiler.angles, item);
            item += 1;
        }
    }

    /// Adds an item of a tiler, with the angle brackets that `angles` has at `at`.
    const fn item_of(&mut self, tiler: &Tiler, item: usize, angles: &Profile, at: usize) {
        let mut level = 0;
        while level < angles.opens(at) {
            self.open();
            level += 1;
        }
        if tiler.is_underscore(item) {
            self.underscore();
        } else {
            let (start, end) = tiler.range(item);
            self.layouts(&tiler.leaves, start, end);
        }
        level = 0;
        while level < angles.closes(at) {
            self.close();
            level += 1;
        }
    }

    pub(crate) const fn finish(&mut self) -> Result<Tiler, LayoutError> {
        tri!(self.leaves.close_list());
        let angles = tri!(self.angles.finish());
        if angles.len() == 0 {
            return Err(LayoutError::of(
                ErrorKind::Invalid,
                "tiler: an empty tuple tiles nothing: give a tiler for each mode, `_` to keep one",
            ));
        }
        Ok(Tiler {
            angles,
            underscores: self.underscores,
            ends: self.ends,
            leaves: *self.leaves.written(),
        })
    }
}
