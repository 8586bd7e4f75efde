//! `Fp8Linear` against sums in f64 of what x is quantised to.

use candle_core::{DType, Module, Result, Tensor, Var};
use cutlet::F8E4M3;
use cutlet_candle::Fp8Linear;

use crate::close::{assert_close, in_f64, rounding};
use crate::on_device::{device, random};

const BLOCK: usize = 128;

/// Kernels of 8-bit floats run on the CPU and on Hopper.
fn runs() -> bool {
    let here = cutlet::Device::auto().compute_capability();
    let runs = device().is_cpu() || here == Some((9, 0));
    if !runs {
        cutlet_not_run::not_run("the GPU is not of compute capability 9.0");
    }
    runs
}

/// Rows of `x` in e4m3 times their scales, each of so many elements.
fn quantised(x: &Tensor, block: usize) -> Result<Tensor> {
    let x = x.to_dtype(DType::F32)?;
    let (rows, inputs) = x.dims2()?;
    let mut elements = Vec::with_capacity(rows * inputs);
    for row in x.to_vec2::<f32>()? {
        for block in row.chunks(block) {
            let largest = block.iter().fold(0f32, |most, it| most.max(it.abs()));
            let scale = if largest == 0.0 { 1.0 } else { largest / 448.0 };
            let nearest = |it: &f32| F8E4M3::from_f32(it / scale).to_f32();
            elements.extend(
                block
                    .iter()
                    .map(|it| f64::from(nearest(it)) * f64::from(scale)),
            );
        }
    }
    Tensor::from_vec(elements, (rows, inputs), x.device())
}

/// Numbers from a half to one and a half.
fn scales(seed: u64, shape: &[usize]) -> Result<Tensor> {
    (random(seed, shape, DType::F32)? * 0.5)? + 1.0
}

/// The scale of each element of a weight.
fn of_elements(scales: &Tensor, [outputs, inputs]: [usize; 2]) -> Result<Tensor> {
    let wide = match *scales.dims() {
        [] | [1] | [_, 1] => scales.reshape(((), 1))?,
        [count] => scales.reshape((count, 1))?,
        [rows, columns] => {
            let all = scales.reshape((rows, 1, columns, 1))?;
            let all = all.broadcast_as((rows, BLOCK, columns, BLOCK))?;
            let all = all.reshape((rows * BLOCK, columns * BLOCK))?;
            all.narrow(0, 0, outputs)?.narrow(1, 0, inputs)?
        }
        _ => unreachable!("scales have at most two dimensions"),
    };
    in_f64(&wide)?.broadcast_as((outputs, inputs))?.contiguous()
}

/// Checks a layer with these scales, with and without a bias, in both types of x.
fn check(rows: usize, [outputs, inputs]: [usize; 2], shape: &[usize], block: usize) -> Result<()> {
    let weight = random(2, (outputs, inputs), DType::F32)?.to_dtype(DType::F8E4M3)?;
    let scales = scales(3, shape)?;
    // candle 0.11 overflows its stack where it converts 8-bit floats to f64.
    let wide = weight.to_dtype(DType::F32)?;
    let exact_weight = (in_f64(&wide)? * of_elements(&scales, [outputs, inputs])?)?;
    for dtype in [DType::BF16, DType::F16] {
        let x = random(1, (rows, inputs), dtype)?;
        let exact = quantised(&x, block)?.matmul(&exact_weight.t()?.contiguous()?)?;
        let bias = random(4, outputs, dtype)?;
        let with_bias = exact.broadcast_add(&in_f64(&bias)?)?;
        for (bias, exact) in [(None, exact), (Some(bias), with_bias)] {
            let layer = Fp8Linear::new(weight.clone(), scales.clone(), bias)?;
            // Numbers in the middle of two of e4m3 may be rounded to either.
            assert_close(&layer.forward(&x)?, &exact, 2.0 * rounding(DType::BF16))?;
        }
    }
    Ok(())
}

