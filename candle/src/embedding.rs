//! Rows of a table by their numbers.

use candle_core::backend::BackendStorage;
use candle_core::{DType, Error, Result, Shape, Tensor};
use cutlet::MatrixMut;
use half::{bf16, f16};

use crate::context::Context;
use crate::ids::{Ids, bad_id, with_ids};
use crate::index_add::index_add;
use crate::matrices::{Matrices, expect, readable};
use crate::operation::{Custom, Operand, Operation};
use crate::place::{Elements, Place, Scalar};

/// The rows of a table (rows, width) that `ids` name: `(…) → (…, width)`, as candle's `Embedding`.
///
/// The table is of any type but the 8-bit floats and has any distance from row to row; `ids` are `u32`, `i32` or `i64`.
/// Other layouts are copied, and the crate `log` is told so. It has a gradient for the table.
///
/// An id that is no row of the table is an error on the CPU. On a GPU, which nobody waits for, its row is zero.
///
/// ```
/// use candle_core::{Device, Tensor};
///
/// let table = Tensor::new(&[[0f32, 1.0], [2.0, 3.0], [4.0, 5.0]], &Device::Cpu)?;
/// let ids = Tensor::new(&[2u32, 0, 2], &Device::Cpu)?;
/// let rows = cutlet_candle::embedding(&table, &ids)?;
/// assert_eq!(rows.to_vec2::<f32>()?, [[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
/// If the table has not two dimensions, or the types or devices are others.
pub fn embedding(table: &Tensor, ids: &Tensor) -> Result<Tensor> {
    let (_, width) = table.dims2()?;
    if ids.elem_count() == 0 || width == 0 {
        let mut dims = ids.dims().to_vec();
        dims.push(width);
        return Tensor::zeros(dims, table.dtype(), table.device());
    }
    let table = readable(Rows::NAME, "the table", table, |it| {
        Matrices::of(it).is_some_and(|it| it.has_rows())
    })?;
    let ids = readable(Rows::NAME, "the ids", ids, |it| it.is_contiguous())?;
    table.apply_op2(&ids, Custom(Rows))
}

struct Rows;

impl Operation<2> for Rows {
    const NAME: &'static str = "embedding";

    fn forward<P: Place>(&self, [table, ids]: [Operand<'_, P>; 2]) -> Result<(P::Storage, Shape)> {
        let gather = match table.storage.dtype() {
            DType::U8 => rows::<P, u8>,
            DType::U32 => rows::<P, u32>,
            DType::I16 => rows::<P, i16>,
            DType::I32 => rows::<P, i32>,
            DType::I64 => rows::<P, i64>,
            DType::BF16 => rows::<P, bf16>,
            DType::F16 => rows::<P, f16>,
            DType::F32 => rows::<P, f32>,
            DType::F64 => rows::<P, f64>,
            found => return Err(Error::UnsupportedDTypeForOp(found, Self::NAME).bt()),
        };
        let mut dims = ids.layout.dims().to_vec();
        dims.extend(table.layout.dims().last());
        let shape = Shape::from(dims);
        Ok((gather(table, ids, &shape)?, shape))
    }

    fn backward(
        &self,
        [table, ids]: [&Tensor; 2],
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        let rows = gradient.reshape((ids.elem_count(), table.dim(1)?))?;
        let of_table = index_add(&table.zeros_like()?, &ids.flatten_all()?, &rows, 0)?;
        Ok([Some(of_table), None])
    }
}

fn rows<P: Place, T: Scalar>(
    table: Operand<'_, P>,
    ids: Operand<'_, P>,
    shape: &Shape,
) -> Result<P::Storage> {
    let of_table = expect(Matrices::of(table.layout), Rows::NAME)?;
    let (first, count) = (ids.layout.start_offset(), ids.layout.shape().elem_count());
    P::with(table.storage, |context| {
        let Context { stream, gather, .. } = context;
        let from_table = P::read::<T>(stream, table.storage)?;
        let from_ids = Ids::read(stream, ids, Rows::NAME)?;
        let rows = P::make(stream, table.storage, shape.elem_count(), |rows| {
            let table = of_table.matrix(from_table.view())?;
            let rows = MatrixMut::row_major(rows, count, of_table.columns)?;
            with_ids!(from_ids.view(first, count)?, |ids| gather
                .enqueue(stream, table, ids, rows))
        })?;
        if P::WAITS {
            let checked = gather.check(stream);
            checked.map_err(|it| bad_id(Rows::NAME, "the table's rows", it))?;
        }
        Ok(rows)
    })
}
