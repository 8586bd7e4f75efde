//! Interleaving: the rows of two tensors by turns, as products with gates and ups take their weights.

use cutlet_device::DeviceData;
use cutlet_host::Stream;
use cutlet_layout_core::{Int, IntTuple, Tiler, tile};

use crate::matrix::{disjoint, in_stream};
use crate::{Error, IntoTensor, IntoTensorMut, Result, Tensor, TensorMut, permute};

const NAME: &str = "interleave_rows";

/// Enqueues `output[2r] = first[r]` and `output[2r + 1] = second[r]` for each row r.
///
/// With weights of gates and of ups, (outputs, inputs) each, the output is the weights of a gated layer:
/// [`Linear::swiglu`](crate::Linear::swiglu), or transposed the B of [`Gemm::swiglu`](crate::Gemm::swiglu). Rows are the
/// first mode. Modes behind it are the same in all three tensors, so that the weights of several experts are (outputs,
/// inputs, experts). Layouts are any, and elements are of any [`DeviceData`] type.
///
/// # Errors
/// - The output does not have twice as many rows, or other modes differ.
/// - More modes are left than [`permute`] copies.
/// - An operand is on another device than the stream, or bound to another stream.
/// - The output overlaps another operand.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Linear, interleave_rows};
///
/// let stream = Device::auto().stream()?;
/// let gates = DeviceTensor::upload(&stream, &[100.0f32, 0.0, 0.0, -50.0], [2, 2])?;
/// let ups = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 7.0, 7.0], [2, 2])?;
/// let mut weights = DeviceTensor::<f32>::zeroed(&stream, [4, 2])?;
/// interleave_rows(&stream, &gates, &ups, &mut weights)?;
/// assert_eq!(weights.download(&stream)?, [100.0, 0.0, 1.0, 2.0, 0.0, -50.0, 7.0, 7.0]);
///
/// let layer = Linear::new(weights)?.swiglu();
/// let x = DeviceTensor::upload(&stream, &[1.0f32, 2.0], [1, 2])?;
/// let mut y = DeviceTensor::zeroed(&stream, [1, 2])?;
/// layer.run(&stream, &x, &mut y)?;
/// assert_eq!(y.download(&stream)?, [500.0, 0.0]); // silu(100) · 5, silu(-100) · 21
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn interleave_rows<'a, T: DeviceData>(
    stream: &Stream,
    first: impl IntoTensor<'a, Element = T>,
    second: impl IntoTensor<'a, Element = T>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let sources = [first.into_tensor()?, second.into_tensor()?];
    let mut output = output.into_tensor_mut()?;
    for (source, name) in sources.iter().zip(["the first rows", "the second rows"]) {
        check(stream, source, &output, name)?;
    }
    in_stream(NAME, stream, "the output", output.view.view())?;
    for (nth, source) in sources.iter().enumerate() {
        permute(
            stream,
            source.flatten(),
            every_second(output.reborrow(), nth)?,
        )?;
    }
    Ok(())
}

/// Refuses a source that does not fit the output, or overlaps it.
fn check<T: DeviceData>(
    stream: &Stream,
    source: &Tensor<'_, T>,
    output: &TensorMut<'_, T>,
    name: &'static str,
) -> Result<()> {
    let (from, to) = (source.shape(), output.layout().shape());
    let rank = source.rank();
    let fits = rank == output.rank()
        && 2 * from.mode(0).size() == to.mode(0).size()
        && (1..rank).all(|mode| from.mode(mode).size() == to.mode(mode).size());
    if !fits {
        return Err(Error::Extents {
            operation: NAME,
            found: format!(
                "{name} are {from}, and the output is {to}; give an output with twice as many rows, and with the same \
                 other modes"
            ),
        });
    }
    in_stream(NAME, stream, name, source.view)?;
    disjoint(NAME, name, source.addresses(), output.addresses())
}

/// Every second row of the output, from row `nth` on.
fn every_second<T: DeviceData>(output: TensorMut<'_, T>, nth: usize) -> Result<TensorMut<'_, T>> {
    const PAIRS: Tiler = tile!((2));
    // (2, rows) of the first mode, of which the coordinate in the pair is given.
    let row = IntTuple::tuple(&[
        IntTuple::int(Int::dynamic(nth as i64)),
        IntTuple::UNDERSCORE,
    ]);
    let mut coordinate = vec![row];
    coordinate.resize(output.rank(), IntTuple::UNDERSCORE);
    let pairs = output.logical_divide(&PAIRS)?;
    Ok(pairs.slice(&IntTuple::tuple(&coordinate))?.flatten())
}
