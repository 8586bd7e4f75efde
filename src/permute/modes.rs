//! The modes of a permutation: merged, and in units that a kernel copies.

use std::num::NonZeroU32;

use cutlet_kernels::gather::permute::{PermuteArgs, REST, RestMode, transposed_tile};
use cutlet_kernels::gather::{self, shapes};
use cutlet_layout_core::{Divisor, Layout, StaticLayout, tile_extent};

use super::refuse;
use crate::{MAX_EXTENT, Result};

/// Bytes of the widest access.
const WIDEST: usize = 16;

/// A mode of both layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    extent: usize,
    from: usize,
    to: usize,
}

/// The mode of a matrix that has none.
const SINGLE: Mode = Mode {
    extent: 1,
    from: 0,
    to: 0,
};

/// The modes of two layouts, the destination's innermost first.
#[derive(Debug)]
pub struct Modes(Vec<Mode>);

/// How a block copies its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Columns are innermost in both layouts, in rows of 128 units and more.
    Long,
    /// Columns are innermost in both layouts, in shorter rows.
    Short,
    /// Columns are innermost in the source, and rows in the destination.
    Transposed,
}

impl Shape {
    /// Rows and columns of a block's tile, for units of some bytes.
    pub fn tile(self, unit: usize) -> [u64; 2] {
        match self {
            Shape::Long => tile::<<shapes::Long as gather::Shape>::Tile>(),
            Shape::Short => tile::<<shapes::Short as gather::Shape>::Tile>(),
            Shape::Transposed => transposed_tile(unit).map(|extent| extent as u64),
        }
    }
}

fn tile<L: StaticLayout>() -> [u64; 2] {
    tile_extent::<L>().map(|extent| extent as u64)
}

impl Modes {
    /// The modes of both layouts, merged. No two coordinates have the same element of the destination.
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn of(source: &Layout, destination: &Layout) -> Result<Modes> {
        if source.shape() != destination.shape() {
            return refuse(format!(
                "the source's layout {source} and the destination's {destination} have different shapes; \
                 give the same shape"
            ));
        }
        let leaves = 0..source.num_leaves();
        let mut modes: Vec<Mode> = leaves
            .map(|n| Mode {
                extent: source.leaf_shape(n).value() as usize,
                from: source.leaf_stride(n).value() as usize,
                to: destination.leaf_stride(n).value() as usize,
            })
            .filter(|mode| mode.extent > 1)
            .collect();
        modes.sort_by_key(|mode| mode.to);
        Ok(Modes(merged(modes)))
    }

    /// The modes in the widest units that an element consists of, or that consist of elements, and the bytes of a unit.
    /// `begins` has the bits of both addresses.
    pub fn in_units(self, element: usize, begins: u64) -> (Modes, usize) {
        // First the widest unit that divides an element at any place.
        let unit = largest_power(element as u64 | begins).min(WIDEST);
        let per_element = element / unit;
        let mut modes: Vec<Mode> = self
            .0
            .iter()
            .map(|mode| Mode {
                from: mode.from * per_element,
                to: mode.to * per_element,
                ..*mode
            })
            .collect();
        if per_element > 1 {
            let of_element = Mode {
                extent: per_element,
                from: 1,
                to: 1,
            };
            modes.insert(0, of_element);
        }
        let modes = merged(modes);
        let Some((first, others)) = modes.split_first() else {
            return (Modes(modes), unit);
        };
        if (first.from, first.to) != (1, 1) {
            return (Modes(modes), unit);
        }
        // Then as many units as all rows are aligned to.
        let bits = others
            .iter()
            .fold(first.extent, |bits, mode| bits | mode.from | mode.to);
        let wide = largest_power((bits * unit) as u64 | begins).min(WIDEST);
        let merged_units = wide / unit;
        let mut modes: Vec<Mode> = modes
            .iter()
            .map(|mode| Mode {
                from: mode.from / merged_units,
                to: mode.to / merged_units,
                ..*mode
            })
            .collect();
        modes[0] = Mode {
            extent: modes[0].extent / merged_units,
            from: 1,
            to: 1,
        };
        (Modes(modes), wide)
    }

