//! The lines of a box: its elements along the tensor's innermost dimension, which are consecutive in memory.

use std::ops::Range;

use super::tensor_map::{MAX_RANK, TensorMapModel};

/// A line of a box, at one coordinate along all dimensions but the innermost.
pub(super) struct Line {
    /// The coordinate of the box's first element along the innermost dimension.
    first: i64,
    /// Bytes from the tensor's first element to the start of its line.
    start: u64,
    /// How many elements of the box precede the line.
    pub first_in_box: u32,
    /// Whether it is in the tensor's last line.
    pub is_last: bool,
}

impl Line {
    /// The part of the line that is inside a tensor whose lines have `extent` elements, counted from the box's edge.
    pub fn columns(&self, map: &TensorMapModel, extent: i64) -> Range<u32> {
        inside(self.first, map.box_extent[0], 1, extent)
    }

    /// The host address of element `x` of the line, which is inside the tensor.
    pub fn address(&self, map: &TensorMapModel, x: u32) -> u64 {
        let column = (self.first + i64::from(x)) as u64;
        map.address + self.start + column * u64::from(map.element_bytes)
    }
}

/// The part of a box's `count` elements, from coordinate `first` on and `stride` apart, that is in `0 .. extent`.
fn inside(first: i64, count: u32, stride: u8, extent: i64) -> Range<u32> {
    // The number of elements before `coordinate`.
    let before = |coordinate: i64| {
        let distance = (coordinate - first).max(0) as u64;
        distance.div_ceil(stride.into()).min(count.into()) as u32
    };
    before(0)..before(extent)
}

/// The lines of the box at `at`, innermost coordinate first, that are inside the tensor along the other dimensions.
pub(super) fn lines(map: &TensorMapModel, at: &[i32]) -> impl Iterator<Item = Line> {
    let first: [i64; MAX_RANK] = std::array::from_fn(|d| at.get(d).copied().unwrap_or(0).into());
    let ranges: [Range<u32>; MAX_RANK] = std::array::from_fn(|d| {
        let (count, stride) = (map.box_extent[d], map.element_stride[d]);
        inside(first[d], count, stride, map.extent[d] as i64)
    });
    let count = ranges[1..].iter().map(|range| range.len() as u64).product();
    (0..count).map(move |nth| {
        let mut rest = nth;
        let mut line = Line {
            first: first[0],
            start: 0,
            first_in_box: 0,
            is_last: true,
        };
        let mut elements = map.box_extent[0];
        for d in 1..MAX_RANK {
            let range = &ranges[d];
            // Below the box's extent along the dimension.
            let y = range.start + (rest % range.len() as u64) as u32;
            rest /= range.len() as u64;
            let coordinate = (first[d] + i64::from(y) * i64::from(map.element_stride[d])) as u64;
            line.start += coordinate * map.stride[d - 1];
            line.first_in_box += y * elements;
            line.is_last &= coordinate == map.extent[d] - 1;
            elements *= map.box_extent[d];
        }
        line
    })
}