#[test]
fn scales_of_each_kind() -> Result<()> {
    if !runs() {
        return Ok(());
    }
    for (rows, weight @ [outputs, inputs]) in [
        (5, [48, 64]),
        (1, [160, 300]),
        (33, [200, 144]),
        (6, [129, 257]),
    ] {
        for shape in [&[][..], &[1], &[outputs], &[outputs, 1]] {
            check(rows, weight, shape, inputs)?;
        }
        let blocks = [outputs.div_ceil(BLOCK), inputs.div_ceil(BLOCK)];
        check(rows, weight, &blocks, BLOCK)?;
    }
    Ok(())
}

#[test]
fn inputs_of_any_rank_and_layout() -> Result<()> {
    if !runs() {
        return Ok(());
    }
    let weight = random(2, (24, 160), DType::F32)?.to_dtype(DType::F8E4M3)?;
    let layer = Fp8Linear::new(weight, scales(3, &[1, 2])?, None)?;
    let wide = random(1, (3, 5, 200), DType::BF16)?;
    for x in [
        random(1, 160, DType::BF16)?,
        random(1, (2, 2, 3, 160), DType::BF16)?,
        wide.narrow(2, 8, 160)?,
        random(1, (160, 7), DType::BF16)?.t()?,
    ] {
        let rows = x.contiguous()?.reshape(((), 160))?;
        let mut dims = x.dims().to_vec();
        *dims.last_mut().expect("x has a dimension") = 24;
        let of_rows = layer.forward(&rows)?.reshape(dims)?;
        assert_close(&layer.forward(&x)?, &in_f64(&of_rows)?, 0.0)?;
    }
    Ok(())
}

#[test]
fn a_layer_of_nothing_adds_the_bias() -> Result<()> {
    let bias = random(3, 4, DType::BF16)?;
    let of = |inputs: usize, bias| -> Result<Fp8Linear> {
        let weight = random(2, (4, inputs), DType::F32)?.to_dtype(DType::F8E4M3)?;
        Fp8Linear::new(weight, scales(3, &[])?, bias)
    };
    let found = of(0, Some(bias.clone()))?.forward(&random(1, (2, 0), DType::BF16)?)?;
    assert_close(&found, &in_f64(&bias)?.broadcast_as((2, 4))?, 0.0)?;
    let found = of(3, None)?.forward(&random(1, (0, 3), DType::BF16)?)?;
    assert_eq!(found.dims(), [0, 4]);
    Ok(())
}

#[test]
fn wrong_operands_are_refused() -> Result<()> {
    let said = |result: Result<Tensor>| result.unwrap_err().to_string();
    let weight = random(2, (300, 200), DType::F32)?;
    let small = weight.to_dtype(DType::F8E4M3)?;
    let one = scales(3, &[])?;
    let refused = |weight: &Tensor, scales: &Tensor, bias| {
        Fp8Linear::new(weight.clone(), scales.clone(), bias)
            .unwrap_err()
            .to_string()
    };
    let found = refused(&weight, &one, None);
    assert!(found.contains("the weight of F32"), "{found}");
    let found = refused(&small, &one.to_dtype(DType::F16)?, None);
    assert!(found.contains("the scales of F16"), "{found}");
    let found = refused(&small, &scales(3, &[2, 3])?, None);
    assert!(
        found.contains("the scales are [2, 3]") && found.contains("[3, 2] for blocks"),
        "{found}"
    );
    let found = refused(&small, &one, Some(random(3, 200, DType::BF16)?));
    assert!(found.contains("the bias is [200]"), "{found}");

    let layer = Fp8Linear::new(small.clone(), one.clone(), None)?;
    let found = said(layer.forward(&random(1, (2, 300), DType::BF16)?));
    assert!(
        found.contains("[2, 300]") && found.contains("[300, 200]"),
        "{found}"
    );
    let x = random(1, (2, 200), DType::F32)?;
    assert!(layer.forward(&x).is_err());
    let variable = Var::from_tensor(&x.to_dtype(DType::BF16)?)?;
    let found = said(layer.forward(&variable));
    assert!(found.contains("detach"), "{found}");
    let bias = random(3, 300, DType::F16)?;
    let layer = Fp8Linear::new(small, one, Some(bias))?;
    let found = said(layer.forward(&x.to_dtype(DType::BF16)?));
    assert!(found.contains("the bias of F16"), "{found}");
    Ok(())
}
