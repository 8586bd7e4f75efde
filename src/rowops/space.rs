//! The rows of an operation's operands: the modes before the last one, merged where all operands allow it.

use std::num::NonZeroU32;

use cutlet_kernels::rows::{RowStrides, Space};
use cutlet_layout_core::{Divisor, Layout};

use super::{WIDEST, refuse};
use crate::into_tensor::{of_leaf, one_stride};
use crate::{MAX_EXTENT, Result};

/// Modes of rows that a kernel knows.
const MODES: usize = 3;

/// An operand that has rows.
pub struct HasRows<'a> {
    /// What it is in errors.
    pub what: &'static str,
    pub layout: &'a Layout,
    pub address: u64,
}

/// The rows of operands of one shape.
#[derive(Debug)]
pub struct RowSet {
    pub space: Space,
    /// Strides of each operand's rows.
    pub strides: [RowStrides; 4],
    /// Extent of the mode before the last one, which the rows of a causal matrix are.
    pub queries: usize,
    /// Whether all vectors of [`WIDEST`] bytes are aligned in all operands.
    pub is_aligned: bool,
}

impl RowSet {
    /// The rows of up to four operands of elements of some bytes. The first one's shape is the operation's.
    ///
    /// # Errors
    /// If a shape differs, a row is not contiguous, or there are too many modes of rows.
    pub fn of(operation: &'static str, bytes: usize, operands: &[HasRows<'_>]) -> Result<RowSet> {
        let first = &operands[0];
        for other in &operands[1..] {
            if other.layout.shape() != first.layout.shape() {
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
        }
        let mut is_aligned = true;
        for operand in operands {
            let columns = contiguous(operation, operand)?;
            let start = operand.address.is_multiple_of(WIDEST as u64);
            is_aligned &= start && (columns * bytes).is_multiple_of(WIDEST);
        }
        let modes = Modes::of(operation, operands)?;
        is_aligned &= modes.are_multiples_of(WIDEST / bytes);
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
        Ok(RowSet {
            space: Space {
                middle,
                inner,
                rows: rows as i32,
                columns: columns as i32,
            },
            strides: modes.strides,
            queries: match first.layout.rank() {
                1 => 1,
                rank => first.layout.mode(rank - 2).size() as usize,
            },
            is_aligned,
        })
    }

    /// Rows and columns.
    pub fn extent(&self) -> [usize; 2] {
        [self.space.rows as usize, self.space.columns as usize]
    }
}

/// A divisor below 2³¹.
pub fn divisor(extent: usize) -> Divisor {
    let extent = u32::try_from(extent).ok().and_then(NonZeroU32::new);
    Divisor::new(extent.unwrap_or(NonZeroU32::MIN))
}

/// The elements of a row.
///
/// # Errors
/// If they are not contiguous.
fn contiguous(operation: &'static str, operand: &HasRows<'_>) -> Result<usize> {
    let last = operand.layout.rank() - 1;
    match one_stride(operand.layout, last) {
        Some((columns, 1)) => Ok(columns),
        Some((1, _)) => Ok(1),
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

    /// Whether rows begin at multiples of this many elements.
    fn are_multiples_of(&self, elements: usize) -> bool {
        let strides = self.strides.as_flattened();
        strides.iter().all(|it| it % elements as i64 == 0)
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
