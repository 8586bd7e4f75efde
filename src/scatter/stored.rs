//! Scatter of rows that replace what the table has.

use cutlet_device::DeviceData;
use cutlet_host::{Device, IntoView, Stream, View};
use cutlet_kernels::gather::scatter::{
    scatter_long1, scatter_long2, scatter_long4, scatter_long16, scatter_medium16, scatter_short1,
    scatter_short2, scatter_short4, scatter_short16,
};

use crate::rows::{
    Access, Index, IndexView, Misses, Operands, OutOfRange, RowKernels, RowOperation,
    expect_no_capture, with_kept_misses,
};
use crate::{IntoTensor, IntoTensorMut, Matrix, MatrixMut, Result};

/// Enqueues `table[indices[r]] = source[r]` for each row r.
///
/// Elements are of any [`DeviceData`] type, and indices are `i32` or `i64`. Source and table have two modes, of which
/// the second is contiguous. Rows of the table that no index names keep what they have. If several rows have the same
/// index, each element of the table comes from one of them, and which one is unspecified. A row whose index is no row of
/// the table is left out, and [`check_indices`](crate::check_indices) reports it; [`scatter_checked`] waits and reports
/// it at once. [`Scatter`] has other meanings of such indices, and a report of its own.
///
/// # Errors
/// - Extents do not agree.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The table overlaps the source or the indices.
/// - Another library captures the stream, whose graph would need a report of its own: use [`Scatter`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, scatter};
///
/// let stream = Device::auto().stream()?;
/// let source = DeviceTensor::upload(&stream, &[2.0f32, 2.5, 0.0, 0.5], [2, 2])?;
/// let indices = stream.upload(&[2i32, 0])?;
/// let mut table = DeviceTensor::<f32>::zeroed(&stream, [3, 2])?;
/// scatter(&stream, &source, &indices, &mut table)?;
/// assert_eq!(table.download(&stream)?, [0.0, 0.5, 0.0, 0.0, 2.0, 2.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn scatter<'a, 'i, T: DeviceData, X: Index>(
    stream: &Stream,
    source: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    table: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (source, table) = NAMES.matrices(source, table)?;
    let indices = indices.into_view();
    with_kept_misses(stream, NAMES.operation, OUTCOME, |misses| {
        let mut plan = Scatter::with(misses);
        let enqueued = plan.scatter_rows(stream, source, indices, table);
        (plan.misses, enqueued)
    })
}

/// Computes [`scatter`](fn@scatter), waits until it is done, and reports an index that is no row of the table.
///
/// # Errors
/// Those of [`scatter`](fn@scatter), and also:
///
/// - [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange): an index is no row of the table. The rows of such
///   indices are left out, and all other rows are scattered.
/// - The stream is being captured.
pub fn scatter_checked<'a, 'i, T: DeviceData, X: Index>(
    stream: &Stream,
    source: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    table: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    expect_no_capture(stream, "a scatter that waits until it is done")?;
    let (source, table) = NAMES.matrices(source, table)?;
    let (indices, table_rows) = (indices.into_view(), table.rows());
    let mut plan = Scatter::with(Misses::in_stream(stream, NAMES.operation, OUTCOME)?);
    plan.scatter_rows(stream, source, indices, table)?;
    plan.misses.check_one(stream, indices, table_rows)
}

/// Scatters with a report of their own. They can be captured in a graph, and [`check`](Self::check) reports bad indices.
///
/// A graph also writes the report, so the `Scatter` must outlive the graph.
///
/// ```
/// use cutlet::{Device, DeviceTensor, OutOfRange, Scatter};
///
/// let stream = Device::auto().stream()?;
/// let source = DeviceTensor::upload(&stream, &[1u16, 2, 3], [3, 1])?;
/// let indices = stream.upload(&[1i64, -1, 0])?;
/// let mut table = DeviceTensor::<u16>::zeroed(&stream, [2, 1])?;
/// let mut plan = Scatter::new(stream.device())?.out_of_range(OutOfRange::Skip);
/// plan.enqueue(&stream, &source, &indices, &mut table)?;
/// plan.check(&stream)?;
/// assert_eq!(table.download(&stream)?, [3, 1]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Scatter {
    misses: Misses,
    out_of_range: OutOfRange,
}

impl Scatter {
    /// Prepares scatters on this stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Scatter::with(Misses::new(device, "scatter", OUTCOME)?))
    }

    fn with(misses: Misses) -> Self {
        Scatter {
            misses,
            out_of_range: OutOfRange::Error,
        }
    }

    /// The same scatters, in which an index that is no row of its table means something else than an error.
    pub fn out_of_range(self, out_of_range: OutOfRange) -> Self {
        Scatter {
            out_of_range,
            ..self
        }
    }

    /// Enqueues `table[indices[r]] = source[r]`.
    ///
    /// # Errors
    /// Those of [`scatter`](fn@scatter), but another library may capture the stream.
    pub fn enqueue<'a, 'i, T: DeviceData, X: Index>(
        &mut self,
        stream: &Stream,
        source: impl IntoTensor<'a, Element = T>,
        indices: impl IntoView<'i, Element = X>,
        table: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let (source, table) = NAMES.matrices(source, table)?;
        self.scatter_rows(stream, source, indices.into_view(), table)
    }

    fn scatter_rows<T: DeviceData, X: Index>(
        &mut self,
        stream: &Stream,
        source: Matrix<'_, T>,
        indices: View<'_, X>,
        table: MatrixMut<'_, T>,
    ) -> Result<()> {
        let (rows, table) = (source.rows(), table.in_part());
        NAMES.check(stream, &source, &indices, &table, rows)?;
        if rows == 0 || table.columns() == 0 {
            return Ok(());
        }
        let access = Access::of(&source, &table);
        let operation = RowOperation {
            from: source,
            indices: IndexView::new(indices)?,
            table_rows: table.rows(),
            to: table,
            rows,
            out_of_range: self.out_of_range,
        };
        operation.launch_for(stream, access, &KERNELS, &mut self.misses)
    }

    /// Waits for the enqueued scatters, and reports an index that was not a row of its table. Of several such indices
    /// since the last check, it reports one with the lowest row of a source.
    ///
    /// # Errors
    /// [`Error::IndexMissed`](crate::Error::IndexMissed) if there was such an index; an error if the stream is being
    /// captured.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.misses.check(stream)
    }
}

/// Names of the operands in errors.
/// What became of the row of a bad index.
const OUTCOME: &str = "its row was left out";

const NAMES: Operands = Operands {
    operation: "scatter",
    from: "the source",
    to: "the table",
};

static KERNELS: RowKernels = RowKernels {
    long16: &scatter_long16,
    medium16: &scatter_medium16,
    short16: &scatter_short16,
    words: [&scatter_long4, &scatter_short4],
    halves: [&scatter_long2, &scatter_short2],
    bytes: [&scatter_long1, &scatter_short1],
};
