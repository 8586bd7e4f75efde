//! Functions of single elements, of one tensor or of several at the same place.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::{DeviceData, Global, GlobalMut, Kernel, PtxLibrary};
use cutlet_host::{LaunchConfig, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::cast as casts;
use cutlet_kernels::rows::functions::{
    AnyBinary, AnyUnary, Binary, Identity, functions_bf16, functions_f16, functions_f32,
};
use cutlet_kernels::rows::map::{Map, MapArgs};
use half::{bf16, f16};

use super::operand::{Read, check_read, read, rows_of, written, written_rows};
use super::space::{HasRows, RowSet};
use super::{WARPS, held_by_warp, refuse};
use crate::matrix::in_stream;
use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

/// An element type of [`unary`] and [`binary`]: `f32`, `f16` or `bf16`.
pub trait MapElement: DeviceData + sealed::Functions {}
impl MapElement for f32 {}
impl MapElement for f16 {}
impl MapElement for bf16 {}

/// An element type that [`cast`] converts to `T`: `f32`, `f16`, `bf16` and [`F8E4M3`], to another of these.
pub trait CastElement<T: DeviceData>: DeviceData + sealed::Cast<T> {}
impl<T: DeviceData, F: DeviceData + sealed::Cast<T>> CastElement<T> for F {}

/// A kernel that maps one tensor.
type Kernel1<F, A, Y> = Kernel<(Global<A>, GlobalMut<Y>, F, MapArgs)>;
/// A kernel that maps two tensors.
type Kernel2<F, A, B, Y> = Kernel<(Global<A>, Global<B>, GlobalMut<Y>, F, MapArgs)>;
/// A kernel that maps three tensors.
type Kernel3<F, A, B, C, Y> = Kernel<(Global<A>, Global<B>, Global<C>, GlobalMut<Y>, F, MapArgs)>;

/// The two kernels of a function of elements: for [`map1`], [`map2`] and [`map3`].
///
/// A package of your own has a type that implements `Map` of cutlet-kernels, and two kernels with it: instances of
/// `cutlet_kernels::rows::map::map1`, `map2` or `map3`. [The guide](https://github.com/cutlet-rs/cutlet/blob/main/docs/rows.md#functions-of-your-own)
/// shows one.
#[derive(Debug)]
pub struct MapKernels<K: 'static> {
    library: &'static PtxLibrary,
    vectors: &'static K,
    any: &'static K,
}

impl<K> MapKernels<K> {
    /// The kernels of a library.
    ///
    /// # Safety
    /// `vectors` is an instance of `map1`, `map2` or `map3` of cutlet-kernels with the shape `Warp4`, or with `Warp8` if all
    /// elements have at most 16 bits. `any` is the same one with the shape `WarpAny`.
    pub const unsafe fn new(
        library: &'static PtxLibrary,
        vectors: &'static K,
        any: &'static K,
    ) -> Self {
        Self {
            library,
            vectors,
            any,
        }
    }

    /// Kernels of this package.
    const fn own(vectors: &'static K, any: &'static K) -> Self {
        // SAFETY: this package has no other instances with these arguments.
        unsafe { Self::new(&PTX, vectors, any) }
    }
}

mod sealed {
    use super::{AnyBinary, AnyUnary, DeviceData, Identity, Kernel1, Kernel2, MapKernels};

    /// The functions of an element type.
    pub trait Functions: DeviceData {
        const UNARY: MapKernels<Kernel1<AnyUnary, Self, Self>>;
        const BINARY: MapKernels<Kernel2<AnyBinary, Self, Self, Self>>;
    }

    /// The conversion to `T`.
    pub trait Cast<T: DeviceData>: DeviceData {
        const KERNELS: MapKernels<Kernel1<Identity, Self, T>>;
    }
}

macro_rules! functions {
    ($($element:ty: $module:ident $unary:ident $unary_any:ident $binary:ident $binary_any:ident;)+) => {$(
        impl sealed::Functions for $element {
            const UNARY: MapKernels<Kernel1<AnyUnary, Self, Self>> =
                MapKernels::own(&$module::$unary, &$module::$unary_any);
            const BINARY: MapKernels<Kernel2<AnyBinary, Self, Self, Self>> =
                MapKernels::own(&$module::$binary, &$module::$binary_any);
        }
    )+};
}
functions! {
    f32: functions_f32 unary_f32 unary_f32_any binary_f32 binary_f32_any;
    f16: functions_f16 unary_f16 unary_f16_any binary_f16 binary_f16_any;
    bf16: functions_bf16 unary_bf16 unary_bf16_any binary_bf16 binary_bf16_any;
}

