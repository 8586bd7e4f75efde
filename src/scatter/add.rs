//! Scatter-add: rows that are added to what the table has.

use cutlet_device::DeviceData;
use cutlet_host::{Device, IntoView, Stream, View};
use cutlet_kernels::gather::ordered_add::{self, OrderedAddArgs};
use cutlet_kernels::gather::scatter_add as kernels;
use half::{bf16, f16};

use super::ordered::{OrderedAdd, OrderedKernels, piece_bits};
use crate::rows::{
    Index, IndexView, Misses, Operands, OutOfRange, Owners, Reach, RowKernel, RowOperation, Sorted,
    expect_no_capture, to_next_row, with_kept_misses,
};
use crate::{IntoTensor, IntoTensorMut, Matrix, MatrixMut, Result};

/// An element type of [`scatter_add`](fn@scatter_add): `f32`, `f16` or `bf16`.
pub trait AddElement: DeviceData + sealed::Kernels {}
impl AddElement for f32 {}
impl AddElement for f16 {}
impl AddElement for bf16 {}

/// Enqueues `table[indices[r]] += source[r]` for each row r.
///
/// Elements are `f32`, `f16` or `bf16`, and indices are `i32` or `i64`. Source and table have two modes, of which the
/// second is contiguous. If several rows have the same index, a block adds up to 512 of them to each other in f32. It
/// rounds the sum to the element type. The L2 cache adds the sums of blocks, and rounds the result of each of its
/// additions. The order of additions is unspecified, so that the last bits of a sum may differ from run to run.
/// [`ScatterAdd`] can add [in order](ScatterAdd::in_order). Bad indices are those of [`scatter`](fn@crate::scatter), and
/// [`scatter_add_checked`] waits and reports them at once.
///
/// # Errors
/// Those of [`scatter`](fn@crate::scatter).
///
/// ```
/// use cutlet::{Device, DeviceTensor, scatter_add};
///
/// let stream = Device::auto().stream()?;
/// let source = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 10.0, 20.0, 100.0, 200.0], [3, 2])?;
/// let indices = stream.upload(&[1i32, 0, 1])?;
/// let mut table = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// scatter_add(&stream, &source, &indices, &mut table)?;
/// assert_eq!(table.download(&stream)?, [10.0, 20.0, 101.0, 202.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn scatter_add<'a, 'i, T: AddElement, X: Index>(
    stream: &Stream,
    source: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    table: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (source, table) = NAMES.matrices(source, table)?;
    let indices = indices.into_view();
    with_kept_misses(stream, NAMES.operation, OUTCOME, |misses| {
        let mut plan = ScatterAdd::with(misses);
        let enqueued = plan.scatter_add_rows(stream, source, indices, table);
        (plan.misses, enqueued)
    })
}

/// Computes [`scatter_add`](fn@scatter_add), waits until it is done, and reports an index that is no row of the table.
///
/// # Errors
/// Those of [`scatter_add`](fn@scatter_add), and also:
///
/// - [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange): an index is no row of the table. The rows of such
///   indices are left out, and all other rows are added.
/// - The stream is being captured.
pub fn scatter_add_checked<'a, 'i, T: AddElement, X: Index>(
    stream: &Stream,
    source: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    table: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    expect_no_capture(stream, "a scatter-add that waits until it is done")?;
    let (source, table) = NAMES.matrices(source, table)?;
    let (indices, table_rows) = (indices.into_view(), table.rows());
    let mut plan = ScatterAdd::with(Misses::in_stream(stream, NAMES.operation, OUTCOME)?);
    plan.scatter_add_rows(stream, source, indices, table)?;
    plan.misses.check_one(stream, indices, table_rows)
}

/// Scatter-adds with a report of their own. They can be captured in a graph, and [`check`](Self::check) reports bad indices.
///
/// A graph also writes the report, so the `ScatterAdd` must outlive the graph.
#[derive(Debug)]
pub struct ScatterAdd {
    misses: Misses,
    out_of_range: OutOfRange,
    in_order: bool,
}

