//! Compositions that reach the inner transform of a composed layout, and inverses.

use super::ComposedLayout;
use super::carried::{Uncarried, carried, lowest};
use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::text::Text;
use crate::{Int, IntTuple, Layout, Swizzle, try_composition, try_left_inverse, try_right_inverse};

impl Swizzle {
    /// `self ∘ layout`: the swizzled layout.
    ///
    /// ```
    /// use cutlet_layout_core::{Swizzle, layout};
    ///
    /// const TILE: &str = "Sw<3,3,3> o _0 o (_8,_64):(_64,_1)";
    /// assert_eq!(Swizzle::new(3, 3, 3).composition(&layout!((8, 64):(64, 1))).to_string(), TILE);
    /// ```
    pub const fn composition(self, layout: &Layout) -> ComposedLayout<Swizzle> {
        ComposedLayout::new(self, IntTuple::int(Int::ZERO), *layout)
    }

    /// `layout ∘ self`, CuTe's `composition(layout, swizzle)`: the swizzle is applied to coordinates,
    /// before the layout. The result has another swizzle, which does the same behind the layout.
    ///
    /// ```
    /// use cutlet_layout_core::{Swizzle, layout};
    ///
    /// let (rows, swizzle) = (layout!((8, 8):(8, 1)), Swizzle::new(3, 0, 3));
    /// let both = swizzle.before(&rows);
    /// assert_eq!(both.to_string(), "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)");
    /// assert!((0..64).all(|c| both.at(c) == rows.at(swizzle.apply(c))));
    /// ```
    ///
    /// # Panics
    /// If [`try_before`](Self::try_before) returns an error.
    #[track_caller]
    pub const fn before(self, layout: &Layout) -> ComposedLayout<Swizzle> {
        or_panic(self.try_before(layout))
    }

    /// [`before`](Self::before), or the reason why there is no such swizzle.
    ///
    /// # Errors
    /// If the layout does not permute bits, has coordinates for only a part of the swizzled bits, or
    /// takes these apart.
    pub const fn try_before(self, layout: &Layout) -> Result<ComposedLayout<Swizzle>, LayoutError> {
        match carried(self, layout) {
            Ok(swizzle) => Ok(swizzle.composition(layout)),
            Err(why) => {
                let mut text = Text::new();
                text.str("composition: ").layout(layout).str(" o ");
                self.write(&mut text);
                text.str(": ").str(why.of_layout());
                Err(LayoutError::new(ErrorKind::NotRepresentable, &text))
            }
        }
    }
}

impl<I: Copy> ComposedLayout<I> {
    /// `self ∘ other`, whose inner transform is this composed layout with the inner layout of
    /// `other`.
    ///
    /// ```
    /// use cutlet_layout_core::{ComposedLayout, Swizzle, layout, shape};
    ///
    /// let tile = Swizzle::new(3, 0, 3).composition(&layout!((8, 8):(8, 1)));
    /// let shifted = ComposedLayout::new(layout!(64:1), shape!(9), layout!((2, 2):(1, 8)));
    /// let part = tile.nested(&shifted);
    /// assert_eq!(part.to_string(), "Sw<3,0,3> o _0 o (_8,_8):(_8,_1) o _9 o (_2,_2):(_1,_8)");
    /// assert_eq!(part.call(&shape!(0)), tile.call(&shape!(9)));
    /// ```
    ///
    /// # Panics
    /// If [`try_nested`](Self::try_nested) returns an error.
    #[track_caller]
    pub const fn nested(
        &self,
        other: &ComposedLayout<Layout>,
    ) -> ComposedLayout<ComposedLayout<I>> {
        match self.try_nested(other) {
            Ok(layout) => layout,
            Err(error) => error.panic(),
        }
    }

