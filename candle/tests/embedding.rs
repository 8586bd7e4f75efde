//! `embedding` against candle's `index_select`.

use candle_core::{DType, Device, Result};
use cutlet_candle::embedding;

use crate::on_device::{device, ids, random};

#[test]
fn rows_of_every_type() -> Result<()> {
    for dtype in [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::F64,
        DType::U8,
        DType::U32,
        DType::I64,
    ] {
        let table = (random(1, (50, 24), DType::F32)?.abs()? * 100.0)?.to_dtype(dtype)?;
        for of_ids in [DType::U32, DType::I64] {
            let ids = ids(2, 35, 50, of_ids)?;
            let found = embedding(&table, &ids.reshape((5, 7))?)?;
            assert_eq!(found.dims(), [5, 7, 24]);
            let expected = table.index_select(&ids, 0)?;
            let bits = |it: &candle_core::Tensor| -> Result<Vec<f64>> {
                it.to_device(&Device::Cpu)?
                    .to_dtype(DType::F64)?
                    .flatten_all()?
                    .to_vec1()
            };
            assert_eq!(bits(&found)?, bits(&expected)?, "{dtype:?} by {of_ids:?}");
        }
    }
    Ok(())
}

#[test]
fn tables_and_ids_of_any_layout() -> Result<()> {
    let wide = random(1, (20, 40), DType::BF16)?;
    let ids = ids(2, 12, 20, DType::U32)?;
    let grid = ids.reshape((3, 4))?.t()?;
    for table in [
        wide.narrow(1, 5, 16)?,
        wide.narrow(0, 0, 20)?,
        random(1, (9, 20), DType::BF16)?.t()?,
    ] {
        let found = embedding(&table, &grid)?;
        let expected = table.contiguous()?.index_select(&grid.flatten_all()?, 0)?;
        let numbers =
            |it: &candle_core::Tensor| it.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>();
        assert_eq!(numbers(&found)?, numbers(&expected)?);
    }
    Ok(())
}

#[test]
fn an_id_that_is_no_row() -> Result<()> {
    let table = random(1, (4, 8), DType::F32)?;
    let ids = candle_core::Tensor::new(&[1u32, 4, u32::MAX], &device())?;
    match device() {
        Device::Cpu => {
            let said = embedding(&table, &ids).unwrap_err().to_string();
            assert!(
                said.contains("the id at position 1 is none of the table's rows"),
                "{said}"
            );
        }
        _ => assert_eq!(
            embedding(&table, &ids)?.narrow(0, 1, 2)?.to_vec2::<f32>()?,
            [[0.0; 8]; 2]
        ),
    }
    Ok(())
}

#[test]
fn no_ids_and_no_columns() -> Result<()> {
    let (table, none) = (random(1, (4, 8), DType::F32)?, ids(2, 0, 4, DType::U32)?);
    assert_eq!(embedding(&table, &none)?.dims(), [0, 8]);
    assert!(embedding(&table, &table).is_err());
    assert!(embedding(&table.unsqueeze(0)?, &none).is_err());
    Ok(())
}
