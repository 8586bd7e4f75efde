//! Matrices of tensors that come from other libraries by DLPack.

use cutlet_host::dlpack::{Element, Imported, ImportedMut};
use cutlet_host::{View, ViewMut};

use crate::batch::Repeats;
use crate::matrix::Extents;
use crate::{Error, HostError, Matrix, MatrixBatch, MatrixBatchMut, MatrixMut, Order, Result};

impl<'a, T: Element> Matrix<'a, T> {
    /// The matrix that a DLPack tensor of two dimensions is, in the tensor's memory: rows, then columns.
    ///
    /// One of the strides is 1, and the other one is the leading dimension.
    ///
    /// # Errors
    /// [`HostError::Dlpack`] if the tensor is no matrix, or its elements are of another type. Those of
    /// [`with_ld`](Self::with_ld).
    ///
    /// ```
    /// use cutlet::dlpack::{Imported, dlpark::versioned};
    /// use cutlet::{Device, Matrix, MatrixMut, gemm};
    ///
    /// # fn main() -> cutlet::Result<()> {
    /// let stream = Device::auto().stream()?;
    /// let buffer = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// let tensor: versioned::Dlpack = stream.export_dlpack(buffer, &[2, 2], None)?;
    ///
    /// // SAFETY: the tensor is a buffer of this device, which nothing else uses.
    /// let tensor = unsafe { Imported::new(&stream, tensor)? };
    /// let a = Matrix::<f32>::from_dlpack(&tensor)?;
    /// let mut c = stream.zeroed::<f32>(4)?;
    /// gemm(&stream, 1.0, a, a.transposed(), 0.0, MatrixMut::row_major(&mut c, 2, 2)?)?;
    /// assert_eq!(stream.download(&c)?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok(()) }
    /// ```
    pub fn from_dlpack(tensor: &'a Imported<'_>) -> Result<Self> {
        let (extents, view) = (of_matrix(tensor)?, elements(tensor)?);
        let extents = extents.checked(view.len())?;
        Ok(Matrix { view, extents })
    }
}

impl<'a, T: Element> MatrixMut<'a, T> {
    /// The matrix that a DLPack tensor of two dimensions is, in the tensor's memory; see [`Matrix::from_dlpack`].
    ///
    /// # Errors
    /// As [`Matrix::from_dlpack`].
    pub fn from_dlpack(tensor: &'a mut ImportedMut<'_>) -> Result<Self> {
        let (extents, view) = (of_matrix(tensor)?, elements_mut(tensor)?);
        let extents = extents.checked(view.len())?;
        Ok(MatrixMut { view, extents })
    }
}

impl<'a, T: Element> MatrixBatch<'a, T> {
    /// The matrices that a DLPack tensor of three dimensions is, in the tensor's memory: matrices, rows, then columns.
    ///
    /// One of the last two strides is 1, and the other one is the leading dimension. The first one is free.
    ///
    /// # Errors
    /// [`HostError::Dlpack`] if the tensor is no batch of matrices, or its elements are of another type. Those of
    /// [`strided`](Self::strided).
    pub fn from_dlpack(tensor: &'a Imported<'_>) -> Result<Self> {
        let (Repeats { count, stride }, matrix) = of_batch(tensor)?;
        let (rows, columns, order, ld) = (matrix.rows, matrix.columns, matrix.order, matrix.ld);
        Self::strided(elements(tensor)?, count, stride, rows, columns, order, ld)
    }
}

impl<'a, T: Element> MatrixBatchMut<'a, T> {
    /// The matrices that a DLPack tensor of three dimensions is, in the tensor's memory; see
    /// [`MatrixBatch::from_dlpack`].
    ///
    /// # Errors
    /// As [`MatrixBatch::from_dlpack`], and if the matrices overlap.
    pub fn from_dlpack(tensor: &'a mut ImportedMut<'_>) -> Result<Self> {
        let (Repeats { count, stride }, matrix) = of_batch(tensor)?;
        let (rows, columns, order, ld) = (matrix.rows, matrix.columns, matrix.order, matrix.ld);
        Self::strided(
            elements_mut(tensor)?,
            count,
            stride,
            rows,
            columns,
            order,
            ld,
        )
    }
}

