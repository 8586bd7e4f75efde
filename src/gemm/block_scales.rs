//! Scales of blocks of A and B, as the caller gives them.

use std::ops::Range;

use cutlet_host::{Stream, View};

use crate::batch::{Batch, BatchModes};
use crate::matrix::{disjoint, in_stream};
use crate::{Error, Result};

/// Elements of k, and of B's columns, that have a scale together.
pub const BLOCK: usize = 128;

/// The scales: a factor for 1×128 elements of A, and for 128×128 elements of B, or of each A and B of groups.
#[derive(Clone, Copy, Debug)]
pub struct BlockScales<'a> {
    /// A's, of (m, k/128).
    pub a: Batch<'a, f32>,
    /// B's, of (k/128, n/128).
    pub b: Batch<'a, f32>,
}

impl<'a> BlockScales<'a> {
    /// Refuses scales of other extents than those of a product, or not of so many As and Bs, in memory of C's addresses,
    /// or that work in the stream may not use.
    pub fn check(
        &self,
        stream: &Stream,
        [m, n, k]: [usize; 3],
        [of_a, of_b]: [usize; 2],
        c: Range<u64>,
    ) -> Result<()> {
        let blocks = |extent: usize| extent.div_ceil(BLOCK);
        for (name, scales, [rows, columns], count) in [
            ("A's scales", self.a, [m, blocks(k)], of_a),
            ("B's scales", self.b, [blocks(k), blocks(n)], of_b),
        ] {
            let (found_rows, found_columns) = (scales.first.rows(), scales.first.columns());
            let found = scales.repeats.count();
            if found != count {
                return Err(Error::Extents {
                    operation: "gemm",
                    found: format!(
                        "{name} are {found} matrices, and there are {count}; make them agree"
                    ),
                });
            }
            if [found_rows, found_columns] != [rows, columns] {
                return Err(Error::Extents {
                    operation: "gemm",
                    found: format!(
                        "{name} are {found_rows}×{found_columns}, and the product of {m}×{n}×{k} has {rows}×{columns}; \
                         give one for each {BLOCK} of k"
                    ),
                });
            }
            in_stream("gemm", stream, name, scales.first.view)?;
            disjoint("gemm", name, scales.addresses(), c.clone())?;
        }
        Ok(())
    }

    /// Says that work in the stream, which is about to be enqueued, uses the scales.
    pub fn use_in(&self, stream: &Stream) -> Result<()> {
        let use_in = |view: View<'_, f32>, name| view.use_in(stream, "gemm", name);
        use_in(self.a.first.view, "A's scales")?;
        Ok(use_in(self.b.first.view, "B's scales")?)
    }

    /// Those of the product with this number.
    pub fn of_product(self, nth: usize) -> Result<Self> {
        Ok(Self {
            a: self.a.nth(nth)?,
            b: self.b.nth(nth)?,
        })
    }

    /// Elements from the scales of a group's A, and B, to those of the next one's. `None` if they are not evenly apart.
    pub fn strides(&self) -> Option<[usize; 2]> {
        let (a, b) = (&self.a.repeats, &self.b.repeats);
        let most = if a.count() > b.count() { a } else { b };
        let [mode] = BatchModes::of([a, b, most], true)
            .ok()?
            .at_most::<1>()
            .ok()?;
        let [of_a, of_b, _] = mode.strides;
        Some([of_a, of_b])
    }
}
