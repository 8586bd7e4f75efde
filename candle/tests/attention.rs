//! `attention` against its definition, by candle in f64.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use cutlet_candle::attention;

use crate::close::{assert_close, in_f64, rounding};
use crate::on_device::random;

/// The definition, for tensors (batch, sequence, heads, features).
fn exact(q: &Tensor, k: &Tensor, v: &Tensor, scale: f64, causal: bool) -> Result<Tensor> {
    let group = q.dim(2)? / k.dim(2)?;
    let by_heads = |it: &Tensor, times: usize| -> Result<Tensor> {
        let it = in_f64(it)?.transpose(1, 2)?.contiguous()?;
        let (batch, heads, rows, features) = it.dims4()?;
        it.unsqueeze(2)?
            .broadcast_as((batch, heads, times, rows, features))?
            .reshape((batch, heads * times, rows, features))
    };
    let (q, k, v) = (by_heads(q, 1)?, by_heads(k, group)?, by_heads(v, group)?);
    let (queries, keys) = (q.dim(2)?, k.dim(2)?);
    let mut scores = (q.matmul(&k.transpose(2, 3)?)? * scale)?;
    if causal {
        let hidden = |at: usize| match at % keys > at / keys + keys - queries {
            true => f64::NEG_INFINITY,
            false => 0.0,
        };
        let mask: Vec<f64> = (0..queries * keys).map(hidden).collect();
        scores = scores.broadcast_add(&Tensor::from_vec(mask, (queries, keys), &Device::Cpu)?)?;
    }
    let weights = scores
        .broadcast_sub(&scores.max_keepdim(D::Minus1)?)?
        .exp()?;
    let weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?;
    weights.matmul(&v)?.transpose(1, 2)?.contiguous()
}

#[test]
fn heads_of_any_layout() -> Result<()> {
    for dtype in [DType::F16, DType::BF16] {
        let qkv = random(1, (2, 40, 3, 4, 64), dtype)?;
        let part = |nth: usize| qkv.narrow(2, nth, 1)?.squeeze(2);
        let shared = |nth: usize| part(nth)?.narrow(2, 1, 2);
        let by_heads = |nth: usize| part(nth)?.transpose(1, 2)?.contiguous()?.transpose(1, 2);
        let odd = |nth: usize| part(nth)?.narrow(3, 3, 40);
        for (q, k, v) in [
            (part(0)?, part(1)?, part(2)?),
            (part(0)?, shared(1)?, shared(2)?),
            (by_heads(0)?, part(1)?, by_heads(2)?),
            (odd(0)?, odd(1)?, odd(2)?),
            (part(0)?.narrow(1, 33, 7)?, part(1)?, part(2)?),
        ] {
            for causal in [false, true] {
                let exact = exact(&q, &k, &v, 0.2, causal)?;
                assert_close(&attention(&q, &k, &v, 0.2, causal)?, &exact, 2e-2)?;
            }
        }
    }
    Ok(())
}

/// Compares the gradients of a weighted sum of the outputs with those of the definition.
#[track_caller]
fn check_gradients(operands: [Tensor; 3], causal: bool) -> Result<()> {
    let gradients = |attend: &dyn Fn([&Tensor; 3]) -> Result<Tensor>| -> Result<Vec<Tensor>> {
        let mut variables = Vec::new();
        for operand in &operands {
            variables.push(Var::from_tensor(&operand.contiguous()?)?);
        }
        let output = in_f64(&attend([&variables[0], &variables[1], &variables[2]])?)?;
        let weights = in_f64(&random(9, output.shape(), DType::F32)?)?;
        let gradients = (output * weights)?.sum_all()?.backward()?;
        let found = variables.iter().map(|it| gradients.get(it).cloned());
        Ok(found.collect::<Option<_>>().expect("each has one"))
    };
    let ours = gradients(&|[q, k, v]| attention(q, k, v, 0.2, causal))?;
    let exact = gradients(&|[q, k, v]| exact(q, k, v, 0.2, causal))?;
    let tolerance = 16.0 * rounding(operands[0].dtype());
    for (ours, exact) in ours.iter().zip(&exact) {
        assert_close(ours, &in_f64(exact)?, tolerance)?;
    }
    Ok(())
}

/// Whether the device of the tests has the kernels of the gradients, as the CPU and Hopper have.
fn has_gradients() -> Result<bool> {
    let heads = Var::from_tensor(&random(1, (1, 3, 2, 8), DType::F16)?)?;
    let output = attention(&heads, &heads, &heads, 1.0, false)?;
    match output.sum_all()?.backward() {
        Ok(_) => Ok(true),
        Err(error) if error.to_string().contains("compute capability") => Ok(false),
        Err(error) => Err(error),
    }
}

#[test]
fn gradients() -> Result<()> {
    if !has_gradients()? {
        return Ok(());
    }
    for dtype in [DType::F16, DType::BF16] {
        let qkv = random(1, (2, 40, 3, 4, 64), dtype)?;
        let part = |nth: usize| qkv.narrow(2, nth, 1)?.squeeze(2);
        let shared = |nth: usize| part(nth)?.narrow(2, 1, 2);
        for causal in [false, true] {
            check_gradients([part(0)?, part(1)?, part(2)?], causal)?;
            let few = part(0)?.narrow(1, 33, 7)?;
            check_gradients([few, shared(1)?, shared(2)?], causal)?;
        }
    }
    Ok(())
}

#[test]
fn wrong_tensors() -> Result<()> {
    let heads = random(1, (1, 3, 2, 8), DType::F16)?;
    let other = random(1, (1, 3, 3, 8), DType::F16)?;
    assert!(attention(&heads, &other, &other, 1.0, false).is_err());
    assert!(attention(&heads, &heads, &heads, -1.0, false).is_err());
    let none = heads.narrow(1, 0, 0)?;
    assert_eq!(
        attention(&none, &heads, &heads, 1.0, false)?.dims(),
        [1, 0, 2, 8]
    );
    assert!(attention(&heads, &none, &none, 1.0, false).is_err());
    let single = heads.to_dtype(DType::F32)?;
    assert!(attention(&single, &single, &single, 1.0, false).is_err());
    Ok(())
}
