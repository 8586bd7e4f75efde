//! The scales of A and B: of blocks, or of rows and columns.

use std::fmt;
use std::ops::Range;

use cutlet_host::{Scratch, Stream};

use super::block_scales::BlockScales;
use super::outer_scales::{OperandScales, OuterScales};
use crate::matrix::{addresses, disjoint};
use crate::{Matrix, Result};

/// The scales that A and B have.
#[derive(Clone, Copy, Debug)]
pub enum Scales<'a> {
    /// None.
    None,
    /// Of blocks.
    Blocks(BlockScales<'a>),
    /// Of A's rows and B's columns.
    Outer(OuterScales<'a>),
}

/// Which scales A and B have: what the choice of a kernel depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalesKind {
    /// None.
    None,
    /// Those of blocks: see [`Gemm::block_scales`](crate::Gemm::block_scales).
    Blocks,
    /// Those of A's rows and B's columns: see [`Gemm::outer_scales`](crate::Gemm::outer_scales).
    Outer {
        /// Whether threads may read the scales of columns in pairs of neighbours.
        in_pairs: bool,
    },
}

impl<'a> Scales<'a> {
    /// Which they are.
    pub fn kind(&self) -> ScalesKind {
        match self {
            Scales::None => ScalesKind::None,
            Scales::Blocks(_) => ScalesKind::Blocks,
            Scales::Outer(scales) => ScalesKind::Outer {
                in_pairs: scales.are_in_pairs(),
            },
        }
    }

    /// Whether blocks have scales.
    pub fn are_of_blocks(&self) -> bool {
        self.kind() == ScalesKind::Blocks
    }

    /// Whether threads may read the scales of columns in pairs of neighbours.
    pub fn are_in_pairs(&self) -> bool {
        match self {
            Scales::Outer(scales) => scales.are_in_pairs(),
            Scales::None | Scales::Blocks(_) => true,
        }
    }

    /// Those of products of these extents, of so many As and Bs. Refuses other extents and numbers of scales, scales in
    /// memory of C's addresses, and those that work in the stream may not use.
    pub fn checked(
        self,
        stream: &Stream,
        extents: [usize; 3],
        counts: [usize; 2],
        c: Range<u64>,
    ) -> Result<Self> {
        let [m, n, _] = extents;
        match &self {
            Scales::None => {}
            Scales::Blocks(scales) => scales.check(stream, extents, counts, c)?,
            Scales::Outer(scales) => {
                return Ok(Scales::Outer(scales.checked(stream, [m, n], counts, c)?));
            }
        }
        Ok(self)
    }

    /// A copy of the scales of columns that threads may read in pairs of neighbours, if they may not read these so.
    pub fn columns_in_pairs<'s>(&self, stream: &'s Stream) -> Result<Option<Scratch<'s, f32>>> {
        match self {
            Scales::Outer(scales) if !scales.are_in_pairs() => {
                scales.columns_in_pairs(stream).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The scales of A's rows, as many as there are for each, if rows have scales of their own.
    pub fn of_rows(&self) -> Result<Option<Matrix<'a, f32>>> {
        match self {
            Scales::None => Ok(None),
            Scales::Blocks(scales) => Ok(Some(scales.a.first)),
            Scales::Outer(scales) => scales.of_rows(),
        }
    }

    /// The same with these scales of A's rows, packed.
    pub fn with_rows(self, rows: Matrix<'a, f32>) -> Self {
        match self {
            Scales::None => Scales::None,
            Scales::Blocks(scales) => Scales::Blocks(BlockScales {
                a: rows.into(),
                ..scales
            }),
            Scales::Outer(scales) => Scales::Outer(OuterScales {
                a: OperandScales::new(rows.view),
                ..scales
            }),
        }
    }

    /// Those of the product with this number.
    pub fn of_product(self, nth: usize) -> Result<Self> {
        Ok(match self {
            Scales::None => Scales::None,
            Scales::Blocks(scales) => Scales::Blocks(scales.of_product(nth)?),
            Scales::Outer(scales) => Scales::Outer(scales.of_product(nth)?),
        })
    }

    /// Refuses scales in memory of these addresses, which are those of C's scales.
    pub fn are_apart_from(&self, of_c: Range<u64>) -> Result<()> {
        let (of_a, of_b) = match self {
            Scales::None => return Ok(()),
            Scales::Blocks(scales) => (scales.a.addresses(), scales.b.addresses()),
            Scales::Outer(scales) => (addresses(&scales.a.view), addresses(&scales.b.view)),
        };
        disjoint("gemm", "A's scales", of_a, of_c.clone())?;
        disjoint("gemm", "B's scales", of_b, of_c)
    }

    /// Those of the transposed product. Blocks have none: their product is not transposed.
    pub fn transposed(self) -> Self {
        match self {
            Scales::Outer(scales) => Scales::Outer(scales.transposed()),
            Scales::None | Scales::Blocks(_) => self,
        }
    }

    /// Says that work in the stream, which is about to be enqueued, uses the scales.
    pub fn use_in(&self, stream: &Stream) -> Result<()> {
        match self {
            Scales::None => Ok(()),
            Scales::Blocks(scales) => scales.use_in(stream),
            Scales::Outer(scales) => scales.use_in(stream),
        }
    }
}

impl fmt::Display for ScalesKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ScalesKind::None => "no scales",
            ScalesKind::Blocks => "scales of blocks",
            ScalesKind::Outer { in_pairs: true } => "scales of rows and columns",
            ScalesKind::Outer { in_pairs: false } => {
                "scales of rows and columns that are not aligned"
            }
        })
    }
}
