//! The model in f64: plain loops over the tokens of one sequence.

use cutlet::{Linear, Result, Stream, bf16};

use super::model::{BASE, Config, Decoder, EPSILON, NORM};

/// The logits after these tokens.
pub fn logits(stream: &Stream, decoder: &Decoder, tokens: &[i32]) -> Result<Vec<f64>> {
    let wide = |layer: &Linear<bf16>| layer.weights().download_as::<f64>(stream);
    let (width, embeddings) = (decoder.config.width, wide(&decoder.head)?);
    let of_token = |token: &i32| embeddings[*token as usize * width..][..width].to_vec();
    let mut all: Vec<Vec<f64>> = tokens.iter().map(of_token).collect();
    for layer in &decoder.layers {
        let (qkv, output) = (wide(&layer.qkv)?, wide(&layer.output)?);
        let (gated, down) = (wide(&layer.gated)?, wide(&layer.down)?);
        let mut seen = Vec::new();
        for x in &mut all {
            seen.push(product(&qkv, &norm(x)));
            add(
                x,
                1.0,
                &product(&output, &attention(&seen, &decoder.config)),
            );
            let gated = product(&gated, &norm(x));
            let of_pair = |it: &[f64]| it[0] / (1.0 + (-it[0]).exp()) * it[1];
            let hidden: Vec<f64> = gated.chunks(2).map(of_pair).collect();
            add(x, 1.0, &product(&down, &hidden));
        }
    }
    Ok(product(&embeddings, &norm(&all[tokens.len() - 1])))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn product(weights: &[f64], x: &[f64]) -> Vec<f64> {
    weights.chunks(x.len()).map(|row| dot(row, x)).collect()
}

fn add(x: &mut [f64], factor: f64, delta: &[f64]) {
    let pairs = x.iter_mut().zip(delta);
    pairs.for_each(|(x, delta)| *x += factor * delta);
}

fn norm(x: &[f64]) -> Vec<f64> {
    let root = (dot(x, x) / x.len() as f64 + f64::from(EPSILON)).sqrt();
    x.iter().map(|x| x / root * f64::from(NORM)).collect()
}

/// All heads of the last token, which sees all tokens.
fn attention(seen: &[Vec<f64>], config: &Config) -> Vec<f64> {
    let features = config.width / config.heads;
    let part = |nth: usize, head: usize| &seen[nth][head * features..][..features];
    let mut heads = vec![0.0; config.width];
    for (head, output) in heads.chunks_mut(features).enumerate() {
        let key = config.heads + head * config.heads_of_keys / config.heads;
        let query = part(seen.len() - 1, head);
        let weight = |nth| score(query, part(nth, key), seen.len() - 1 - nth).exp();
        let weights: Vec<f64> = (0..seen.len()).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        for (nth, weight) in weights.iter().enumerate() {
            add(output, weight / sum, part(nth, key + config.heads_of_keys));
        }
    }
    heads
}

/// A query's product with a key so many tokens before it: pairs are rotated by the distance.
fn score(query: &[f64], key: &[f64], distance: usize) -> f64 {
    let pairs = query.len() / 2;
    let of_pair = |pair: usize| {
        let angle = distance as f64 * BASE.powf(-(pair as f64) / pairs as f64);
        let [a, b] = [query[pair], query[pair + pairs]];
        let [c, d] = [key[pair], key[pair + pairs]];
        (a * c + b * d) * angle.cos() + (a * d - b * c) * angle.sin()
    };
    (0..pairs).map(of_pair).sum::<f64>() / (query.len() as f64).sqrt()
}
