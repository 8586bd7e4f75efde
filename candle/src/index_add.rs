//! Rows that are added to rows of a tensor, by their numbers.

use candle_core::backend::BackendStorage;
use candle_core::shape::Dim;
use candle_core::{DType, Error, Result, Shape, Tensor};
use cutlet::{AddElement, Matrix, MatrixMut};
use half::{bf16, f16};

use crate::context::Context;
use crate::ids::{Ids, bad_id, with_ids};
use crate::matrices::readable;
use crate::operation::{Custom, Operand, Operation};
use crate::place::{Elements, Place, Scalar};

/// A copy of `tensor` in which slice `ids[i]` along `dim` has slice `i` of `source` added, as [`Tensor::index_add`].
///
/// Types are `bf16`, `f16` and `f32`; `ids` are `u32`, `i32` or `i64`. Of several slices with the same id, the order of
/// additions is unspecified, so that the last bits of a sum may differ from run to run. Operands that are not contiguous
/// are copied, and the crate `log` is told so; so are those of another `dim` than 0. It has gradients.
///
/// An id that is no slice of the tensor is an error on the CPU. On a GPU, which nobody waits for, it adds nothing.
///
/// ```
/// use candle_core::{Device, Tensor};
///
/// let tensor = Tensor::zeros((3, 2), candle_core::DType::F32, &Device::Cpu)?;
/// let ids = Tensor::new(&[2u32, 0, 2], &Device::Cpu)?;
/// let source = Tensor::new(&[[1f32, 2.0], [10.0, 20.0], [3.0, 4.0]], &Device::Cpu)?;
/// let sums = cutlet_candle::index_add(&tensor, &ids, &source, 0)?;
/// assert_eq!(sums.to_vec2::<f32>()?, [[10.0, 20.0], [0.0, 0.0], [4.0, 6.0]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
/// If the shapes, types or devices do not agree.
pub fn index_add(tensor: &Tensor, ids: &Tensor, source: &Tensor, dim: impl Dim) -> Result<Tensor> {
    let dim = dim.to_index(tensor.shape(), Addition::NAME)?;
    let mut expected = tensor.dims().to_vec();
    expected[dim] = ids.dims1()?;
    if source.dims() != expected {
        return Err(Error::Msg(format!(
            "index_add: the tensor is {:?}, there are {} ids along dimension {dim}, and the source is {:?}; give a source \
             of {expected:?}",
            tensor.dims(),
            ids.elem_count(),
            source.dims()
        ))
        .bt());
    }
    if source.elem_count() == 0 {
        return Ok(tensor.clone());
    }
    let packed = |what, of: &Tensor| {
        readable(Addition::NAME, what, &of.transpose(0, dim)?, |it| {
            it.is_contiguous()
        })
    };
    let (tensor, source) = (packed("the tensor", tensor)?, packed("the source", source)?);
    let ids = readable(Addition::NAME, "the ids", ids, |it| it.is_contiguous())?;
    tensor
        .apply_op3(&ids, &source, Custom(Addition))?
        .transpose(0, dim)
}

struct Addition;

impl Operation<3> for Addition {
    const NAME: &'static str = "index_add";

    fn forward<P: Place>(
        &self,
        [tensor, ids, source]: [Operand<'_, P>; 3],
    ) -> Result<(P::Storage, Shape)> {
        let sums = match tensor.storage.dtype() {
            DType::BF16 => sums::<P, bf16>(tensor, ids, source),
            DType::F16 => sums::<P, f16>(tensor, ids, source),
            DType::F32 => sums::<P, f32>(tensor, ids, source),
            found => Err(Error::UnsupportedDTypeForOp(found, Self::NAME).bt()),
        };
        Ok((sums?, tensor.layout.shape().clone()))
    }

    fn backward(
        &self,
        [_, ids, _]: [&Tensor; 3],
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<[Option<Tensor>; 3]> {
        let of_source = gradient.contiguous()?.index_select(ids, 0)?;
        Ok([Some(gradient.clone()), None, Some(of_source)])
    }
}

fn sums<P: Place, T: Scalar + AddElement>(
    tensor: Operand<'_, P>,
    ids: Operand<'_, P>,
    source: Operand<'_, P>,
) -> Result<P::Storage> {
    let of = |it: Operand<'_, P>| {
        let first = it.layout.start_offset();
        (first, first + it.layout.shape().elem_count())
    };
    let (rows, added) = (tensor.layout.dims()[0], source.layout.dims()[0]);
    let columns = source.layout.shape().elem_count() / added;
    P::with(tensor.storage, |context| {
        let Context {
            stream,
            scatter_add,
            ..
        } = context;
        let from_tensor = P::read::<T>(stream, tensor.storage)?;
        let from_source = P::read::<T>(stream, source.storage)?;
        let from_ids = Ids::read(stream, ids, Addition::NAME)?;
        let (start, end) = of(tensor);
        let sums = P::make(stream, tensor.storage, end - start, |mut sums| {
            stream.copy(from_tensor.view().slice(start..end)?, sums.reborrow())?;
            let (start, end) = of(source);
            let from = from_source.view().slice(start..end)?;
            let source = Matrix::row_major(from, added, columns)?;
            let table = MatrixMut::row_major(sums, rows, columns)?;
            with_ids!(from_ids.view(of(ids).0, added)?, |ids| scatter_add
                .enqueue(stream, source, ids, table))
        })?;
        if P::WAITS {
            let checked = scatter_add.check(stream);
            checked.map_err(|it| bad_id(Addition::NAME, "the tensor's slices", it))?;
        }
        Ok(sums)
    })
}
