//! Matrices on a device, in the words of BLAS: tensors of two modes, of which one is contiguous.

use std::num::NonZeroU32;
use std::ops::Range;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use cutlet_device::{DeviceData, Global, GlobalMut};
use cutlet_host::{IntoView, IntoViewMut, Stream, View, ViewMut};
use cutlet_layout_core::Divisor;

use crate::{Error, Result};

/// Which direction of a matrix is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Rows are contiguous. The leading dimension is the distance from one row to the next.
    RowMajor,
    /// Columns are contiguous. The leading dimension is the distance from one column to the next.
    ColMajor,
}

impl Order {
    fn flipped(self) -> Order {
        match self {
            Order::RowMajor => Order::ColMajor,
            Order::ColMajor => Order::RowMajor,
        }
    }
}

/// The largest number of rows or columns of an operand. Coordinates in tiles that reach beyond it still fit an `i32`.
pub const MAX_EXTENT: usize = i32::MAX as usize - 1023;

/// A leading dimension of a multiple of this many elements suits the widest accesses: whole cache lines.
const WIDE: usize = 128;

/// Extents, order and leading dimension, checked against the memory behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) ld: usize,
    pub(crate) order: Order,
}

impl Extents {
    /// Packed extents, checked to need at most `len` elements.
    pub(crate) fn packed(rows: usize, columns: usize, order: Order, len: usize) -> Result<Self> {
        let ld = match order {
            Order::RowMajor => columns,
            Order::ColMajor => rows,
        };
        Extents {
            rows,
            columns,
            ld,
            order,
        }
        .checked(len)
    }

    /// The length of a contiguous run, and the number of runs.
    pub(crate) fn run_and_count(&self) -> (usize, usize) {
        match self.order {
            Order::RowMajor => (self.columns, self.rows),
            Order::ColMajor => (self.rows, self.columns),
        }
    }

    /// Number of elements from the first to the last, including gaps; `None` on overflow.
    pub(crate) fn span(&self) -> Option<usize> {
        match self.run_and_count() {
            (0, _) | (_, 0) => Some(0),
            (run, count) => (count - 1).checked_mul(self.ld)?.checked_add(run),
        }
    }

    /// The extents, if they need at most `len` elements. The leading dimension of a single run is free, and no
    /// arithmetic can rely on it: it becomes the run's length.
    pub(crate) fn checked(self, len: usize) -> Result<Self> {
        let (run, count) = self.run_and_count();
        let found = match self.span() {
            Some(span) if span > len => {
                format!("it needs {span} elements and the buffer has {len}")
            }
            None => "its number of elements exceeds 64 bits".to_string(),
            Some(_) if self.ld < run => format!("its contiguous runs of {run} elements overlap"),
            Some(_) if self.rows.max(self.columns) > MAX_EXTENT => {
                format!("the largest extent is {MAX_EXTENT}")
            }
            Some(_) if count <= 1 => return Ok(Extents { ld: run, ..self }),
            Some(_) => return Ok(self),
        };
        Err(Error::Matrix {
            rows: self.rows,
            columns: self.columns,
            ld: self.ld,
            found,
        })
    }

