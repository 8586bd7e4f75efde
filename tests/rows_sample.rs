//! Sampling: the frequencies of many draws against f64, what top_k and top_p leave, and rows that have no token.

use cutlet::{Device, Error, SampledElement, Sampling, Tensor, TensorMut, layout};
use half::{bf16, f16};

use crate::convert::Convert;
use crate::random;

/// Draws from a row of logits, `draws` times, by counters or by rows.
fn draw<T: SampledElement>(
    logits: &[T],
    sampling: Sampling,
    draws: usize,
    begin: usize,
) -> Vec<i32> {
    let columns = logits.len();
    let stream = Device::auto().stream().unwrap();
    let mut memory = vec![logits[0]; begin];
    memory.extend_from_slice(logits);
    let on_device = stream.upload(&memory).unwrap();
    let on_device = on_device.slice(begin..).unwrap();
    let counters: Vec<u64> = (0..draws as u64).collect();
    let counters = stream.upload(&counters).unwrap();
    let mut tokens = stream.filled::<i32>(draws, 0xee).unwrap();
    // All rows are the same one.
    let rows = Tensor::new(on_device, layout!((dyn draws, dyn columns):(0, 1))).unwrap();
    let to = TensorMut::new(&mut tokens, [draws]).unwrap();
    sampling
        .run(&stream, rows, Tensor::new(&counters, [draws]).unwrap(), to)
        .unwrap();
    stream.download(&tokens).unwrap()
}

/// The probabilities of tokens that count.
fn probabilities(logits: &[f64], temperature: f64, top_k: usize, top_p: f64) -> Vec<f64> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits
        .iter()
        .map(|it| ((it - most) / temperature).exp())
        .collect();
    let all: f64 = powers.iter().sum();
    let kept: Vec<f64> = powers
        .iter()
        .map(|own| {
            let above: Vec<f64> = powers.iter().copied().filter(|it| it > own).collect();
            let counts =
                above.len() < top_k && (top_p == 1.0 || above.iter().sum::<f64>() < top_p * all);
            if counts { *own } else { 0.0 }
        })
        .collect();
    let sum: f64 = kept.iter().sum();
    kept.iter().map(|it| it / sum).collect()
}

/// Compares the frequencies of tokens with their probabilities.
fn check<T: SampledElement + Convert>(
    columns: usize,
    begin: usize,
    options: (f32, usize, f32),
    draws: usize,
) {
    let (temperature, top_k, top_p) = options;
    let mut random = random::generator(columns as u64);
    let logits: Vec<T> = (0..columns)
        .map(|_| T::of(6.0 * random.f64() - 3.0))
        .collect();
    let wide: Vec<f64> = logits.iter().map(|it| it.number()).collect();
    let sampling = Sampling::new(3)
        .temperature(temperature)
        .top_k(top_k)
        .top_p(top_p);
    let tokens = draw(&logits, sampling, draws, begin);
    let expected = probabilities(&wide, temperature.into(), top_k, top_p.into());
    let mut counts = vec![0usize; columns];
    for token in tokens {
        counts[usize::try_from(token).unwrap()] += 1;
    }
    // Groups of tokens are met often enough for five deviations to mean something.
    for group in 0..7 {
        let in_group = |token: &usize| token % 7 == group;
        let count: usize = (0..columns)
            .filter(in_group)
            .map(|token| counts[token])
            .sum();
        let share: f64 = (0..columns)
            .filter(in_group)
            .map(|token| expected[token])
            .sum();
        let mean = share * draws as f64;
        let deviation = (mean * (1.0 - share)).max(0.0).sqrt();
        assert!(
            (count as f64 - mean).abs() <= 5.0 * deviation + 1e-6 * mean,
            "{options:?} of {columns}: {count} of group {group}, not {mean}"
        );
    }
    for (token, count) in counts.iter().enumerate() {
        assert!(
            *count == 0 || expected[token] > 0.0,
            "{options:?} of {columns}: token {token} was drawn"
        );
    }
}

#[test]
fn frequencies_are_the_probabilities() {
    check::<f32>(23, 0, (1.0, usize::MAX, 1.0), 150);
    check::<bf16>(16, 0, (0.5, 5, 1.0), 100);
    check::<f16>(40, 1, (1.0, usize::MAX, 0.6), 100);
    check::<f32>(24, 0, (2.0, 9, 0.5), 100);
}

#[test]
fn long_rows_are_drawn_from_as_a_whole() {
    check::<bf16>(20_000, 0, (1.0, 40, 0.9), 12);
    check::<f32>(9_001, 0, (1.0, usize::MAX, 1.0), 8);
    check::<f16>(5_000, 1, (0.5, 40, 1.0), 8);
}

