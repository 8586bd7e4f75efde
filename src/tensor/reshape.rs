//! The strides of other shapes: a tensor's elements, in their order by rows, without a copy.

use cutlet_layout_core::{CAPACITY, Int, Layout};

use super::by_rows;
use crate::into_tensor::of_leaf;

/// The layout of this shape, by which the elements of `layout` have the order that they have by rows.
///
/// # Errors
/// The reason why there is none.
pub(super) fn reshaped(layout: &Layout, shape: &[usize]) -> Result<Layout, String> {
    let packed = by_rows(shape).map_err(|error| error.to_string())?;
    if packed.size() != layout.size() {
        return Err(format!(
            "the shape {shape:?} has {} elements, and it has {}; give a shape of as many",
            packed.size(),
            layout.size()
        ));
    }
    let mut elements = Elements {
        leaves: from_the_fastest(layout),
        count: 1,
        stride: 1,
    };
    let mut modes = [packed; CAPACITY];
    for (mode, extent) in modes.iter_mut().zip(shape).rev() {
        let stride = elements.take(*extent).ok_or_else(|| {
            format!(
                "modes that are one in the shape {shape:?} do not continue one another; copy it with `permute` first"
            )
        })?;
        *mode = Layout::leaf(Int::dynamic(*extent as i64), Int::dynamic(stride as i64));
    }
    Layout::try_concat(&modes[..shape.len()]).map_err(|error| error.to_string())
}

/// Extents and strides of the leaves with more than one element: the last mode is the fastest, and in a mode of modes
/// the first one.
fn from_the_fastest(layout: &Layout) -> impl Iterator<Item = (usize, usize)> {
    let of_mode = |mode: usize| {
        let mode = layout.mode(mode);
        (0..mode.num_leaves()).map(move |leaf| of_leaf(&mode, leaf))
    };
    let leaves = (0..layout.rank()).rev().flat_map(of_mode);
    leaves.filter(|(extent, _)| *extent > 1)
}

/// The elements of a layout of which modes were not made yet.
struct Elements<I> {
    leaves: I,
    /// Elements of one stride that come next, and that stride.
    count: usize,
    stride: usize,
}

impl<I: Iterator<Item = (usize, usize)>> Elements<I> {
    /// The stride of the next mode, from the fastest on. `None` if its elements have no single one.
    fn take(&mut self, extent: usize) -> Option<usize> {
        if extent > 1 && self.count == 1 {
            (self.count, self.stride) = self.leaves.next()?;
        }
        while !self.count.is_multiple_of(extent) {
            let (more, stride) = self.leaves.next()?;
            if stride != self.count * self.stride {
                return None;
            }
            self.count *= more;
        }
        let stride = self.stride;
        self.count /= extent;
        self.stride *= extent;
        Some(stride)
    }
}
