//! The rows of an operation's operands: the modes before the last one, merged where all operands allow it.

use cutlet_host::Device;
use cutlet_kernels::rows::{RowStrides, Space};
use cutlet_layout_core::Layout;

use super::{WIDEST, refuse};
use crate::into_tensor::{of_leaf, one_stride};
use crate::matrix::divisor;
use crate::{MAX_EXTENT, Result};

/// Blocks of each multiprocessor between one that has the cache fetch a row and the one that reads it. With four, the
/// cache loses rows of two operands before they are read.
const AHEAD: u32 = 2;
/// Modes of rows that a kernel knows.
const MODES: usize = 3;

/// An operand that has rows.
pub struct HasRows<'a> {
    /// What it is in errors.
    pub what: &'static str,
    pub layout: &'a Layout,
    pub address: u64,
    /// Bytes of an element, or 0 if it has an element for each row, and threads read that alone.
    pub bytes: usize,
}

impl HasRows<'_> {
    /// Whether accesses of this many elements are aligned if rows have these strides.
    fn is_aligned(&self, width: usize, strides: &[i64]) -> bool {
        let begins = |width: usize| self.address.is_multiple_of((width * self.bytes) as u64);
        self.bytes == 0 || begins(width) && strides.iter().all(|it| it % width as i64 == 0)
    }
}

/// The rows of operands of one shape.
#[derive(Debug)]
pub struct RowSet {
    pub space: Space,
    /// Strides of each operand's rows.
    pub strides: [RowStrides; 4],
    /// Extent of the mode before the last one, which the rows of a causal matrix are.
    pub queries: usize,
    /// Whether the widest vectors that suit all operands are aligned in each.
    pub is_aligned: bool,
    /// Elements of these vectors.
    pub width: usize,
}

impl RowSet {
    /// The rows of up to four operands. The first one's shape is the operation's.
    ///
    /// # Errors
    /// If a shape differs, a row is not contiguous, or there are too many modes of rows.
    pub fn of(operation: &'static str, operands: &[HasRows<'_>]) -> Result<RowSet> {
        let first = &operands[0];
        for other in operands {
            if !have_same_shape(other.layout, first.layout) {
                return refuse(
                    operation,
                    format!(
                        "{} is {}, and {} is {}; give them the same shape",
                        first.what,
                        first.layout.to_dynamic(),
                        other.what,
                        other.layout.to_dynamic()
                    ),
                );
            }
            expect_contiguous(operation, other)?;
        }
        let modes = Modes::of(operation, operands)?;
        let columns = first.layout.mode(first.layout.rank() - 1).size() as usize;
        let rows = modes.size();
        if rows.max(columns) > MAX_EXTENT {
            let found = format!(
                "{} has {rows} rows of {columns} elements, and the largest extent is {MAX_EXTENT}; give parts of it",
                first.what
            );
            return refuse(operation, found);
        }
        let [_, middle, inner] = modes.extents.map(divisor);
        let width = width_of(operands);
        let mut strided = operands.iter().zip(&modes.strides);
        let is_aligned = columns.is_multiple_of(width)
            && strided.all(|(operand, strides)| operand.is_aligned(width, strides));
        Ok(RowSet {
            space: Space {
                middle,
                inner,
                rows: rows as i32,
                columns: columns as i32,
                last_columns: columns as i32,
                ahead: 0,
            },
            strides: modes.strides,
            queries: match first.layout.rank() {
                1 => 1,
                rank => first.layout.mode(rank - 2).size() as usize,
            },
            is_aligned,
            width,
        })
    }

    /// The same elements as rows that suit a warp each, if rows follow one another in all operands: only the last row may
    /// be shorter. For operations to which rows mean nothing.
    pub fn split(self, operands: &[HasRows<'_>]) -> RowSet {
        let [rows, columns] = self.extent();
        let follow = |strides: &RowStrides| strides[..2] == [0, 0] && strides[2] == columns as i64;
        if rows > 1 && !self.strides[..operands.len()].iter().all(follow) {
            return self;
        }
        let (count, width) = (rows * columns, width_of(operands));
        let is_aligned =
            count.is_multiple_of(width) && operands.iter().all(|it| it.is_aligned(width, &[]));
        let columns = super::held_by_warp(width, is_aligned);
        let rows = count.div_ceil(columns);
        if rows > MAX_EXTENT {
            return self;
        }
        RowSet {
            space: Space {
                middle: divisor(1),
                inner: divisor(rows),
                rows: rows as i32,
                columns: columns as i32,
                last_columns: (count - (rows - 1) * columns) as i32,
                ahead: 0,
            },
            strides: [[0, 0, columns as i64]; 4],
            queries: 1,
            is_aligned,
            width,
        }
    }

    /// The rows for kernels that have the cache fetch rows ahead.
    pub fn space_ahead(&self, device: &Device) -> Space {
        let ahead = AHEAD * device.multiprocessors();
        // The coordinates of the rows ahead fit an `i32`, too. A block has up to eight.
        let fits = self.space.rows as usize + 8 * ahead as usize <= MAX_EXTENT;
        Space {
            ahead: if fits { ahead } else { 0 },
            ..self.space
        }
    }

    /// Rows and columns.
    pub fn extent(&self) -> [usize; 2] {
        [self.space.rows as usize, self.space.columns as usize]
    }
}

