//! Gather: rows of a table by an index.

use cutlet_device::DeviceData;
use cutlet_host::{Device, IntoView, Stream, View};
use cutlet_kernels::gather::rows::{
    gather_kilo16, gather_long1, gather_long2, gather_long4, gather_long16, gather_medium16,
    gather_page16, gather_short1, gather_short2, gather_short4, gather_short16,
};
use cutlet_kernels::gather::shapes;

use crate::rows::{
    Access, Index, IndexView, Misses, Operands, OutOfRange, Report, RowKernels, RowOperation,
    expect_no_capture, tile_of, with_kept_misses,
};
use crate::{IntoTensor, IntoTensorMut, Matrix, MatrixMut, Result};

/// Enqueues `output[r] = table[indices[r]]` for each row r.
///
/// Elements are of any [`DeviceData`] type, and indices are `i32` or `i64`. Table and output have
/// two modes, of which the second is contiguous. An index that is no row of the table makes a row of zeros, and
/// [`check_indices`](crate::check_indices) reports it; [`gather_checked`] waits and reports it at once. [`Gather`] has
/// other meanings of such indices, and a report of its own.
///
/// # Errors
/// - Extents do not agree.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The output overlaps the table or the indices.
/// - Another library captures the stream, whose graph would need a report of its own: use [`Gather`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, gather};
///
/// let stream = Device::auto().stream()?;
/// let table = DeviceTensor::upload(&stream, &[0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5], [3, 2])?;
/// let indices = stream.upload(&[2i32, 0, 2])?;
/// let mut rows = DeviceTensor::<f32>::zeroed(&stream, [3, 2])?;
/// gather(&stream, &table, &indices, &mut rows)?;
/// assert_eq!(rows.download(&stream)?, [2.0, 2.5, 0.0, 0.5, 2.0, 2.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gather<'a, 'i, T: DeviceData, X: Index>(
    stream: &Stream,
    table: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (table, output) = NAMES.matrices(table, output)?;
    let indices = indices.into_view();
    with_kept_misses(stream, NAMES.operation, OUTCOME, |misses| {
        let mut plan = Gather::with(misses);
        let enqueued = plan.gather_rows(stream, table, indices, output);
        (plan.misses, enqueued)
    })
}

/// Computes [`gather`](fn@gather), waits until it is done, and reports an index that is no row of the table.
///
/// # Errors
/// Those of [`gather`](fn@gather), and also:
///
/// - [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange): an index is no row of the table. The rows of such
///   indices are zero, and all other rows are gathered.
/// - The stream is being captured.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Error, gather_checked};
///
/// let stream = Device::auto().stream()?;
/// let table = DeviceTensor::upload(&stream, &[0.0f32, 0.5, 1.0, 1.5], [2, 2])?;
/// let indices = stream.upload(&[1i32, 2])?;
/// let mut rows = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// let gathered = gather_checked(&stream, &table, &indices, &mut rows);
/// assert!(matches!(gathered, Err(Error::IndexOutOfRange { position: 1, index: 2, .. })));
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gather_checked<'a, 'i, T: DeviceData, X: Index>(
    stream: &Stream,
    table: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    expect_no_capture(stream, "a gather that waits until it is done")?;
    let (table, output) = NAMES.matrices(table, output)?;
    let indices = indices.into_view();
    let mut plan = Gather::with(Misses::in_stream(stream, NAMES.operation, OUTCOME)?);
    plan.gather_rows(stream, table, indices, output)?;
    plan.misses.check_one(stream, indices, table.rows())
}

/// Gathers with a report of their own. They can be captured in a graph, and [`check`](Self::check) reports bad indices.
///
/// A graph also writes the report, so the `Gather` must outlive the graph.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Error, Gather};
///
/// let stream = Device::auto().stream()?;
/// let table = DeviceTensor::upload(&stream, &[0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5], [3, 2])?;
/// let indices = stream.upload(&[2i32, 3, 0])?;
/// let mut rows = DeviceTensor::<f32>::zeroed(&stream, [3, 2])?;
/// let mut plan = Gather::new(stream.device())?;
/// plan.enqueue(&stream, &table, &indices, &mut rows)?;
/// assert!(matches!(plan.check(&stream), Err(Error::IndexMissed { position: 1, .. })));
/// assert_eq!(rows.download(&stream)?, [2.0, 2.5, 0.0, 0.0, 0.0, 0.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Gather {
    misses: Misses,
    out_of_range: OutOfRange,
}

