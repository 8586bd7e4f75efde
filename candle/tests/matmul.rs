//! `matmul` against candle's in f64: types, batches, and the layouts that are read as they are.

use candle_core::{DType, Result, Tensor};
use cutlet_candle::matmul;

use crate::close::{assert_close, in_f64, rounding};
use crate::on_device::{FLOATS, random};

#[track_caller]
fn check(a: &Tensor, b: &Tensor) -> Result<()> {
    let exact = in_f64(a)?.contiguous()?.matmul(&in_f64(b)?.contiguous()?)?;
    assert_close(&matmul(a, b)?, &exact, 4.0 * rounding(a.dtype()))
}

#[test]
fn products_of_every_type() -> Result<()> {
    for dtype in [FLOATS.as_slice(), &[DType::F64]].concat() {
        for [m, n, k] in [[1, 1, 1], [5, 7, 3], [33, 40, 65], [64, 96, 32]] {
            check(&random(1, (m, k), dtype)?, &random(2, (k, n), dtype)?)?;
        }
    }
    Ok(())
}

#[test]
fn transposed_and_sliced_operands() -> Result<()> {
    for dtype in FLOATS {
        let (a, b) = (random(1, (24, 17), dtype)?, random(2, (30, 24), dtype)?);
        check(&a.t()?, &b.t()?)?;
        // Columns and rows of larger tensors, and every other column, which is copied.
        check(&a.narrow(1, 3, 9)?, &b.narrow(0, 11, 9)?)?;
        let pairs = random(3, (16, 12, 2), dtype)?;
        check(&pairs.narrow(2, 1, 1)?.squeeze(2)?, &b.narrow(0, 1, 12)?)?;
    }
    Ok(())
}

#[test]
fn batches_and_broadcasts() -> Result<()> {
    for dtype in FLOATS {
        let (a, b) = (
            random(1, (2, 3, 9, 8), dtype)?,
            random(2, (2, 3, 8, 5), dtype)?,
        );
        check(&a, &b)?;
        check(&b.transpose(2, 3)?, &a.transpose(2, 3)?)?;
        // One B for all, and one A for all.
        check(
            &a,
            &b.narrow(0, 0, 1)?
                .narrow(1, 2, 1)?
                .broadcast_as((2, 3, 8, 5))?,
        )?;
        check(
            &a.narrow(0, 1, 1)?
                .narrow(1, 0, 1)?
                .broadcast_as((2, 3, 9, 8))?,
            &b,
        )?;
        // Heads of a projection, read as they are with one sequence, and copied with two.
        for sequences in [1, 2] {
            let heads = random(3, (sequences, 6, 4, 8), dtype)?.transpose(1, 2)?;
            check(&heads, &heads.transpose(2, 3)?)?;
        }
    }
    Ok(())
}

#[test]
fn products_without_elements() -> Result<()> {
    let (a, b) = (
        random(1, (3, 0), DType::F32)?,
        random(2, (0, 2), DType::F32)?,
    );
    assert_eq!(matmul(&a, &b)?.to_vec2::<f32>()?, [[0.0; 2]; 3]);
    assert_eq!(matmul(&b, &random(3, (2, 5), DType::F32)?)?.dims(), [0, 5]);
    Ok(())
}

#[test]
fn wrong_operands_are_refused() -> Result<()> {
    let (a, b) = (
        random(1, (3, 4), DType::F32)?,
        random(2, (3, 4), DType::F32)?,
    );
    let said = matmul(&a, &b).unwrap_err().to_string();
    assert!(said.contains("matmul") && said.contains("[3, 4]"), "{said}");
    assert!(matmul(&a, &b.t()?.to_dtype(DType::BF16)?).is_err());
    assert!(matmul(&a.unsqueeze(0)?, &b.t()?).is_err());
    let bytes = a.to_dtype(DType::U8)?;
    let said = matmul(&bytes, &bytes.t()?).unwrap_err().to_string();
    assert!(said.contains("U8"), "{said}");
    Ok(())
}