    /// The matrix of rows and columns of these (extent, stride). The stride of a single row or column is any number.
    ///
    /// # Errors
    /// Why they are no matrix that kernels read.
    pub(crate) fn of_modes(
        (rows, down): (usize, usize),
        (columns, across): (usize, usize),
    ) -> Result<Extents, &'static str> {
        let (order, ld) = if columns == 1 || across == 1 {
            (Order::RowMajor, down)
        } else if rows == 1 || down == 1 {
            (Order::ColMajor, across)
        } else {
            return Err("neither its rows nor its columns are contiguous");
        };
        let unset = Extents {
            rows,
            columns,
            ld,
            order,
        };
        match unset.run_and_count() {
            (run, 1) => Ok(Extents { ld: run, ..unset }),
            (run, _) if ld < run => Err("its rows or columns have elements in common"),
            _ => Ok(unset),
        }
    }

    fn transposed(self) -> Self {
        Extents {
            rows: self.columns,
            columns: self.rows,
            ld: self.ld,
            order: self.order.flipped(),
        }
    }

    /// The same elements in one run, if they are contiguous: a vector has either order.
    fn in_one_run(self) -> Self {
        let order = match self.run_and_count() {
            (1, 1..) if self.ld == 1 => self.order.flipped(),
            _ => self.order,
        };
        Extents { order, ..self }.with_wide_run()
    }

    /// The same elements. The leading dimension of a single run is free, so it becomes one that suits the widest
    /// accesses.
    fn with_wide_run(self) -> Self {
        match self.run_and_count() {
            (run @ 1.., 1) => Extents {
                ld: run.next_multiple_of(WIDE),
                ..self
            },
            _ => self,
        }
    }
}

macro_rules! matrix {
    ($(#[$doc:meta])* $name:ident, $view:ident, $into:ident, $into_view:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<'a, T: DeviceData> {
            pub(crate) view: $view<'a, T>,
            pub(crate) extents: Extents,
        }

        impl<'a, T: DeviceData> $name<'a, T> {
            /// A packed row-major matrix that begins at the first of `elements`.
            ///
            /// # Errors
            /// If the matrix does not fit in `elements`.
            pub fn row_major(
                elements: impl $into<'a, Element = T>,
                rows: usize,
                columns: usize,
            ) -> Result<Self> {
                Self::packed(elements, rows, columns, Order::RowMajor)
            }

            /// A packed column-major matrix that begins at the first of `elements`.
            ///
            /// # Errors
            /// If the matrix does not fit in `elements`.
            pub fn col_major(
                elements: impl $into<'a, Element = T>,
                rows: usize,
                columns: usize,
            ) -> Result<Self> {
                Self::packed(elements, rows, columns, Order::ColMajor)
            }

            /// A packed matrix that begins at the first of `elements`.
            ///
            /// # Errors
            /// If the matrix does not fit in `elements`.
            pub fn packed(
                elements: impl $into<'a, Element = T>,
                rows: usize,
                columns: usize,
                order: Order,
            ) -> Result<Self> {
                let view = elements.$into_view();
                let extents = Extents::packed(rows, columns, order, view.len())?;
                Ok(Self::new(view, extents))
            }

            /// A matrix that begins at the first of `elements`, with runs `ld` elements apart.
            ///
            /// # Errors
            /// If the matrix does not fit in `elements`, or `ld` is shorter than a run. The `ld` of a single run may be
            /// any larger number.
            pub fn with_ld(
                elements: impl $into<'a, Element = T>,
                rows: usize,
                columns: usize,
                order: Order,
                ld: usize,
            ) -> Result<Self> {
                let view = elements.$into_view();
                let extents = Extents { rows, columns, ld, order }.checked(view.len())?;
                Ok(Self::new(view, extents))
            }

            /// The matrix with these checked extents. The other elements of the view may be another matrix's.
            fn new(view: $view<'a, T>, extents: Extents) -> Self {
                let has_all = extents.rows * extents.columns == view.len();
                let matrix = Self { view, extents };
                if has_all { matrix } else { matrix.in_part() }
            }

            /// The same matrix, of which an operation uses some elements. The order of streams' work is then
            /// [relaxed](View::relaxed).
            pub(crate) fn in_part(self) -> Self {
                Self { view: self.view.relaxed(), ..self }
            }

            /// The transposed matrix, in the same memory.
            pub fn transposed(self) -> Self {
                Self { extents: self.extents.transposed(), ..self }
            }

            /// The same elements in one run, if they are contiguous.
            pub(crate) fn in_one_run(self) -> Self {
                Self { extents: self.extents.in_one_run(), ..self }
            }

            /// The same elements, with a leading dimension that suits the widest accesses if it is free.
            pub(crate) fn with_wide_run(self) -> Self {
                Self { extents: self.extents.with_wide_run(), ..self }
            }

            /// Number of rows.
            pub fn rows(&self) -> usize {
                self.extents.rows
            }

            /// Number of columns.
            pub fn columns(&self) -> usize {
                self.extents.columns
            }

            /// Leading dimension: elements from one contiguous run to the next. Of a single run, it is its length.
            pub fn ld(&self) -> usize {
                self.extents.ld
            }

            /// Which direction is contiguous.
            pub fn order(&self) -> Order {
                self.extents.order
            }

            /// Elements from one row to the next, and from one column to the next.
            pub(crate) fn strides(&self) -> [i64; 2] {
                let ld = self.ld() as i64;
                match self.order() {
                    Order::RowMajor => [ld, 1],
                    Order::ColMajor => [1, ld],
                }
            }

            /// Whether every contiguous run starts at a multiple of `bytes` bytes.
            pub(crate) fn starts_runs_at(&self, bytes: usize) -> bool {
                let (_, count) = self.extents.run_and_count();
                self.view.address().is_multiple_of(bytes as u64)
                    && (count <= 1 || (self.ld() * size_of::<T>()).is_multiple_of(bytes))
            }

            /// The device addresses from the first element to the last.
            pub(crate) fn addresses(&self) -> Range<u64> {
                let span = self.extents.span().unwrap_or(0);
                addresses_of::<T>(self.view.address(), span)
            }
        }
    };
}

