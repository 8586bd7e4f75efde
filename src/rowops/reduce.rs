//! Sums, means and extremes of rows.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Stream, View};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::reduce::{ReduceArgs, Reduction, reduce_bf16, reduce_f16, reduce_f32};
use cutlet_kernels::rows::reduce_columns::{
    reduce_columns_bf16, reduce_columns_bf16_any, reduce_columns_f16, reduce_columns_f16_any,
    reduce_columns_f32, reduce_columns_f32_any, reduce_columns_to_bf16, reduce_columns_to_f16,
};
use half::{bf16, f16};

use super::operand::{check_read, layout_of_rows, optional_mut, read, rows_of, written};
use super::reduce_modes::ColumnsKernel;
use super::space::{HasRows, RowSet};
use super::splits::splits_of;
use super::{ForRows, refuse};
use crate::matrix::{in_stream, pointer};
use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

/// An element type of [`reduce`]: `f32`, `f16` or `bf16`.
pub trait ReducedElement: DeviceData + sealed::Kernels {}
impl ReducedElement for f32 {}
impl ReducedElement for f16 {}
impl ReducedElement for bf16 {}

/// A kernel of a reduction.
type ReduceKernel<T> = Kernel<(Global<T>, GlobalMut<T>, GlobalMut<i32>, ReduceArgs)>;

mod sealed {
    use super::{ColumnsKernel, DeviceData, ForRows, ReduceKernel};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        const KERNELS: ForRows<ReduceKernel<Self>>;
        /// Those for columns: of aligned vectors, and of any alignment.
        const COLUMNS: [&'static ColumnsKernel<Self, Self>; 2];
        /// The one for columns of partials.
        const OF_PARTIALS: &'static ColumnsKernel<f32, Self>;
    }
}

macro_rules! kernels {
    ($($element:ty: $module:ident $warp:ident $block:ident $warp_any:ident $block_any:ident,
        $columns:ident $columns_any:ident $of_partials:ident;)+) => {$(
        impl sealed::Kernels for $element {
            const KERNELS: ForRows<ReduceKernel<Self>> = ForRows {
                warp: &$module::$warp,
                block: &$module::$block,
                warp_any: &$module::$warp_any,
                block_any: &$module::$block_any,
            };
            const COLUMNS: [&'static ColumnsKernel<Self, Self>; 2] = [&$columns, &$columns_any];
            const OF_PARTIALS: &'static ColumnsKernel<f32, Self> = &$of_partials;
        }
    )+};
}
kernels! {
    f32: reduce_f32 reduce_f32_warp reduce_f32_block reduce_f32_warp_any reduce_f32_block_any,
        reduce_columns_f32 reduce_columns_f32_any reduce_columns_f32_any;
    f16: reduce_f16 reduce_f16_warp reduce_f16_block reduce_f16_warp_any reduce_f16_block_any,
        reduce_columns_f16 reduce_columns_f16_any reduce_columns_to_f16;
    bf16: reduce_bf16 reduce_bf16_warp reduce_bf16_block reduce_bf16_warp_any reduce_bf16_block_any,
        reduce_columns_bf16 reduce_columns_bf16_any reduce_columns_to_bf16;
}

/// Enqueues the reduction of each row of `x` to an element of `y`. [`reduce_modes`](crate::reduce_modes) reduces any
/// modes.
///
/// A row is the last mode of `x`, and is contiguous. `y` has the modes before, and may have a last mode of one element.
/// The result of a tensor of one mode is a tensor of one element. Sums are in f32, and rounded once. A row with NaN
/// becomes NaN.
///
/// # Errors
/// - Shapes do not agree, rows are not contiguous, or more than three modes of rows do not continue one another.
/// - `y` overlaps `x`.
/// - An operand is on another device than the stream, or bound to another stream.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Reduction, reduce};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[1.0f32, -4.0, 3.0, 2.0, 2.0, 2.0], [2, 3])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [2])?;
/// reduce(&stream, Reduction::Mean, &x, &mut y)?;
/// assert_eq!(y.download(&stream)?, [0.0, 2.0]);
/// reduce(&stream, Reduction::Amax, &x, &mut y)?; // the largest magnitude
/// assert_eq!(y.download(&stream)?, [4.0, 2.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn reduce<'a, T: ReducedElement>(
    stream: &Stream,
    reduction: Reduction,
    x: impl IntoTensor<'a, Element = T>,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    const NAME: &str = "reduce";
    match (read(x)?, written(y)?) {
        (Some(x), Some(y)) => launch(NAME, stream, reduction, &x, (Some(y), None), None),
        (None, None) => Ok(()),
        _ => empty(NAME),
    }
}

/// Enqueues the search for the largest element of each row of `x`: `indices` gets its place in the row. Of equal elements,
/// the first one counts. NaN counts as larger than all numbers.
///
/// # Errors
/// As [`reduce`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, argmax};
///
/// let stream = Device::auto().stream()?;
/// let logits = DeviceTensor::upload(&stream, &[1.0f32, 7.0, 7.0, -3.0, -2.0, -9.0], [2, 3])?;
/// let mut tokens = DeviceTensor::<i32>::zeroed(&stream, [2])?;
/// argmax(&stream, &logits, &mut tokens)?;
/// assert_eq!(tokens.download(&stream)?, [1, 1]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn argmax<'a, T: ReducedElement>(
    stream: &Stream,
    x: impl IntoTensor<'a, Element = T>,
    indices: impl IntoTensorMut<'a, Element = i32>,
) -> Result<()> {
    arg("argmax", stream, Reduction::Max, x, indices)
}

