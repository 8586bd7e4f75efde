//! [`CoordinateLayout`]: a layout of coordinates whose extents are known at the launch, for kernels.

use core::num::NonZeroU32;

use crate::{Divide, Divisor, Layout, TensorMapShape};

/// The most dimensions of a coordinate, as of a tensor that TMA moves.
const MAX_RANK: usize = TensorMapShape::MAX_RANK;

/// A layout from (row, column) to coordinates of `R` dimensions, up to 5, plus an origin. Rows have `M` leaves and
/// columns `N`.
///
/// The host makes it of a [`Layout`] with strides in basis directions, before the launch. The kernel multiplies where
/// the layout divides.
///
/// ```
/// use cutlet_layout_core::{CoordinateLayout, layout};
///
/// // Windows of 3 × 3 pixels, a stride of 2 pixels apart, in an image of lines along direction 0. There are 7 × 5
/// // windows. The first one begins a pixel before the image.
/// let windows = layout!(((7, 5), (3, 3)):((2@0, 2@1), (1@0, 1@1)));
/// let windows = CoordinateLayout::<2, 2, 2>::new(&windows, [-1, -1]);
/// assert_eq!(windows.at(0, 0), [-1, -1]);
/// // The window at (3, 1), and its pixel at (2, 1).
/// assert_eq!(windows.at(3 + 7 * 1, 2 + 3 * 1), [2 * 3 + 2 - 1, 2 * 1 + 1 - 1]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CoordinateLayout<const R: usize, const M: usize, const N: usize> {
    /// 0 beyond the rank. With three more elements, the size is a multiple of 16 bytes, so that a struct of a tensor
    /// map and a layout has no padding.
    origin: [i32; MAX_RANK + 3],
    rows: [Leaf; M],
    columns: [Leaf; N],
}

/// A leaf of a layout of coordinates, in 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Leaf {
    extent: Divisor,
    /// 0 beyond the rank.
    stride: [i32; MAX_RANK],
}

impl<const R: usize, const M: usize, const N: usize> CoordinateLayout<R, M, N> {
    const NO_COORDINATE: [i32; R] = {
        assert!(
            R <= MAX_RANK,
            "CoordinateLayout: a coordinate has at most 5 dimensions"
        );
        [0; R]
    };

    /// The layout `layout`, of two modes with `M` and `N` leaves, moved by `origin`.
    ///
    /// # Panics
    /// If the layout has other modes or leaves, if a stride is not in one of `R` directions, or if an extent or a
    /// stride is not below 2³¹.
    #[track_caller]
    pub const fn new(layout: &Layout, origin: [i32; R]) -> Self {
        assert!(
            layout.rank() == 2,
            "CoordinateLayout: the layout has a mode of rows and one of columns"
        );
        let _ = Self::NO_COORDINATE;
        let mut from = [0; MAX_RANK + 3];
        let mut direction = 0;
        while direction < R {
            from[direction] = origin[direction];
            direction += 1;
        }
        Self {
            origin: from,
            rows: leaves::<R, M>(&layout.mode(0)),
            columns: leaves::<R, N>(&layout.mode(1)),
        }
    }

    /// The coordinate of (row, column). Beyond the last row or column, the last leaf goes on.
    ///
    /// # Panics
    /// If a component is not below 2³¹. A GPU does not check it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn at(&self, row: u32, column: u32) -> [i32; R] {
        self.along_row(self.row(row), column)
    }

    /// The coordinate of the first column of a row.
    ///
    /// # Panics
    /// As [`at`](Self::at).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn row(&self, row: u32) -> [i32; R] {
        let mut at = const { Self::NO_COORDINATE };
        at.copy_from_slice(&self.origin[..R]);
        add(&mut at, &self.rows, row);
        at
    }

    /// The coordinate of a column of the row that begins at `row`: what [`row`](Self::row) returned, which serves for
    /// many columns.
    ///
    /// # Panics
    /// As [`at`](Self::at).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn along_row(&self, row: [i32; R], column: u32) -> [i32; R] {
        let mut at = row;
        add(&mut at, &self.columns, column);
        at
    }
}

