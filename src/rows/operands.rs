//! Operands: checks of the table, the indices and the matrix that has a row for each index.

use cutlet_device::DeviceData;
use cutlet_host::{Stream, View};

use super::Index;
use super::index::usable;
use crate::into_tensor::{read_matrix, written_matrix};
use crate::matrix::{disjoint, in_stream};
use crate::{Error, IntoTensor, IntoTensorMut, Matrix, MatrixMut, Order, Result};

/// Names of an operation and of its operands, for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    pub operation: &'static str,
    /// The matrix that is read.
    pub from: &'static str,
    /// The matrix that is written.
    pub to: &'static str,
}

impl Operands {
    /// The matrices of the tensors that are read and written.
    ///
    /// # Errors
    /// If one of them is none.
    pub fn matrices<'a, T: DeviceData>(
        self,
        from: impl IntoTensor<'a, Element = T>,
        to: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<(Matrix<'a, T>, MatrixMut<'a, T>)> {
        let from = read_matrix(self.operation, self.from, from)?;
        let to = written_matrix(self.operation, self.to, to)?;
        Ok((from, to))
    }

    /// Checks the operands of an operation in which `rows` rows have an index each.
    ///
    /// # Errors
    /// If extents or orders do not agree, an operand cannot be used in the stream, or the matrix that is written
    /// overlaps another operand.
    pub fn check<T: DeviceData, X: Index>(
        self,
        stream: &Stream,
        from: &Matrix<'_, T>,
        indices: &View<'_, X>,
        to: &MatrixMut<'_, T>,
        rows: usize,
    ) -> Result<()> {
        let operation = self.operation;
        if from.order() != Order::RowMajor || to.order() != Order::RowMajor {
            let (from, to) = (self.from, self.to);
            return self.refuse(format!(
                "{from} or {to} is column-major; give row-major ones"
            ));
        }
        if from.columns() != to.columns() {
            return self.refuse(format!(
                "{} has {} columns and {} has {}; give them as many columns",
                self.from,
                from.columns(),
                self.to,
                to.columns()
            ));
        }
        self.check_count(indices.len(), rows)?;
        in_stream(operation, stream, self.from, from.view)?;
        in_stream(operation, stream, self.to, to.view.view())?;
        let indices = usable(operation, stream, indices)?;
        disjoint(operation, self.from, from.addresses(), to.addresses())?;
        disjoint(operation, "the indices", indices, to.addresses())
    }

    fn check_count(self, indices: usize, rows: usize) -> Result<()> {
        if indices == rows {
            return Ok(());
        }
        let (from, to) = (self.from, self.to);
        self.refuse(format!(
            "there are {indices} indices, and {rows} rows that need one, from {from} to {to}; give an index for each \
             row"
        ))
    }

    /// An error for wrong extents or orders.
    pub fn refuse<R>(self, found: String) -> Result<R> {
        let operation = self.operation;
        Err(Error::Extents { operation, found })
    }
}
