//! Attention: `softmax(Q·Kᵀ · scale)·V`, for all heads of a batch.

mod gradients;

use std::sync::OnceLock;

use candle_core::backend::BackendStorage;
use candle_core::{DType, Error, Layout, Result, Shape, Tensor};
use cutlet::{Attention, AttentionElement, DeviceData, IntTuple, Stream, TensorMut};
use half::{bf16, f16};

use self::gradients::gradients;
use crate::matrices::readable;
use crate::operation::{Custom, Operand, Operation};
use crate::place::{Elements, Place, Scalar};

/// `softmax(queries·keysᵀ · scale)·values` for tensors (batch, sequence, heads, features), as `candle-flash-attn`'s
/// `flash_attn`. If it is `causal`, a query sees its own key and those before; the last query belongs to the last key.
///
/// Types are `bf16` and `f16`; sums are in f32. There are up to 256 features, a multiple of 8. With fewer heads of keys
/// and values, neighbouring heads of queries share them. Heads may have any distance that is a multiple of 16 bytes.
/// Other layouts are copied, and the crate `log` is told so.
///
/// It has gradients for up to 128 features, on the CPU and on Hopper. A call whose operands need them keeps the
/// logarithms of the rows' sums, and its last bits may differ from run to run in the gradient of the queries alone.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
///
/// // Two heads of queries share one of keys. The first query sees the first key alone.
/// let queries = Tensor::ones((1, 3, 2, 8), DType::F16, &Device::Cpu)?;
/// let keys = Tensor::ones((1, 3, 1, 8), DType::F16, &Device::Cpu)?;
/// let output = cutlet_candle::attention(&queries, &keys, &keys, 0.5, true)?;
/// assert_eq!(output.dims(), [1, 3, 2, 8]);
/// assert_eq!(output.to_dtype(DType::F32)?.max_all()?.to_scalar::<f32>()?, 1.0);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
/// If shapes do not fit each other, the scale is not above 0, or the type is another.
pub fn attention(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    scale: f32,
    causal: bool,
) -> Result<Tensor> {
    if queries.elem_count() == 0 {
        return queries.zeros_like();
    }
    if keys.elem_count() == 0 || values.elem_count() == 0 {
        return Err(Error::Msg(format!(
            "attention: the keys are {:?} and the values {:?}; give a key at least",
            keys.dims(),
            values.dims()
        ))
        .bt());
    }
    let records = [queries, keys, values].into_iter().any(Tensor::track_op);
    let operation = Heads {
        scores: Scores { scale, causal },
        log_sum_exp: records.then(OnceLock::new),
    };
    let [queries, keys, values] = [
        heads("the queries", queries)?,
        heads("the keys", keys)?,
        heads("the values", values)?,
    ];
    queries.apply_op3(&keys, &values, Custom(operation))
}

/// The tensor if kernels read its layout, or a copy.
fn heads(what: &str, tensor: &Tensor) -> Result<Tensor> {
    readable(NAME, what, tensor, |it| has_heads(tensor, it))
}

/// Whether the features of each head are contiguous, and begin at a multiple of 16 bytes.
fn has_heads(tensor: &Tensor, layout: &Layout) -> bool {
    let units = 16 / tensor.dtype().size_in_bytes();
    let Some((last, others)) = layout.stride().split_last() else {
        return false;
    };
    *last == 1
        && layout.start_offset().is_multiple_of(units)
        && others.iter().all(|stride| stride.is_multiple_of(units))
}

const NAME: &str = "attention";

/// How scores are made of the products of queries and keys.
#[derive(Clone, Copy)]
struct Scores {
    scale: f32,
    causal: bool,
}

impl Scores {
    /// The attention with these scores.
    fn attention<'a>(self) -> Attention<'a> {
        let attention = Attention::new().scale(self.scale);
        match self.causal {
            true => attention.causal(),
            false => attention,
        }
    }
}

/// The operation.
struct Heads {
    scores: Scores,
    /// The logarithms of the rows' sums, (batch, sequence, heads), if gradients are recorded. The operation sets it.
    log_sum_exp: Option<OnceLock<Tensor>>,
}

impl Operation<3> for Heads {
    const NAME: &'static str = NAME;

    fn forward<P: Place>(&self, operands: [Operand<'_, P>; 3]) -> Result<(P::Storage, Shape)> {
        match operands[0].storage.dtype() {
            DType::BF16 => self.attend::<P, bf16>(operands),
            DType::F16 => self.attend::<P, f16>(operands),
            found => Err(Error::UnsupportedDTypeForOp(found, Self::NAME).bt()),
        }
    }

    fn backward(
        &self,
        operands: [&Tensor; 3],
        output: &Tensor,
        gradient: &Tensor,
    ) -> Result<[Option<Tensor>; 3]> {
        let kept = self.log_sum_exp.as_ref().and_then(OnceLock::get);
        let Some(log_sum_exp) = kept else {
            return Err(Error::BackwardNotSupported { op: Self::NAME });
        };
        gradients(self.scores, operands, output, log_sum_exp, gradient)
    }
}

impl Heads {
    fn attend<P: Place, T: Scalar + AttentionElement>(
        &self,
        operands: [Operand<'_, P>; 3],
    ) -> Result<(P::Storage, Shape)> {
        let [queries, ..] = operands;
        let shape = queries.layout.shape().clone();
        let storage = P::with(queries.storage, |context| {
            let stream = &context.stream;
            let Some(log_sum_exp) = &self.log_sum_exp else {
                return output::<P, T>(stream, operands, self.scores.attention());
            };
            let rows = Shape::from(&shape.dims()[..3]);
            let mut made = None;
            let sums = P::make(stream, queries.storage, rows.elem_count(), |sums| {
                let sums = TensorMut::new(sums, rows.dims())?;
                let attention = self.scores.attention().log_sum_exp(sums);
                made = Some(output::<P, T>(stream, operands, attention));
                Ok(())
            })?;
            let output = made.expect("memory was made for the sums")?;
            let kept = log_sum_exp.set(P::tensor(sums, rows));
            kept.expect("an operation runs once");
            Ok(output)
        })?;
        Ok((storage, shape))
    }
}

/// The output of this attention.
fn output<P: Place, T: Scalar + AttentionElement>(
    stream: &Stream,
    [queries, keys, values]: [Operand<'_, P>; 3],
    attention: Attention<'_>,
) -> Result<P::Storage> {
    let shape = queries.layout.shape();
    let [q, k, v] = [queries, keys, values].map(|it| P::read::<T>(stream, it.storage));
    let (q, k, v) = (q?, k?, v?);
    P::make(stream, queries.storage, shape.elem_count(), |output| {
        attention.run(
            stream,
            tensor(&q, queries.layout)?,
            tensor(&k, keys.layout)?,
            tensor(&v, values.layout)?,
            TensorMut::new(output, shape.dims())?,
        )
    })
}

/// The elements that a tensor has of its memory.
fn tensor<'a, T: DeviceData>(
    elements: &'a impl Elements<T>,
    layout: &Layout,
) -> cutlet::Result<cutlet::Tensor<'a, T>> {
    let numbers = |of: &[usize]| -> Vec<i64> { of.iter().map(|it| *it as i64).collect() };
    let (shape, strides) = (numbers(layout.dims()), numbers(layout.stride()));
    let modes =
        cutlet::Layout::from_shape_stride(&IntTuple::dynamic(&shape), &IntTuple::dynamic(&strides));
    cutlet::Tensor::new(elements.view().slice(layout.start_offset()..)?, modes)
}
