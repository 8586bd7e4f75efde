//! Indices of rows for gathered and scattered products: what an index outside of the table means, and the report of bad
//! ones.

use std::ops::Range;

use cutlet_device::{DeviceData, GlobalMut};
use cutlet_host::{Device, IntoView, KernelArg, Stream, View};
use cutlet_kernels::gemm::named_rows;

use crate::matrix::{addresses, in_stream, pointer, pointer_mut};
use crate::rows::{Index, IndexView, Misses, OutOfRange, Report, RowOperation};
use crate::{Error, Matrix, MatrixMut, Result, gather};

/// Indices of rows for [`Gemm::gather_a`](crate::Gemm::gather_a) and [`Gemm::scatter_c`](crate::Gemm::scatter_c), and the
/// report of indices that are no rows of their table.
///
/// A product does not wait, and can be captured in a graph. [`check`](Self::check) waits, and reports bad indices. A
/// graph also writes the report, so the `IndexedRows` must outlive the graph.
#[derive(Debug)]
pub struct IndexedRows {
    misses: Misses,
    out_of_range: OutOfRange,
}

impl IndexedRows {
    /// Prepares indices of products on this device.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(device: &Device) -> Result<Self> {
        let outcome = "its row counted as zeros, or was left out of the table";
        Ok(IndexedRows {
            misses: Misses::new(device, "gemm", outcome)?,
            out_of_range: OutOfRange::Error,
        })
    }

    /// The same for products in which an index that is no row of its table means something else than an error.
    ///
    /// With [`OutOfRange::Skip`], a gathered row counts as zeros, so that its row of C becomes `beta·C`, and a
    /// scattered row is left out.
    pub fn out_of_range(self, out_of_range: OutOfRange) -> Self {
        IndexedRows {
            out_of_range,
            ..self
        }
    }

    /// These indices, one for each row of the product.
    ///
    /// # Errors
    /// If the indices are not usable.
    pub fn by<'a, X: Index>(
        &'a self,
        indices: impl IntoView<'a, Element = X>,
    ) -> Result<RowIndices<'a>> {
        let indices = indices.into_view();
        Ok(RowIndices {
            len: indices.len(),
            addresses: addresses(&indices),
            indices: IndexView::new(indices)?,
            first_miss: self.misses.report_view(),
            out_of_range: self.out_of_range,
        })
    }

    /// Waits for the stream's products, and reports an index that was not a row of its table. Of several such indices
    /// since the last check, it reports one with the lowest row of a product. Products in other streams may be under way
    /// still: check in each stream.
    ///
    /// # Errors
    /// [`Error::IndexMissed`](crate::Error::IndexMissed) if there was such an index; an error if the stream is being
    /// captured.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.misses.check(stream)
    }
}

/// The indices of a product's rows: [`IndexedRows::by`] makes them.
#[derive(Clone, Debug)]
pub struct RowIndices<'a> {
    len: usize,
    addresses: Range<u64>,
    indices: IndexView<'a>,
    first_miss: View<'a, u64>,
    out_of_range: OutOfRange,
}

impl<'a> RowIndices<'a> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Their addresses.
    pub(super) fn addresses(&self) -> Range<u64> {
        self.addresses.clone()
    }

    /// Refuses indices, or a report, that work in the stream may not use.
    pub(super) fn in_stream(&self, stream: &Stream) -> Result<()> {
        in_stream("gemm", stream, "the indices", self.indices.words())?;
        in_stream("gemm", stream, "the report of bad indices", self.first_miss)
    }

    /// Says that a product in the stream reads the indices, and may write the report.
    pub(super) fn use_in(&self, stream: &Stream) -> Result<()> {
        let first_miss = self.first_miss;
        first_miss.use_in(stream, "gemm", "the report of bad indices")?;
        Ok(self.indices.words().use_in(stream, "gemm", "the indices")?)
    }

    /// The indices.
    pub(super) fn indices(&self) -> IndexView<'a> {
        self.indices
    }

    /// What an index outside of the table means.
    pub(super) fn out_of_range(&self) -> OutOfRange {
        self.out_of_range
    }

    /// Enqueues `output[r] = table[indices[r]]`. Rows of indices outside of the table are zeros.
    pub(super) fn gather<T: DeviceData>(
        &self,
        stream: &Stream,
        table: Matrix<'_, T>,
        mut output: MatrixMut<'_, T>,
    ) -> Result<()> {
        let rows = output.rows();
        if rows == 0 || output.columns() == 0 {
            return Ok(());
        }
        if self.out_of_range == OutOfRange::Skip {
            stream.fill_bytes(output.view.reborrow(), 0)?;
        }
        let operation = RowOperation {
            from: table.in_part(),
            indices: self.indices,
            to: output.in_part(),
            table_rows: table.rows(),
            rows,
            out_of_range: self.out_of_range,
        };
        gather::launch(stream, operation, &mut ReportOfRows(self.first_miss))
    }

    /// The rows of a table of `table_rows` rows, `ld` elements apart, for a kernel.
    pub(super) fn named(&self, table_rows: usize, ld: usize) -> named_rows::NamedRows {
        named_rows::NamedRows {
            indices: pointer(self.indices.words()),
            first_miss: pointer_mut(self.first_miss.address()),
            table_rows: table_rows as i64,
            ld: ld as i64,
            wide_indices: self.indices.wide(),
            out_of_range: self.out_of_range.policy(),
        }
    }
}

/// The report of the indices of a product's rows.
struct ReportOfRows<'a>(View<'a, u64>);

impl Report for ReportOfRows<'_> {
    fn of_launch(&mut self) -> impl KernelArg<GlobalMut<u64>> {
        let Self(report) = self;
        pointer_mut::<u64>(report.address())
    }
}

/// Whose rows are those of a table that indices name.
#[derive(Clone, Debug)]
pub enum Rows<'a> {
    /// None: the product has the rows of A, and so has C.
    Own,
    /// Those of A, which stands for the table: a gathered product.
    OfA(RowIndices<'a>),
    /// Those of C, which stands for the table: a scattered product.
    OfC(RowIndices<'a>),
}

impl<'a> Rows<'a> {
    /// Those of a description's tables. Refuses a product with two tables.
    pub fn of(
        gathered: &Option<RowIndices<'a>>,
        scattered: &Option<RowIndices<'a>>,
    ) -> Result<Self> {
        match (gathered, scattered) {
            (None, None) => Ok(Rows::Own),
            (Some(rows), None) => Ok(Rows::OfA(rows.clone())),
            (None, Some(rows)) => Ok(Rows::OfC(rows.clone())),
            (Some(_), Some(_)) => Err(Error::Extents {
                operation: "gemm",
                found: "the rows of both A and C are those of tables; gather A first, or scatter C afterwards"
                    .to_string(),
            }),
        }
    }

    /// Whether the product has the rows of A, and so has C.
    pub fn are_own(&self) -> bool {
        matches!(self, Rows::Own)
    }

    /// Whose rows are named, for a plan.
    pub fn shape(&self) -> RowsShape {
        match self {
            Rows::Own => RowsShape::Own,
            Rows::OfA(rows) => RowsShape::OfA(rows.len),
            Rows::OfC(rows) => RowsShape::OfC(rows.len),
        }
    }
}

/// The part of [`Rows`] that a plan depends on, with the number of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowsShape {
    Own,
    OfA(usize),
    OfC(usize),
}
