//! Embedding bag: rows of a table, summed, averaged or maximised by bags of indices.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Device, IntoView, Stream, View};
use cutlet_kernels::gather::embedding_bag::{self as kernels, BagArgs, Pooling as Policy};
use half::{bf16, f16};

use crate::matrix::{addresses, disjoint, in_stream};
use crate::rows::{
    Index, IndexView, Misses, Operands, OutOfRange, Owners, expect_no_capture, to_next_row,
    with_kept_misses,
};
use crate::{IntoTensor, IntoTensorMut, MAX_EXTENT, Matrix, MatrixMut, Result};

/// What becomes of the rows of a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The sum of the rows, each times a weight if there are weights.
    Sum,
    /// The sum over the number of rows.
    Mean,
    /// The maximum in each column. It is NaN if one of the elements is.
    Max,
}

/// Which indices belong to which bag.
#[derive(Clone, Copy, Debug)]
pub struct Bags<'a>(Kind<'a>);

#[derive(Clone, Copy, Debug)]
enum Kind<'a> {
    /// Each bag has as many indices.
    Len(usize),
    /// Where bags begin, and where the last one ends.
    Offsets { offsets: IndexView<'a>, len: usize },
}

impl<'a> Bags<'a> {
    /// Bags of `len` consecutive indices each.
    pub fn of_len(len: usize) -> Self {
        Bags(Kind::Len(len))
    }

    /// Bag `b` has the indices at positions `offsets[b] .. offsets[b + 1]`, so there is one offset more than bags.
    ///
    /// Kernels read the offsets on the device. Offsets that decrease make empty bags, and positions that do not exist
    /// are left out.
    ///
    /// # Errors
    /// If the memory of the offsets is not usable.
    pub fn from_offsets<X: Index>(offsets: impl IntoView<'a, Element = X>) -> Result<Self> {
        let offsets = offsets.into_view();
        let len = offsets.len();
        let offsets = IndexView::new(offsets)?;
        Ok(Bags(Kind::Offsets { offsets, len }))
    }
}

/// An element type of [`embedding_bag`](fn@embedding_bag): `f32`, `f16` or `bf16`.
pub trait PooledElement: DeviceData + sealed::Kernels {}
impl PooledElement for f32 {}
impl PooledElement for f16 {}
impl PooledElement for bf16 {}

/// Enqueues `output[b] = pooled table[indices[p]]` for all positions `p` of bag `b`.
///
/// The rows of a bag are added in the order of its indices, in f32. The output of an empty bag is zero. Table and
/// output have two modes, of which the second is contiguous. An index that is no row of the table is left out of its
/// bag, and [`check_indices`](crate::check_indices) reports it; [`embedding_bag_checked`] waits and reports it at once.
/// [`EmbeddingBag`] has other meanings of such indices, a report of its own, and weights.
///
/// # Errors
/// - Extents do not agree.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The output overlaps another operand.
/// - Another library captures the stream, whose graph would need a report of its own: use [`EmbeddingBag`].
///
/// ```
/// use cutlet::{Bags, Device, DeviceTensor, Pooling, embedding_bag};
///
/// let stream = Device::auto().stream()?;
/// let table = DeviceTensor::upload(&stream, &[0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5], [3, 2])?;
/// let indices = stream.upload(&[2i32, 0, 2, 1])?;
/// let offsets = stream.upload(&[0i32, 3, 3, 4])?; // bags of 3, 0 and 1
/// let mut sums = DeviceTensor::<f32>::zeroed(&stream, [3, 2])?;
/// embedding_bag(&stream, Pooling::Sum, &table, &indices, Bags::from_offsets(&offsets)?, &mut sums)?;
/// assert_eq!(sums.download(&stream)?, [4.0, 5.5, 0.0, 0.0, 1.0, 1.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn embedding_bag<'a, 'i, T: PooledElement, X: Index>(
    stream: &Stream,
    pooling: Pooling,
    table: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    bags: Bags<'_>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (table, output) = NAMES.matrices(table, output)?;
    let indices = indices.into_view();
    with_kept_misses(stream, NAMES.operation, OUTCOME, |misses| {
        let mut plan = EmbeddingBag::with(misses, pooling);
        let enqueued = plan.launch(stream, table, indices, None, bags, output);
        (plan.misses, enqueued)
    })
}

/// Computes [`embedding_bag`](fn@embedding_bag), waits until it is done, and reports an index that is no row of the
/// table.
///
/// # Errors
/// Those of [`embedding_bag`](fn@embedding_bag), and also:
///
/// - [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange): an index is no row of the table. It is left out
///   of its bag.
/// - The stream is being captured.
pub fn embedding_bag_checked<'a, 'i, T: PooledElement, X: Index>(
    stream: &Stream,
    pooling: Pooling,
    table: impl IntoTensor<'a, Element = T>,
    indices: impl IntoView<'i, Element = X>,
    bags: Bags<'_>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    expect_no_capture(stream, "an embedding bag that waits until it is done")?;
    let (table, output) = NAMES.matrices(table, output)?;
    let indices = indices.into_view();
    let misses = Misses::in_stream(stream, NAMES.operation, OUTCOME)?;
    let mut plan = EmbeddingBag::with(misses, pooling);
    plan.launch(stream, table, indices, None, bags, output)?;
    plan.misses.check_one(stream, indices, table.rows())
}

