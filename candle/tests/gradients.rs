//! Gradients against those of candle's operations.

use candle_core::{DType, Module, Result, Tensor, Var};
use cutlet_candle::{Activation, Linear, embedding, index_add, matmul, swiglu};

use crate::close::assert_close;
use crate::on_device::{ids, random};

fn variable(seed: u64, dims: &[usize]) -> Result<Var> {
    Var::from_tensor(&random(seed, dims, DType::F32)?)
}

/// Compares the gradients of a weighted sum of both results.
#[track_caller]
fn check(variables: &[&Var], ours: Tensor, candles: Tensor) -> Result<()> {
    assert_close(&ours, &candles, 1e-5)?;
    let weights = random(9, ours.shape(), DType::F32)?;
    let [ours, candles] = [ours, candles].map(|it| (it * &weights)?.sum_all()?.backward());
    let (ours, candles) = (ours?, candles?);
    for (nth, variable) in variables.iter().enumerate() {
        let [ours, candles] =
            [&ours, &candles].map(|it| it.get(variable).expect("it has a gradient"));
        println!("variable {nth}");
        assert_close(ours, candles, 1e-4)?;
    }
    Ok(())
}

#[test]
fn of_products() -> Result<()> {
    let (a, b) = (variable(1, &[5, 7])?, variable(2, &[7, 3])?);
    check(&[&a, &b], matmul(&a, &b)?, a.matmul(&b)?)?;
    let (a, b) = (variable(1, &[2, 5, 7])?, variable(2, &[2, 3, 7])?);
    let transposed = b.transpose(1, 2)?;
    check(&[&a, &b], matmul(&a, &transposed)?, a.matmul(&transposed)?)?;
    // One B for all of a batch: its gradient is a sum.
    let b = variable(2, &[7, 3])?;
    let repeated = b.broadcast_as((2, 7, 3))?;
    check(
        &[&a, &b],
        matmul(&a, &repeated)?,
        a.matmul(&repeated.contiguous()?)?,
    )
}

#[test]
fn of_linear_layers() -> Result<()> {
    let (x, weight) = (variable(1, &[2, 5, 7])?, variable(2, &[4, 7])?);
    let (bias, residual) = (variable(3, &[4])?, variable(4, &[2, 5, 4])?);
    let product = || x.flatten_to(1)?.matmul(&weight.t()?)?.reshape((2, 5, 4));
    let layer = Linear::new(weight.as_tensor().clone(), Some(bias.as_tensor().clone()));
    let sum = product()?.broadcast_add(&bias)?;
    check(&[&x, &weight, &bias], layer.forward(&x)?, sum.clone())?;
    let all = [&x, &weight, &bias, &residual];
    let gelu = layer.activation(Activation::Gelu);
    check(
        &all,
        gelu.forward_with_residual(&x, &residual)?,
        (sum + residual.as_tensor())?.gelu()?,
    )?;
    let layer = Linear::new(weight.as_tensor().clone(), None).activation(Activation::Silu);
    check(&[&x, &weight], layer.forward(&x)?, product()?.silu()?)?;
    let vector = variable(5, &[7])?;
    let expected = vector.unsqueeze(0)?.matmul(&weight.t()?)?.squeeze(0)?;
    let layer = Linear::new(weight.as_tensor().clone(), None);
    check(&[&vector, &weight], layer.forward(&vector)?, expected)
}

#[test]
fn of_rows() -> Result<()> {
    let (table, ids) = (variable(1, &[9, 8])?, ids(2, 12, 9, DType::U32)?);
    let rows = table.index_select(&ids, 0)?;
    check(&[&table], embedding(&table, &ids)?, rows)?;
    let (tensor, source) = (variable(3, &[9, 4])?, variable(4, &[12, 4])?);
    let sums = tensor.index_add(&ids, &source, 0)?;
    check(
        &[&tensor, &source],
        index_add(&tensor, &ids, &source, 0)?,
        sums,
    )
}

#[test]
fn of_swiglu() -> Result<()> {
    let halves = variable(1, &[3, 10])?;
    let [gates, ups] = &halves.chunk(2, 1)?[..] else {
        unreachable!("there are two halves");
    };
    check(&[&halves], swiglu(&halves)?, (gates.silu()? * ups)?)
}
