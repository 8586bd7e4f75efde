//! Graphs of the library's operations: captures whose work returns this crate's errors.

use crate::{Device, Graph, OwnedGraph, Result, Stream};

/// Records the work that `work` enqueues: [`Device::capture`] for work whose errors are this crate's, so that `Ok(())` at
/// its end needs no type.
///
/// The launch of the graph is `unsafe`, as it is not known who else uses the memory. That of [`capture_owned`] is safe.
///
/// ```
/// use cutlet::{Device, DeviceTensor, capture, gemm};
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// let graph = capture(&device, |stream| {
///     gemm(stream, 1.0, &a, &a, 1.0, &mut c)?;
///     gemm(stream, 1.0, &a, &a, 1.0, &mut c)?;
///     Ok(())
/// })?;
/// // SAFETY: nothing else uses the tensors before the download has waited.
/// unsafe { graph.launch(&stream)? };
/// assert_eq!(c.download(&stream)?, [14.0, 20.0, 30.0, 44.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
///
/// # Errors
/// The error of `work`, and those of [`Device::capture`].
pub fn capture(device: &Device, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
    device.capture(work)
}

/// Records the work that `work` enqueues into a graph that owns `value`: [`Device::capture_owned`] for work whose errors
/// are this crate's.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Linear, capture_owned};
///
/// struct Step {
///     layer: Linear<f32>,
///     x: DeviceTensor<f32>,
///     y: DeviceTensor<f32>,
/// }
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let weights = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let step = Step {
///     layer: Linear::new(weights)?,
///     x: DeviceTensor::zeroed(&stream, [1, 2])?,
///     y: DeviceTensor::zeroed(&stream, [1, 2])?,
/// };
/// let mut graph = capture_owned(&device, step, |stream, step| {
///     step.layer.run(stream, &step.x, &mut step.y)?;
///     Ok(())
/// })?;
/// for (x, expected) in [([1.0, 0.0], [1.0, 3.0]), ([0.0, 10.0], [20.0, 40.0])] {
///     stream.copy_from_host(&x, graph.get_mut().x.view_mut())?;
///     graph.launch(&stream)?;
///     assert_eq!(graph.get().y.download(&stream)?, expected);
/// }
/// # Ok::<(), cutlet::Error>(())
/// ```
///
/// The graph keeps the memory of buffers that are not part of the value, too. So several graphs may use what none of them
/// owns, and the value of each is `()`:
///
/// ```
/// use cutlet::{Device, DeviceTensor, Unary, capture_owned, unary_in_place};
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let mut x = DeviceTensor::upload(&stream, &[1.0f32, -3.0], [2])?;
/// let half = Unary::Identity.of(0.5, 0.0);
/// let mut square =
///     capture_owned(&device, (), |stream, ()| unary_in_place(stream, Unary::Square, &mut x))?;
/// let mut halve =
///     capture_owned(&device, (), |stream, ()| unary_in_place(stream, half, &mut x))?;
/// square.launch(&stream)?;
/// halve.launch(&stream)?;
/// assert_eq!(x.download(&stream)?, [0.5, 4.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
///
/// # Errors
/// The error of `work`, and those of [`Device::capture_owned`].
pub fn capture_owned<S>(
    device: &Device,
    value: S,
    work: impl FnOnce(&Stream, &mut S) -> Result<()>,
) -> Result<OwnedGraph<S>> {
    device.capture_owned(value, work)
}
