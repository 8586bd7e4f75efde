//! The model in f64: a plain loop without caches.

use cutlet::{DeviceTensor, Result, Stream, bf16};

use super::model::{BASE, Config, EPSILON, Model};

/// The logits after these tokens.
pub fn logits(stream: &Stream, model: &Model, tokens: &[i32]) -> Result<Vec<f64>> {
    let Config {
        width,
        heads,
        heads_of_keys,
        features,
        ..
    } = model.config;
    let wide = |tensor: &DeviceTensor<bf16>| -> Result<Vec<f64>> {
        Ok(tensor
            .download(stream)?
            .iter()
            .map(|it| it.to_f64())
            .collect())
    };
    let embeddings = wide(model.head.weights())?;
    let mut x: Vec<Vec<f64>> = tokens
        .iter()
        .map(|it| embeddings[*it as usize * width..][..width].to_vec())
        .collect();
    for layer in &model.layers {
        let [first, second] = [wide(&layer.norms[0])?, wide(&layer.norms[1])?];
        let weights =
            [&layer.qkv, &layer.output, &layer.gated, &layer.down].map(|it| wide(it.weights()));
        let [qkv, output, gated, down] = weights;
        let (qkv, output, gated, down) = (qkv?, output?, gated?, down?);
        let rows: Vec<Vec<f64>> = x
            .iter()
            .enumerate()
            .map(|(position, x)| {
                let mut row = product(&normal(x, &first), &qkv);
                for head in row.chunks_mut(features).take(heads + heads_of_keys) {
                    rotate(head, position as f64);
                }
                row
            })
            .collect();
        for (position, x) in x.iter_mut().enumerate() {
            let attended: Vec<f64> = (0..heads)
                .flat_map(|head| {
                    let part =
                        |token: usize, head: usize| &rows[token][head * features..][..features];
                    let of_keys = heads + head / (heads / heads_of_keys);
                    let score = |token| {
                        (dot(part(position, head), part(token, of_keys)) / (features as f64).sqrt())
                            .exp()
                    };
                    let scores: Vec<f64> = (0..=position).map(score).collect();
                    let sum: f64 = scores.iter().sum();
                    (0..features)
                        .map(move |at| {
                            let value = |token: usize| part(token, of_keys + heads_of_keys)[at];
                            scores
                                .iter()
                                .enumerate()
                                .map(|(token, score)| score / sum * value(token))
                                .sum::<f64>()
                        })
                        .collect::<Vec<_>>()
                })
                .collect();
            add(x, &product(&attended, &output));
            let both = product(&normal(x, &second), &gated);
            let hidden: Vec<f64> = both
                .chunks(2)
                .map(|it| it[0] / (1.0 + (-it[0]).exp()) * it[1])
                .collect();
            add(x, &product(&hidden, &down));
        }
    }
    Ok(product(
        &normal(&x[tokens.len() - 1], &wide(&model.norm)?),
        &embeddings,
    ))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn product(x: &[f64], weights: &[f64]) -> Vec<f64> {
    weights.chunks(x.len()).map(|row| dot(x, row)).collect()
}

fn add(x: &mut [f64], delta: &[f64]) {
    x.iter_mut().zip(delta).for_each(|(x, delta)| *x += delta);
}

fn normal(x: &[f64], weights: &[f64]) -> Vec<f64> {
    let root = (dot(x, x) / x.len() as f64 + f64::from(EPSILON)).sqrt();
    x.iter()
        .zip(weights)
        .map(|(x, weight)| x / root * weight)
        .collect()
}

fn rotate(head: &mut [f64], position: f64) {
    let (firsts, seconds) = head.split_at_mut(head.len() / 2);
    let pairs = firsts.len() as f64;
    for (pair, (a, b)) in firsts.iter_mut().zip(seconds).enumerate() {
        let (sine, cosine) = (position * BASE.powf(-(pair as f64) / pairs)).sin_cos();
        (*a, *b) = (*a * cosine - *b * sine, *b * cosine + *a * sine);
    }
}