macro_rules! conversions {
    ($($from:ty, $to:ty: $vectors:ident $any:ident;)+) => {$(
        impl sealed::Cast<$to> for $from {
            const KERNELS: MapKernels<Kernel1<Identity, Self, $to>> =
                MapKernels::own(&casts::$vectors, &casts::$any);
        }
    )+};
}
conversions! {
    f32, f16: cast_f32_f16 cast_f32_f16_any;
    f32, bf16: cast_f32_bf16 cast_f32_bf16_any;
    f32, F8E4M3: cast_f32_e4m3 cast_f32_e4m3_any;
    f16, f32: cast_f16_f32 cast_f16_f32_any;
    f16, bf16: cast_f16_bf16 cast_f16_bf16_any;
    f16, F8E4M3: cast_f16_e4m3 cast_f16_e4m3_any;
    bf16, f32: cast_bf16_f32 cast_bf16_f32_any;
    bf16, f16: cast_bf16_f16 cast_bf16_f16_any;
    bf16, F8E4M3: cast_bf16_e4m3 cast_bf16_e4m3_any;
    F8E4M3, f32: cast_e4m3_f32 cast_e4m3_f32_any;
    F8E4M3, f16: cast_e4m3_f16 cast_e4m3_f16_any;
    F8E4M3, bf16: cast_e4m3_bf16 cast_e4m3_bf16_any;
}

/// Enqueues `y = function(x)` for each element: `Unary::Silu`, or `Unary::Silu.of(factor, offset)` of
/// `x · factor + offset`.
///
/// The tensors have the same shape, of any number of modes, of which the last is contiguous. The arithmetic is in f32, and
/// a result is rounded once. GELU is the one with the hyperbolic tangent.
///
/// # Errors
/// - Shapes differ, rows are not contiguous, or more than three modes of rows do not continue one another.
/// - `y` overlaps `x`.
/// - An operand is on another device than the stream, or bound to another stream.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Unary, unary, unary_in_place};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[-2.0f32, 0.0, 3.0], [3])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [3])?;
/// unary(&stream, Unary::Relu, &x, &mut y)?;
/// assert_eq!(y.download(&stream)?, [0.0, 0.0, 3.0]);
/// unary_in_place(&stream, Unary::Square.of(2.0, 1.0), &mut y)?;
/// assert_eq!(y.download(&stream)?, [1.0, 1.0, 49.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn unary<'a, T: MapElement>(
    stream: &Stream,
    function: impl Into<AnyUnary>,
    x: impl IntoTensor<'a, Element = T>,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (x, y) = match (read(x)?, written(y)?) {
        (Some(x), Some(y)) => (x, y),
        (None, None) => return Ok(()),
        _ => return refuse("unary", ONE_IS_EMPTY.to_string()),
    };
    launch1(
        "unary",
        stream,
        &T::UNARY,
        function.into(),
        Read(Some(x)),
        y,
    )
}

/// Enqueues `x = function(x)` for each element, as [`unary`].
///
/// # Errors
/// As [`unary`].
pub fn unary_in_place<'a, T: MapElement>(
    stream: &Stream,
    function: impl Into<AnyUnary>,
    x: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    match written(x)? {
        Some(x) => launch1("unary", stream, &T::UNARY, function.into(), Read(None), x),
        None => Ok(()),
    }
}

/// Enqueues `y = function(a, b)` for each element: `Binary::Max`, or `Binary::Linear.with(α, β)`, which is `a · α + b · β`.
///
/// The tensors have the same shape, of any number of modes, of which the last is contiguous. A mode of stride 0 repeats
/// an input: a row of biases, for all rows. The arithmetic is in f32, and a result is rounded once.
///
/// # Errors
/// As [`unary`].
///
/// ```
/// use cutlet::{Binary, Device, DeviceTensor, Tensor, binary, layout};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32, 5.0, 3.0, 9.0], [2, 2])?;
/// let limits = stream.upload(&[2.0f32, 7.0])?;
/// let limits = Tensor::new(&limits, layout!((2, 2):(0, 1)))?; // the same for both rows
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// binary(&stream, Binary::Min, &a, limits, &mut y)?;
/// assert_eq!(y.download(&stream)?, [1.0, 5.0, 2.0, 7.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn binary<'a, T: MapElement>(
    stream: &Stream,
    function: impl Into<AnyBinary>,
    a: impl IntoTensor<'a, Element = T>,
    b: impl IntoTensor<'a, Element = T>,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    match (read(a)?, read(b)?, written(y)?) {
        (Some(a), Some(b), Some(y)) => launch2(
            "binary",
            stream,
            &T::BINARY,
            function.into(),
            Read(Some(a)),
            b,
            y,
        ),
        (None, None, None) => Ok(()),
        _ => refuse("binary", ONE_IS_EMPTY.to_string()),
    }
}

