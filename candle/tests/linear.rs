//! `Linear` against candle's operations in f64: bias, residual and activations, alone and together.

use candle_core::{DType, Module, Result, Tensor};
use cutlet_candle::{Activation, Linear};

use crate::close::{assert_close, in_f64, rounding};
use crate::on_device::{FLOATS, random};

/// `activation(x · weightᵀ + residual + bias)`, by candle in f64.
fn expected(
    [x, weight]: [&Tensor; 2],
    bias: Option<&Tensor>,
    residual: Option<&Tensor>,
    activation: Option<Activation>,
) -> Result<Tensor> {
    let rows = in_f64(x)?.contiguous()?;
    let flat = rows.reshape(((), x.dim(candle_core::D::Minus1)?))?;
    let mut dims = x.dims().to_vec();
    *dims.last_mut().expect("x has a dimension") = weight.dim(0)?;
    let mut sum = flat
        .matmul(&in_f64(weight)?.t()?.contiguous()?)?
        .reshape(dims)?;
    if let Some(residual) = residual {
        sum = (sum + in_f64(residual)?)?;
    }
    if let Some(bias) = bias {
        sum = sum.broadcast_add(&in_f64(bias)?)?;
    }
    match activation {
        None => Ok(sum),
        Some(Activation::Relu) => sum.relu(),
        Some(Activation::Gelu) => sum.gelu(),
        Some(Activation::Silu) => sum.silu(),
        Some(Activation::GeluErf) => sum.gelu_erf(),
    }
}

#[test]
fn everything_that_is_fused() -> Result<()> {
    let activations = [
        None,
        Some(Activation::Relu),
        Some(Activation::Gelu),
        Some(Activation::Silu),
        Some(Activation::GeluErf),
    ];
    for dtype in FLOATS {
        let x = random(1, (2, 9, 24), dtype)?;
        let (weight, bias) = (random(2, (40, 24), dtype)?, random(3, 40, dtype)?);
        let residual = random(4, (2, 9, 40), dtype)?;
        for activation in activations {
            for (bias, residual) in [
                (None, None),
                (Some(&bias), None),
                (None, Some(&residual)),
                (Some(&bias), Some(&residual)),
            ] {
                let mut layer = Linear::new(weight.clone(), bias.cloned());
                if let Some(activation) = activation {
                    layer = layer.activation(activation);
                }
                let found = match residual {
                    Some(residual) => layer.forward_with_residual(&x, residual)?,
                    None => layer.forward(&x)?,
                };
                let exact = expected([&x, &weight], bias, residual, activation)?;
                // GELU of 16-bit types is less exact.
                assert_close(&found, &exact, 8.0 * rounding(dtype))?;
            }
        }
    }
    Ok(())
}

#[test]
fn inputs_of_any_rank_and_layout() -> Result<()> {
    let weight = random(2, (12, 16), DType::F32)?;
    let layer = Linear::new(weight.clone(), None);
    let wide = random(1, (3, 5, 40), DType::F32)?;
    for x in [
        random(1, 16, DType::F32)?,
        random(1, (1, 16), DType::F32)?,
        random(1, (2, 2, 3, 16), DType::F32)?,
        wide.narrow(2, 8, 16)?,
        wide.narrow(1, 1, 3)?.narrow(2, 8, 16)?,
        random(1, (16, 7), DType::F32)?.t()?,
    ] {
        let exact = expected([&x, &weight], None, None, None)?;
        assert_close(&layer.forward(&x)?, &exact, 1e-5)?;
    }
    let transposed = random(2, (16, 12), DType::F32)?.t()?;
    let x = random(1, (7, 16), DType::F32)?;
    let exact = expected([&x, &transposed], None, None, None)?;
    assert_close(&Linear::new(transposed, None).forward(&x)?, &exact, 1e-5)
}

#[test]
fn a_layer_of_nothing_adds_the_bias() -> Result<()> {
    let bias = random(3, 4, DType::F32)?;
    let layer = Linear::new(random(2, (4, 0), DType::F32)?, Some(bias.clone()));
    let found = layer.forward(&random(1, (2, 0), DType::F32)?)?;
    assert_close(&found, &in_f64(&bias)?.broadcast_as((2, 4))?, 0.0)?;
    let layer = Linear::new(random(2, (4, 3), DType::F32)?, Some(bias));
    assert_eq!(
        layer.forward(&random(1, (0, 3), DType::F32)?)?.dims(),
        [0, 4]
    );
    Ok(())
}

#[test]
fn wrong_operands_are_refused() -> Result<()> {
    let weight = random(2, (4, 3), DType::F32)?;
    let layer = Linear::new(weight.clone(), None);
    let said = |result: Result<Tensor>| result.unwrap_err().to_string();
    let x = random(1, (2, 3), DType::F32)?;
    let found = said(layer.forward(&random(1, (2, 4), DType::F32)?));
    assert!(
        found.contains("[2, 4]") && found.contains("[4, 3]"),
        "{found}"
    );
    let found = said(layer.forward_with_residual(&x, &x));
    assert!(found.contains("the residual is [2, 3]"), "{found}");
    let found = said(Linear::new(weight, Some(random(3, 3, DType::F32)?)).forward(&x));
    assert!(found.contains("the bias is [3]"), "{found}");
    assert!(layer.forward(&x.to_dtype(DType::BF16)?).is_err());
    Ok(())
}
