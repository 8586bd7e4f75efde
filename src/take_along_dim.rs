//! Element gather: elements of a table by an index for each, along one dimension.

use std::num::NonZeroU32;

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Device, IntoView, IntoViewMut, Stream, View, ViewMut};
use cutlet_kernels::gather::elements::{
    ElementArgs, gather_elements_short1, gather_elements_short2, gather_elements_short4,
    gather_elements_short8, gather_elements_short16, gather_elements_wide1, gather_elements_wide2,
    gather_elements_wide4, gather_elements_wide8, gather_elements_wide16,
};
use cutlet_kernels::gather::{Shape, shapes};
use cutlet_layout_core::{Divisor, tile_extent};

use crate::matrix::{addresses, disjoint, in_stream};
use crate::rows::{Index, IndexView, Misses, OutOfRange, expect_no_capture};
use crate::{Error, MAX_EXTENT, Result};

/// Computes `output[…, i, …] = table[…, indices[…, i, …], …]` along dimension `dim`, on the stream's device, and waits.
///
/// The table is packed, with its last dimension contiguous, and has the extents `shape`. Indices and output have the
/// same extents, except along `dim`, where they may have any. Elements have 1, 2, 4, 8 or 16 bytes, and indices are
/// `i32` or `i64`. [`TakeAlongDim`] is the form that does not wait.
///
/// # Errors
/// - The table, the indices or the output do not have as many elements as the extents say, or more than fit a kernel.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The output overlaps the table or the indices.
/// - The stream is being captured.
/// - An index is outside of the table. The elements of such indices are zero, and all others are gathered.
///
/// ```
/// use cutlet::{Device, take_along_dim};
///
/// let stream = Device::auto().stream()?;
/// let table = stream.upload(&[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0])?; // 2×3
/// let indices = stream.upload(&[2i64, 0, 1, 1])?; // 2×2
/// let mut output = stream.zeroed::<f32>(4)?;
/// take_along_dim(&stream, &table, &[2, 3], 1, &indices, &mut output)?;
/// assert_eq!(stream.download(&output)?, [3.0, 1.0, 20.0, 20.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn take_along_dim<'a, T: DeviceData, X: Index>(
    stream: &Stream,
    table: impl IntoView<'a, Element = T>,
    shape: &[usize],
    dim: usize,
    indices: impl IntoView<'a, Element = X>,
    output: impl IntoViewMut<'a, Element = T>,
) -> Result<()> {
    expect_no_capture(stream, "an element gather that waits until it is done")?;
    let indices = indices.into_view();
    let mut plan = TakeAlongDim::with(Misses::in_stream(stream, OPERATION, OUTCOME)?);
    plan.enqueue(stream, table, shape, dim, indices, output)?;
    let named = shape.get(dim).copied().unwrap_or(0);
    plan.misses.check_one(stream, indices, named)
}

/// Element gathers that do not wait. They can be captured in a graph, and [`check`](Self::check) reports bad indices.
///
/// A graph also writes the report, so the `TakeAlongDim` must outlive the graph.
#[derive(Debug)]
pub struct TakeAlongDim {
    misses: Misses,
    out_of_range: OutOfRange,
}

