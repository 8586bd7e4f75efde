//! Scales of A's rows and of B's columns, as the caller gives them.

use std::ops::Range;

use cutlet_host::{Scratch, Stream, View};
use cutlet_kernels::gemm::epilogue;

use crate::matrix::{Extents, addresses, disjoint, in_stream, pointer};
use crate::{Error, Matrix, MatrixMut, Order, Result, permute};

/// The scales of A's rows and of B's columns.
#[derive(Clone, Copy, Debug)]
pub struct OuterScales<'a> {
    /// A's.
    pub a: OperandScales<'a>,
    /// B's.
    pub b: OperandScales<'a>,
}

/// The scales of an operand, or of each matrix of several: a factor for each of its rows, or columns, or one for all.
#[derive(Clone, Copy, Debug)]
pub struct OperandScales<'a> {
    /// Those of all matrices, one after the other.
    pub view: View<'a, f32>,
    /// How many a matrix has: one, or as many as it has rows, or columns.
    count: usize,
    /// From the scales of one matrix to those of the next.
    to_next: usize,
}

impl<'a> OperandScales<'a> {
    /// Those of one matrix.
    pub fn new(view: View<'a, f32>) -> Self {
        OperandScales {
            view,
            count: view.len(),
            to_next: 0,
        }
    }

    /// The same, of `matrices` matrices of `lines` rows, or columns. `None` if that is another number of scales.
    fn of_matrices(self, lines: usize, matrices: usize) -> Option<Self> {
        let found = self.view.len();
        let (count, to_next) = match found {
            1 => (1, 0),
            _ if found == lines * matrices => (lines, lines),
            _ if found == matrices => (1, 1),
            _ => return None,
        };
        Some(OperandScales {
            count,
            to_next: if matrices == 1 { 0 } else { to_next },
            ..self
        })
    }

    /// Those of the matrix with this number.
    fn of_matrix(self, nth: usize) -> Result<Self> {
        let first = nth * self.to_next;
        Ok(Self::new(self.view.slice(first..first + self.count)?))
    }

    /// Whether a matrix has one.
    fn is_one(&self) -> bool {
        self.count == 1
    }
}

impl<'a> OuterScales<'a> {
    /// Those of products of these rows and columns, of so many As and Bs. Refuses other numbers of scales, scales in
    /// memory of C's addresses, and those that work in the stream may not use.
    pub fn checked(
        self,
        stream: &Stream,
        [m, n]: [usize; 2],
        [of_a, of_b]: [usize; 2],
        c: Range<u64>,
    ) -> Result<Self> {
        let checked = |name: &'static str, of, scales: OperandScales<'a>, lines, matrices| {
            let Some(checked) = scales.of_matrices(lines, matrices) else {
                return Err(Error::Extents {
                    operation: "gemm",
                    found: unlike(name, of, scales.view.len(), [lines, matrices]),
                });
            };
            in_stream("gemm", stream, name, scales.view)?;
            disjoint("gemm", name, addresses(&scales.view), c.clone())?;
            Ok(checked)
        };
        Ok(Self {
            a: checked("A's scales", "rows", self.a, m, of_a)?,
            b: checked("B's scales", "columns", self.b, n, of_b)?,
        })
    }

    /// The scales of the rows of one A, in a column, if each has one.
    pub fn of_rows(&self) -> Result<Option<Matrix<'a, f32>>> {
        let OperandScales { view, count, .. } = self.a;
        match self.a.is_one() {
            true => Ok(None),
            false => Matrix::row_major(view, count, 1).map(Some),
        }
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
        let are_even = self.b.count.is_multiple_of(2) && self.b.view.address().is_multiple_of(pair);
        self.b.is_one() || are_even
    }

    /// A copy of the scales of columns, for [`with_columns`](Self::with_columns).
    pub fn columns_in_pairs<'s>(&self, stream: &'s Stream) -> Result<Scratch<'s, f32>> {
        let (view, columns) = (self.b.view, self.b.count);
        let (matrices, even) = (view.len() / columns, columns.next_multiple_of(2));
        let mut copy = stream.scratch(matrices * even)?;
        // Threads read the last one of an odd number, too.
        stream.fill_bytes(copy.view_mut(), 0)?;
        let source = Matrix::row_major(view, matrices, columns)?;
        let to = MatrixMut {
            view: copy.view_mut(),
            extents: Extents {
                rows: matrices,
                columns,
                ld: even,
                order: Order::RowMajor,
            },
        };
        permute(stream, source, to.in_part())?;
        Ok(copy)
    }

    /// The same with a copy of the scales of columns, in which those of each matrix are an even number.
    pub fn with_columns(self, copy: View<'a, f32>) -> Self {
        let OperandScales { count, to_next, .. } = self.b;
        Self {
            b: OperandScales {
                view: copy,
                count,
                to_next: if to_next == 0 {
                    0
                } else {
                    count.next_multiple_of(2)
                },
            },
            ..self
        }
    }

    /// Says that work in the stream, which is about to be enqueued, uses the scales.
    pub fn use_in(&self, stream: &Stream) -> Result<()> {
        // They may be those of the transposed product.
        for scales in [self.a, self.b] {
            scales.view.use_in(stream, "gemm", "the scales of A or B")?;
        }
        Ok(())
    }

    /// Those of the product with this number.
    pub fn of_product(self, nth: usize) -> Result<Self> {
        Ok(Self {
            a: self.a.of_matrix(nth)?,
            b: self.b.of_matrix(nth)?,
        })
    }

    /// The epilogue that multiplies by `alpha` and the scales, for Cs of these rows and columns.
    ///
    /// # Safety
    /// The scales must live until the stream has got past the launch.
    pub unsafe fn epilogue(&self, alpha: f32, [m, n]: [usize; 2]) -> epilogue::OuterScales {
        let both = [self.a, self.b];
        let scales = both.map(|it| pointer(it.view));
        let is_one = both.map(|it| it.is_one());
        let extent = [m as i32, n as i32];
        // SAFETY: there is a scale for each row and column, or one for all. The rest is promised by the caller.
        let first = unsafe { epilogue::OuterScales::new(alpha, scales, extent, is_one) };
        first.of_several(both.map(|it| it.to_next as i64))
    }
}

/// What is said of a number of scales that is not that of so many matrices of so many rows or columns.
fn unlike(name: &str, of: &str, found: usize, [lines, matrices]: [usize; 2]) -> String {
    match matrices {
        1 => {
            format!("{name} are {found}, and C has {lines} {of}; give one for each, or one for all")
        }
        _ => format!(
            "{name} are {found}, and there are {matrices} matrices of {lines} {of}; give one for each of the {of} of each \
             matrix, one for each matrix, or one for all"
        ),
    }
}