    /// [`nested`](Self::nested), or the reason why there is none.
    ///
    /// # Errors
    /// If the composition of this outer layout and the other's inner layout is refused.
    pub const fn try_nested(
        &self,
        other: &ComposedLayout<Layout>,
    ) -> Result<ComposedLayout<ComposedLayout<I>>, LayoutError> {
        let inner = ComposedLayout {
            inner: self.inner,
            offset: self.offset,
            outer: tri!(try_composition(&self.outer, &other.inner)),
        };
        Ok(ComposedLayout {
            inner,
            offset: other.offset,
            outer: other.outer,
        })
    }
}

impl ComposedLayout<Swizzle> {
    /// `swizzle ∘ self`.
    ///
    /// # Panics
    /// If [`try_after`](Self::try_after) returns an error.
    #[track_caller]
    pub const fn after(&self, swizzle: Swizzle) -> ComposedLayout<Swizzle> {
        or_panic(self.try_after(swizzle))
    }

    /// [`after`](Self::after), or the reason why there is none.
    ///
    /// # Errors
    /// If [`Swizzle::try_compose`] returns an error.
    pub const fn try_after(
        &self,
        swizzle: Swizzle,
    ) -> Result<ComposedLayout<Swizzle>, LayoutError> {
        Ok(ComposedLayout {
            inner: tri!(swizzle.try_compose(self.inner)),
            offset: self.offset,
            outer: self.outer,
        })
    }

    /// The swizzled layout `R` with `self(R(i)) = i`, for all `i` below its size.
    ///
    /// ```
    /// use cutlet_layout_core::{Swizzle, layout};
    ///
    /// let tile = Swizzle::new(3, 0, 3).composition(&layout!((8, 8):(8, 1)));
    /// let inverse = tile.right_inverse();
    /// assert_eq!(inverse.to_string(), "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)");
    /// assert!((0..64).all(|i| tile.at(inverse.at(i)) == i));
    /// ```
    ///
    /// # Panics
    /// If [`try_right_inverse`](Self::try_right_inverse) returns an error.
    #[track_caller]
    pub const fn right_inverse(&self) -> ComposedLayout<Swizzle> {
        or_panic(self.try_right_inverse())
    }

    /// [`right_inverse`](Self::right_inverse), or the reason why there is none.
    ///
    /// The inverse of the outer layout must permute the bits of an index. If only a part of the
    /// swizzled bits is in its domain, the inverse may end before the first of them.
    ///
    /// # Errors
    /// If the offset is not 0, or no swizzle does what this one does before the outer layout's
    /// inverse.
    pub const fn try_right_inverse(&self) -> Result<ComposedLayout<Swizzle>, LayoutError> {
        if !super::is_zero(&self.offset) {
            let why = "its offset is not 0, so it does not map to 0: move the offset elsewhere";
            return Err(refused("right_inverse", self, why));
        }
        let whole = tri!(try_right_inverse(&self.outer));
        match carried(self.inner, &whole) {
            Ok(swizzle) => Ok(swizzle.composition(&whole)),
            Err(Uncarried::PartOfBits) => {
                let untouched = lowest(self.inner.source_mask());
                let part = Layout::leaf(
                    Int::fixed(untouched).with_static(whole.is_static()),
                    Int::ONE,
                );
                let part = tri!(try_composition(&whole, &part));
                Ok(Swizzle::new(0, 0, 0).composition(&part))
            }
            Err(why) => Err(refused("right_inverse", self, why.of_inverse())),
        }
    }

    /// The swizzled layout `L` with `L(self(c)) = c`, for every coordinate `c`.
    ///
    /// ```
    /// use cutlet_layout_core::{Swizzle, layout};
    ///
    /// let tile = Swizzle::new(3, 0, 3).composition(&layout!((8, 8):(8, 1)));
    /// let inverse = tile.left_inverse();
    /// assert_eq!(inverse.to_string(), "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)");
    /// assert!((0..64).all(|c| inverse.at(tile.at(c)) == c));
    /// ```
    ///
    /// # Panics
    /// If [`try_left_inverse`](Self::try_left_inverse) returns an error.
    #[track_caller]
    pub const fn left_inverse(&self) -> ComposedLayout<Swizzle> {
        or_panic(self.try_left_inverse())
    }

