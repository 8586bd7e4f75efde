//! Gather: checks of table, indices and output, and the launch of a kernel instance.

mod dispatch;

use cutlet_device::DeviceData;
use cutlet_host::{Buffer, IntoView, Stream, View, ViewMut};
use cutlet_kernels::gather::Extents;

use crate::matrix::{addresses, disjoint, in_stream};
use crate::{Error, Matrix, MatrixMut, Order, Result};
use dispatch::{Access, Instance, Unit, to_next_row};

pub use dispatch::Index;

/// Computes `output[r] = table[indices[r]]` for each row r, on the stream's device, and waits.
///
/// Elements are of any [`DeviceData`] type, and indices are `i32` or `i64`. Table and output are
/// row-major with any leading dimensions. [`Gather`] is the form that does not wait.
///
/// # Errors
/// - Extents do not agree.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The output overlaps the table or the indices.
/// - The stream is being captured.
/// - An index is not a row of the table. The rows of such indices are zero, and all other rows are
///   gathered.
///
/// ```
/// use cutlet::{Device, Matrix, MatrixMut, gather};
///
/// let stream = Device::auto().stream()?;
/// let table = stream.upload(&[0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5])?; // 3×2
/// let indices = stream.upload(&[2i32, 0, 2])?;
/// let mut rows = stream.zeroed::<f32>(6)?;
/// gather(
///     &stream,
///     Matrix::row_major(&table, 3, 2)?,
///     &indices,
///     MatrixMut::row_major(&mut rows, 3, 2)?,
/// )?;
/// assert_eq!(stream.download(&rows)?, [2.0, 2.5, 0.0, 0.5, 2.0, 2.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gather<'i, T: DeviceData, X: Index>(
    stream: &Stream,
    table: Matrix<'_, T>,
    indices: impl IntoView<'i, Element = X>,
    output: MatrixMut<'_, T>,
) -> Result<()> {
    if stream.is_capturing()? {
        let doing = "a gather that waits until it is done";
        return Err(Error::Host(cutlet_host::Error::Capturing { doing }));
    }
    let indices = indices.into_view();
    let mut plan = Gather::new(stream)?;
    plan.enqueue(table, indices, output)?;
    match plan.check() {
        Err(Error::IndexMissed { position }) => {
            let at = position as usize;
            let index = stream.download(indices.slice(at..=at)?)?[0].to_i64();
            Err(Error::IndexOutOfRange {
                position,
                index,
                table_rows: table.rows(),
            })
        }
        checked => checked,
    }
}

/// Gathers that do not wait. They can be captured in a graph, and [`check`](Self::check) reports bad indices.
///
/// A graph also writes the report, so the `Gather` must outlive the graph.
///
/// ```
/// use cutlet::{Device, Error, Gather, Matrix, MatrixMut};
///
/// let stream = Device::auto().stream()?;
/// let table = stream.upload(&[0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5])?; // 3×2
/// let indices = stream.upload(&[2i32, 3, 0])?;
/// let mut rows = stream.zeroed::<f32>(6)?;
/// let mut plan = Gather::new(&stream)?;
/// plan.enqueue(
///     Matrix::row_major(&table, 3, 2)?,
///     &indices,
///     MatrixMut::row_major(&mut rows, 3, 2)?,
/// )?;
/// assert!(matches!(plan.check(), Err(Error::IndexMissed { position: 1 })));
/// assert_eq!(stream.download(&rows)?, [2.0, 2.5, 0.0, 0.0, 0.0, 0.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Gather {
    stream: Stream,
    /// The first output row whose index is not a row of the table; `u64::MAX` if there is none.
    first_miss: Buffer<u64>,
}