matrix! {
    /// A matrix on a device, for reading: a [`Tensor`](crate::Tensor) of rows and columns in the words of BLAS, an
    /// order and a leading dimension. Unlike a layout, it may have no elements. Operations make it of a tensor, and
    /// compute with it.
    ///
    /// ```
    /// use cutlet::{Device, IntoTensor, Matrix, Order};
    ///
    /// let stream = Device::auto().stream()?;
    /// let elements = stream.zeroed::<f32>(100)?;
    /// let matrix = Matrix::with_ld(&elements, 4, 6, Order::ColMajor, 10)?;
    /// assert_eq!(matrix.into_tensor()?.layout().to_string(), "(4,6):(1,10)");
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    Matrix, View, IntoView, into_view
}
matrix! {
    /// A matrix on a device, for writing: see [`Matrix`].
    MatrixMut, ViewMut, IntoViewMut, into_view_mut
}

impl<T: DeviceData> MatrixMut<'_, T> {
    /// The same matrix, borrowed for less long.
    pub(crate) fn reborrow(&mut self) -> MatrixMut<'_, T> {
        MatrixMut {
            view: self.view.reborrow(),
            extents: self.extents,
        }
    }
}

impl<T: DeviceData> Clone for Matrix<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: DeviceData> Copy for Matrix<'_, T> {}

/// A kernel's pointer to a view's memory, for reading it as elements of type `E`.
pub(crate) fn pointer<E: DeviceData>(view: View<'_, impl DeviceData>) -> Global<E> {
    Global::from_ptr(with_exposed_provenance(view.address() as usize))
}

/// A kernel's pointer to an address, for writing elements of type `E`.
pub(crate) fn pointer_mut<E: DeviceData>(address: u64) -> GlobalMut<E> {
    GlobalMut::from_ptr(with_exposed_provenance_mut(address as usize))
}

/// An extent by which a kernel divides; 1 for 0.
pub(crate) fn divisor(extent: usize) -> Divisor {
    let extent = u32::try_from(extent).ok().and_then(NonZeroU32::new);
    Divisor::new(extent.unwrap_or(NonZeroU32::MIN))
}

/// Returns an error unless work in the stream may use an operand.
pub(crate) fn in_stream<T: DeviceData>(
    operation: &'static str,
    stream: &Stream,
    operand: &str,
    view: View<'_, T>,
) -> Result<()> {
    Ok(view.expect_usable_in(stream, || format!("{operation}: {operand}"))?)
}

