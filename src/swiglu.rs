//! SwiGLU: the gated activation between the two products of a feed-forward network.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::Stream;
use cutlet_kernels::PTX;
use cutlet_kernels::swiglu::{
    Eights, Extents, Fours, Ones, Shape, swiglu_bf16, swiglu_bf16_any, swiglu_f16, swiglu_f16_any,
    swiglu_f32, swiglu_f32_any,
};
use cutlet_layout_core::tiles;
use half::{bf16, f16};

use crate::matrix::{disjoint, in_stream};
use crate::{Error, Matrix, MatrixMut, Order, Result};

/// The operation's name in errors.
const NAME: &str = "swiglu";
/// Bytes of the widest access.
const WIDEST: usize = 16;

/// An element type of [`swiglu`](fn@swiglu): `f32`, `f16` or `bf16`.
pub trait GatedElement: DeviceData + sealed::Kernels {}
impl GatedElement for f32 {}
impl GatedElement for f16 {}
impl GatedElement for bf16 {}

/// How many tiles cover an output of these extents.
type TilesOf = fn([i32; 2]) -> [u32; 2];
/// A kernel of the operation.
type SwigluKernel<T> = Kernel<(Global<T>, GlobalMut<T>, Extents)>;

mod sealed {
    use super::{DeviceData, SwigluKernel, TilesOf};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        /// The kernel for rows at multiples of 16 bytes, and the tile of its output.
        fn aligned() -> (&'static SwigluKernel<Self>, TilesOf);
        /// The kernel for any rows.
        fn any() -> &'static SwigluKernel<Self>;
    }
}

macro_rules! kernels {
    ($($element:ty: $aligned:ident in $shape:ty, $any:ident;)+) => {$(
        impl sealed::Kernels for $element {
            fn aligned() -> (&'static SwigluKernel<Self>, TilesOf) {
                (&$aligned, tiles::<<$shape as Shape>::Output>)
            }
            fn any() -> &'static SwigluKernel<Self> {
                &$any
            }
        }
    )+};
}
kernels! {
    f32: swiglu_f32 in Fours, swiglu_f32_any;
    f16: swiglu_f16 in Eights, swiglu_f16_any;
    bf16: swiglu_bf16 in Eights, swiglu_bf16_any;
}

/// Enqueues `output[r, c] = silu(source[r, 2c]) · source[r, 2c + 1]`, where `silu(x) = x / (1 + e⁻ˣ)`.
///
/// Gates and ups alternate in a row of the source, as a product with weights does whose columns alternate. The
/// arithmetic is in f32, and a result is rounded once. `silu(−∞)` is 0, its limit.
///
/// # Errors
/// If a matrix is column-major, if the extents do not agree, if the operands overlap, or if one is on another device
/// than the stream or bound to another stream.
///
/// ```
/// use cutlet::{Device, Matrix, MatrixMut, swiglu};
///
/// let stream = Device::auto().stream()?;
/// let source = stream.upload(&[100.0f32, 2.0, 0.0, 5.0, -100.0, 3.0, 1.0, 4.0])?; // 2×4
/// let mut output = stream.zeroed::<f32>(4)?;
/// swiglu(&stream, Matrix::row_major(&source, 2, 4)?, MatrixMut::row_major(&mut output, 2, 2)?)?;
/// let output = stream.download(&output)?;
/// assert_eq!(output[..3], [200.0, 0.0, 0.0]);
/// assert!((output[3] - 4.0 / (1.0 + (-1.0f32).exp())).abs() < 1e-5);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn swiglu<T: GatedElement>(
    stream: &Stream,
    source: Matrix<'_, T>,
    mut output: MatrixMut<'_, T>,
) -> Result<()> {
    let (rows, columns) = (output.rows(), output.columns());
    let refuse = |found: String| {
        Err(Error::Extents {
            operation: NAME,
            found,
        })
    };
    if source.order() != Order::RowMajor || output.order() != Order::RowMajor {
        return refuse("a matrix is column-major; give row-major matrices".to_string());
    }
    if (source.rows(), source.columns()) != (rows, 2 * columns) {
        return refuse(format!(
            "the source is {}×{}, and the output is {rows}×{columns}; give a source with as many rows and twice as many \
             columns",
            source.rows(),
            source.columns()
        ));
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
        true => T::aligned(),
        false => (T::any(), tiles::<<Ones as Shape>::Output> as TilesOf),
    };
    let [down, across] = tiles_of([rows as i32, columns as i32]);
    let Some(blocks) = down.checked_mul(across).filter(|&it| it <= i32::MAX as u32) else {
        return refuse(format!("the output is {rows}×{columns}; give parts of it"));
    };
    let function = stream.device().load(&PTX, kernel)?;
    // SAFETY: the extents are those of the matrices, which were checked against their memory, and which do not overlap.
    unsafe {
        let args = (source.view, output.view.reborrow(), extents);
        stream.launch(&function, blocks, args)?;
    }
    Ok(())
}