/// Enqueues the search for the smallest element of each row of `x`: see [`argmax`]. NaN counts as smaller than all
/// numbers.
///
/// # Errors
/// As [`reduce`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, argmin};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[1.0f32, 7.0, 1.0], [3])?;
/// let mut index = DeviceTensor::<i32>::zeroed(&stream, [1])?;
/// argmin(&stream, &x, &mut index)?;
/// assert_eq!(index.download(&stream)?, [0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn argmin<'a, T: ReducedElement>(
    stream: &Stream,
    x: impl IntoTensor<'a, Element = T>,
    indices: impl IntoTensorMut<'a, Element = i32>,
) -> Result<()> {
    arg("argmin", stream, Reduction::Min, x, indices)
}

fn arg<'a, T: ReducedElement>(
    operation: &'static str,
    stream: &Stream,
    reduction: Reduction,
    x: impl IntoTensor<'a, Element = T>,
    indices: impl IntoTensorMut<'a, Element = i32>,
) -> Result<()> {
    match (read(x)?, written(indices)?) {
        (Some(x), Some(indices)) => match splits_of(stream, &x, usize::MAX) {
            None => launch(
                operation,
                stream,
                reduction,
                &x,
                (None, Some(indices)),
                None,
            ),
            Some(splits) => arg_of_splits(operation, stream, reduction, &x, splits, indices),
        },
        (None, None) => Ok(()),
        _ => empty(operation),
    }
}

fn empty<R>(operation: &'static str) -> Result<R> {
    let found = "one of the tensors has no elements; give a result for each row";
    refuse(operation, found.to_string())
}

/// Searches each split of a row by a block, and then the splits' extremes.
fn arg_of_splits<T: ReducedElement>(
    operation: &'static str,
    stream: &Stream,
    reduction: Reduction,
    x: &Tensor<'_, T>,
    splits: usize,
    indices: TensorMut<'_, i32>,
) -> Result<()> {
    let [rows, columns] = [0, 1].map(|mode| x.layout.mode(mode).size() as usize);
    check_read(operation, stream, "x", x, &indices)?;
    layout_of_rows(operation, "the indices", &indices.layout, &x.layout)?;
    let mut values = stream.scratch::<T>(rows * splits)?;
    let mut places = stream.scratch::<i32>(rows * splits)?;
    let in_splits = x.reshape([rows, splits, columns / splits])?;
    let results = (
        Some(TensorMut::new(values.view_mut(), [rows, splits])?),
        Some(TensorMut::new(places.view_mut(), [rows, splits])?),
    );
    launch(operation, stream, reduction, &in_splits, results, None)?;
    let values = Tensor::new(values.view(), [rows, splits])?;
    let splits = Splits {
        columns: columns / splits,
        places: places.view(),
    };
    launch(
        operation,
        stream,
        reduction,
        &values,
        (None, Some(indices)),
        Some(splits),
    )
}

/// Splits of longer rows, of which each column of `x` is an extreme.
pub struct Splits<'a> {
    /// Elements of a split.
    columns: usize,
    /// Where in its split each extreme is.
    places: View<'a, i32>,
}

/// Reduces rows to values, indices or both.
pub fn launch<T: ReducedElement>(
    operation: &'static str,
    stream: &Stream,
    reduction: Reduction,
    x: &Tensor<'_, T>,
    (mut values, mut indices): (Option<TensorMut<'_, T>>, Option<TensorMut<'_, i32>>),
    splits: Option<Splits<'_>>,
) -> Result<()> {
    in_stream(operation, stream, "x", x.view)?;
    // Absent results have a place for each row, too.
    let mut layouts = [x.layout; 2];
    if let Some(values) = &values {
        in_stream(operation, stream, "y", values.view.view())?;
        check_read(operation, stream, "x", x, values)?;
        layouts[0] = layout_of_rows(operation, "y", &values.layout, &x.layout)?;
    }
    if let Some(indices) = &indices {
        in_stream(operation, stream, "the indices", indices.view.view())?;
        check_read(operation, stream, "x", x, indices)?;
        layouts[1] = layout_of_rows(operation, "the indices", &indices.layout, &x.layout)?;
    }
    let [of_values, of_indices] = layouts.each_ref().map(|layout| HasRows {
        what: "a result",
        layout,
        address: 0,
        bytes: 0,
    });
    let rows = RowSet::of(operation, &[rows_of("x", x), of_values, of_indices])?;
    let args = ReduceArgs {
        x: rows.strides[0],
        values: rows.strides[1],
        indices: rows.strides[2],
        space: rows.space,
        reduction: reduction as u32,
        with_values: u32::from(values.is_some()),
        with_indices: u32::from(indices.is_some()),
        split_columns: splits.as_ref().map_or(0, |it| it.columns as i32),
        splits: splits.map_or(Global::from_ptr(std::ptr::null()), |it| pointer(it.places)),
    };
    let (kernel, blocks) = T::KERNELS.choose::<T>(&rows);
    let kernel = stream.device().load(&PTX, kernel)?;
    // SAFETY: the rows were checked against the tensors' memory. Results that are absent are not written, and the others
    // overlap nothing.
    unsafe {
        let (values, indices) = (
            optional_mut(values.as_mut()),
            optional_mut(indices.as_mut()),
        );
        Ok(stream.launch(
            &kernel,
            LaunchConfig::dependent(blocks),
            (x.view, values, indices, args),
        )?)
    }
}