/// Returns an error if the address ranges of an operand and the output overlap.
pub(crate) fn disjoint(
    operation: &'static str,
    operand: &'static str,
    read: Range<u64>,
    written: Range<u64>,
) -> Result<()> {
    if read.start.max(written.start) < read.end.min(written.end) {
        return Err(Error::Overlap { operation, operand });
    }
    Ok(())
}

/// The device addresses of `len` elements from the address `first` on.
pub(crate) fn addresses_of<T>(first: u64, len: usize) -> Range<u64> {
    first..first + (len * size_of::<T>()) as u64
}

/// The device addresses of a view's elements.
pub(crate) fn addresses<T: DeviceData>(view: &View<'_, T>) -> Range<u64> {
    addresses_of::<T>(view.address(), view.len())
}

/// The alignment of an address in bytes, at most the width of the widest access.
pub(crate) fn alignment(address: u64) -> u64 {
    const WIDEST: u64 = 16;
    (address | WIDEST) & (address | WIDEST).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_end_at_the_widest_access() {
        let addresses = [1, 2, 6, 8, 16, 24, 64, 0];
        assert_eq!(addresses.map(alignment), [1, 2, 2, 8, 16, 8, 16, 16]);
    }

    fn extents(rows: usize, columns: usize, order: Order, ld: usize) -> Extents {
        Extents {
            rows,
            columns,
            ld,
            order,
        }
    }

    #[test]
    fn a_vector_is_one_run_in_either_order() {
        use Order::{ColMajor, RowMajor};
        for (rows, columns, order, ld) in [
            (1, 1000, RowMajor, 1000),
            (1, 1000, RowMajor, usize::MAX),
            (1, 1000, ColMajor, 1),
        ] {
            let given = extents(rows, columns, order, ld);
            for vector in [
                given.in_one_run(),
                given.transposed().in_one_run().transposed(),
            ] {
                assert_eq!(vector.order, RowMajor, "{given:?}");
                assert_eq!(vector.run_and_count(), (1000, 1));
                assert_eq!(vector.ld, 1024);
            }
        }
        for matrix in [
            extents(1, 1000, ColMajor, 2),
            extents(2, 1000, RowMajor, 1000),
            extents(0, 1, RowMajor, 1),
        ] {
            assert_eq!(matrix.in_one_run().ld, matrix.ld, "{matrix:?}");
            assert_eq!(matrix.in_one_run().order, matrix.order, "{matrix:?}");
        }
    }

    #[test]
    fn a_single_run_has_any_leading_dimension() {
        let stream = cutlet_host::Device::cpu().stream().unwrap();
        let elements = stream.zeroed::<f32>(8).unwrap();
        for ld in [8, usize::MAX - 1, usize::MAX] {
            let row = Matrix::with_ld(&elements, 1, 8, Order::RowMajor, ld).unwrap();
            assert!(row.starts_runs_at(16));
            assert_eq!(row.strides(), [8, 1]);
            assert_eq!(row.with_wide_run().strides(), [128, 1]);
        }
        // Without runs, the leading dimension is free as well.
        let none = Matrix::with_ld(&elements, 0, 8, Order::RowMajor, usize::MAX).unwrap();
        assert_eq!(none.with_wide_run().ld(), 8);
        let two = Matrix::with_ld(&elements, 2, 3, Order::RowMajor, 5).unwrap();
        assert!(two.starts_runs_at(4) && !two.starts_runs_at(8));
        assert_eq!(two.with_wide_run().ld(), 5);
    }

    #[test]
    fn no_extent_exceeds_the_largest() {
        let most = extents(MAX_EXTENT, 1, Order::ColMajor, MAX_EXTENT);
        assert!(most.checked(MAX_EXTENT).is_ok());
        let more = extents(MAX_EXTENT + 1, 1, Order::ColMajor, MAX_EXTENT + 1);
        let refused = more.checked(MAX_EXTENT + 1).unwrap_err().to_string();
        assert!(
            refused.contains("the largest extent is 2147482624"),
            "{refused}"
        );
    }
}
