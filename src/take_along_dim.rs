//! Element gather: elements of a table by an index for each, along one dimension.

use std::num::NonZeroU32;

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Device, Stream, View, ViewMut};
use cutlet_kernels::gather::elements::{
    ElementArgs, gather_elements_short1, gather_elements_short2, gather_elements_short4,
    gather_elements_short8, gather_elements_short16, gather_elements_wide1, gather_elements_wide2,
    gather_elements_wide4, gather_elements_wide8, gather_elements_wide16,
};
use cutlet_kernels::gather::{Shape, shapes};
use cutlet_layout_core::{Divisor, Layout, tile_extent};

use crate::matrix::{addresses, disjoint, in_stream};
use crate::rows::{Index, IndexView, Misses, OutOfRange, expect_no_capture, with_kept_misses};
use crate::{Error, IntoTensor, IntoTensorMut, MAX_EXTENT, Result};

/// Enqueues `output[…, i, …] = table[…, indices[…, i, …], …]` along dimension `dim`.
///
/// The tensors are packed by rows: their last mode is contiguous. Indices and output have the same shape, which is the
/// table's, but for any extent of `dim`. Elements have 1, 2, 4, 8 or 16 bytes, and indices are `i32` or `i64`.
/// The element of an index outside of the table is zero, and [`check_indices`](crate::check_indices) reports it;
/// [`take_along_dim_checked`] waits and reports it at once. [`TakeAlongDim`] has other meanings of such indices, and a
/// report of its own.
///
/// # Errors
/// - A tensor is not packed by rows, the shapes do not agree, or they are larger than a kernel's.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The output overlaps the table or the indices.
/// - Another library captures the stream, whose graph would need a report of its own: use [`TakeAlongDim`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, take_along_dim};
///
/// let stream = Device::auto().stream()?;
/// let table = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0], [2, 3])?;
/// let indices = DeviceTensor::upload(&stream, &[2i64, 0, 1, 1], [2, 2])?;
/// let mut output = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// take_along_dim(&stream, &table, 1, &indices, &mut output)?;
/// assert_eq!(output.download(&stream)?, [3.0, 1.0, 20.0, 20.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn take_along_dim<'a, T: DeviceData, X: Index>(
    stream: &Stream,
    table: impl IntoTensor<'a, Element = T>,
    dim: usize,
    indices: impl IntoTensor<'a, Element = X>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (table, indices) = (table.into_tensor()?, indices.into_tensor()?);
    let output = output.into_tensor_mut()?;
    let folded = Folded::of(dim, &table.layout, &indices.layout, &output.layout)?;
    with_kept_misses(stream, OPERATION, OUTCOME, |misses| {
        let mut plan = TakeAlongDim::with(misses);
        let enqueued = plan.launch(stream, folded, table.view, indices.view, output.view);
        (plan.misses, enqueued)
    })
}

/// Computes [`take_along_dim`], waits until it is done, and reports an index outside of the table.
///
/// # Errors
/// Those of [`take_along_dim`], and also:
///
/// - [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange): an index is outside of the table. The elements
///   of such indices are zero, and all others are gathered.
/// - The stream is being captured.
pub fn take_along_dim_checked<'a, T: DeviceData, X: Index>(
    stream: &Stream,
    table: impl IntoTensor<'a, Element = T>,
    dim: usize,
    indices: impl IntoTensor<'a, Element = X>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    expect_no_capture(stream, "an element gather that waits until it is done")?;
    let (table, indices) = (table.into_tensor()?, indices.into_tensor()?);
    let output = output.into_tensor_mut()?;
    let folded = Folded::of(dim, &table.layout, &indices.layout, &output.layout)?;
    let named = folded.named;
    let mut plan = TakeAlongDim::with(Misses::in_stream(stream, OPERATION, OUTCOME)?);
    plan.launch(stream, folded, table.view, indices.view, output.view)?;
    plan.misses.check_one(stream, indices.view, named)
}

/// Element gathers with a report of their own. They can be captured in a graph, and [`check`](Self::check) reports bad indices.
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
    /// Those of [`take_along_dim`], but another library may capture the stream.
    pub fn enqueue<'a, T: DeviceData, X: Index>(
        &mut self,
        stream: &Stream,
        table: impl IntoTensor<'a, Element = T>,
        dim: usize,
        indices: impl IntoTensor<'a, Element = X>,
        output: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let (table, indices) = (table.into_tensor()?, indices.into_tensor()?);
        let output = output.into_tensor_mut()?;
        let folded = Folded::of(dim, &table.layout, &indices.layout, &output.layout)?;
        self.launch(stream, folded, table.view, indices.view, output.view)
    }

    /// Enqueues a gather of packed elements.
    fn launch<T: DeviceData, X: Index>(
        &mut self,
        stream: &Stream,
        folded: Folded,
        table: View<'_, T>,
        indices: View<'_, X>,
        output: ViewMut<'_, T>,
    ) -> Result<()> {
        const {
            assert!(
                matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16),
                "take_along_dim moves elements of 1, 2, 4, 8 or 16 bytes: gather other ones as rows of a table"
            );
        }
        let table = table.relaxed();
        let output = match self.out_of_range {
            OutOfRange::Skip => output.relaxed(),
            OutOfRange::Error | OutOfRange::Clamp => output,
        };
        Self::check_operands(stream, &table, &indices, &output)?;
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
    fn of(dim: usize, table: &Layout, indices: &Layout, output: &Layout) -> Result<Folded> {
        let rank = table.rank();
        if dim >= rank {
            return refuse(format!(
                "dimension {dim} was asked for, but the table has {rank} modes; count dimensions from 0"
            ));
        }
        for (what, layout) in [("table", table), ("indices", indices), ("output", output)] {
            if !is_packed(layout) {
                return refuse(format!(
                    "the {what}: {}, and elements are taken of packed rows; copy it with `permute`",
                    layout.to_dynamic()
                ));
            }
        }
        if indices.shape() != output.shape() {
            return refuse(format!(
                "the indices' shape is {}, and the output's {}; give an index for each element",
                indices.shape().to_dynamic(),
                output.shape().to_dynamic()
            ));
        }
        let others = (0..rank).filter(|mode| *mode != dim);
        let agree = output.rank() == rank
            && others
                .clone()
                .all(|mode| extent(table, mode) == extent(output, mode));
        if !agree {
            return refuse(format!(
                "the table's shape is {}, and the output's {}; make them agree but for dimension {dim}",
                table.shape().to_dynamic(),
                output.shape().to_dynamic()
            ));
        }
        Ok(Folded {
            outer: (0..dim).map(|mode| extent(table, mode)).product(),
            named: extent(table, dim),
            taken: extent(output, dim),
            inner: (dim + 1..rank).map(|mode| extent(table, mode)).product(),
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

/// The number of elements of a mode.
fn extent(layout: &Layout, mode: usize) -> usize {
    layout.mode(mode).size() as usize
}

/// Whether elements lie in the order of their coordinates, of which the last one runs fastest.
fn is_packed(layout: &Layout) -> bool {
    let mut next = 1;
    (0..layout.num_leaves()).rev().all(|leaf| {
        let (extent, stride) = (
            layout.leaf_shape(leaf).value(),
            layout.leaf_stride(leaf).value(),
        );
        let follows = extent == 1 || stride == next;
        next *= extent;
        follows
    })
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