impl Gather {
    /// Prepares gathers on this stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Gather::with(Misses::new(device, "gather", OUTCOME)?))
    }

    fn with(misses: Misses) -> Self {
        Gather {
            misses,
            out_of_range: OutOfRange::Error,
        }
    }

    /// The same gathers, in which an index that is no row of its table means something else than an error.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, Gather, OutOfRange};
    ///
    /// let stream = Device::auto().stream()?;
    /// let table = DeviceTensor::upload(&stream, &[0.0f32, 0.5, 1.0], [3, 1])?;
    /// let indices = stream.upload(&[1i32, 7, -1])?;
    /// let mut rows = DeviceTensor::<f32>::zeroed(&stream, [3, 1])?;
    /// let mut plan = Gather::new(stream.device())?.out_of_range(OutOfRange::Clamp);
    /// plan.enqueue(&stream, &table, &indices, &mut rows)?;
    /// plan.check(&stream)?;
    /// assert_eq!(rows.download(&stream)?, [0.5, 1.0, 0.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn out_of_range(self, out_of_range: OutOfRange) -> Self {
        Gather {
            out_of_range,
            ..self
        }
    }

    /// Enqueues `output[r] = table[indices[r]]`.
    ///
    /// # Errors
    /// Those of [`gather`](fn@gather), but another library may capture the stream.
    pub fn enqueue<'a, 'i, T: DeviceData, X: Index>(
        &mut self,
        stream: &Stream,
        table: impl IntoTensor<'a, Element = T>,
        indices: impl IntoView<'i, Element = X>,
        output: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let (table, output) = NAMES.matrices(table, output)?;
        self.gather_rows(stream, table, indices.into_view(), output)
    }

    fn gather_rows<T: DeviceData, X: Index>(
        &mut self,
        stream: &Stream,
        table: Matrix<'_, T>,
        indices: View<'_, X>,
        output: MatrixMut<'_, T>,
    ) -> Result<()> {
        let (rows, table) = (output.rows(), table.in_part());
        let output = match self.out_of_range {
            OutOfRange::Skip => output.in_part(),
            OutOfRange::Error | OutOfRange::Clamp => output,
        };
        NAMES.check(stream, &table, &indices, &output, rows)?;
        if rows == 0 || output.columns() == 0 {
            return Ok(());
        }
        let operation = RowOperation {
            from: table,
            indices: IndexView::new(indices)?,
            to: output,
            table_rows: table.rows(),
            rows,
            out_of_range: self.out_of_range,
        };
        launch(stream, operation, &mut self.misses)
    }

    /// Waits for the enqueued gathers, and reports an index that was not a row of its table. Of several
    /// such indices since the last check, it reports one with the lowest output row.
    ///
    /// # Errors
    /// [`Error::IndexMissed`](crate::Error::IndexMissed) if there was such an index; an error if the stream is being
    /// captured.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.misses.check(stream)
    }
}

/// Launches a gather whose operands were checked, and of which there are some.
pub(crate) fn launch<T: DeviceData>(
    stream: &Stream,
    operation: RowOperation<'_, T>,
    report: &mut impl Report,
) -> Result<()> {
    let access = Access::of(&operation.from, &operation.to);
    let row = operation.to.columns() * size_of::<T>();
    match (access.reach.is_wide(), row) {
        (true, 1024) => {
            operation.launch(stream, &gather_kilo16, tile_of::<shapes::Kilo16>(), report)
        }
        (true, 4096) => {
            operation.launch(stream, &gather_page16, tile_of::<shapes::Page16>(), report)
        }
        _ => operation.launch_for(stream, access, &KERNELS, report),
    }
}

/// What became of the row of a bad index.
const OUTCOME: &str = "its output row was set to zero";

/// Names of the operands in errors.
const NAMES: Operands = Operands {
    operation: "gather",
    from: "the table",
    to: "the output",
};

static KERNELS: RowKernels = RowKernels {
    long16: &gather_long16,
    medium16: &gather_medium16,
    short16: &gather_short16,
    words: [&gather_long4, &gather_short4],
    halves: [&gather_long2, &gather_short2],
    bytes: [&gather_long1, &gather_short1],
};
