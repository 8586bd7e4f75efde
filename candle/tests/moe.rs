//! `Moe` against a loop over tokens and their experts, by candle in f64.

use candle_core::{DType, Module, Result, Tensor, Var};
use cutlet_candle::Moe;

use crate::close::{assert_close, in_f64, rounding};
use crate::on_device::{FLOATS, random};

const EXPERTS: usize = 6;
const WIDTH: usize = 32;
const INNER: usize = 24;
const TOP_K: usize = 2;

struct Weights {
    router: Tensor,
    gates: Tensor,
    ups: Tensor,
    down: Tensor,
}

fn weights(dtype: DType) -> Result<Weights> {
    Ok(Weights {
        router: random(1, (EXPERTS, WIDTH), dtype)?,
        gates: random(2, (EXPERTS, INNER, WIDTH), dtype)?,
        ups: random(3, (EXPERTS, INNER, WIDTH), dtype)?,
        down: random(4, (EXPERTS, WIDTH, INNER), dtype)?,
    })
}

impl Weights {
    fn layer(&self) -> Result<Moe> {
        Moe::new(
            self.router.clone(),
            &self.gates,
            &self.ups,
            self.down.clone(),
            TOP_K,
        )
    }

    /// The layer's result for one token (1, width).
    fn expected(&self, token: &Tensor) -> Result<Tensor> {
        let logits: Vec<f64> = token
            .matmul(&in_f64(&self.router)?.t()?)?
            .flatten_all()?
            .to_vec1()?;
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|&one, &other| logits[other].total_cmp(&logits[one]));
        let chosen = &order[..TOP_K];
        let all: f64 = chosen.iter().map(|&it| logits[it].exp()).sum();
        let mut sum = token.zeros_like()?;
        for &expert in chosen {
            let of = |weights: &Tensor| in_f64(&weights.get(expert)?)?.t();
            let between =
                (token.matmul(&of(&self.gates)?)?.silu()? * token.matmul(&of(&self.ups)?)?)?;
            sum = (sum + (between.matmul(&of(&self.down)?)? * (logits[expert].exp() / all))?)?;
        }
        Ok(sum)
    }
}

#[test]
fn the_layer_of_every_type() -> Result<()> {
    for dtype in FLOATS {
        let weights = weights(dtype)?;
        let layer = weights.layer()?;
        for (batch, tokens) in [(1, 1), (2, 19), (1, 64)] {
            let tokens = random(5, (batch, tokens, WIDTH), dtype)?;
            let rows = in_f64(&tokens)?.reshape(((), WIDTH))?;
            let exact: Vec<Tensor> = (0..rows.dim(0)?)
                .map(|row| weights.expected(&rows.narrow(0, row, 1)?))
                .collect::<Result<_>>()?;
            let exact = Tensor::cat(&exact, 0)?.reshape(tokens.shape())?;
            assert_close(&layer.forward(&tokens)?, &exact, 8.0 * rounding(dtype))?;
        }
    }
    Ok(())
}

#[test]
fn the_rows_of_many_numbers_of_tokens_are_kept_and_dropped() -> Result<()> {
    let layer = weights(DType::F32)?.layer()?;
    let tokens = random(5, (12, WIDTH), DType::F32)?;
    let all = layer.forward(&tokens)?;
    for _ in 0..2 {
        for count in 1..=12 {
            let some = layer.forward(&tokens.narrow(0, 0, count)?)?;
            assert_close(&some, &all.narrow(0, 0, count)?, 1e-5)?;
        }
    }
    Ok(())
}

#[test]
fn wrong_layers_and_tokens_are_refused() -> Result<()> {
    let weights = weights(DType::F32)?;
    let said = |result: Result<Moe>| result.unwrap_err().to_string();
    let few = weights.gates.narrow(0, 0, 2)?;
    let found = said(Moe::new(
        weights.router.clone(),
        &few,
        &weights.ups,
        weights.down.clone(),
        1,
    ));
    assert!(
        found.contains("the gates are [2, 24, 32]; give [6, 24, 32]"),
        "{found}"
    );
    let found = said(Moe::new(
        weights.router.clone(),
        &weights.gates,
        &weights.ups,
        weights.down.clone(),
        7,
    ));
    assert!(found.contains("7 of 6 experts"), "{found}");
    let layer = weights.layer()?;
    let narrow = random(5, (3, WIDTH - 1), DType::F32)?;
    assert!(
        layer
            .forward(&narrow)
            .unwrap_err()
            .to_string()
            .contains("32 wide")
    );
    let variable = Var::from_tensor(&random(5, (3, WIDTH), DType::F32)?)?;
    let found = layer.forward(&variable).unwrap_err().to_string();
    assert!(found.contains("detach"), "{found}");
    Ok(())
}