/// Enqueues `a = function(a, b)` for each element, as [`binary`].
///
/// # Errors
/// As [`unary`].
///
/// ```
/// use cutlet::{Binary, Device, DeviceTensor, binary_in_place};
///
/// let stream = Device::auto().stream()?;
/// let mut a = DeviceTensor::upload(&stream, &[1.0f32, 2.0], [2])?;
/// let b = DeviceTensor::upload(&stream, &[10.0f32, 20.0], [2])?;
/// binary_in_place(&stream, Binary::Linear.with(1.0, -0.5), &mut a, &b)?;
/// assert_eq!(a.download(&stream)?, [-4.0, -8.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn binary_in_place<'a, T: MapElement>(
    stream: &Stream,
    function: impl Into<AnyBinary>,
    a: impl IntoTensorMut<'a, Element = T>,
    b: impl IntoTensor<'a, Element = T>,
) -> Result<()> {
    match (read(b)?, written(a)?) {
        (Some(b), Some(a)) => launch2(
            "binary",
            stream,
            &T::BINARY,
            function.into(),
            Read(None),
            b,
            a,
        ),
        (None, None) => Ok(()),
        _ => refuse("binary", ONE_IS_EMPTY.to_string()),
    }
}

/// Enqueues `y = a + b` for each element: see [`binary`].
///
/// # Errors
/// As [`unary`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, add};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0], [2])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [2])?;
/// add(&stream, &a, &a, &mut y)?;
/// assert_eq!(y.download(&stream)?, [2.0, 4.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn add<'a, T: MapElement>(
    stream: &Stream,
    a: impl IntoTensor<'a, Element = T>,
    b: impl IntoTensor<'a, Element = T>,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    binary(stream, Binary::Linear, a, b, y)
}

/// Enqueues `y = a · b` for each element: see [`binary`].
///
/// # Errors
/// As [`unary`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, mul};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[3.0f32, 4.0], [2])?;
/// let mut y = DeviceTensor::<f32>::zeroed(&stream, [2])?;
/// mul(&stream, &a, &a, &mut y)?;
/// assert_eq!(y.download(&stream)?, [9.0, 16.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn mul<'a, T: MapElement>(
    stream: &Stream,
    a: impl IntoTensor<'a, Element = T>,
    b: impl IntoTensor<'a, Element = T>,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    binary(stream, Binary::Product, a, b, y)
}

/// Enqueues `y = x`, rounded to another type: to the nearest number, ties to even.
///
/// [`F8E4M3`] has no infinity: what lies beyond ±448 becomes ±448. NaN stays NaN.
///
/// # Errors
/// As [`unary`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, F8E4M3, cast};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[1.0f32, -1000.0], [2])?;
/// let mut y = DeviceTensor::<F8E4M3>::zeroed(&stream, [2])?;
/// cast(&stream, &x, &mut y)?;
/// assert_eq!(y.download(&stream)?.iter().map(|y| y.to_f32()).collect::<Vec<_>>(), [1.0, -448.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn cast<'a, F: CastElement<T>, T: DeviceData>(
    stream: &Stream,
    x: impl IntoTensor<'a, Element = F>,
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    match (read(x)?, written(y)?) {
        (Some(x), Some(y)) => launch1("cast", stream, &F::KERNELS, Identity, Read(Some(x)), y),
        (None, None) => Ok(()),
        _ => refuse("cast", ONE_IS_EMPTY.to_string()),
    }
}

/// Enqueues `y = function(a)` for each element, by kernels of your own.
///
/// # Errors
/// As [`unary`].
pub fn map1<'a, F: Map<1>, A: DeviceData, Y: DeviceData>(
    stream: &Stream,
    kernels: &MapKernels<Kernel1<F, A, Y>>,
    function: F,
    a: impl IntoTensor<'a, Element = A>,
    y: impl IntoTensorMut<'a, Element = Y>,
) -> Result<()> {
    let (a, y) = (a.into_tensor()?, y.into_tensor_mut()?);
    launch1("map1", stream, kernels, function, Read(Some(a)), y)
}

/// Enqueues `y = function(a, b)` for each element, by kernels of your own.
///
/// # Errors
/// As [`unary`].
pub fn map2<'a, F: Map<2>, A: DeviceData, B: DeviceData, Y: DeviceData>(
    stream: &Stream,
    kernels: &MapKernels<Kernel2<F, A, B, Y>>,
    function: F,
    a: impl IntoTensor<'a, Element = A>,
    b: impl IntoTensor<'a, Element = B>,
    y: impl IntoTensorMut<'a, Element = Y>,
) -> Result<()> {
    let (a, b, y) = (a.into_tensor()?, b.into_tensor()?, y.into_tensor_mut()?);
    launch2("map2", stream, kernels, function, Read(Some(a)), b, y)
}