impl TakeAlongDim {
    /// Prepares element gathers on this stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(TakeAlongDim::with(Misses::new(device, OPERATION, OUTCOME)?))
    }

    fn with(misses: Misses) -> Self {
        TakeAlongDim {
            misses,
            out_of_range: OutOfRange::Error,
        }
    }

    /// The same element gathers, in which an index outside of the table means something else than an error: the nearest
    /// element along the dimension, or an element of the output that keeps what it has.
    pub fn out_of_range(self, out_of_range: OutOfRange) -> Self {
        TakeAlongDim {
            out_of_range,
            ..self
        }
    }

    /// Enqueues `output[…, i, …] = table[…, indices[…, i, …], …]`.
    ///
    /// # Errors
    /// Those of [`take_along_dim`], with two exceptions: [`check`](Self::check) finds bad indices, and the stream may
    /// be captured.
    pub fn enqueue<'a, T: DeviceData, X: Index>(
        &mut self,
        stream: &Stream,
        table: impl IntoView<'a, Element = T>,
        shape: &[usize],
        dim: usize,
        indices: impl IntoView<'a, Element = X>,
        output: impl IntoViewMut<'a, Element = T>,
    ) -> Result<()> {
        const {
            assert!(
                matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16),
                "take_along_dim moves elements of 1, 2, 4, 8 or 16 bytes: gather other ones as rows of a table"
            );
        }
        let (table, indices) = (table.into_view().relaxed(), indices.into_view());
        let output = match self.out_of_range {
            OutOfRange::Skip => output.into_view_mut().relaxed(),
            OutOfRange::Error | OutOfRange::Clamp => output.into_view_mut(),
        };
        let folded = Folded::of(shape, dim, table.len(), indices.len())?;
        Self::check_operands(stream, &table, &indices, &output)?;
        if output.is_empty() {
            return Ok(());
        }
        let indices = IndexView::new(indices)?;
        let args = folded.args(indices, self.out_of_range)?;
        let is_wide = args.extent[1] >= 1024;
        let operation = Operation {
            table,
            indices,
            output,
            args,
            is_wide,
        };
        let misses = &mut self.misses;
        match (size_of::<T>(), is_wide) {
            (16, true) => operation.launch(stream, &gather_elements_wide16, misses),
            (16, _) => operation.launch(stream, &gather_elements_short16, misses),
            (8, true) => operation.launch(stream, &gather_elements_wide8, misses),
            (8, _) => operation.launch(stream, &gather_elements_short8, misses),
            (4, true) => operation.launch(stream, &gather_elements_wide4, misses),
            (4, _) => operation.launch(stream, &gather_elements_short4, misses),
            (2, true) => operation.launch(stream, &gather_elements_wide2, misses),
            (2, _) => operation.launch(stream, &gather_elements_short2, misses),
            (_, true) => operation.launch(stream, &gather_elements_wide1, misses),
            _ => operation.launch(stream, &gather_elements_short1, misses),
        }
    }

    /// Waits for the enqueued element gathers, and reports an index that was outside of its table. Of several such
    /// indices since the last check, it reports one with the lowest position.
    ///
    /// # Errors
    /// [`Error::IndexMissed`] if there was such an index; an error if the stream is being captured.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.misses.check(stream)
    }

    fn check_operands<T: DeviceData, X: Index>(
        stream: &Stream,
        table: &View<'_, T>,
        indices: &View<'_, X>,
        output: &ViewMut<'_, T>,
    ) -> Result<()> {
        if indices.len() != output.len() {
            let (indices, output) = (indices.len(), output.len());
            return refuse(format!(
                "there are {indices} indices and the output has {output} elements; give an index for each element"
            ));
        }
        in_stream(OPERATION, stream, "the table", *table)?;
        in_stream(OPERATION, stream, "the indices", *indices)?;
        in_stream(OPERATION, stream, "the output", output.view())?;
        for (operand, address) in [("table", table.address()), ("output", output.address())] {
            let bytes = size_of::<T>();
            if !address.is_multiple_of(bytes as u64) {
                return refuse(format!(
                    "the {operand} begins at address {address:#x}; begin at a multiple of an element's {bytes} bytes"
                ));
            }
        }
        let written = addresses(&output.view());
        disjoint(OPERATION, "the table", addresses(table), written.clone())?;
        disjoint(OPERATION, "the indices", addresses(indices), written)
    }
}

/// What became of the element of a bad index.
const OUTCOME: &str = "its element was set to zero";

const OPERATION: &str = "take_along_dim";

fn refuse<R>(found: String) -> Result<R> {
    let operation = OPERATION;
    Err(Error::Extents { operation, found })
}

/// The extents before the indexed dimension, along it in the table and in the output, and after it.
struct Folded {
    outer: usize,
    named: usize,
    taken: usize,
    inner: usize,
}

