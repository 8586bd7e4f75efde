//! SwiGLU: the gated activation between the two products of a feed-forward network, of gates and ups that alternate in a
//! row, or that are two matrices.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::swiglu::{
    ApartExtents, Eights, Extents, Fours, Ones, Shape, silu_mul_bf16, silu_mul_bf16_any,
    silu_mul_f16, silu_mul_f16_any, silu_mul_f32, silu_mul_f32_any, swiglu_bf16, swiglu_bf16_any,
    swiglu_f16, swiglu_f16_any, swiglu_f32, swiglu_f32_any,
};
use cutlet_layout_core::tiles;
use half::{bf16, f16};

use crate::into_tensor::{read_matrix, written_matrix};
use crate::matrix::{disjoint, in_stream};
use crate::{Error, IntoTensor, IntoTensorMut, Matrix, MatrixMut, Order, Result};

/// The operations' names in errors.
const NAME: &str = "swiglu";
const SILU_MUL: &str = "silu_mul";
/// Bytes of the widest access.
const WIDEST: usize = 16;

/// An element type of [`swiglu`](fn@swiglu) and [`silu_mul`]: `f32`, `f16` or `bf16`.
pub trait GatedElement: DeviceData + sealed::Kernels {}
impl GatedElement for f32 {}
impl GatedElement for f16 {}
impl GatedElement for bf16 {}

/// How many tiles cover an output of these extents.
type TilesOf = fn([i32; 2]) -> [u32; 2];
/// A kernel of [`swiglu`](fn@swiglu).
type SwigluKernel<T> = Kernel<(Global<T>, GlobalMut<T>, Extents)>;
/// A kernel of [`silu_mul`].
type SiluMulKernel<T> = Kernel<(Global<T>, Global<T>, GlobalMut<T>, ApartExtents)>;

/// A kernel of an operation, and the tile of its output.
type Tiled<K> = (&'static K, TilesOf);

mod sealed {
    use super::{DeviceData, SiluMulKernel, SwigluKernel, Tiled};

    /// The kernels for an element type: `ALIGNED` for rows at multiples of 16 bytes, and `ANY` for any rows.
    pub trait Kernels: DeviceData {
        const ALIGNED: Tiled<SwigluKernel<Self>>;
        const ANY: Tiled<SwigluKernel<Self>>;
        const APART_ALIGNED: Tiled<SiluMulKernel<Self>>;
        const APART_ANY: Tiled<SiluMulKernel<Self>>;
    }
}

macro_rules! kernels {
    ($($element:ty: $aligned:ident, $apart_aligned:ident in $shape:ty, $any:ident, $apart_any:ident;)+) => {$(
        impl sealed::Kernels for $element {
            const ALIGNED: Tiled<SwigluKernel<Self>> = (&$aligned, tiles::<<$shape as Shape>::Output>);
            const ANY: Tiled<SwigluKernel<Self>> = (&$any, tiles::<<Ones as Shape>::Output>);
            const APART_ALIGNED: Tiled<SiluMulKernel<Self>> =
                (&$apart_aligned, tiles::<<$shape as Shape>::Source>);
            const APART_ANY: Tiled<SiluMulKernel<Self>> = (&$apart_any, tiles::<<Ones as Shape>::Source>);
        }
    )+};
}
kernels! {
    f32: swiglu_f32, silu_mul_f32 in Fours, swiglu_f32_any, silu_mul_f32_any;
    f16: swiglu_f16, silu_mul_f16 in Eights, swiglu_f16_any, silu_mul_f16_any;
    bf16: swiglu_bf16, silu_mul_bf16 in Eights, swiglu_bf16_any, silu_mul_bf16_any;
}

/// Enqueues `output[r, c] = silu(source[r, 2c]) · source[r, 2c + 1]`, where `silu(x) = x / (1 + e⁻ˣ)`.
///
/// Gates and ups alternate in a row of the source, as a product with weights does whose columns alternate; see
/// [`silu_mul`] for gates and ups that lie apart. The arithmetic is in f32, and a result is rounded once. `silu(−∞)` is
/// 0, its limit.
///
/// # Errors
/// If a matrix is column-major, if the extents do not agree, if the operands overlap, or if one is on another device
/// than the stream or bound to another stream.
///
/// ```
/// use cutlet::{Device, DeviceTensor, swiglu};
///
/// let stream = Device::auto().stream()?;
/// let source = [100.0f32, 2.0, 0.0, 5.0, -100.0, 3.0, 1.0, 4.0];
/// let source = DeviceTensor::upload(&stream, &source, [2, 4])?;
/// let mut output = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// swiglu(&stream, &source, &mut output)?;
/// let output = output.download(&stream)?;
/// assert_eq!(output[..3], [200.0, 0.0, 0.0]);
/// assert!((output[3] - 4.0 / (1.0 + (-1.0f32).exp())).abs() < 1e-5);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn swiglu<'a, T: GatedElement>(
    stream: &Stream,
    source: impl IntoTensor<'a, Element = T>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let source = read_matrix(NAME, "the source", source)?;
    gate(stream, source, written_matrix(NAME, "the output", output)?)
}

