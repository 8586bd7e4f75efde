//! Comparisons with results in f64.

use candle_core::{DType, Device, Result, Tensor};

/// Fails unless `found` has the shape of `exact`, and its elements differ by at most `tolerance` times the root mean
/// square of `exact`, and its own rounding.
#[track_caller]
pub fn assert_close(found: &Tensor, exact: &Tensor, tolerance: f64) -> Result<()> {
    assert_eq!(found.dims(), exact.dims());
    let numbers = |it: &Tensor| -> Result<Vec<f64>> {
        it.to_device(&Device::Cpu)?
            .to_dtype(DType::F64)?
            .flatten_all()?
            .to_vec1()
    };
    let (numbers_found, exact) = (numbers(found)?, numbers(exact)?);
    let mean = exact.iter().map(|it| it * it).sum::<f64>() / exact.len().max(1) as f64;
    let rounding = rounding(found.dtype());
    for (at, (found, exact)) in numbers_found.iter().zip(&exact).enumerate() {
        let bound = tolerance * mean.sqrt() + rounding * exact.abs();
        assert!(
            (found - exact).abs() <= bound,
            "element {at} is {found}, not {exact} ± {bound:.1e}"
        );
    }
    Ok(())
}

/// The most that rounding to this type changes a number, relative to it.
pub fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-10),
        DType::F32 => 2f64.powi(-21),
        _ => 2f64.powi(-48),
    }
}

/// The tensor in f64, on the CPU, for a reference.
pub fn in_f64(tensor: &Tensor) -> Result<Tensor> {
    tensor.to_device(&Device::Cpu)?.to_dtype(DType::F64)
}
