//! candle's layouts as matrices: which ones cutlet's kernels read as they are.

use candle_core::{Error, Layout, Result};
use cutlet::{DeviceData, Matrix, Order, Tensor, View, layout};

/// Matrices in a tensor's memory: the last two dimensions of its layout, for each index of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrices {
    /// Elements before the first.
    first: usize,
    count: usize,
    /// Elements from one matrix to the next. 0 if all are the same one.
    stride: usize,
    pub rows: usize,
    pub columns: usize,
    order: Order,
    ld: usize,
}

impl Matrices {
    /// The matrices of a layout, if a stride of 1 and a leading dimension describe them, and they are at equal distances.
    /// A layout of one dimension has one row.
    pub fn of(layout: &Layout) -> Option<Matrices> {
        let dims = layout.dims().iter().zip(layout.stride());
        // Elements along a dimension of extent 1 are never left, so its stride says nothing.
        let mut dims = dims.map(|(&dim, &stride)| (dim, stride)).rev();
        let (columns, across) = dims.next()?;
        let (rows, down) = dims.next().unwrap_or((1, columns));
        let (order, ld) = match (rows, columns) {
            (_, columns) if across == 1 || columns <= 1 => (
                Order::RowMajor,
                if rows <= 1 { columns.max(1) } else { down },
            ),
            (rows, _) if down == 1 || rows <= 1 => (Order::ColMajor, across),
            _ => return None,
        };
        let run = if order == Order::RowMajor {
            columns
        } else {
            rows
        };
        let (count, stride) = one_dimension(dims)?;
        (ld >= run).then_some(Matrices {
            first: layout.start_offset(),
            count,
            stride,
            rows,
            columns,
            order,
            ld,
        })
    }

    /// The rows of all matrices as those of one matrix, if they are row-major and at equal distances.
    pub fn stacked(self) -> Option<Matrices> {
        if self.count == 1 {
            return Some(self);
        }
        let stacked = |ld| Matrices {
            count: 1,
            stride: 0,
            rows: self.count * self.rows,
            ld,
            ..self
        };
        match self.order {
            Order::RowMajor if self.rows <= 1 => {
                (self.stride >= self.columns).then(|| stacked(self.stride))
            }
            Order::RowMajor => (self.stride == self.rows * self.ld).then(|| stacked(self.ld)),
            Order::ColMajor => None,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether they are row-major.
    pub fn has_rows(&self) -> bool {
        self.order == Order::RowMajor
    }

    /// Whether all of them are the same one.
    pub fn are_one(&self) -> bool {
        self.count == 1 || self.stride == 0
    }

    /// The matrices in these elements: (rows, columns, matrices).
    pub fn batch<'a, T: DeviceData>(&self, elements: View<'a, T>) -> cutlet::Result<Tensor<'a, T>> {
        let (down, across) = match self.order {
            Order::RowMajor => (self.ld, 1),
            Order::ColMajor => (1, self.ld),
        };
        let (rows, columns, count, apart) = (self.rows, self.columns, self.count, self.stride);
        let layout = layout!((dyn rows, dyn columns, dyn count):(dyn down, dyn across, dyn apart));
        Tensor::new(elements.slice(self.first..)?, layout)
    }

    /// The first matrix in these elements.
    pub fn matrix<'a, T: DeviceData>(
        &self,
        elements: View<'a, T>,
    ) -> cutlet::Result<Matrix<'a, T>> {
        let from = elements.slice(self.first..)?;
        Matrix::with_ld(from, self.rows, self.columns, self.order, self.ld)
    }

    /// Some columns of the first matrix, which is row-major, in these elements.
    pub fn columns_from<'a, T: DeviceData>(
        &self,
        elements: View<'a, T>,
        first: usize,
        columns: usize,
    ) -> cutlet::Result<Matrix<'a, T>> {
        let from = elements.slice(self.first + first..)?;
        Matrix::with_ld(from, self.rows, columns, Order::RowMajor, self.ld)
    }
}

/// Several dimensions, from the innermost on, as one: how many steps it has, and elements from one to the next.
fn one_dimension(dims: impl Iterator<Item = (usize, usize)>) -> Option<(usize, usize)> {
    let (mut count, mut step) = (1, 0);
    for (dim, stride) in dims.filter(|&(dim, _)| dim != 1) {
        match count {
            1 => (count, step) = (dim, stride),
            _ if stride == step * count => count *= dim,
            _ => return None,
        }
    }
    Some((count, step))
}

