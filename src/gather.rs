//! Gather: from a table, its indices and an output to the launch of a kernel instance.

mod dispatch;

use cutlet_device::DeviceData;
use cutlet_host::{Buffer, Device, IntoView, Stream, View, ViewMut};
use cutlet_kernels::gather::Extents;

use crate::matrix::{addresses, disjoint, on_device};
use crate::{Error, Matrix, MatrixMut, Order, Result};
use dispatch::{Access, Instance, Unit, to_next_row};

pub use dispatch::Index;

/// `output[r] = table[indices[r]]`, row by row, on the stream's device; waits until it is done.
///
/// Elements may be of any type of device data, indices are `i32` or `i64`; table and output are
/// row-major with any leading dimensions. [`Gather`] is the form that does not wait.
///
/// # Errors
/// If extents disagree, something is not on the stream's device, the output overlaps the table or the
/// indices, the stream is being captured, or an index is not a row of the table; in that last case all
/// other rows are gathered all the same, and the rows of such indices are zero.
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

/// Gathers that are only enqueued: they can be captured in a graph, and bad indices are reported when asked for.
///
/// A graph writes the report, too: the `Gather` must outlive it.
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
    /// The first output row whose index is not in the table; `u64::MAX` while there is none.
    first_miss: Buffer<u64>,
}

impl Gather {
    /// For gathers on this stream.
    ///
    /// # Errors
    /// If the device has no memory left.
    pub fn new(stream: &Stream) -> Result<Self> {
        Ok(Gather {
            stream: stream.clone(),
            first_miss: stream.filled(1, 0xff)?,
        })
    }

    /// Enqueues `output[r] = table[indices[r]]`.
    ///
    /// # Errors
    /// As [`gather`](fn@gather), except that bad indices are found by [`check`](Self::check), and that the
    /// stream may be captured.
    pub fn enqueue<'i, T: DeviceData, X: Index>(
        &mut self,
        table: Matrix<'_, T>,
        indices: impl IntoView<'i, Element = X>,
        output: MatrixMut<'_, T>,
    ) -> Result<()> {
        let indices = indices.into_view();
        check_operands(self.stream.device(), &table, &indices, &output)?;
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

    /// Waits for what was enqueued, and reports an index that was not a row of its table: of those since
    /// the last report, one whose output row is the first.
    ///
    /// # Errors
    /// [`Error::IndexMissed`] if there is one; if the stream is being captured.
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
        // Tiles of a row lie along y, where a grid is short: the longest rows take several launches.
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
                // A table without rows has no elements before the first column either.
                let skipped = first.min(units(len));
                let address = address + (skipped * size_of::<U>()) as u64;
                (address, units(len) - skipped)
            };
            // SAFETY: the units cover elements of the views they are made from, from a column on.
            // The matrices were checked against the memory behind them, the kernel checks the
            // indices, and the output, which overlaps neither table nor indices, is borrowed mutably.
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
    device: &Device,
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
        return refuse("a column-major table or output was given; give row-major ones".to_string());
    }
    if table.columns() != output.columns() {
        let (table, output) = (table.columns(), output.columns());
        return refuse(format!(
            "the table has {table} columns and the output {output}; make them agree"
        ));
    }
    if indices.len() != output.rows() {
        let (indices, rows) = (indices.len(), output.rows());
        return refuse(format!(
            "there are {indices} indices and the output has {rows} rows; make them agree"
        ));
    }
    on_device(
        "gather",
        device,
        &[
            ("the table", Some(table.view.device())),
            ("the indices", Some(indices.device())),
            ("the output", Some(output.view.device())),
        ],
    )?;
    disjoint("gather", "the table", table.addresses(), output.addresses())?;
    disjoint(
        "gather",
        "the indices",
        addresses(indices),
        output.addresses(),
    )
}
