//! `index_add` against candle's, in f64.

use candle_core::{DType, Device, Result, Tensor};
use cutlet_candle::index_add;

use crate::close::{assert_close, in_f64, rounding};
use crate::on_device::{FLOATS, device, ids, random};

#[test]
fn slices_along_each_dimension() -> Result<()> {
    for dtype in FLOATS {
        let tensor = random(1, (6, 5, 8), dtype)?;
        for dim in 0..3 {
            let ids = ids(2, 9, tensor.dim(dim)? as u32, DType::U32)?;
            let mut dims = tensor.dims().to_vec();
            dims[dim] = 9;
            let source = random(3, dims, dtype)?;
            let cpu = ids.to_device(&Device::Cpu)?;
            let exact = in_f64(&tensor)?.index_add(&cpu, &in_f64(&source)?, dim)?;
            // Several additions of a row are each rounded.
            assert_close(
                &index_add(&tensor, &ids, &source, dim)?,
                &exact,
                8.0 * rounding(dtype),
            )?;
        }
    }
    Ok(())
}

#[test]
fn wrong_operands_are_refused() -> Result<()> {
    let (tensor, source) = (
        random(1, (6, 5), DType::F32)?,
        random(2, (3, 4), DType::F32)?,
    );
    let ids = ids(3, 3, 6, DType::I64)?;
    let said = index_add(&tensor, &ids, &source, 0)
        .unwrap_err()
        .to_string();
    assert!(said.contains("give a source of [3, 5]"), "{said}");
    assert!(index_add(&tensor, &ids, &source, 2).is_err());
    Ok(())
}

#[test]
fn an_id_that_is_no_slice() -> Result<()> {
    let (tensor, source) = (
        random(1, (6, 5), DType::F32)?,
        random(2, (2, 5), DType::F32)?,
    );
    let ids = Tensor::new(&[1i64, -1], &device())?;
    let sums = index_add(&tensor, &ids, &source, 0);
    match device() {
        Device::Cpu => {
            let said = sums.unwrap_err().to_string();
            assert!(
                said.contains("the id at position 1 is none of the tensor's slices"),
                "{said}"
            );
        }
        _ => {
            let first = ids.narrow(0, 0, 1)?;
            let expected = tensor.index_add(&first, &source.narrow(0, 0, 1)?, 0)?;
            assert_close(&sums?, &expected, 0.0)?;
        }
    }
    Ok(())
}