/// The tensor, or a copy of it, which is announced, if its layout is none that `reads` takes.
pub(crate) fn readable(
    operation: &str,
    operand: &str,
    tensor: &candle_core::Tensor,
    reads: impl Fn(&Layout) -> bool,
) -> Result<candle_core::Tensor> {
    if reads(tensor.layout()) {
        return Ok(tensor.clone());
    }
    log::debug!(
        "{operation}: {operand} of {:?} with strides {:?} is copied ({} bytes), because no kernel reads it as it is",
        tensor.dims(),
        tensor.stride(),
        tensor.elem_count() * tensor.dtype().size_in_bytes()
    );
    tensor.contiguous()
}

/// The matrices of an operand that was made [`readable`].
pub(crate) fn expect(matrices: Option<Matrices>, operation: &str) -> Result<Matrices> {
    matrices.ok_or_else(|| Error::Msg(format!("{operation}: an operand is no batch of matrices")))
}

#[cfg(test)]
mod tests {
    use candle_core::Shape;

    use super::*;

    fn layout(dims: &[usize], strides: &[usize]) -> Layout {
        Layout::new(Shape::from(dims), strides.to_vec(), 5)
    }

    fn found(dims: &[usize], strides: &[usize]) -> Option<(usize, usize, Order, usize)> {
        let it = Matrices::of(&layout(dims, strides))?;
        assert_eq!(it.first, 5);
        Some((it.count, it.stride, it.order, it.ld))
    }

    #[test]
    fn orders_and_leading_dimensions_are_found() {
        let (row, col) = (Order::RowMajor, Order::ColMajor);
        assert_eq!(found(&[3, 4], &[4, 1]), Some((1, 0, row, 4)));
        assert_eq!(
            found(&[3, 4], &[9, 1]),
            Some((1, 0, row, 9)),
            "a slice of columns"
        );
        assert_eq!(found(&[4, 3], &[1, 9]), Some((1, 0, col, 9)), "transposed");
        assert_eq!(found(&[3, 4], &[8, 2]), None, "every other column");
        assert_eq!(found(&[3, 4], &[0, 1]), None, "a row that is repeated");
        assert_eq!(found(&[1, 4], &[1, 1]), Some((1, 0, row, 4)));
        assert_eq!(found(&[4], &[1]), Some((1, 0, row, 4)), "one dimension");
        assert_eq!(found(&[], &[]), None);
    }

    #[test]
    fn dimensions_of_a_batch_become_one_where_they_can() {
        let row = Order::RowMajor;
        assert_eq!(
            found(&[2, 5, 3, 4], &[60, 12, 4, 1]),
            Some((10, 12, row, 4))
        );
        assert_eq!(found(&[2, 1, 3, 4], &[60, 7, 4, 1]), Some((2, 60, row, 4)));
        assert_eq!(
            found(&[2, 5, 3, 4], &[0, 0, 4, 1]),
            Some((10, 0, row, 4)),
            "broadcast"
        );
        assert_eq!(
            found(&[2, 5, 3, 4], &[12, 24, 4, 1]),
            None,
            "heads before sequences"
        );
        // The heads of a projection: (batch, heads, sequence, head) of (batch, sequence, heads, head).
        assert_eq!(
            found(&[1, 8, 6, 16], &[768, 16, 128, 1]),
            Some((8, 16, row, 128))
        );
    }

    #[test]
    fn matrices_are_stacked_where_their_rows_are_at_equal_distances() {
        let stacked = |dims: &[usize], strides: &[usize]| {
            let it = Matrices::of(&layout(dims, strides))?.stacked()?;
            Some((it.rows, it.ld))
        };
        assert_eq!(stacked(&[2, 3, 4], &[12, 4, 1]), Some((6, 4)));
        assert_eq!(stacked(&[2, 3, 4], &[27, 9, 1]), Some((6, 9)));
        assert_eq!(stacked(&[2, 3, 4], &[28, 9, 1]), None);
        assert_eq!(stacked(&[2, 1, 4], &[28, 9, 1]), Some((2, 28)));
        assert_eq!(stacked(&[2, 3, 4], &[0, 4, 1]), None, "one matrix twice");
        assert_eq!(
            stacked(&[2, 3, 4], &[12, 1, 3]),
            None,
            "transposed matrices"
        );
    }
}
