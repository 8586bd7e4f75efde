//! Scales of blocks of A and B, as the caller gives them.

use std::ops::Range;

use cutlet_host::{Stream, View};

use crate::matrix::{addresses, disjoint, in_stream};
use crate::{Error, Matrix, Result};

/// Elements of k, and of B's columns, that have a scale together.
pub const BLOCK: usize = 128;

/// The scales: a factor for 1×128 elements of A, and for 128×128 elements of B.
#[derive(Clone, Copy, Debug)]
pub struct BlockScales<'a> {
    /// A's, of (m, k/128).
    pub a: Matrix<'a, f32>,
    /// B's, of (k/128, n/128).
    pub b: Matrix<'a, f32>,
}

impl BlockScales<'_> {
    /// Refuses scales of other extents than those of a product, in memory of C's addresses, or that work in the stream
    /// may not use.
    pub fn check(&self, stream: &Stream, [m, n, k]: [usize; 3], c: Range<u64>) -> Result<()> {
        let blocks = |extent: usize| extent.div_ceil(BLOCK);
        for (name, scales, [rows, columns]) in [
            ("A's scales", self.a, [m, blocks(k)]),
            ("B's scales", self.b, [blocks(k), blocks(n)]),
        ] {
            let (found_rows, found_columns) = (scales.rows(), scales.columns());
            if [found_rows, found_columns] != [rows, columns] {
                return Err(Error::Extents {
                    operation: "gemm",
                    found: format!(
                        "{name} are {found_rows}×{found_columns}, and the product of {m}×{n}×{k} has {rows}×{columns}; \
                         give one for each {BLOCK} of k"
                    ),
                });
            }
            in_stream("gemm", stream, name, scales.view)?;
            disjoint("gemm", name, addresses(&scales.view), c.clone())?;
        }
        Ok(())
    }

    /// Says that work in the stream, which is about to be enqueued, uses the scales.
    pub fn use_in(&self, stream: &Stream) -> Result<()> {
        let use_in = |view: View<'_, f32>, name| view.use_in(stream, "gemm", name);
        use_in(self.a.view, "A's scales")?;
        Ok(use_in(self.b.view, "B's scales")?)
    }
}