impl Gather {
    /// Prepares gathers on this stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(stream: &Stream) -> Result<Self> {
        Ok(Gather {
            stream: stream.clone(),
            first_miss: stream.filled(1, 0xff)?,
        })
    }

    /// Enqueues `output[r] = table[indices[r]]`.
    ///
    /// # Errors
    /// Those of [`gather`](fn@gather), with two exceptions: [`check`](Self::check) finds bad indices, and
    /// the stream may be captured.
    pub fn enqueue<'i, T: DeviceData, X: Index>(
        &mut self,
        table: Matrix<'_, T>,
        indices: impl IntoView<'i, Element = X>,
        output: MatrixMut<'_, T>,
    ) -> Result<()> {
        let indices = indices.into_view();
        check_operands(&self.stream, &table, &indices, &output)?;
        if output.rows() == 0 || output.columns() == 0 {
            return Ok(());
        }
        let access = Access::of(&table, &output);
        match access.unit {
            Unit::Words => self.launch(&access, table, indices, output, X::words(&access)),
            Unit::Halves => self.launch(&access, table, indices, output, X::halves(&access)),
            Unit::Bytes => self.launch(&access, table, indices, output, X::bytes(&access)),
        }
    }

    /// Waits for the enqueued gathers, and reports an index that was not a row of its table. Of several
    /// such indices since the last check, it reports one with the lowest output row.
    ///
    /// # Errors
    /// [`Error::IndexMissed`] if there was such an index; an error if the stream is being captured.
    pub fn check(&mut self) -> Result<()> {
        let position = self.stream.download(&self.first_miss)?[0];
        if position == u64::MAX {
            return Ok(());
        }
        self.stream.fill_bytes(&mut self.first_miss, 0xff)?;
        Err(Error::IndexMissed { position })
    }

    fn launch<T: DeviceData, U: DeviceData, X: Index>(
        &mut self,
        access: &Access,
        table: Matrix<'_, T>,
        indices: View<'_, X>,
        output: MatrixMut<'_, T>,
        instance: &'static Instance<U, X>,
    ) -> Result<()> {
        let units = |elements: usize| elements * size_of::<T>() / size_of::<U>();
        let [tile_rows, tile_columns] = access.tile();
        let columns = units(output.columns());
        let device = self.stream.device();
        let function = device.load(&cutlet_kernels::PTX, instance)?;
        // Tiles of a row are along the grid's y axis, which has a low limit: the longest rows take several launches.
        let at_once = tile_columns * device.limits().grid[1] as usize;
        for first in (0..columns).step_by(at_once) {
            let columns = at_once.min(columns - first);
            let extents = Extents {
                table_rows: table.rows() as i64,
                ld_table: units(to_next_row(table.rows(), table.ld())) as i64,
                ld_output: units(to_next_row(output.rows(), output.ld())) as i64,
                rows: output.rows() as i32,
                columns: columns as i32,
            };
            let grid = (
                output.rows().div_ceil(tile_rows) as u32,
                columns.div_ceil(tile_columns) as u32,
            );
            let from = |address: u64, len: usize| {
                // A table without rows has no elements to skip.
                let skipped = first.min(units(len));
                let address = address + (skipped * size_of::<U>()) as u64;
                (address, units(len) - skipped)
            };
            // SAFETY: each view covers the rest of its matrix's view, from the first column of this
            // launch on. The matrices were checked against their memory, and the kernel checks the
            // indices. The output is borrowed mutably and overlaps neither table nor indices.
            unsafe {
                let (address, len) = from(table.view.address(), table.view.len());
                let table = View::<U>::from_raw(table.view.device(), address, len)?;
                let (address, len) = from(output.view.address(), output.view.len());
                let output = ViewMut::<U>::from_raw(output.view.device(), address, len)?;
                let args = (table, indices, output, &mut self.first_miss, extents);
                self.stream.launch(&function, grid, args)?;
            }
        }
        Ok(())
    }
}

fn check_operands<T: DeviceData, X: Index>(
    stream: &Stream,
    table: &Matrix<'_, T>,
    indices: &View<'_, X>,
    output: &MatrixMut<'_, T>,
) -> Result<()> {
    let refuse = |found: String| {
        Err(Error::Extents {
            operation: "gather",
            found,
        })
    };
    if table.order() != Order::RowMajor || output.order() != Order::RowMajor {
        return refuse("the table or the output is column-major; give row-major ones".to_string());
    }
    if table.columns() != output.columns() {
        let (table, output) = (table.columns(), output.columns());
        return refuse(format!(
            "the table has {table} columns and the output has {output}; give them as many columns"
        ));
    }
    if indices.len() != output.rows() {
        let (indices, rows) = (indices.len(), output.rows());
        return refuse(format!(
            "there are {indices} indices and the output has {rows} rows; give an index for each row"
        ));
    }
    in_stream("gather", stream, "the table", table.view)?;
    in_stream("gather", stream, "the indices", *indices)?;
    in_stream("gather", stream, "the output", output.view.view())?;
    disjoint("gather", "the table", table.addresses(), output.addresses())?;
    disjoint(
        "gather",
        "the indices",
        addresses(indices),
        output.addresses(),
    )
}