#[track_caller]
const fn leaves<const R: usize, const COUNT: usize>(mode: &Layout) -> [Leaf; COUNT] {
    assert!(
        mode.num_leaves() == COUNT,
        "CoordinateLayout: a mode of the layout has another number of leaves than the type says"
    );
    let one = Leaf {
        extent: Divisor::new(NonZeroU32::MIN),
        stride: [0; MAX_RANK],
    };
    let mut leaves = [one; COUNT];
    let mut n = 0;
    while n < COUNT {
        leaves[n] = leaf::<R>(mode, n);
        n += 1;
    }
    leaves
}

#[track_caller]
const fn leaf<const R: usize>(mode: &Layout, n: usize) -> Leaf {
    let (extent, step) = (mode.leaf_shape(n).value(), mode.leaf_stride(n));
    assert!(
        extent < 1 << 31 && step.value() < 1 << 31 && step.value() > -(1 << 31),
        "CoordinateLayout: an extent or a stride is not below 2^31"
    );
    let mut stride = [0; MAX_RANK];
    let mut is_known = step.value() == 0;
    let mut direction = 0;
    while direction < R {
        stride[direction] = match step.basis().is_none() {
            true => 0,
            false => step.component(direction) as i32,
        };
        is_known |= stride[direction] != 0;
        direction += 1;
    }
    assert!(
        is_known,
        "CoordinateLayout: a stride is in none of the coordinate's directions: write it as `2@0`, in direction 0"
    );
    let Some(extent) = NonZeroU32::new(extent as u32) else {
        panic!("CoordinateLayout: an extent is 0")
    };
    Leaf {
        extent: Divisor::new(extent),
        stride,
    }
}

/// Adds the coordinate of an index. The last leaf takes what the others leave.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn add<const R: usize, const COUNT: usize>(at: &mut [i32; R], leaves: &[Leaf; COUNT], index: u32) {
    let mut rest = index;
    for (n, leaf) in leaves.iter().enumerate() {
        let (next, of_leaf) = if n + 1 < COUNT {
            leaf.extent.div_rem(rest)
        } else {
            (0, rest)
        };
        for (at, stride) in at.iter_mut().zip(&leaf.stride) {
            *at += stride * of_leaf as i32;
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout;

    #[test]
    fn coordinates_are_those_of_the_layout() {
        let of = layout!(((3, (4, 5)), (16, 2)):((1@1, (6@2, 2@3)), (1@0, -7@2)));
        let planned = CoordinateLayout::<4, 3, 2>::new(&of, [0, -1, 10, 100]);
        for row in 0..60u32 {
            for column in 0..32u32 {
                let at: [i64; 4] =
                    core::array::from_fn(|d| of.at_basis(i64::from(row + 60 * column), d));
                let [a, b, c, d] = at.map(|it| it as i32);
                assert_eq!(planned.at(row, column), [a, b - 1, c + 10, d + 100]);
            }
        }
    }

    #[test]
    fn the_last_leaf_goes_on() {
        let of = layout!(((3, 4), (2, 2)):((1@0, 5@1), (8@0, 9@1)));
        let planned = CoordinateLayout::<2, 2, 2>::new(&of, [0, 0]);
        assert_eq!(planned.at(3 * 7 + 2, 2 * 6 + 1), [2 + 8, 5 * 7 + 9 * 6]);
    }

    #[test]
    #[should_panic(expected = "in none of the coordinate's directions")]
    fn strides_of_elements_are_refused() {
        let _ = CoordinateLayout::<2, 1, 1>::new(&layout!((3, 4):(1, 3)), [0, 0]);
    }

    #[test]
    #[should_panic(expected = "another number of leaves")]
    fn other_leaves_are_refused() {
        let _ = CoordinateLayout::<2, 2, 1>::new(&layout!((3, 4):(1@0, 3@1)), [0, 0]);
    }
}
