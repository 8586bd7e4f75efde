//! Tensors that are batches: matrices of the same extents, at equal distances.

use cutlet::{DeviceData, IntoView, IntoViewMut, Layout, Order, Tensor, TensorMut, layout};

/// The layout of `count` matrices, each `stride` elements after the one before, with runs `ld` elements apart.
pub fn strided(
    count: usize,
    stride: usize,
    [rows, columns]: [usize; 2],
    order: Order,
    ld: usize,
) -> Layout {
    let [down, across] = match order {
        Order::RowMajor => [ld, 1],
        Order::ColMajor => [1, ld],
    };
    layout!((dyn rows, dyn columns, dyn count):(dyn down, dyn across, dyn stride))
}

/// The layout of packed matrices, one behind the other.
fn packed(count: usize, rows: usize, columns: usize, order: Order) -> Layout {
    let ld = match order {
        Order::RowMajor => columns,
        Order::ColMajor => rows,
    };
    strided(count, rows * columns, [rows, columns], order, ld)
}

/// Packed matrices, one behind the other, for reading.
pub fn batch<'a, T: DeviceData>(
    elements: impl IntoView<'a, Element = T>,
    count: usize,
    rows: usize,
    columns: usize,
    order: Order,
) -> Tensor<'a, T> {
    Tensor::new(elements, packed(count, rows, columns, order)).unwrap()
}

/// Packed matrices, one behind the other, for writing.
pub fn batch_mut<'a, T: DeviceData>(
    elements: impl IntoViewMut<'a, Element = T>,
    count: usize,
    rows: usize,
    columns: usize,
    order: Order,
) -> TensorMut<'a, T> {
    TensorMut::new(elements, packed(count, rows, columns, order)).unwrap()
}
