//! SwiGLU of gates and ups that are the halves of a tensor.

use candle_core::backend::BackendStorage;
use candle_core::{D, DType, Error, Result, Shape, Tensor};
use cutlet::{GatedElement, MatrixMut, silu_mul};
use half::{bf16, f16};

use crate::matrices::{Matrices, expect, readable};
use crate::operation::{Custom, Operand, Operation};
use crate::place::{Elements, Place, Scalar};

/// `silu(gates) · ups`, where the last dimension has the gates and then as many ups: `(…, 2·n) → (…, n)`, as candle's
/// `ops::swiglu`.
///
/// Types are `bf16`, `f16` and `f32`; the arithmetic is in f32. Rows may have any distance. Other layouts are copied, and
/// the crate `log` is told so. It has a gradient.
///
/// ```
/// use candle_core::{Device, Tensor};
///
/// let halves = Tensor::new(&[[100f32, 0.0, 2.0, 5.0]], &Device::Cpu)?;
/// assert_eq!(cutlet_candle::swiglu(&halves)?.to_vec2::<f32>()?, [[200.0, 0.0]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
/// If the last dimension is odd, or the type is another.
pub fn swiglu(halves: &Tensor) -> Result<Tensor> {
    let both = halves.dim(D::Minus1)?;
    if both % 2 != 0 {
        return Err(Error::Msg(format!(
            "swiglu: the tensor is {:?}; give a last dimension of as many gates as ups",
            halves.dims()
        ))
        .bt());
    }
    if halves.elem_count() == 0 {
        return halves.narrow(D::Minus1, 0, both / 2);
    }
    let halves = readable(Gate::NAME, "the tensor", halves, |it| {
        Matrices::of(it)
            .and_then(Matrices::stacked)
            .is_some_and(|it| it.has_rows())
    })?;
    halves.apply_op1(Custom(Gate))
}

struct Gate;

impl Operation<1> for Gate {
    const NAME: &'static str = "swiglu";

    fn forward<P: Place>(&self, [halves]: [Operand<'_, P>; 1]) -> Result<(P::Storage, Shape)> {
        match halves.storage.dtype() {
            DType::BF16 => gated::<P, bf16>(halves),
            DType::F16 => gated::<P, f16>(halves),
            DType::F32 => gated::<P, f32>(halves),
            found => Err(Error::UnsupportedDTypeForOp(found, Self::NAME).bt()),
        }
    }

    /// With the sigmoid `s` of a gate `g`, the derivative of its SiLU is `s · (1 + g · (1 - s))`.
    fn backward(
        &self,
        [halves]: [&Tensor; 1],
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<[Option<Tensor>; 1]> {
        let [gates, ups] = &halves.chunk(2, D::Minus1)?[..] else {
            unreachable!("the last dimension has two halves");
        };
        let sigmoid = (gates.neg()?.exp()? + 1.0)?.recip()?;
        let slope = (&sigmoid * ((gates * (1.0 - &sigmoid)?)? + 1.0)?)?;
        let of_gates = ((gradient * ups)? * slope)?;
        let of_ups = (gradient * (gates * sigmoid)?)?;
        Ok([Some(Tensor::cat(&[of_gates, of_ups], D::Minus1)?)])
    }
}

fn gated<P: Place, T: Scalar + GatedElement>(
    halves: Operand<'_, P>,
) -> Result<(P::Storage, Shape)> {
    let rows = Matrices::of(halves.layout).and_then(Matrices::stacked);
    let rows = expect(rows, Gate::NAME)?;
    let columns = rows.columns / 2;
    let mut dims = halves.layout.dims().to_vec();
    if let Some(last) = dims.last_mut() {
        *last = columns;
    }
    let shape = Shape::from(dims);
    let storage = P::with(halves.storage, |context| {
        let stream = &context.stream;
        let from = P::read::<T>(stream, halves.storage)?;
        P::make(stream, halves.storage, shape.elem_count(), |output| {
            let [gates, ups] =
                [0, columns].map(|first| rows.columns_from(from.view(), first, columns));
            let output = MatrixMut::row_major(output, rows.rows, columns)?;
            silu_mul(stream, gates?, ups?, output)
        })
    })?;
    Ok((storage, shape))
}