/// [`swiglu`](fn@swiglu) of matrices.
pub(crate) fn gate<T: GatedElement>(
    stream: &Stream,
    source: Matrix<'_, T>,
    mut output: MatrixMut<'_, T>,
) -> Result<()> {
    let (rows, columns) = (output.rows(), output.columns());
    if source.order() != Order::RowMajor || output.order() != Order::RowMajor {
        return refuse(NAME, COLUMN_MAJOR.to_string());
    }
    if (source.rows(), source.columns()) != (rows, 2 * columns) {
        return refuse(
            NAME,
            format!(
                "the source is {}×{}, and the output is {rows}×{columns}; give a source with as many rows and twice as \
                 many columns",
                source.rows(),
                source.columns()
            ),
        );
    }
    in_stream(NAME, stream, "the source", source.view)?;
    in_stream(NAME, stream, "the output", output.view.view())?;
    disjoint(NAME, "the source", source.addresses(), output.addresses())?;
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let extents = Extents {
        ld_source: source.ld() as i64,
        ld_output: output.ld() as i64,
        rows: rows as i32,
        columns: columns as i32,
    };
    let aligned = source.starts_runs_at(WIDEST)
        && output.starts_runs_at(WIDEST / 2)
        && (2 * columns).is_multiple_of(WIDEST / size_of::<T>());
    let (kernel, tiles_of) = match aligned {
        true => T::ALIGNED,
        false => T::ANY,
    };
    let blocks = blocks(NAME, tiles_of, [rows, columns])?;
    let function = stream.device().load(&PTX, kernel)?;
    // SAFETY: the extents are those of the matrices, which were checked against their memory, and which do not overlap.
    unsafe {
        let args = (source.view, output.view.reborrow(), extents);
        stream.launch(&function, LaunchConfig::dependent(blocks), args)?;
    }
    Ok(())
}

/// Enqueues `output[r, c] = silu(gates[r, c]) · ups[r, c]`, where `silu(x) = x / (1 + e⁻ˣ)`.
///
/// Gates and ups may be two tensors. They may also be the left and the right half of one, as a product with the weights
/// of gates before those of ups makes it. The arithmetic is in f32, and a result is rounded once. `silu(−∞)` is 0, its
/// limit.
///
/// # Errors
/// As [`swiglu`](fn@swiglu).
///
/// ```
/// use cutlet::{Device, DeviceTensor, shape, silu_mul, tile};
///
/// let stream = Device::auto().stream()?;
/// let halves = DeviceTensor::upload(&stream, &[100.0f32, -100.0, 2.0, 3.0], [1, 4])?; // two gates, then two ups
/// let half = |nth| halves.tensor().local_tile(&tile!((1, 2)), &shape!((0, dyn nth)));
/// let mut output = DeviceTensor::<f32>::zeroed(&stream, [1, 2])?;
/// silu_mul(&stream, half(0)?, half(1)?, &mut output)?;
/// assert_eq!(output.download(&stream)?, [200.0, 0.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn silu_mul<'a, T: GatedElement>(
    stream: &Stream,
    gates: impl IntoTensor<'a, Element = T>,
    ups: impl IntoTensor<'a, Element = T>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let gates = read_matrix(SILU_MUL, "the gates", gates)?;
    let ups = read_matrix(SILU_MUL, "the ups", ups)?;
    let output = written_matrix(SILU_MUL, "the output", output)?;
    multiply(stream, gates, ups, output)
}

/// [`silu_mul`] of matrices.
fn multiply<T: GatedElement>(
    stream: &Stream,
    gates: Matrix<'_, T>,
    ups: Matrix<'_, T>,
    mut output: MatrixMut<'_, T>,
) -> Result<()> {
    let (rows, columns) = (output.rows(), output.columns());
    let orders = [gates.order(), ups.order(), output.order()];
    if orders.contains(&Order::ColMajor) {
        return refuse(SILU_MUL, COLUMN_MAJOR.to_string());
    }
    for (what, source) in [("gates are", gates), ("ups are", ups)] {
        if (source.rows(), source.columns()) != (rows, columns) {
            return refuse(
                SILU_MUL,
                format!(
                    "the {what} {}×{}, and the output is {rows}×{columns}; make them agree",
                    source.rows(),
                    source.columns()
                ),
            );
        }
    }
    for (what, source) in [("the gates", gates), ("the ups", ups)] {
        in_stream(SILU_MUL, stream, what, source.view)?;
        disjoint(SILU_MUL, what, source.addresses(), output.addresses())?;
    }
    in_stream(SILU_MUL, stream, "the output", output.view.view())?;
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let extents = ApartExtents {
        ld_gates: gates.ld() as i64,
        ld_ups: ups.ld() as i64,
        ld_output: output.ld() as i64,
        rows: rows as i32,
        columns: columns as i32,
    };
    let aligned = [gates, ups].iter().all(|it| it.starts_runs_at(WIDEST))
        && output.starts_runs_at(WIDEST)
        && columns.is_multiple_of(WIDEST / size_of::<T>());
    let (kernel, tiles_of) = match aligned {
        true => T::APART_ALIGNED,
        false => T::APART_ANY,
    };
    let blocks = blocks(SILU_MUL, tiles_of, [rows, columns])?;
    let function = stream.device().load(&PTX, kernel)?;
    // SAFETY: as in `swiglu`.
    unsafe {
        let args = (gates.view, ups.view, output.view.reborrow(), extents);
        stream.launch(&function, LaunchConfig::dependent(blocks), args)?;
    }
    Ok(())
}

/// What a matrix in the wrong order is told.
const COLUMN_MAJOR: &str = "a matrix is column-major; give row-major matrices";

fn refuse<R>(operation: &'static str, found: String) -> Result<R> {
    Err(Error::Extents { operation, found })
}

/// A block for each tile of the output. An error if a grid has not so many blocks.
fn blocks(operation: &'static str, tiles_of: TilesOf, [rows, columns]: [usize; 2]) -> Result<u32> {
    let [down, across] = tiles_of([rows as i32, columns as i32]);
    match down.checked_mul(across) {
        Some(blocks) if blocks <= i32::MAX as u32 => Ok(blocks),
        _ => refuse(
            operation,
            format!("the output is {rows}×{columns}; give parts of it"),
        ),
    }
}
