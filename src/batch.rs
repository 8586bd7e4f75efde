//! Batches on a device: matrices of the same extents, at equal distances.

use cutlet_device::DeviceData;
use cutlet_host::{IntoView, IntoViewMut};

use crate::matrix::{Extents, addresses_of};
use crate::{Error, Matrix, MatrixMut, Order, Result};

/// How many matrices a batch has, and how far apart they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeats {
    pub(crate) count: usize,
    /// Elements from one matrix to the next.
    pub(crate) stride: usize,
}

impl Repeats {
    /// Elements from the first of all matrices to the last; `None` on overflow.
    fn span(self, matrix: &Extents) -> Option<usize> {
        match (self.count, matrix.span()?) {
            (0, _) | (_, 0) => Some(0),
            (count, span) => (count - 1).checked_mul(self.stride)?.checked_add(span),
        }
    }

    /// The elements from one matrix to the next; 0 where there is no next one, or none has elements: the stride is free
    /// then, and no arithmetic can rely on it.
    fn taken_stride(self, matrix: &Extents) -> usize {
        match self.count > 1 && matrix.span() != Some(0) {
            true => self.stride,
            false => 0,
        }
    }

    /// Refuses a batch that needs more than `len` elements.
    fn fits(self, matrix: &Extents, len: usize) -> Result<()> {
        let found = match self.span(matrix) {
            Some(span) if span <= len => return Ok(()),
            Some(span) => format!("it needs {span} elements and the buffer has {len}"),
            None => "its number of elements exceeds 64 bits".to_string(),
        };
        Err(self.refused(matrix, found))
    }

    /// Refuses matrices that have elements in common.
    fn are_disjoint(self, matrix: &Extents) -> Result<()> {
        let (run, _) = matrix.run_and_count();
        let behind_one_another = matrix.span().is_some_and(|span| self.stride >= span);
        // As heads of attention do, whose rows lie side by side.
        let side_by_side = self.stride >= run
            && (self.count.saturating_sub(1))
                .checked_mul(self.stride)
                .is_some_and(|last| last + run <= matrix.ld);
        match self.count <= 1 || behind_one_another || side_by_side {
            true => Ok(()),
            false => Err(self.refused(matrix, "they overlap, and they are written".to_string())),
        }
    }

    fn refused(self, matrix: &Extents, found: String) -> Error {
        Error::Batch {
            count: self.count,
            stride: self.stride,
            rows: matrix.rows,
            columns: matrix.columns,
            ld: matrix.ld,
            found,
        }
    }
}

/// The elements that there are for the first of `count` matrices. If there is none, it needs no memory.
fn available(count: usize, len: usize) -> usize {
    match count {
        0 => usize::MAX,
        _ => len,
    }
}

macro_rules! batch {
    ($(#[$doc:meta])* $name:ident of $matrix:ident, $into:ident, $into_view:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<'a, T: DeviceData> {
            /// The first matrix. Its view has the elements of all.
            pub(crate) first: $matrix<'a, T>,
            pub(crate) repeats: Repeats,
        }

        impl<'a, T: DeviceData> $name<'a, T> {
            /// `count` packed matrices, one behind the other, that begin at the first of `elements`.
            ///
            /// # Errors
            /// If they do not fit in `elements`.
            pub fn packed(
                elements: impl $into<'a, Element = T>,
                count: usize,
                rows: usize,
                columns: usize,
                order: Order,
            ) -> Result<Self> {
                let view = elements.$into_view();
                let len = available(count, view.len());
                let extents = Extents::packed(rows, columns, order, len)?;
                Self::new($matrix { view, extents }, count, rows * columns)
            }

            /// `count` matrices that begin at the first of `elements`, each `stride` elements after the one before.
            /// Runs of a matrix are `ld` elements apart.
            ///
            /// # Errors
            /// If they do not fit in `elements`, or `ld` is shorter than a run. If they are written, and overlap.
            pub fn strided(
                elements: impl $into<'a, Element = T>,
                count: usize,
                stride: usize,
                rows: usize,
                columns: usize,
                order: Order,
                ld: usize,
            ) -> Result<Self> {
                let view = elements.$into_view();
                let len = available(count, view.len());
                let extents = Extents { rows, columns, ld, order }.checked(len)?;
                Self::new($matrix { view, extents }, count, stride)
            }

            fn new(first: $matrix<'a, T>, count: usize, stride: usize) -> Result<Self> {
                let repeats = Repeats { count, stride };
                repeats.fits(&first.extents, first.view.len())?;
                let check: fn(Repeats, &Extents) -> Result<()> = $check;
                check(repeats, &first.extents)?;
                let elements = count.checked_mul(first.rows() * first.columns());
                let has_all = elements == Some(first.view.len());
                let first = if has_all { first } else { first.in_part() };
                Ok(Self { first, repeats })
            }

            /// The transposed matrices, in the same memory.
            pub fn transposed(self) -> Self {
                Self { first: self.first.transposed(), ..self }
            }

            /// How many matrices there are.
            pub fn count(&self) -> usize {
                self.repeats.count
            }

            /// Elements from one matrix to the next.
            pub fn stride(&self) -> usize {
                self.repeats.stride
            }

            /// Elements from one matrix to the next; 0 where that is never taken.
            pub(crate) fn taken_stride(&self) -> usize {
                self.repeats.taken_stride(&self.first.extents)
            }

            /// Rows of each matrix.
            pub fn rows(&self) -> usize {
                self.first.rows()
            }

            /// Columns of each matrix.
            pub fn columns(&self) -> usize {
                self.first.columns()
            }

            /// The device addresses from the first element of all matrices to the last.
            pub(crate) fn addresses(&self) -> core::ops::Range<u64> {
                let span = self.repeats.span(&self.first.extents).unwrap_or(0);
                addresses_of::<T>(self.first.view.address(), span)
            }
        }
    };
}

batch! {
    /// Matrices of the same extents on a device, for reading.
    ///
    /// ```
    /// use cutlet::{Device, MatrixBatch, Order};
    ///
    /// let stream = Device::auto().stream()?;
    /// let elements = stream.zeroed::<f32>(10 * 6)?;
    /// let batch = MatrixBatch::packed(&elements, 10, 2, 3, Order::RowMajor)?;
    /// assert_eq!((batch.count(), batch.stride()), (10, 6));
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    MatrixBatch of Matrix, IntoView, into_view, |_, _| Ok(())
}
batch! {
    /// Matrices of the same extents on a device, for writing. No two of them have an element in common.
    MatrixBatchMut of MatrixMut, IntoViewMut, into_view_mut, Repeats::are_disjoint
}

/// A batch of one.
impl<'a, T: DeviceData> From<Matrix<'a, T>> for MatrixBatch<'a, T> {
    fn from(matrix: Matrix<'a, T>) -> Self {
        Self::repeated(matrix, 1)
    }
}

/// A batch of one.
impl<'a, T: DeviceData> From<MatrixMut<'a, T>> for MatrixBatchMut<'a, T> {
    fn from(matrix: MatrixMut<'a, T>) -> Self {
        Self {
            first: matrix,
            repeats: Repeats {
                count: 1,
                stride: 0,
            },
        }
    }
}

impl<T: DeviceData> Clone for MatrixBatch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: DeviceData> Copy for MatrixBatch<'_, T> {}

impl<'a, T: DeviceData> MatrixBatch<'a, T> {
    /// The same matrix `count` times.
    pub fn repeated(matrix: Matrix<'a, T>, count: usize) -> Self {
        Self {
            first: matrix,
            repeats: Repeats { count, stride: 0 },
        }
    }
}
