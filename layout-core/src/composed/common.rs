//! What two swizzled layouts have in common.

use super::ComposedLayout;
use super::carried::lowest;
use crate::error::{LayoutError, or_panic, tri};
use crate::{Int, Layout, Swizzle, try_composition, try_max_common_layout};

impl ComposedLayout<Swizzle> {
    /// A vector that two swizzled layouts agree on: elements that are consecutive in both, as
    /// [`max_common_layout`](crate::max_common_layout) finds for the outer layouts. A layout without
    /// a swizzle is one with `Sw<0,0,0>`.
    ///
    /// If the layouts have the same swizzle and offset, both permute the vector alike. If not, it
    /// ends with the `2^M` elements that a swizzle moves at a time, as in CuTe. An offset inside such
    /// a block makes it shorter.
    ///
    /// ```
    /// use cutlet_layout_core::{Swizzle, layout};
    ///
    /// let rows = layout!((8, 64):(64, 1));
    /// let (swizzled, plain) = (Swizzle::new(3, 3, 3), Swizzle::new(0, 0, 0));
    /// let common = swizzled.composition(&rows).max_common_layout(&plain.composition(&rows));
    /// assert_eq!(common.to_string(), "_8:_8");
    /// ```
    ///
    /// # Panics
    /// If [`try_max_common_layout`](Self::try_max_common_layout) returns an error.
    #[track_caller]
    pub const fn max_common_layout(&self, other: &ComposedLayout<Swizzle>) -> Layout {
        or_panic(self.try_max_common_layout(other))
    }

    /// [`max_common_layout`](Self::max_common_layout), or the reason why there is none.
    ///
    /// # Errors
    /// If strides are in basis directions.
    pub const fn try_max_common_layout(
        &self,
        other: &ComposedLayout<Swizzle>,
    ) -> Result<Layout, LayoutError> {
        let common = tri!(try_max_common_layout(&self.outer, &other.outer));
        if self.is_permuted_as(other) {
            return Ok(common);
        }
        let (own, others) = (self.moved_at_a_time(), other.moved_at_a_time());
        let mut most = if own < others { own } else { others };
        if most >= common.size() {
            return Ok(common);
        }
        while most > 1 {
            let first = Layout::leaf(Int::dynamic(most).with_static(common.is_static()), Int::ONE);
            if let Ok(part) = try_composition(&common, &first) {
                return Ok(part);
            }
            most /= 2;
        }
        Ok(Layout::UNIT)
    }

    /// The number of elements that are consecutive in both layouts: the size of
    /// [`max_common_layout`](Self::max_common_layout).
    ///
    /// # Panics
    /// If [`try_max_common_vector`](Self::try_max_common_vector) returns an error.
    #[track_caller]
    pub const fn max_common_vector(&self, other: &ComposedLayout<Swizzle>) -> Int {
        or_panic(self.try_max_common_vector(other))
    }

    /// [`max_common_vector`](Self::max_common_vector), or the reason why there is none.
    ///
    /// # Errors
    /// If strides are in basis directions.
    pub const fn try_max_common_vector(
        &self,
        other: &ComposedLayout<Swizzle>,
    ) -> Result<Int, LayoutError> {
        Ok(tri!(self.try_max_common_layout(other)).size_int())
    }

    /// Whether another layout has the same swizzle and the same offset.
    const fn is_permuted_as(&self, other: &ComposedLayout<Swizzle>) -> bool {
        let (own, others) = (self.inner, other.inner);
        own.bits() == others.bits()
            && own.base() == others.base()
            && own.shift() == others.shift()
            && self.offset.eq(&other.offset)
    }

    /// The number of elements that stay together: `2^M`, less if the offset is inside such a block.
    const fn moved_at_a_time(&self) -> i64 {
        if self.inner.bits() == 0 {
            return i64::MAX;
        }
        let block = 1 << self.inner.base();
        match self.offset.as_int() {
            Some(offset) if offset.value() != 0 && lowest(offset.value()) < block => {
                lowest(offset.value())
            }
            _ => block,
        }
    }
}