impl ScatterAdd {
    /// Prepares scatter-adds on this stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(ScatterAdd::with(Misses::new(
            device,
            NAMES.operation,
            OUTCOME,
        )?))
    }

    fn with(misses: Misses) -> Self {
        ScatterAdd {
            misses,
            out_of_range: OutOfRange::Error,
            in_order: false,
        }
    }

    /// The same scatter-adds, in which an index that is no row of its table means something else than an error.
    pub fn out_of_range(self, out_of_range: OutOfRange) -> Self {
        ScatterAdd {
            out_of_range,
            ..self
        }
    }

    /// The same scatter-adds, which add the rows with the same index in an order that depends on the indices alone. So
    /// each run has the same result. Sums are in f32, and rounded to the element type once.
    ///
    /// The rows with one index are cut into pieces, in the order of the source. A piece has 2ⁿ rows: as many as have at
    /// most 32 KiB, but from 64 to 256 of them. The rows of the first piece are added to the table's row one after the
    /// other. Each other piece is summed alone, in the order of the source. Its sum is added after the pieces before
    /// it. The pieces depend on the length of a row and on the rows with the index alone, so the result is the same on
    /// every device. An index with at most 64 rows has the plain order of the source.
    ///
    /// It sorts the indices on the device first: three launches for each 9 bits of the table's number of rows, and 16
    /// bytes of scratch memory for each index. Then each row of the table that has an index is read and written once,
    /// and each row of the source is read once. With more rows than a piece has, there is scratch memory for a row of
    /// f32 for each piece.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, ScatterAdd};
    ///
    /// let stream = Device::auto().stream()?;
    /// let source = DeviceTensor::upload(&stream, &[1e8f32, 1.0, -1e8], [3, 1])?;
    /// let indices = stream.upload(&[0i32, 0, 0])?;
    /// let mut table = DeviceTensor::<f32>::zeroed(&stream, [1, 1])?;
    /// let mut plan = ScatterAdd::new(stream.device())?.in_order();
    /// plan.enqueue(&stream, &source, &indices, &mut table)?;
    /// plan.check(&stream)?;
    /// assert_eq!(table.download(&stream)?, [(1e8 + 1.0) - 1e8]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn in_order(self) -> Self {
        ScatterAdd {
            in_order: true,
            ..self
        }
    }

    /// Enqueues `table[indices[r]] += source[r]`.
    ///
    /// # Errors
    /// Those of [`scatter_add`](fn@scatter_add), but another library may capture the stream.
    pub fn enqueue<'a, 'i, T: AddElement, X: Index>(
        &mut self,
        stream: &Stream,
        source: impl IntoTensor<'a, Element = T>,
        indices: impl IntoView<'i, Element = X>,
        table: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let (source, table) = NAMES.matrices(source, table)?;
        self.scatter_add_rows(stream, source, indices.into_view(), table)
    }

    fn scatter_add_rows<T: AddElement, X: Index>(
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
        if self.in_order {
            return self.enqueue_in_order(stream, source, IndexView::new(indices)?, table);
        }
        let reach = Reach::of_numbers(&source, &table);
        let operation = RowOperation {
            from: source,
            indices: IndexView::new(indices)?,
            table_rows: table.rows(),
            to: table,
            rows,
            out_of_range: self.out_of_range,
        };
        let (tile, misses) = (reach.set(), &mut self.misses);
        match reach.is_wide() {
            true => operation.launch(stream, T::wide(reach), tile, misses),
            false => operation.launch(stream, T::narrow(reach), tile, misses),
        }
    }

    /// Sorts the indices, and adds the rows of each row of the table in order.
    fn enqueue_in_order<T: AddElement>(
        &mut self,
        stream: &Stream,
        source: Matrix<'_, T>,
        indices: IndexView<'_>,
        table: MatrixMut<'_, T>,
    ) -> Result<()> {
        let (rows, table_rows, columns) = (source.rows(), table.rows(), source.columns());
        let sorted = Sorted::new(
            stream,
            indices,
            rows,
            table_rows,
            self.out_of_range,
            &mut self.misses,
        )?;
        let owners = Owners::of(&source, &table);
        let args = OrderedAddArgs {
            ld_source: to_next_row(rows, source.ld()) as i64,
            ld_table: to_next_row(table_rows, table.ld()) as i64,
            rows: rows as i32,
            table_rows: table_rows as i32,
            columns: columns as i32,
            piece_bits: piece_bits(columns * size_of::<T>()),
        };
        OrderedAdd {
            stream,
            kernels: T::ordered(owners),
            owners,
            source: source.view,
            sorted: &sorted,
            table: table.view,
            args,
        }
        .enqueue()
    }

    /// Waits for the enqueued scatter-adds, and reports an index that was not a row of its table. Of several such
    /// indices since the last check, it reports one with the lowest row of a source.
    ///
    /// # Errors
    /// [`Error::IndexMissed`](crate::Error::IndexMissed) if there was such an index; an error if the stream is being
    /// captured.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.misses.check(stream)
    }
}