/// Enqueues `y = function(a, b, c)` for each element, by kernels of your own.
///
/// # Errors
/// As [`unary`].
pub fn map3<'a, F: Map<3>, A: DeviceData, B: DeviceData, C: DeviceData, Y: DeviceData>(
    stream: &Stream,
    kernels: &MapKernels<Kernel3<F, A, B, C, Y>>,
    function: F,
    a: impl IntoTensor<'a, Element = A>,
    b: impl IntoTensor<'a, Element = B>,
    c: impl IntoTensor<'a, Element = C>,
    y: impl IntoTensorMut<'a, Element = Y>,
) -> Result<()> {
    const NAME: &str = "map3";
    let (a, b, c) = (a.into_tensor()?, b.into_tensor()?, c.into_tensor()?);
    let mut y = y.into_tensor_mut()?;
    in_stream(NAME, stream, "y", y.view.view())?;
    check_read(NAME, stream, "a", &a, &y)?;
    check_read(NAME, stream, "b", &b, &y)?;
    check_read(NAME, stream, "c", &c, &y)?;
    let operands = [
        written_rows("y", &y),
        rows_of("a", &a),
        rows_of("b", &b),
        rows_of("c", &c),
    ];
    let (kernel, blocks, args) = kernels.choose(NAME, &operands)?;
    let kernel = stream.device().load(kernels.library, kernel)?;
    // SAFETY: as in `launch1`.
    unsafe {
        let args = (a.view, b.view, c.view, y.view.reborrow(), function, args);
        Ok(stream.launch(&kernel, LaunchConfig::dependent(blocks), args)?)
    }
}

/// What operands are told of which only some have elements.
const ONE_IS_EMPTY: &str = "some of the tensors have no elements; give them the same shape";

impl<K> MapKernels<K> {
    /// The kernel for these operands, of which the first is the output, its blocks, and what it takes.
    fn choose(
        &self,
        operation: &'static str,
        operands: &[HasRows<'_>],
    ) -> Result<(&'static K, u32, MapArgs)> {
        let rows = RowSet::of(operation, operands)?.split(operands);
        let kernel = match rows.is_aligned {
            true => self.vectors,
            false => self.any,
        };
        let [count, columns] = rows.extent();
        let across = columns.div_ceil(held_by_warp(rows.width, rows.is_aligned));
        let blocks = count.div_ceil(WARPS) * across;
        let Some(blocks) = u32::try_from(blocks).ok().filter(|&it| it < 1 << 31) else {
            return refuse(
                operation,
                format!("there are {count} rows of {columns} elements; give parts of the tensors"),
            );
        };
        let [output, a, b, c] = rows.strides;
        let args = MapArgs {
            inputs: [a, b, c],
            output,
            space: rows.space,
        };
        Ok((kernel, blocks, args))
    }
}

/// Maps one tensor.
fn launch1<F: DeviceData, A: DeviceData, Y: DeviceData>(
    operation: &'static str,
    stream: &Stream,
    kernels: &MapKernels<Kernel1<F, A, Y>>,
    function: F,
    x: Read<'_, A>,
    mut y: TensorMut<'_, Y>,
) -> Result<()> {
    in_stream(operation, stream, "y", y.view.view())?;
    x.check(operation, stream, "x", &y)?;
    let operands = [written_rows("y", &y), x.rows("x", &y)];
    let (kernel, blocks, args) = kernels.choose(operation, &operands)?;
    let kernel = stream.device().load(kernels.library, kernel)?;
    let source = x.source(&y);
    // SAFETY: the rows were checked against the tensors' memory, and vectors are aligned if the kernel has them. The
    // output overlaps nothing else but an input that it is.
    unsafe {
        let args = (source, y.view.reborrow(), function, args);
        Ok(stream.launch(&kernel, LaunchConfig::dependent(blocks), args)?)
    }
}

/// Maps two tensors.
fn launch2<F: DeviceData, A: DeviceData, B: DeviceData, Y: DeviceData>(
    operation: &'static str,
    stream: &Stream,
    kernels: &MapKernels<Kernel2<F, A, B, Y>>,
    function: F,
    a: Read<'_, A>,
    b: Tensor<'_, B>,
    mut y: TensorMut<'_, Y>,
) -> Result<()> {
    in_stream(operation, stream, "y", y.view.view())?;
    a.check(operation, stream, "a", &y)?;
    check_read(operation, stream, "b", &b, &y)?;
    let operands = [written_rows("y", &y), a.rows("a", &y), rows_of("b", &b)];
    let (kernel, blocks, args) = kernels.choose(operation, &operands)?;
    let kernel = stream.device().load(kernels.library, kernel)?;
    let source = a.source(&y);
    // SAFETY: as in `launch1`.
    unsafe {
        let args = (source, b.view, y.view.reborrow(), function, args);
        Ok(stream.launch(&kernel, LaunchConfig::dependent(blocks), args)?)
    }
}
