//! Causal attention.

use cutlet_host::{Device, cpu};
use half::bf16;
use tiled_kernels::PTX;
use tiled_kernels::attention::attention_bf16;

use crate::random;

/// A row of the product of the probabilities and the values.
fn expected(query: usize, [q, k, v]: [&[bf16]; 3]) -> [f64; 64] {
    let row = |x: &[bf16], at: usize| -> Vec<f64> {
        x[64 * at..][..64].iter().map(|x| x.to_f64()).collect()
    };
    let q = row(q, query);
    let score = |key| q.iter().zip(row(k, key)).map(|(q, k)| q * k).sum::<f64>() / 8.0;
    let weights: Vec<f64> = (0..=query).map(|key| score(key).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mut output = [0.0; 64];
    for (key, weight) in weights.iter().enumerate() {
        let values = row(v, key);
        output
            .iter_mut()
            .zip(values)
            .for_each(|(output, value)| *output += weight / sum * value);
    }
    output
}

#[test]
fn queries_attend_to_the_keys_before_them() {
    cpu::check_races(true);
    let stream = Device::auto().stream().unwrap();
    let function = stream.device().load(&PTX, &attention_bf16).unwrap();
    for tokens in [1, 64, 100, 257] {
        let [q, k, v] = [1, 2, 3].map(|seed| random(64 * tokens, seed));
        let [on_q, on_k, on_v] = [&q, &k, &v].map(|x| stream.upload(x).unwrap());
        let mut o = stream.upload(&vec![bf16::NAN; 64 * tokens]).unwrap();
        let scale = std::f32::consts::LOG2_E / 8.0;
        let args = (tokens as i32, scale, &on_q, &on_k, &on_v, &mut o);
        // SAFETY: the buffers have 64 elements for each token.
        unsafe {
            stream
                .launch(&function, tokens.div_ceil(64) as u32, args)
                .unwrap()
        };
        let found = stream.download(&o).unwrap();
        for (query, found) in found.chunks(64).enumerate() {
            for (feature, (found, expected)) in
                found.iter().zip(expected(query, [&q, &k, &v])).enumerate()
            {
                let error = (found.to_f64() - expected).abs();
                assert!(
                    error <= 0.01,
                    "{tokens}: {query}, {feature}: {found}, {expected}"
                );
            }
        }
    }
}
