//! Scales of A's rows and of B's columns, as the caller gives them.

use std::ops::Range;

use cutlet_host::{Stream, View};
use cutlet_kernels::gemm::epilogue;

use crate::matrix::{addresses, disjoint, in_stream, pointer};
use crate::{Error, Result};

/// The scales: a factor for each row of A and for each column of B, or one for all.
#[derive(Clone, Copy, Debug)]
pub struct OuterScales<'a> {
    /// A's: m or 1.
    pub a: View<'a, f32>,
    /// B's: n or 1.
    pub b: View<'a, f32>,
}

impl OuterScales<'_> {
    /// Refuses other numbers of scales than a product of these rows and columns has, scales in memory of C's addresses,
    /// and those that work in the stream may not use.
    pub fn check(&self, stream: &Stream, [m, n]: [usize; 2], c: Range<u64>) -> Result<()> {
        for (name, of, scales, count) in [
            ("A's scales", "rows", self.a, m),
            ("B's scales", "columns", self.b, n),
        ] {
            let found = scales.len();
            if found != count && found != 1 {
                return Err(Error::Extents {
                    operation: "gemm",
                    found: format!(
                        "{name} are {found}, and C has {count} {of}; give one for each, or one for all"
                    ),
                });
            }
            in_stream("gemm", stream, name, scales)?;
            disjoint("gemm", name, addresses(&scales), c.clone())?;
        }
        Ok(())
    }

    /// The scales of the transposed product.
    pub fn transposed(self) -> Self {
        Self {
            a: self.b,
            b: self.a,
        }
    }

    /// Whether threads may read the scales of columns in pairs of neighbours.
    pub fn are_in_pairs(&self) -> bool {
        let pair = 2 * size_of::<f32>() as u64;
        let are_even = self.b.len().is_multiple_of(2) && self.b.address().is_multiple_of(pair);
        self.b.len() == 1 || are_even
    }

    /// Says that work in the stream, which is about to be enqueued, uses the scales.
    pub fn use_in(&self, stream: &Stream) -> Result<()> {
        // They may be those of the transposed product.
        self.a.use_in(stream, "gemm", "the scales of A or B")?;
        Ok(self.b.use_in(stream, "gemm", "the scales of A or B")?)
    }

    /// The epilogue that multiplies by `alpha` and the scales, for a C of these rows and columns.
    ///
    /// # Safety
    /// The scales must live until the stream has got past the launch.
    pub unsafe fn epilogue(&self, alpha: f32, [m, n]: [usize; 2]) -> epilogue::OuterScales {
        let is_one = [self.a.len() == 1, self.b.len() == 1];
        let scales = [pointer(self.a), pointer(self.b)];
        // SAFETY: there is a scale for each row and column, or one for all. The rest is promised by the caller.
        unsafe { epilogue::OuterScales::new(alpha, scales, [m as i32, n as i32], is_one) }
    }
}