    /// What a kernel takes, and how its blocks copy.
    ///
    /// # Errors
    /// If there are too many modes, or an extent is too large.
    pub fn args(mut self) -> Result<(Shape, PermuteArgs)> {
        let count = self.0.len();
        if let Some(mode) = self.0.iter().find(|mode| mode.extent > MAX_EXTENT) {
            return refuse(format!(
                "a mode has {} elements; the largest extent is {MAX_EXTENT}",
                mode.extent
            ));
        }
        let innermost = (0..count)
            .filter(|&n| self.0[n].from > 0)
            .min_by_key(|&n| self.0[n].from)
            .unwrap_or(0);
        let take = |modes: &mut Vec<Mode>, n: usize| match n < modes.len() {
            true => modes.remove(n),
            false => SINGLE,
        };
        // Without the destination's innermost mode, the source's is one place nearer.
        let first = take(&mut self.0, 0);
        let (shape, rows, columns) = match innermost {
            0 => {
                let rows = take(&mut self.0, 0);
                let shape = match first.extent {
                    128.. => Shape::Long,
                    _ => Shape::Short,
                };
                (shape, rows, first)
            }
            _ => (Shape::Transposed, first, take(&mut self.0, innermost - 1)),
        };
        let matrices = self.0.iter().try_fold(1u32, |product, mode| {
            product.checked_mul(u32::try_from(mode.extent).ok()?)
        });
        let (Some(matrices), 0..=REST) = (matrices.filter(|&it| it < 1 << 31), self.0.len()) else {
            return refuse(format!(
                "the layouts have {count} modes after merging, beyond two of which there are {:?}; there may be \
                 {REST} with 2³¹ − 1 elements together",
                self.0.iter().map(|mode| mode.extent).collect::<Vec<_>>()
            ));
        };
        let mut rest = [SINGLE; REST].map(rest_mode);
        for (place, mode) in rest.iter_mut().zip(&self.0) {
            *place = rest_mode(*mode);
        }
        let strides =
            |stride: fn(&Mode) -> usize| [&rows, &columns].map(|mode| stride(mode) as i64);
        let args = PermuteArgs {
            from: strides(|mode| mode.from),
            to: strides(|mode| mode.to),
            rest,
            extent: [rows.extent as i32, columns.extent as i32],
            matrices,
            padding: 0,
        };
        Ok((shape, args))
    }
}

fn rest_mode(mode: Mode) -> RestMode {
    let extent = NonZeroU32::new(mode.extent as u32).unwrap_or(NonZeroU32::MIN);
    RestMode {
        from: mode.from as i64,
        to: mode.to as i64,
        extent: Divisor::new(extent),
        padding: 0,
    }
}

/// The modes, in which adjacent ones are one if both layouts continue from one to the next.
fn merged(modes: Vec<Mode>) -> Vec<Mode> {
    let mut merged: Vec<Mode> = Vec::with_capacity(modes.len());
    for mode in modes {
        match merged.last_mut() {
            Some(last)
                if last.extent * last.from == mode.from
                    && last.extent * last.to == mode.to
                    && last.extent * mode.extent <= MAX_EXTENT =>
            {
                last.extent *= mode.extent;
            }
            _ => merged.push(mode),
        }
    }
    merged
}

/// The largest power of two that divides all numbers whose bits these are.
fn largest_power(bits: u64) -> usize {
    1 << bits.trailing_zeros().min(30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutlet_layout_core::layout;

    fn modes(source: Layout, destination: Layout, element: usize) -> (Shape, PermuteArgs, usize) {
        let modes = Modes::of(&source, &destination).unwrap();
        let (modes, unit) = modes.in_units(element, 0);
        let (shape, args) = modes.args().unwrap();
        (shape, args, unit)
    }

    #[test]
    fn equal_layouts_are_one_row_of_wide_units() {
        let layout = layout!((4, 6, 8):(1, 4, 24));
        let (shape, args, unit) = modes(layout, layout, 2);
        assert_eq!((shape, args.extent, unit), (Shape::Short, [1, 24], 16));
        assert_eq!((args.matrices, args.from, args.to), (1, [0, 1], [0, 1]));
    }

    #[test]
    fn a_transpose_has_the_innermost_modes_as_rows_and_columns() {
        let (source, destination) = (layout!((5, 3, 7):(21, 7, 1)), layout!((5, 3, 7):(3, 1, 15)));
        let (shape, args, unit) = modes(source, destination, 4);
        assert_eq!((shape, unit), (Shape::Transposed, 4));
        assert_eq!(
            (args.extent, args.from, args.to),
            ([15, 7], [7, 1], [1, 15])
        );
    }

    #[test]
    fn rows_that_move_are_copied_in_wide_units() {
        let (source, destination) = (layout!((8, 3, 5):(1, 8, 24)), layout!((8, 3, 5):(1, 40, 8)));
        let (shape, args, unit) = modes(source, destination, 4);
        assert_eq!((shape, unit), (Shape::Short, 16));
        assert_eq!((args.extent, args.from, args.to), ([5, 2], [6, 1], [2, 1]));
        assert_eq!((args.rest[0].from, args.rest[0].to), (2, 10));
    }

    #[test]
    fn elements_of_any_size_are_whole_units() {
        // Elements of 12 bytes: three words.
        let (source, destination) = (layout!((3, 5):(5, 1)), layout!((3, 5):(1, 3)));
        let (shape, args, unit) = modes(source, destination, 12);
        assert_eq!((shape, unit), (Shape::Short, 4));
        assert_eq!((args.extent, args.from, args.to), ([3, 3], [15, 1], [3, 1]));
        assert_eq!(
            (args.matrices, args.rest[0].from, args.rest[0].to),
            (5, 3, 9)
        );
    }
}