fn elements<'a, T: Element>(tensor: &'a Imported<'_>) -> Result<View<'a, T>> {
    // SAFETY: the view becomes a matrix's, which nobody gets back. Operations read a matrix's elements alone.
    Ok(unsafe { tensor.span()? })
}

fn elements_mut<'a, T: Element>(tensor: &'a mut ImportedMut<'_>) -> Result<ViewMut<'a, T>> {
    // SAFETY: as in `elements`, and operations write a matrix's elements alone.
    Ok(unsafe { tensor.span_mut()? })
}

fn of_matrix(tensor: &Imported<'_>) -> Result<Extents> {
    let matrix = match (tensor.shape(), tensor.strides()) {
        (&[rows, columns], &[row, column]) => extents([rows, columns], [row, column]),
        _ => None,
    };
    matrix.ok_or_else(|| {
        let fix = "give two dimensions, of which one has stride 1 and the other a stride of at least the first one's \
                   extent, or copy it to a contiguous tensor in the library that owns it";
        refused("a matrix", tensor, fix)
    })
}

fn of_batch(tensor: &Imported<'_>) -> Result<(Repeats, Extents)> {
    let batch = match (tensor.shape(), tensor.strides()) {
        (&[count, rows, columns], &[stride, row, column]) => {
            // A negative one is never taken.
            let stride = usize::try_from(stride).unwrap_or(0);
            let matrix = extents([rows, columns], [row, column]);
            matrix.map(|matrix| (Repeats { count, stride }, matrix))
        }
        _ => None,
    };
    batch.ok_or_else(|| {
        let fix = "give three dimensions, of which one of the last two has stride 1 and the other a stride of at least \
                   the first one's extent, or copy it to a contiguous tensor in the library that owns it";
        refused("a batch of matrices", tensor, fix)
    })
}

/// The extents of a matrix with these strides from row to row and from column to column. `None` if neither is 1, or the
/// other one is so short that runs overlap.
fn extents([rows, columns]: [usize; 2], [row, column]: [i64; 2]) -> Option<Extents> {
    // The stride of a single element is any number.
    let (order, stride) = if columns <= 1 || column == 1 {
        (Order::RowMajor, row)
    } else if rows <= 1 || row == 1 {
        (Order::ColMajor, column)
    } else {
        return None;
    };
    let unset = Extents {
        rows,
        columns,
        ld: 0,
        order,
    };
    let (run, count) = unset.run_and_count();
    let ld = match count {
        0 | 1 => run,
        _ => usize::try_from(stride).ok()?,
    };
    (ld >= run).then_some(Extents { ld, ..unset })
}

fn refused(asked: &str, tensor: &Imported<'_>, fix: &'static str) -> Error {
    Error::Host(HostError::Dlpack {
        asked: asked.to_string(),
        found: format!("this is a {tensor}"),
        fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Order::{ColMajor, RowMajor};

    #[test]
    fn one_stride_is_1_and_the_other_is_the_leading_dimension() {
        let taken = |shape, strides| extents(shape, strides).map(|it| (it.order, it.ld));
        for (shape, strides, expected) in [
            ([2, 3], [3, 1], (RowMajor, 3)),
            ([2, 3], [8, 1], (RowMajor, 8)),
            ([2, 3], [1, 2], (ColMajor, 2)),
            ([2, 3], [1, 9], (ColMajor, 9)),
            // A vector's other stride is free.
            ([1, 3], [-5, 1], (RowMajor, 3)),
            ([1, 3], [0, 4], (ColMajor, 4)),
            ([3, 1], [1, 0], (RowMajor, 1)),
            ([3, 1], [4, -5], (RowMajor, 4)),
            ([1, 1], [0, 0], (RowMajor, 1)),
            ([0, 3], [7, 1], (RowMajor, 3)),
            ([3, 0], [0, 1], (RowMajor, 0)),
        ] {
            assert_eq!(
                taken(shape, strides),
                Some(expected),
                "{shape:?}:{strides:?}"
            );
        }
        for (shape, strides) in [
            ([2, 3], [6, 2]),
            ([2, 3], [2, 1]),
            ([2, 3], [0, 1]),
            ([2, 3], [1, 1]),
            ([3, 1], [0, 1]),
        ] {
            assert_eq!(taken(shape, strides), None, "{shape:?}:{strides:?}");
        }
    }
}