/// Whether two layouts have the same shape. A mode and a tuple of this mode alone are the same.
fn have_same_shape(a: &Layout, b: &Layout) -> bool {
    let are_one_mode = a.num_leaves() == 1 && b.num_leaves() == 1;
    a.shape() == b.shape() || are_one_mode && a.size() == b.size()
}

/// Elements of the widest access to all operands.
fn width_of(operands: &[HasRows<'_>]) -> usize {
    let widest = operands.iter().map(|it| it.bytes).max();
    // Vectors have eight elements at most.
    (WIDEST / widest.unwrap_or(WIDEST)).min(8)
}

/// Returns an error if the elements of a row are not contiguous.
fn expect_contiguous(operation: &'static str, operand: &HasRows<'_>) -> Result<()> {
    let last = operand.layout.rank() - 1;
    match one_stride(operand.layout, last) {
        Some((_, 1) | (1, _)) => Ok(()),
        _ if operand.bytes == 0 => Ok(()),
        _ => refuse(
            operation,
            format!(
                "{} is {}, and its last mode, which is a row, is not contiguous; copy it with `permute`",
                operand.what,
                operand.layout.to_dynamic()
            ),
        ),
    }
}

/// The modes of rows, the outermost first.
struct Modes {
    extents: [usize; MODES],
    strides: [RowStrides; 4],
}

impl Modes {
    fn of(operation: &'static str, operands: &[HasRows<'_>]) -> Result<Modes> {
        let layout = operands[0].layout;
        let mut modes = Modes {
            extents: [1; MODES],
            strides: [[0; MODES]; 4],
        };
        // From the innermost one.
        let mut at = MODES;
        let mut end = layout.num_leaves() - layout.mode(layout.rank() - 1).num_leaves();
        for mode in (0..layout.rank() - 1).rev() {
            let begin = end - layout.mode(mode).num_leaves();
            // The first leaf of a mode is its innermost one.
            for leaf in begin..end {
                let extent = of_leaf(layout, leaf).0;
                if extent == 1 {
                    continue;
                }
                if at < MODES && modes.continues(at, operands, leaf) {
                    modes.extents[at] *= extent;
                    continue;
                }
                if at == 0 {
                    return too_many(operation, operands);
                }
                at -= 1;
                modes.extents[at] = extent;
                for (strides, operand) in modes.strides.iter_mut().zip(operands) {
                    strides[at] = of_leaf(operand.layout, leaf).1 as i64;
                }
            }
            end = begin;
        }
        Ok(modes)
    }

    /// Whether a leaf continues mode `at` in all operands.
    fn continues(&self, at: usize, operands: &[HasRows<'_>], leaf: usize) -> bool {
        let extent = self.extents[at] as i64;
        operands
            .iter()
            .zip(&self.strides)
            .all(|(operand, strides)| {
                let stride = of_leaf(operand.layout, leaf).1 as i64;
                strides[at].checked_mul(extent) == Some(stride)
            })
    }

    /// Number of rows.
    fn size(&self) -> usize {
        self.extents
            .iter()
            .fold(1, |size, extent| size.saturating_mul(*extent))
    }
}

fn too_many<R>(operation: &'static str, operands: &[HasRows<'_>]) -> Result<R> {
    let layouts: Vec<String> = operands
        .iter()
        .map(|it| format!("{} is {}", it.what, it.layout.to_dynamic()))
        .collect();
    refuse(
        operation,
        format!(
            "{}, and more than {MODES} modes of rows do not continue one another; give parts, or copy them with \
             `permute`",
            layouts.join(", ")
        ),
    )
}