    /// [`left_inverse`](Self::left_inverse), or the reason why there is none.
    ///
    /// # Errors
    /// If the offset is not 0, the outer layout has no left inverse, or no swizzle does what this one
    /// does before that inverse.
    pub const fn try_left_inverse(&self) -> Result<ComposedLayout<Swizzle>, LayoutError> {
        if !super::is_zero(&self.offset) {
            let why =
                "its offset is not 0, so its indices do not begin at 0: move the offset elsewhere";
            return Err(refused("left_inverse", self, why));
        }
        let inverse = tri!(try_left_inverse(&self.outer));
        match carried(self.inner, &inverse) {
            Ok(swizzle) => Ok(swizzle.composition(&inverse)),
            Err(why) => Err(refused("left_inverse", self, why.of_inverse())),
        }
    }
}

const fn refused(operation: &str, layout: &ComposedLayout<Swizzle>, why: &str) -> LayoutError {
    let mut text = Text::new();
    text.str(operation).str(": ");
    layout.inner.write(&mut text);
    text.str(" o ")
        .tuple(&layout.offset)
        .str(" o ")
        .layout(&layout.outer);
    text.str(": ").str(why);
    LayoutError::new(ErrorKind::NotRepresentable, &text)
}

impl ComposedLayout<Layout> {
    /// `layout ∘ self`.
    ///
    /// # Panics
    /// If [`try_after`](Self::try_after) returns an error.
    #[track_caller]
    pub const fn after(&self, layout: &Layout) -> ComposedLayout<Layout> {
        or_panic(self.try_after(layout))
    }

    /// [`after`](Self::after), or the reason why there is none.
    ///
    /// # Errors
    /// If the composition with the inner layout is refused.
    pub const fn try_after(&self, layout: &Layout) -> Result<ComposedLayout<Layout>, LayoutError> {
        Ok(ComposedLayout {
            inner: tri!(try_composition(layout, &self.inner)),
            offset: self.offset,
            outer: self.outer,
        })
    }

    /// The longest layout `R` with `self(R(i)) = i`, for all `i` below its size.
    ///
    /// # Panics
    /// If [`try_right_inverse`](Self::try_right_inverse) returns an error.
    #[track_caller]
    pub const fn right_inverse(&self) -> Layout {
        or_panic(self.try_right_inverse())
    }

    /// [`right_inverse`](Self::right_inverse), or the reason why there is none.
    ///
    /// # Errors
    /// If the offset is not 0, or inner and outer layout have no composition.
    pub const fn try_right_inverse(&self) -> Result<Layout, LayoutError> {
        try_right_inverse(&tri!(self.as_one("right_inverse")))
    }

    /// A layout `L` with `L(self(c)) = c`, for every coordinate `c`.
    ///
    /// # Panics
    /// If [`try_left_inverse`](Self::try_left_inverse) returns an error.
    #[track_caller]
    pub const fn left_inverse(&self) -> Layout {
        or_panic(self.try_left_inverse())
    }

    /// [`left_inverse`](Self::left_inverse), or the reason why there is none.
    ///
    /// # Errors
    /// If the offset is not 0, inner and outer layout have no composition, or it has no left inverse.
    pub const fn try_left_inverse(&self) -> Result<Layout, LayoutError> {
        try_left_inverse(&tri!(self.as_one("left_inverse")))
    }

    /// The composition of inner and outer layout, for an operation that needs one layout.
    const fn as_one(&self, operation: &str) -> Result<Layout, LayoutError> {
        if super::is_zero(&self.offset) {
            return try_composition(&self.inner, &self.outer);
        }
        let mut text = Text::new();
        text.str(operation).str(": ").layout(&self.inner).str(" o ");
        text.tuple(&self.offset).str(" o ").layout(&self.outer);
        text.str(": the offset is not 0: compose the layouts without it");
        Err(LayoutError::new(ErrorKind::Mismatch, &text))
    }
}