/// What became of the row of a bad index.
const OUTCOME: &str = "its row was left out";

/// Names of the operands in errors.
const NAMES: Operands = Operands {
    operation: "scatter_add",
    from: "the source",
    to: "the table",
};

mod sealed {
    use super::{DeviceData, OrderedKernels, Owners, Reach, RowKernel};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        /// The unit of accesses of 16 bytes: the number, or a pair of them.
        type Wide: DeviceData;

        /// The kernel with accesses of 16 bytes.
        fn wide(reach: Reach) -> &'static RowKernel<Self::Wide>;
        /// The kernel that adds numbers one by one.
        fn narrow(reach: Reach) -> &'static RowKernel<Self>;
        /// The kernels that add rows in order.
        fn ordered(owners: Owners) -> OrderedKernels<Self>;
    }
}

macro_rules! kernels {
    ($element:ty, $wide:ty: $long16:ident $medium16:ident $short16:ident $long:ident $short:ident,
        $($owners:ident = $add:ident $sum:ident $fold:ident),+) => {
        impl sealed::Kernels for $element {
            type Wide = $wide;

            fn wide(reach: Reach) -> &'static RowKernel<$wide> {
                match reach {
                    Reach::Long16 => &kernels::$long16,
                    Reach::Medium16 => &kernels::$medium16,
                    _ => &kernels::$short16,
                }
            }

            fn narrow(reach: Reach) -> &'static RowKernel<$element> {
                match reach {
                    Reach::Long => &kernels::$long,
                    _ => &kernels::$short,
                }
            }

            fn ordered(owners: Owners) -> OrderedKernels<$element> {
                match owners {
                    $(Owners::$owners => OrderedKernels {
                        add: &ordered_add::$add,
                        sum: &ordered_add::$sum,
                        fold: &ordered_add::$fold,
                    },)+
                }
            }
        }
    };
}
kernels!(f32, f32: scatter_add_f32_long16 scatter_add_f32_medium16 scatter_add_f32_short16
    scatter_add_f32_long scatter_add_f32_short,
    Long = ordered_add_f32_long ordered_sum_f32_long ordered_fold_f32_long,
    Short = ordered_add_f32_short ordered_sum_f32_short ordered_fold_f32_short,
    Single = ordered_add_f32_single ordered_sum_f32_single ordered_fold_f32_single);
kernels!(f16, [f16; 2]: scatter_add_f16_long16 scatter_add_f16_medium16 scatter_add_f16_short16
    scatter_add_f16_long scatter_add_f16_short,
    Long = ordered_add_f16_long ordered_sum_f16_long ordered_fold_f16_long,
    Short = ordered_add_f16_short ordered_sum_f16_short ordered_fold_f16_short,
    Single = ordered_add_f16_single ordered_sum_f16_single ordered_fold_f16_single);
kernels!(bf16, [bf16; 2]: scatter_add_bf16_long16 scatter_add_bf16_medium16 scatter_add_bf16_short16
    scatter_add_bf16_long scatter_add_bf16_short,
    Long = ordered_add_bf16_long ordered_sum_bf16_long ordered_fold_bf16_long,
    Short = ordered_add_bf16_short ordered_sum_bf16_short ordered_fold_bf16_short,
    Single = ordered_add_bf16_single ordered_sum_bf16_single ordered_fold_bf16_single);