/// Embedding bags with a report of their own. They can be captured in a graph, and [`check`](Self::check) reports bad
/// indices.
///
/// A graph also writes the report, so the `EmbeddingBag` must outlive the graph.
#[derive(Debug)]
pub struct EmbeddingBag {
    misses: Misses,
    pooling: Pooling,
    out_of_range: OutOfRange,
}

impl EmbeddingBag {
    /// Prepares embedding bags on this stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(device: &Device, pooling: Pooling) -> Result<Self> {
        let misses = Misses::new(device, NAMES.operation, OUTCOME)?;
        Ok(EmbeddingBag::with(misses, pooling))
    }

    fn with(misses: Misses, pooling: Pooling) -> Self {
        EmbeddingBag {
            misses,
            pooling,
            out_of_range: OutOfRange::Error,
        }
    }

    /// The same embedding bags, in which an index that is no row of its table means something else than an error. If
    /// such indices are skipped, they count in no bag.
    pub fn out_of_range(self, out_of_range: OutOfRange) -> Self {
        EmbeddingBag {
            out_of_range,
            ..self
        }
    }

    /// Enqueues `output[b] = pooled table[indices[p]]`.
    ///
    /// # Errors
    /// Those of [`embedding_bag`](fn@embedding_bag), but another library may capture the stream.
    pub fn enqueue<'a, 'i, T: PooledElement, X: Index>(
        &mut self,
        stream: &Stream,
        table: impl IntoTensor<'a, Element = T>,
        indices: impl IntoView<'i, Element = X>,
        bags: Bags<'_>,
        output: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let (table, output) = NAMES.matrices(table, output)?;
        self.launch(stream, table, indices.into_view(), None, bags, output)
    }

    /// Enqueues `output[b] = Σ weights[p] · table[indices[p]]`.
    ///
    /// # Errors
    /// Those of [`enqueue`](Self::enqueue), and if the pooling is not [`Pooling::Sum`] or there is not one weight for
    /// each index.
    ///
    /// ```
    /// use cutlet::{Bags, Device, DeviceTensor, EmbeddingBag, Pooling};
    ///
    /// let stream = Device::auto().stream()?;
    /// let table = DeviceTensor::upload(&stream, &[1.0f32, 10.0], [2, 1])?;
    /// let indices = stream.upload(&[0i32, 1, 1, 1])?;
    /// let weights = stream.upload(&[0.5f32, 0.25, 1.0, 2.0])?;
    /// let mut sums = DeviceTensor::<f32>::zeroed(&stream, [2, 1])?;
    /// let mut plan = EmbeddingBag::new(stream.device(), Pooling::Sum)?;
    /// plan.enqueue_weighted(&stream, &table, &indices, &weights, Bags::of_len(2), &mut sums)?;
    /// plan.check(&stream)?;
    /// assert_eq!(sums.download(&stream)?, [3.0, 30.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn enqueue_weighted<'a, 'i, T: PooledElement, X: Index>(
        &mut self,
        stream: &Stream,
        table: impl IntoTensor<'a, Element = T>,
        indices: impl IntoView<'i, Element = X>,
        weights: impl IntoView<'i, Element = f32>,
        bags: Bags<'_>,
        output: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let (table, output) = NAMES.matrices(table, output)?;
        let weights = Some(weights.into_view());
        self.launch(stream, table, indices.into_view(), weights, bags, output)
    }

    /// Waits for the enqueued embedding bags, and reports an index that was not a row of its table. Of several such
    /// indices since the last check, it reports one with the lowest position.
    ///
    /// # Errors
    /// [`Error::IndexMissed`](crate::Error::IndexMissed) if there was such an index; an error if the stream is being
    /// captured.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.misses.check(stream)
    }

    fn launch<T: PooledElement, X: Index>(
        &mut self,
        stream: &Stream,
        table: Matrix<'_, T>,
        indices: View<'_, X>,
        weights: Option<View<'_, f32>>,
        bags: Bags<'_>,
        mut output: MatrixMut<'_, T>,
    ) -> Result<()> {
        let (positions, table) = (indices.len(), table.in_part());
        NAMES.check(stream, &table, &indices, &output, positions)?;
        if positions > MAX_EXTENT {
            return NAMES.refuse(format!(
                "there are {positions} indices; a launch takes at most {MAX_EXTENT}"
            ));
        }
        bags.check(stream, positions, &output)?;
        self.check_weights(stream, weights, positions, &output)?;
        if output.rows() == 0 || output.columns() == 0 {
            return Ok(());
        }
        let indices = IndexView::new(indices)?;
        let (offsets, bag_len) = match bags.0 {
            Kind::Len(len) => (indices, len as i32),
            Kind::Offsets { offsets, .. } => (offsets, -1),
        };
        let owners = Owners::of(&table, &output);
        let args = BagArgs {
            table_rows: table.rows() as i64,
            ld_table: to_next_row(table.rows(), table.ld()) as i64,
            ld_output: to_next_row(output.rows(), output.ld()) as i64,
            indices: positions as i32,
            bags: output.rows() as i32,
            columns: output.columns() as i32,
            bag_len,
            wide_indices: indices.wide(),
            wide_offsets: offsets.wide(),
            weighted: weights.is_some().into(),
            pooling: self.pooling.policy(),
            out_of_range: self.out_of_range.policy(),
            padding: 0,
        };
        let grid = owners.grid::<T>(output.rows(), output.columns());
        let kernel = stream
            .device()
            .load(&cutlet_kernels::PTX, T::kernel(owners))?;
        let weights = match weights {
            Some(weights) => weights,
            None => indices.words().slice(..0)?.cast()?,
        };
        // SAFETY: the matrices were checked against their memory. There is an offset for each bag and one more, and a
        // weight for each index, unless the arguments say that there are none. The kernel checks the indices and the
        // offsets. The output is borrowed mutably and overlaps nothing else.
        unsafe {
            let args = (
                table.view,
                indices.words(),
                offsets.words(),
                weights,
                output.view.reborrow(),
                self.misses.report(),
                args,
            );
            Ok(stream.launch(&kernel, grid, args)?)
        }
    }

    /// Checks the weights of this many indices.
    fn check_weights<T: DeviceData>(
        &self,
        stream: &Stream,
        weights: Option<View<'_, f32>>,
        indices: usize,
        output: &MatrixMut<'_, T>,
    ) -> Result<()> {
        let Some(weights) = weights else {
            return Ok(());
        };
        let (count, pooling) = (weights.len(), self.pooling);
        if pooling != Pooling::Sum {
            return NAMES.refuse(format!(
                "weights were given, but the pooling is {pooling:?}; use `Pooling::Sum` with weights"
            ));
        }
        if count != indices {
            return NAMES.refuse(format!(
                "there are {count} weights and {indices} indices; give a weight for each index"
            ));
        }
        in_stream(NAMES.operation, stream, "the weights", weights)?;
        let (weights, output) = (addresses(&weights), output.addresses());
        disjoint(NAMES.operation, "the weights", weights, output)
    }
}