impl Folded {
    fn of(shape: &[usize], dim: usize, table: usize, indices: usize) -> Result<Folded> {
        let product = |extents: &[usize]| {
            let product = extents
                .iter()
                .try_fold(1usize, |product, &extent| product.checked_mul(extent));
            product.filter(|&product| product <= isize::MAX as usize)
        };
        let Some(&named) = shape.get(dim) else {
            let rank = shape.len();
            return refuse(format!(
                "dimension {dim} was asked for, but there are {rank} extents; count dimensions from 0"
            ));
        };
        let (Some(outer), Some(inner)) = (product(&shape[..dim]), product(&shape[dim + 1..]))
        else {
            return refuse(format!(
                "the extents {shape:?} exceed 63 bits; use smaller ones"
            ));
        };
        if outer.checked_mul(named).and_then(|n| n.checked_mul(inner)) != Some(table) {
            return refuse(format!(
                "the table has {table} elements, but not the extents {shape:?}; give a packed table"
            ));
        }
        let others = outer.saturating_mul(inner);
        if indices.checked_rem(others).unwrap_or(indices) != 0 {
            return refuse(format!(
                "there are {indices} indices, but {others} elements for each index along dimension {dim} of {shape:?}; \
                 give a multiple"
            ));
        }
        let taken = indices.checked_div(others).unwrap_or(0);
        Ok(Folded {
            outer,
            named,
            taken,
            inner,
        })
    }

    /// The output as a matrix. Its rows are along the last dimension.
    fn args(&self, indices: IndexView<'_>, out_of_range: OutOfRange) -> Result<ElementArgs> {
        let &Folded {
            outer,
            named,
            taken,
            inner,
        } = self;
        let (rows, columns, group, column_stride) = match inner {
            1 => (outer, taken, 1, 0),
            _ => (outer.saturating_mul(taken), inner, taken, 1),
        };
        if rows.max(columns) > MAX_EXTENT {
            return refuse(format!(
                "the output is a matrix of {rows} rows of {columns} elements; the largest extent is {MAX_EXTENT}"
            ));
        }
        let group = NonZeroU32::new(group as u32).unwrap_or(NonZeroU32::MIN);
        Ok(ElementArgs {
            named: named as i64,
            named_stride: inner as i64,
            group_stride: (named * inner) as i64,
            column_stride,
            extent: [rows as i32, columns as i32],
            group: Divisor::new(group),
            wide_indices: indices.wide(),
            out_of_range: out_of_range.policy(),
            padding: 0,
        })
    }
}

/// A kernel for elements of a width.
type ElementKernel<U> = Kernel<(
    Global<U>,
    Global<i32>,
    GlobalMut<U>,
    GlobalMut<u64>,
    ElementArgs,
)>;

/// An element gather whose operands were checked.
struct Operation<'a, T: DeviceData> {
    table: View<'a, T>,
    indices: IndexView<'a>,
    output: ViewMut<'a, T>,
    args: ElementArgs,
    /// Whether a tile is one long part of a row.
    is_wide: bool,
}

impl<T: DeviceData> Operation<'_, T> {
    /// Launches a kernel for elements of the same size.
    fn launch<U: DeviceData>(
        self,
        stream: &Stream,
        kernel: &'static ElementKernel<U>,
        misses: &mut Misses,
    ) -> Result<()> {
        let function = stream.device().load(&cutlet_kernels::PTX, kernel)?;
        let [tile_rows, tile_columns] = match self.is_wide {
            true => tile_extent::<<shapes::Wide as Shape>::Tile>(),
            false => tile_extent::<<shapes::Short as Shape>::Tile>(),
        }
        .map(|extent| extent as usize);
        let [rows, columns] = self.args.extent.map(|extent| extent as usize);
        let blocks = rows.div_ceil(tile_rows) * columns.div_ceil(tile_columns);
        let Some(blocks) = u32::try_from(blocks).ok().filter(|&it| it < 1 << 31) else {
            return refuse(format!(
                "the output has {blocks} tiles of {tile_rows}×{tile_columns}, and a launch has at most 2³¹ − 1; gather \
                 parts of it"
            ));
        };
        let (from, to) = (self.table.cast::<U>()?, self.output.cast::<U>()?);
        // SAFETY: the views are those of the operands, in elements of the same size. The operands have the extents that
        // the arguments say, and the kernel checks the indices. The output is borrowed mutably and overlaps nothing
        // else.
        unsafe {
            let words = self.indices.words();
            let args = (from, words, to, misses.report(), self.args);
            Ok(stream.launch(&function, blocks, args)?)
        }
    }
}
