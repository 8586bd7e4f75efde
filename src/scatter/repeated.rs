//! Scatter of rows of which each is stored several times, as a mixture of experts stores its tokens.

use std::num::NonZeroU32;

use cutlet_device::DeviceData;
use cutlet_kernels::gather::scatter::{
    scatter_repeated_long1, scatter_repeated_long2, scatter_repeated_long4,
    scatter_repeated_long16, scatter_repeated_medium16, scatter_repeated_short1,
    scatter_repeated_short2, scatter_repeated_short4, scatter_repeated_short16,
};

use crate::rows::{Access, IndexView, Misses, OutOfRange, RowKernels, RowOperation};
use crate::{Matrix, MatrixMut, Result};

/// Enqueues `table[indices[r]] = source[r / repeats]`. The operands were checked, and have elements. There are `repeats`
/// indices for each row of the source.
pub(crate) fn scatter_repeated<T: DeviceData>(
    source: Matrix<'_, T>,
    repeats: NonZeroU32,
    indices: IndexView<'_>,
    table: MatrixMut<'_, T>,
    out_of_range: OutOfRange,
    misses: &mut Misses,
) -> Result<()> {
    let access = Access::of(&source, &table);
    let operation = RowOperation {
        from: source,
        indices,
        table_rows: table.rows(),
        to: table,
        rows: source.rows() * repeats.get() as usize,
        repeats,
        out_of_range,
    };
    operation.launch_for(access, &KERNELS, misses)
}

static KERNELS: RowKernels = RowKernels {
    long16: &scatter_repeated_long16,
    medium16: &scatter_repeated_medium16,
    short16: &scatter_repeated_short16,
    words: [&scatter_repeated_long4, &scatter_repeated_short4],
    halves: [&scatter_repeated_long2, &scatter_repeated_short2],
    bytes: [&scatter_repeated_long1, &scatter_repeated_short1],
};