impl Bags<'_> {
    /// Checks that the bags fit the indices and the output, which has a row for each bag.
    fn check<T: DeviceData>(
        self,
        stream: &Stream,
        indices: usize,
        output: &MatrixMut<'_, T>,
    ) -> Result<()> {
        let rows = output.rows();
        match self.0 {
            Kind::Len(len) if rows.checked_mul(len) != Some(indices) => NAMES.refuse(format!(
                "there are {indices} indices for {rows} rows of the output, in bags of {len}; give {len} indices for \
                 each row"
            )),
            Kind::Offsets { len, .. } if len != rows + 1 => NAMES.refuse(format!(
                "there are {len} offsets and {rows} rows of the output; give one offset for each row and one for the \
                 end of the last bag"
            )),
            Kind::Len(_) => Ok(()),
            Kind::Offsets { offsets, .. } => {
                let words = offsets.words();
                in_stream(NAMES.operation, stream, "the offsets", words)?;
                let (offsets, output) = (addresses(&words), output.addresses());
                disjoint(NAMES.operation, "the offsets", offsets, output)
            }
        }
    }
}

impl Pooling {
    /// The pooling as kernels take it.
    fn policy(self) -> Policy {
        match self {
            Pooling::Sum => Policy::SUM,
            Pooling::Mean => Policy::MEAN,
            Pooling::Max => Policy::MAX,
        }
    }
}

/// What became of a bad index.
const OUTCOME: &str = "it was left out of its bag";

/// Names of the operands in errors.
const NAMES: Operands = Operands {
    operation: "embedding_bag",
    from: "the table",
    to: "the output",
};

/// A kernel of an embedding bag.
type BagKernel<T> = Kernel<(
    Global<T>,
    Global<i32>,
    Global<i32>,
    Global<f32>,
    GlobalMut<T>,
    GlobalMut<u64>,
    BagArgs,
)>;

mod sealed {
    use super::{BagKernel, DeviceData, Owners};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        /// The kernel with this shape of a tile.
        fn kernel(owners: Owners) -> &'static BagKernel<Self>;
    }
}

macro_rules! kernels {
    ($element:ty: $long:ident $short:ident $single:ident) => {
        impl sealed::Kernels for $element {
            fn kernel(owners: Owners) -> &'static BagKernel<$element> {
                match owners {
                    Owners::Long => &kernels::$long,
                    Owners::Short => &kernels::$short,
                    Owners::Single => &kernels::$single,
                }
            }
        }
    };
}
kernels!(f32: embedding_bag_f32_long embedding_bag_f32_short embedding_bag_f32_single);
kernels!(f16: embedding_bag_f16_long embedding_bag_f16_short embedding_bag_f16_single);
kernels!(bf16: embedding_bag_bf16_long embedding_bag_bf16_short embedding_bag_bf16_single);