/// Blocks list the tokens of splits of the rows.
#[test]
fn few_long_rows_are_drawn_from_in_splits() {
    check::<f32>(16_384, 0, (1.0, 40, 0.9), 5);
    check::<f16>(16_448, 0, (2.0, 200, 0.9), 5);
    let (low, nan) = (f32::NEG_INFINITY, f32::NAN);
    // Two splits have one token each, and the others have none.
    let mut logits = vec![low; 16_384];
    (logits[3], logits[5_000], logits[16_000]) = (1.0, nan, 1.0);
    let sampling = Sampling::new(3).top_k(5);
    let tokens = draw(&logits, sampling, 5, 0);
    assert!(
        tokens.iter().all(|token| matches!(token, 3 | 16_000)),
        "{tokens:?}"
    );
    assert_eq!(draw(&[low; 16_384], sampling, 1, 0), [-1]);
    // There is no room for a list of so many equal tokens.
    let mut tokens = draw(&[1.5f32; 16_384], sampling, 5, 0);
    assert!(tokens.iter().all(|token| (0..16_384).contains(token)));
    tokens.sort_unstable();
    tokens.dedup();
    assert!(tokens.len() > 2, "{tokens:?}");
}

/// More tokens are equal to the least probable one than a block has a list for.
#[test]
fn equal_tokens_count_together_however_many_they_are() {
    let mut tokens = draw(&[1.5f32; 9_000], Sampling::new(3).top_k(3), 10, 0);
    assert!(tokens.iter().all(|token| (0..9_000).contains(token)));
    tokens.sort_unstable();
    tokens.dedup();
    assert!(tokens.len() > 5, "{tokens:?}");
}

#[test]
fn one_token_is_certain() {
    let certain = |logits: &[f32], sampling: Sampling| draw(logits, sampling, 4, 0);
    assert_eq!(certain(&[1.5], Sampling::new(1)), [0; 4]);
    let (low, nan) = (f32::NEG_INFINITY, f32::NAN);
    assert_eq!(certain(&[low, nan, -5.0, low], Sampling::new(1)), [2; 4]);
    assert_eq!(
        certain(&[1.0, 2.0, 3.0, 2.5], Sampling::new(1).top_k(1)),
        [2; 4]
    );
    assert_eq!(
        certain(&[1.0, 2.0, 3.0, 2.5], Sampling::new(1).top_p(1e-6)),
        [2; 4]
    );
    assert_eq!(
        certain(&[1.0, 2.0, 3.0, 2.5], Sampling::new(1).temperature(0.0)),
        [2; 4]
    );
    assert_eq!(
        certain(&[1.0, 2.0, 3.0, 2.5], Sampling::new(1).temperature(1e-20)),
        [2; 4]
    );
    assert_eq!(
        certain(&[low, 2.0, f32::INFINITY, 2.5], Sampling::new(1)),
        [2; 4]
    );
    assert_eq!(certain(&[low, low], Sampling::new(1)), [-1; 4]);
    assert_eq!(certain(&[nan; 3], Sampling::new(1)), [-1; 4]);
}

#[test]
fn counters_and_seeds_choose_the_numbers() {
    let logits = [0.0f32; 64];
    let first = draw(&logits, Sampling::new(1), 60, 0);
    assert_eq!(first, draw(&logits, Sampling::new(1), 60, 0));
    let other = draw(&logits, Sampling::new(2), 60, 0);
    let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
    assert!(same < 10, "{same} of 60 draws are the same");
    let follow = first.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(follow < 10, "{follow} of 60 draws repeat the one before");
}

#[test]
fn wrong_options_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let logits = stream.zeroed::<f32>(8).unwrap();
    let counters = stream.zeroed::<u64>(2).unwrap();
    let mut tokens = stream.zeroed::<i32>(2).unwrap();
    let mut error = |sampling: Sampling, rows: [usize; 2]| {
        let to = TensorMut::new(&mut tokens, [2]).unwrap();
        let logits = Tensor::new(&logits, rows).unwrap();
        match sampling.run(&stream, logits, Tensor::new(&counters, [2]).unwrap(), to) {
            Err(error @ Error::Extents { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    for sampling in [
        Sampling::new(1).temperature(-1.0),
        Sampling::new(1).top_k(0),
        Sampling::new(1).top_p(0.0),
        Sampling::new(1).top_p(f32::NAN),
    ] {
        let found = error(sampling, [2, 4]);
        assert!(
            found.contains("give a finite temperature from 0 on"),
            "{found}"
        );
    }
    let found = error(Sampling::new(1), [4, 2]);
    assert!(
        found.contains("the layout of the counters is (2):(1)"),
        "{found}"
    );
}
