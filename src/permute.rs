//! Permute: a copy between two layouts of the same shape.

mod modes;

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Stream, View, ViewMut};
use cutlet_kernels::gather::permute::{
    PermuteArgs, permute_long1, permute_long2, permute_long4, permute_long8, permute_long16,
    permute_short1, permute_short2, permute_short4, permute_short8, permute_short16,
    permute_transpose1, permute_transpose2, permute_transpose4, permute_transpose8,
    permute_transpose16,
};

use crate::matrix::{disjoint, in_stream};
use crate::{Error, IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};
use modes::{Modes, Shape};

/// Enqueues `destination(c) = source(c)` for every coordinate `c`.
///
/// The tensors have the same shape, of any rank, and any layouts. A transpose is two tensors of a matrix, one by rows
/// and one by columns. A stride of 0 in the source repeats its elements. Elements are of any [`DeviceData`] type.
///
/// Adjacent modes that are contiguous in both layouts are merged. If the innermost modes are the same, elements are
/// copied in accesses of up to 16 bytes; otherwise they go through shared memory, one element an access, so that reads
/// and writes are coalesced.
///
/// # Errors
/// - The shapes differ.
/// - More than 8 modes are left after merging, or an extent does not fit a kernel.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The destination overlaps the source.
///
/// ```
/// use cutlet::{Device, DeviceTensor, layout, permute};
///
/// let stream = Device::auto().stream()?;
/// let by_rows = DeviceTensor::upload(&stream, &[1u16, 2, 3, 4, 5, 6], [2, 3])?;
/// let mut by_columns = DeviceTensor::<u16>::zeroed(&stream, layout!((2, 3):(1, 2)))?;
/// permute(&stream, &by_rows, &mut by_columns)?;
/// assert_eq!(by_columns.download(&stream)?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn permute<'a, T: DeviceData>(
    stream: &Stream,
    source: impl IntoTensor<'a, Element = T>,
    destination: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (source, destination) = (source.into_tensor()?, destination.into_tensor_mut()?);
    copy(stream, &source, destination)
}

/// [`permute`] of tensors.
fn copy<T: DeviceData>(stream: &Stream, from: &Tensor<'_, T>, to: TensorMut<'_, T>) -> Result<()> {
    in_stream(OPERATION, stream, "the source", from.view)?;
    in_stream(OPERATION, stream, "the destination", to.view.view())?;
    disjoint(OPERATION, "the source", from.addresses(), to.addresses())?;
    let modes = Modes::of(&from.layout, &to.layout)?;
    if size_of::<T>() == 0 {
        // There are no bytes to copy.
        return Ok(());
    }
    let (source, destination) = (from.view, to.view);
    let begins = source.address() | destination.address();
    let (modes, unit) = modes.in_units(size_of::<T>(), begins);
    let (shape, args) = modes.args()?;
    let copy = Copy {
        stream,
        source,
        destination,
        args,
        shape,
    };
    match (unit, shape) {
        (16, Shape::Long) => copy.launch(&permute_long16),
        (16, Shape::Short) => copy.launch(&permute_short16),
        (16, Shape::Transposed) => copy.launch(&permute_transpose16),
        (8, Shape::Long) => copy.launch(&permute_long8),
        (8, Shape::Short) => copy.launch(&permute_short8),
        (8, Shape::Transposed) => copy.launch(&permute_transpose8),
        (4, Shape::Long) => copy.launch(&permute_long4),
        (4, Shape::Short) => copy.launch(&permute_short4),
        (4, Shape::Transposed) => copy.launch(&permute_transpose4),
        (2, Shape::Long) => copy.launch(&permute_long2),
        (2, Shape::Short) => copy.launch(&permute_short2),
        (2, Shape::Transposed) => copy.launch(&permute_transpose2),
        (_, Shape::Long) => copy.launch(&permute_long1),
        (_, Shape::Short) => copy.launch(&permute_short1),
        (_, Shape::Transposed) => copy.launch(&permute_transpose1),
    }
}

const OPERATION: &str = "permute";

fn refuse<R>(found: String) -> Result<R> {
    let operation = OPERATION;
    Err(Error::Extents { operation, found })
}

/// A kernel for elements of a width.
type PermuteKernel<U> = Kernel<(Global<U>, GlobalMut<U>, PermuteArgs)>;

/// A permutation whose operands were checked.
struct Copy<'a, T: DeviceData> {
    stream: &'a Stream,
    source: View<'a, T>,
    destination: ViewMut<'a, T>,
    args: PermuteArgs,
    shape: Shape,
}

impl<T: DeviceData> Copy<'_, T> {
    /// Launches a kernel for units `U` of the elements.
    fn launch<U: DeviceData>(self, kernel: &'static PermuteKernel<U>) -> Result<()> {
        let function = self.stream.device().load(&cutlet_kernels::PTX, kernel)?;
        let [tile_rows, tile_columns] = self.shape.tile(size_of::<U>());
        let [rows, columns] = self.args.extent.map(|extent| extent as u64);
        let tiles = rows.div_ceil(tile_rows) * columns.div_ceil(tile_columns);
        let blocks = u64::from(self.args.matrices) * tiles;
        let Some(blocks) = u32::try_from(blocks).ok().filter(|&it| it < 1 << 31) else {
            return refuse(format!(
                "the layouts have {blocks} tiles of {tile_rows}×{tile_columns}, and a launch has at most 2³¹ − 1; \
                 copy parts of them"
            ));
        };
        let (from, to) = (self.source.cast::<U>()?, self.destination.cast::<U>()?);
        // SAFETY: the views are those of the tensors, in units. Their layouts stay within them, and the destination's
        // modes do not overlap. It is borrowed mutably and does not overlap the source.
        unsafe {
            Ok(self
                .stream
                .launch(&function, blocks, (from, to, self.args))?)
        }
    }
}
