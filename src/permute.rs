//! Permute: a copy between two layouts of the same shape.

mod modes;

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{IntoView, IntoViewMut, Stream, View, ViewMut};
use cutlet_kernels::gather::permute::{
    PermuteArgs, permute_long1, permute_long2, permute_long4, permute_long8, permute_long16,
    permute_short1, permute_short2, permute_short4, permute_short8, permute_short16,
    permute_transpose1, permute_transpose2, permute_transpose4, permute_transpose8,
    permute_transpose16,
};
use cutlet_layout_core::Layout;

use crate::matrix::{addresses, disjoint, in_stream};
use crate::{Error, Result};
use modes::{Modes, Shape};

/// Enqueues `destination[destination_layout(c)] = source[source_layout(c)]` for every coordinate `c`.
///
/// The layouts have the same shape, of any rank, and strides in elements, which are not negative. The destination's
/// layout maps no two coordinates to one element. A transpose is two layouts of a matrix, one by rows and one by
/// columns. A stride of 0 in the source repeats its elements. Elements are of any [`DeviceData`] type.
///
/// Adjacent modes that are contiguous in both layouts are merged. If the innermost modes are the same, elements are
/// copied in accesses of up to 16 bytes; otherwise they go through shared memory, one element an access, so that reads
/// and writes are coalesced.
///
/// # Errors
/// - The shapes differ, a layout reaches beyond its memory, a stride is negative or in a basis direction, or the
///   destination's modes overlap.
/// - More than 8 modes are left after merging, or an extent does not fit a kernel.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The destination overlaps the source.
///
/// ```
/// use cutlet::{Device, layout, permute};
///
/// let stream = Device::auto().stream()?;
/// let source = stream.upload(&[1u16, 2, 3, 4, 5, 6])?; // 2×3, by rows
/// let mut transposed = stream.zeroed::<u16>(6)?;
/// permute(
///     &stream,
///     &source,
///     &layout!((2, 3):(3, 1)),
///     &mut transposed,
///     &layout!((2, 3):(1, 2)),
/// )?;
/// assert_eq!(stream.download(&transposed)?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn permute<'a, T: DeviceData>(
    stream: &Stream,
    source: impl IntoView<'a, Element = T>,
    source_layout: &Layout,
    destination: impl IntoViewMut<'a, Element = T>,
    destination_layout: &Layout,
) -> Result<()> {
    // A layout may repeat elements and leave out others.
    let source = source.into_view().relaxed();
    let destination = destination.into_view_mut();
    check_layout("source", source_layout, source.len())?;
    check_layout("destination", destination_layout, destination.len())?;
    in_stream(OPERATION, stream, "the source", source)?;
    in_stream(OPERATION, stream, "the destination", destination.view())?;
    let written = addresses(&destination.view());
    disjoint(OPERATION, "the source", addresses(&source), written)?;

    let modes = Modes::of(source_layout, destination_layout)?;
    if size_of::<T>() == 0 {
        // There are no bytes to copy.
        return Ok(());
    }
    // No element is in the destination twice.
    let destination = match usize::try_from(destination_layout.size()) {
        Ok(size) if size == destination.len() => destination,
        _ => destination.relaxed(),
    };
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

/// Checks that a layout stays within as many elements.
fn check_layout(of: &str, layout: &Layout, len: usize) -> Result<()> {
    let leaves = 0..layout.num_leaves();
    let strides = leaves.map(|n| layout.leaf_stride(n));
    if layout.has_basis() || strides.clone().any(|stride| stride.value() < 0) {
        return refuse(format!(
            "the {of}'s layout {layout} has a stride that is negative or in a basis direction; give strides in elements"
        ));
    }
    let last = (0..layout.num_leaves()).try_fold(0i64, |sum, n| {
        let reach = layout.leaf_shape(n).value() - 1;
        sum.checked_add(reach.checked_mul(layout.leaf_stride(n).value())?)
    });
    match last.map(|last| usize::try_from(last).is_ok_and(|last| last < len)) {
        Some(true) => Ok(()),
        _ => refuse(format!(
            "the {of}'s layout {layout} reaches beyond its {len} elements; give a larger buffer"
        )),
    }
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
        // SAFETY: the views are those of the operands, in units. The layouts stay within them, and the destination's
        // modes do not overlap. It is borrowed mutably and does not overlap the source.
        unsafe {
            Ok(self
                .stream
                .launch(&function, blocks, (from, to, self.args))?)
        }
    }
}
