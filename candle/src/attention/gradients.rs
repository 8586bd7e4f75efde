//! The gradients of attention, by one operation: its result has those of queries, keys and values, one behind the other.

use candle_core::backend::BackendStorage;
use candle_core::{DType, Error, Result, Shape, Tensor};
use cutlet::{AttentionElement, TensorMut, ViewMut};
use half::{bf16, f16};

use super::{NAME, Scores, heads, tensor};
use crate::operation::{Operand, Operation, apply};
use crate::place::{Place, Scalar};

/// The gradients of queries, keys and values, where the output has `gradient`. The logarithms are those of the rows' sums.
pub(super) fn gradients(
    scores: Scores,
    operands: [&Tensor; 3],
    output: &Tensor,
    log_sum_exp: &Tensor,
    gradient: &Tensor,
) -> Result<[Option<Tensor>; 3]> {
    let read = |what, tensor: &Tensor| heads(what, &tensor.detach());
    let [queries, keys, values] = operands;
    let all = apply(
        &Gradients { scores },
        [
            &read("the queries", queries)?,
            &read("the keys", keys)?,
            &read("the values", values)?,
            &read("the output", output)?,
            &read("the output's gradient", gradient)?,
            log_sum_exp,
        ],
    )?;
    let mut first = 0;
    let mut next = |of: &Tensor| -> Result<Option<Tensor>> {
        let part = all.narrow(0, first, of.elem_count())?;
        first += of.elem_count();
        part.reshape(of.shape()).map(Some)
    };
    Ok([next(queries)?, next(keys)?, next(values)?])
}

/// The operation: its operands are queries, keys, values, the output, its gradient, and the logarithms.
struct Gradients {
    scores: Scores,
}

impl Operation<6> for Gradients {
    const NAME: &'static str = NAME;

    fn forward<P: Place>(&self, operands: [Operand<'_, P>; 6]) -> Result<(P::Storage, Shape)> {
        match operands[0].storage.dtype() {
            DType::BF16 => self.differentiate::<P, bf16>(operands),
            DType::F16 => self.differentiate::<P, f16>(operands),
            found => Err(Error::UnsupportedDTypeForOp(found, Self::NAME).bt()),
        }
    }
}

impl Gradients {
    fn differentiate<P: Place, T: Scalar + AttentionElement>(
        &self,
        operands: [Operand<'_, P>; 6],
    ) -> Result<(P::Storage, Shape)> {
        let [queries, keys, values, .., log_sum_exp] = operands;
        let shapes = [queries, keys, values].map(|it| it.layout.shape());
        let elements = shapes.map(Shape::elem_count).iter().sum();
        let storage = P::with(queries.storage, |context| {
            let stream = &context.stream;
            let mut read = Vec::new();
            for operand in &operands[..5] {
                read.push((P::read::<T>(stream, operand.storage)?, operand.layout));
            }
            let sums = P::read::<f32>(stream, log_sum_exp.storage)?;
            P::make(stream, queries.storage, elements, |all| {
                let nth = |nth: usize| {
                    let (elements, layout) = &read[nth];
                    tensor(elements, layout)
                };
                self.scores.attention().backward(
                    stream,
                    (nth(0)?, nth(1)?, nth(2)?),
                    (nth(3)?, tensor(&sums, log_sum_exp.layout)?),
                    nth(4)?,
                    parts(all, shapes)?,
                )
            })
        })?;
        Ok((storage, Shape::from(elements)))
    }
}

/// The parts of the memory that have these shapes, one behind the other.
fn parts<'a, T: AttentionElement>(
    all: ViewMut<'a, T>,
    [first, second, third]: [&Shape; 3],
) -> cutlet::Result<(TensorMut<'a, T>, TensorMut<'a, T>, TensorMut<'a, T>)> {
    let (of_first, rest) = all.split_at(first.elem_count())?;
    let (of_second, of_third) = rest.split_at(second.elem_count())?;
    Ok((
        TensorMut::new(of_first, first.dims())?,
        TensorMut::new(of_second, second.dims())?,
        TensorMut::new(of_third, third.dims())?,
    ))
}
