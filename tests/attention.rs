//! `Attention` against f64: types, heads, masks, biases, packed sequences, strides, and values that are not finite. Each
//! test runs all kernels that the device has.

use cutlet::{
    Attention, AttentionElement, AttentionKernels, Device, DeviceTensor, Error, Tensor, TensorMut,
    layout,
};
use half::{bf16, f16};

use crate::random;

/// A call. Tensors are of random numbers.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub sequences: usize,
    pub queries: usize,
    pub keys: usize,
    pub heads: usize,
    pub heads_of_keys: usize,
    pub features: usize,
    pub window: Option<[usize; 2]>,
    pub scale: Option<f32>,
    pub soft_cap: f32,
    pub has_bias: bool,
    pub has_slopes: bool,
    pub has_sinks: bool,
}

pub const PLAIN: Case = Case {
    sequences: 1,
    queries: 100,
    keys: 100,
    heads: 1,
    heads_of_keys: 1,
    features: 64,
    window: None,
    scale: None,
    soft_cap: 0.0,
    has_bias: false,
    has_slopes: false,
    has_sinks: false,
};
pub const CAUSAL: Option<[usize; 2]> = Some([usize::MAX, 0]);

/// An element type, with the relative error of a rounding.
pub trait Rounded: AttentionElement + Into<f64> {
    const EPSILON: f64;
    fn of(number: f32) -> Self;
}

impl Rounded for bf16 {
    const EPSILON: f64 = 1.0 / 256.0;
    fn of(number: f32) -> Self {
        bf16::from_f32(number)
    }
}

impl Rounded for f16 {
    const EPSILON: f64 = 1.0 / 2048.0;
    fn of(number: f32) -> Self {
        f16::from_f32(number)
    }
}

/// A call for each of the kernels that run on the device.
fn each_kernels<'a>() -> impl Iterator<Item = Attention<'a>> {
    let kernels = match Device::auto().compute_capability() {
        None | Some((9, 0)) => &[AttentionKernels::Sm80, AttentionKernels::Sm90][..],
        _ => &[AttentionKernels::Sm80],
    };
    let call = |kernels: &AttentionKernels| Attention::new().kernels(*kernels);
    kernels.iter().map(call)
}

/// Numbers with the moments of a normal distribution.
pub fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut random = random::generator(seed);
    let mut uniform = move || random.f32() + random.f32() + random.f32();
    (0..count).map(|_| 2.0 * uniform() - 3.0).collect()
}

/// What a call gets, as the loops below read it.
pub struct Operands<T> {
    pub queries: Vec<T>,
    pub keys: Vec<T>,
    pub values: Vec<T>,
    pub bias: Vec<f32>,
    pub slopes: Vec<f32>,
    pub sinks: Vec<f32>,
}

impl<T: Rounded> Operands<T> {
    pub fn random(case: &Case) -> Self {
        let rounded = |count: usize, seed| numbers(count, seed).into_iter().map(T::of).collect();
        let Case {
            sequences,
            queries,
            keys,
            heads,
            heads_of_keys,
            features,
            ..
        } = *case;
        let of_keys = sequences * keys * heads_of_keys * features;
        Operands {
            queries: rounded(sequences * queries * heads * features, 1),
            keys: rounded(of_keys, 2),
            values: rounded(of_keys, 3),
            bias: numbers(sequences * heads * queries * keys, 4),
            slopes: (0..heads).map(|head| 0.1 / (head + 1) as f32).collect(),
            sinks: numbers(heads, 5),
        }
    }
}

/// The output of a query in f64, the sum of its weights' products without signs, and the logarithm of its sum.
fn exact<T: Rounded>(
    case: &Case,
    of: &Operands<T>,
    [sequence, query, head]: [usize; 3],
) -> (Vec<f64>, Vec<f64>, f64) {
    let Case {
        queries,
        keys,
        heads,
        heads_of_keys,
        features,
        ..
    } = *case;
    let head_of_keys = head / (heads / heads_of_keys);
    let row_of_key = |key| ((sequence * keys + key) * heads_of_keys + head_of_keys) * features;
    let q = &of.queries[((sequence * queries + query) * heads + head) * features..][..features];
    let own = query as i64 + keys as i64 - queries as i64;
    let is_seen = |key: usize| match case.window {
        None => true,
        Some([before, after]) => {
            let distance = key as i64 - own;
            let most = |keys: usize| i64::try_from(keys).unwrap_or(i64::MAX);
            -distance <= most(before) && distance <= most(after)
        }
    };
    let score = |key: usize| {
        let k = &of.keys[row_of_key(key)..][..features];
        let product: f64 = q.iter().zip(k).map(|(&q, &k)| q.into() * k.into()).sum();
        let mut score = product * case.scale.map_or(1.0 / (features as f64).sqrt(), f64::from);
        if case.soft_cap > 0.0 {
            let cap = f64::from(case.soft_cap);
            score = cap * (score / cap).tanh();
        }
        if case.has_bias {
            score += f64::from(of.bias[((sequence * heads + head) * queries + query) * keys + key]);
        }
        if case.has_slopes {
            score -= f64::from(of.slopes[head]) * (key as i64 - own).abs() as f64;
        }
        score
    };
    let scores: Vec<(usize, f64)> = (0..keys)
        .filter(|&key| is_seen(key))
        .map(|key| (key, score(key)))
        .collect();
    let sink = case.has_sinks.then(|| f64::from(of.sinks[head]));
    let all = scores.iter().map(|(_, score)| *score).chain(sink);
    let largest = all.clone().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = all.map(|score| (score - largest).exp()).sum();
    let (mut output, mut size) = (vec![0.0; features], vec![0.0; features]);
    for (key, score) in scores {
        let weight = (score - largest).exp() / sum;
        for (feature, value) in of.values[row_of_key(key)..][..features].iter().enumerate() {
            let value: f64 = (*value).into();
            output[feature] += weight * value;
            size[feature] += weight * value.abs();
        }
    }
    let logarithm = match largest == f64::NEG_INFINITY {
        true => largest,
        false => largest + sum.ln(),
    };
    (output, size, logarithm)
}

/// Runs a call, and compares the output and the logarithms with loops.
fn check<T: Rounded>(case: Case) {
    each_kernels().for_each(|call| check_call::<T>(case, call));
}

/// [`check`] of some kernels.
fn check_call<T: Rounded>(case: Case, call: Attention<'_>) {
    let stream = Device::auto().stream().unwrap();
    let of = Operands::<T>::random(&case);
    let Case {
        sequences,
        queries,
        keys,
        heads,
        heads_of_keys,
        features,
        ..
    } = case;
    let upload = |of: &[T], rows, heads| {
        DeviceTensor::upload(&stream, of, [sequences, rows, heads, features]).unwrap()
    };
    let (q, k, v) = (
        upload(&of.queries, queries, heads),
        upload(&of.keys, keys, heads_of_keys),
        upload(&of.values, keys, heads_of_keys),
    );
    let bias = DeviceTensor::upload(&stream, &of.bias, [sequences, heads, queries, keys]).unwrap();
    let (slopes, sinks) = (
        stream.upload(&of.slopes).unwrap(),
        stream.upload(&of.sinks).unwrap(),
    );
    let poisoned = stream.filled::<T>(of.queries.len(), 0xFF).unwrap();
    let mut output = DeviceTensor::new(poisoned, [sequences, queries, heads, features]).unwrap();
    let poisoned = stream
        .filled::<f32>(sequences * queries * heads, 0xFF)
        .unwrap();
    let mut sums = DeviceTensor::new(poisoned, [sequences, queries, heads]).unwrap();

    let mut call = call.soft_cap(case.soft_cap).log_sum_exp(&mut sums);
    if let Some([before, after]) = case.window {
        call = call.window(before, after);
    }
    if let Some(scale) = case.scale {
        call = call.scale(scale);
    }
    if case.has_bias {
        call = call.bias(&bias);
    }
    if case.has_slopes {
        call = call.slopes(slopes.view());
    }
    if case.has_sinks {
        call = call.sinks(sinks.view());
    }
    call.run(&stream, &q, &k, &v, &mut output).unwrap();
    let (output, sums) = (
        output.download(&stream).unwrap(),
        sums.download(&stream).unwrap(),
    );
    let expected = |at| exact(&case, &of, at);
    compare(
        &case,
        [sequences, queries, heads, features],
        &output,
        &sums,
        expected,
    );
}

/// Compares a call's results with `expected` of each sequence, query and head.
fn compare<T: Rounded>(
    what: &dyn std::fmt::Debug,
    [sequences, queries, heads, features]: [usize; 4],
    output: &[T],
    sums: &[f32],
    expected: impl Fn([usize; 3]) -> (Vec<f64>, Vec<f64>, f64),
) {
    // Some queries of many, the first and the last ones among them.
    let some = |query: &usize| query.is_multiple_of(7) || *query + 2 > queries;
    for sequence in 0..sequences {
        for query in (0..queries).filter(some) {
            for head in 0..heads {
                let row = (sequence * queries + query) * heads + head;
                let (expected, size, logarithm) = expected([sequence, query, head]);
                let found = f64::from(sums[row]);
                // A GPU's hyperbolic tangent has an error of 2⁻¹¹.
                assert!(
                    found == logarithm
                        || (found - logarithm).abs() < 5e-3 * (1.0 + logarithm.abs()),
                    "{what:?}: the logarithm of {query}, head {head} is {found}, not {logarithm}"
                );
                for feature in 0..features {
                    let found: f64 = output[row * features + feature].into();
                    let (expected, size) = (expected[feature], size[feature]);
                    // Weights and the result are rounded, and scores are sums in f32.
                    let most = T::EPSILON * (size + expected.abs()) + 6e-3 * size;
                    assert!(
                        (found - expected).abs() <= most,
                        "{what:?}: sequence {sequence}, query {query}, head {head}, feature {feature} is {found}, not \
                         {expected} ± {most}"
                    );
                }
            }
        }
    }
}

#[test]
fn heads_of_all_sizes() {
    for features in [8, 40, 64, 96, 128, 136, 256] {
        check::<bf16>(Case {
            features,
            keys: 210,
            ..PLAIN
        });
        check::<f16>(Case {
            features,
            window: CAUSAL,
            queries: 140,
            keys: 140,
            ..PLAIN
        });
    }
}

#[test]
fn extents_that_no_tile_divides() {
    for (queries, keys) in [
        (1, 1),
        (1, 129),
        (129, 1),
        (63, 300),
        (128, 128),
        (257, 161),
    ] {
        check::<bf16>(Case {
            queries,
            keys,
            heads: 2,
            heads_of_keys: 1,
            ..PLAIN
        });
        check::<bf16>(Case {
            queries,
            keys,
            sequences: 2,
            window: CAUSAL,
            features: 128,
            ..PLAIN
        });
    }
}

#[test]
fn windows_of_keys() {
    for window in [
        [0, 0],
        [5, 0],
        [130, 0],
        [0, 40],
        [100, 100],
        [usize::MAX, 7],
        [3, usize::MAX],
    ] {
        for (queries, keys) in [(300, 300), (150, 400), (200, 90)] {
            check::<bf16>(Case {
                queries,
                keys,
                window: Some(window),
                ..PLAIN
            });
        }
    }
}

#[test]
fn heads_that_share_keys() {
    for (heads, heads_of_keys) in [(4, 4), (6, 2), (5, 1)] {
        let case = Case {
            heads,
            heads_of_keys,
            sequences: 3,
            window: CAUSAL,
            ..PLAIN
        };
        check::<f16>(case);
    }
}

#[test]
fn scores_that_are_modified() {
    for features in [64, 128, 256] {
        let case = Case {
            features,
            queries: 70,
            keys: 170,
            heads: 4,
            heads_of_keys: 2,
            ..PLAIN
        };
        check::<bf16>(Case {
            soft_cap: 5.0,
            ..case
        });
        check::<bf16>(Case {
            has_bias: true,
            scale: Some(0.3),
            window: CAUSAL,
            ..case
        });
        check::<f16>(Case {
            has_slopes: true,
            window: CAUSAL,
            ..case
        });
        check::<f16>(Case {
            soft_cap: 20.0,
            has_bias: true,
            has_slopes: true,
            has_sinks: true,
            sequences: 2,
            ..case
        });
    }
}

#[test]
fn sinks_count_in_the_sum() {
    check::<bf16>(Case {
        has_sinks: true,
        heads: 3,
        window: CAUSAL,
        queries: 150,
        keys: 70,
        ..PLAIN
    });
}

#[test]
fn a_query_without_keys_has_an_output_of_zero_whatever_values_are() {
    let stream = Device::auto().stream().unwrap();
    let ones = [bf16::ONE; 6 * 64];
    let q = DeviceTensor::upload(&stream, &ones, [1, 6, 1, 64]).unwrap();
    let k = DeviceTensor::upload(&stream, &ones[..4 * 64], [1, 4, 1, 64]).unwrap();
    let v = DeviceTensor::upload(&stream, &[bf16::INFINITY; 4 * 64], [1, 4, 1, 64]).unwrap();
    for call in each_kernels() {
        let mut output = DeviceTensor::upload(&stream, &ones, [1, 6, 1, 64]).unwrap();
        let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, 6, 1]).unwrap();
        // The first two queries belong to no key.
        call.causal()
            .log_sum_exp(&mut sums)
            .run(&stream, &q, &k, &v, &mut output)
            .unwrap();
        let (output, sums) = (
            output.download(&stream).unwrap(),
            sums.download(&stream).unwrap(),
        );
        assert!(output[..2 * 64].iter().all(|it| *it == bf16::ZERO));
        assert_eq!(sums[..2], [f32::NEG_INFINITY; 2]);
        assert!(sums[2] == 8.0);
    }
}

#[test]
fn a_bias_of_minus_infinity_hides_keys_and_nan_spreads_in_its_row() {
    let stream = Device::auto().stream().unwrap();
    let ones = [f16::ONE; 3 * 64];
    let rows = || DeviceTensor::upload(&stream, &ones, [1, 3, 1, 64]).unwrap();
    let (q, k, v) = (rows(), rows(), rows());
    let hidden = f32::NEG_INFINITY;
    let bias = [
        0.0,
        hidden,
        hidden,
        hidden,
        hidden,
        hidden,
        0.0,
        f32::NAN,
        0.0,
    ];
    let bias = DeviceTensor::upload(&stream, &bias, [1, 1, 3, 3]).unwrap();
    for call in each_kernels() {
        let mut output = rows();
        call.bias(&bias)
            .run(&stream, &q, &k, &v, &mut output)
            .unwrap();
        let output = output.download(&stream).unwrap();
        assert_eq!(output[0], f16::ONE);
        assert_eq!(output[64], f16::ZERO);
        assert!(output[128].is_nan());
    }
}

#[test]
fn parts_of_one_tensor_need_no_copy() {
    each_kernels().for_each(of_parts_of_one_tensor);
}

fn of_parts_of_one_tensor(call: Attention<'_>) {
    let stream = Device::auto().stream().unwrap();
    let case = Case {
        sequences: 2,
        queries: 70,
        keys: 70,
        heads: 3,
        heads_of_keys: 3,
        window: CAUSAL,
        ..PLAIN
    };
    let of = Operands::<bf16>::random(&case);
    // (sequence, row, part, head, feature)
    let parts = [&of.queries, &of.keys, &of.values];
    let row = 3 * 64;
    let qkv: Vec<bf16> = (0..2 * 70)
        .flat_map(|at| {
            parts
                .iter()
                .flat_map(move |part| part[at * row..][..row].to_vec())
        })
        .collect();
    let qkv = stream.upload(&qkv).unwrap();
    let part = |nth: usize| {
        let rows = layout!((2, 70, 3, 64):(40320, 576, 64, 1));
        Tensor::new(qkv.slice(nth * row..).unwrap(), rows).unwrap()
    };
    // The output lies by heads: (sequence, head, row, feature).
    let mut memory = stream.filled::<bf16>(of.queries.len(), 0xFF).unwrap();
    let by_heads = layout!((2, 70, 3, 64):(13440, 64, 4480, 1));
    let output = TensorMut::new(&mut memory, by_heads).unwrap();
    let mut sums = DeviceTensor::<f32>::zeroed(&stream, [2, 70, 3]).unwrap();
    let call = call.causal().log_sum_exp(&mut sums);
    call.run(&stream, part(0), part(1), part(2), output)
        .unwrap();
    let by_heads = stream.download(&memory).unwrap();
    let at = |sequence: usize, query: usize, head: usize| ((sequence * 3 + head) * 70 + query) * 64;
    let output: Vec<bf16> = (0..2usize)
        .flat_map(|s| (0..70).flat_map(move |q| (0..3).map(move |h| (s, q, h))))
        .flat_map(|(s, q, h)| by_heads[at(s, q, h)..][..64].to_vec())
        .collect();
    let sums = sums.download(&stream).unwrap();
    compare(&case, [2, 70, 3, 64], &output, &sums, |at| {
        exact(&case, &of, at)
    });
}

#[test]
fn packed_sequences_of_any_lengths() {
    for (window, features) in [(None, 64), (CAUSAL, 128), (Some([50, 0]), 64)] {
        each_kernels().for_each(|call| check_packed(window, features, call));
    }
}

/// The first row of each packed sequence, and the end of the last one.
pub fn ends(lengths: impl Iterator<Item = usize>) -> Vec<i32> {
    let sums = lengths.scan(0, |sum, length| {
        *sum += length;
        Some(*sum as i32)
    });
    [0].into_iter().chain(sums).collect()
}

fn check_packed(window: Option<[usize; 2]>, features: usize, call: Attention<'_>) {
    let stream = Device::auto().stream().unwrap();
    let lengths = [(3, 3), (0, 0), (200, 260), (5, 0), (1, 1), (130, 129)];
    let of_queries = ends(lengths.iter().map(|it| it.0));
    let of_keys = ends(lengths.iter().map(|it| it.1));
    let [queries, keys] = [&of_queries, &of_keys].map(|it| it[lengths.len()] as usize);
    let case = Case {
        queries,
        keys,
        heads: 2,
        heads_of_keys: 1,
        features,
        window,
        ..PLAIN
    };
    let of = Operands::<bf16>::random(&case);
    let upload = |of: &[bf16], rows, heads| {
        DeviceTensor::upload(&stream, of, [1, rows, heads, features]).unwrap()
    };
    let (q, k, v) = (
        upload(&of.queries, queries, 2),
        upload(&of.keys, keys, 1),
        upload(&of.values, keys, 1),
    );
    let poisoned = stream.filled::<bf16>(of.queries.len(), 0xFF).unwrap();
    let mut output = DeviceTensor::new(poisoned, [1, queries, 2, features]).unwrap();
    let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, queries, 2]).unwrap();
    let [first_queries, first_keys] = [&of_queries, &of_keys].map(|it| stream.upload(it).unwrap());
    let mut call = call.log_sum_exp(&mut sums);
    if let Some([before, after]) = window {
        call = call.window(before, after);
    }
    call.packed(first_queries.view(), first_keys.view(), 200)
        .run(&stream, &q, &k, &v, &mut output)
        .unwrap();
    let (output, sums) = (
        output.download(&stream).unwrap(),
        sums.download(&stream).unwrap(),
    );
    for (nth, (queries, keys)) in lengths.into_iter().enumerate() {
        let (query, key) = (of_queries[nth] as usize, of_keys[nth] as usize);
        let of_sequence = Operands {
            queries: of.queries[query * 2 * features..][..queries * 2 * features].to_vec(),
            keys: of.keys[key * features..][..keys * features].to_vec(),
            values: of.values[key * features..][..keys * features].to_vec(),
            bias: Vec::new(),
            slopes: Vec::new(),
            sinks: Vec::new(),
        };
        let case = Case {
            queries,
            keys,
            ..case
        };
        let expected = |at| exact(&case, &of_sequence, at);
        let (output, sums) = (&output[query * 2 * features..], &sums[query * 2..]);
        compare(&case, [1, queries, 2, features], output, sums, expected);
    }
}

#[test]
fn wrong_numbers_of_packed_sequences_lead_nowhere() {
    let stream = Device::auto().stream().unwrap();
    for call in each_kernels() {
        let all = stream.upload(&[bf16::ONE; 3 * 5 * 64]).unwrap();
        let rows = || Tensor::new(all.slice(5 * 64..10 * 64).unwrap(), [1, 5, 1, 64]).unwrap();
        let mut memory = stream.filled::<bf16>(3 * 5 * 64, 0xFF).unwrap();
        let middle = memory.slice_mut(5 * 64..10 * 64).unwrap();
        let output = TensorMut::new(middle, [1, 5, 1, 64]).unwrap();
        let ends = stream.upload(&[-3, 2, 100, i32::MIN]).unwrap();
        call.packed(ends.view(), ends.view(), 9)
            .run(&stream, rows(), rows(), rows(), output)
            .unwrap();
        let memory = stream.download(&memory).unwrap();
        assert!(memory[..5 * 64].iter().all(|it| it.is_nan()));
        assert!(memory[5 * 64..10 * 64].iter().all(|it| *it == bf16::ONE));
        assert!(memory[10 * 64..].iter().all(|it| it.is_nan()));
    }
}

/// What a call answers to tensors of these shapes.
fn refusal(shapes: [[usize; 4]; 4], call: Attention<'_>) -> String {
    let stream = Device::auto().stream().unwrap();
    let [q, k, v, o] = shapes.map(|it| DeviceTensor::<bf16>::zeroed(&stream, it).unwrap());
    let mut o = o;
    let error = call.run(&stream, &q, &k, &v, &mut o).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Extents {
                operation: "attention",
                ..
            }
        ),
        "{error}"
    );
    error.to_string()
}

#[test]
fn wrong_operands_are_refused() {
    let (q, k) = ([2, 5, 4, 64], [2, 7, 2, 64]);
    let new = Attention::new;
    let agree = "give keys and values of one shape";
    assert!(refusal([q, [2, 7, 3, 64], [2, 7, 3, 64], q], new()).contains(agree));
    assert!(refusal([q, k, [2, 8, 2, 64], q], new()).contains(agree));
    assert!(refusal([q, k, k, [2, 5, 4, 72]], new()).contains(agree));
    let large = [1, 2, 1, 264];
    assert!(refusal([large; 4], new()).contains("heads have 264 features; give up to 256"));
    let odd = [1, 1, 1, 60];
    assert!(refusal([odd; 4], new()).contains("whose heads have multiples of 16 bytes"));
    assert!(
        refusal([q, k, k, q], new().scale(-1.0))
            .contains("the scale is -1; give a finite number above 0")
    );
    assert!(refusal([q, k, k, q], new().soft_cap(f32::NAN)).contains("the soft cap is NaN"));
    let stream = Device::auto().stream().unwrap();
    let numbers = stream.zeroed::<f32>(3).unwrap();
    assert!(
        refusal([q, k, k, q], new().sinks(numbers.view()))
            .contains("the sinks are 3 numbers for 4 heads")
    );
    let ends = stream.zeroed::<i32>(3).unwrap();
    let packed = new().packed(ends.view(), ends.view(), 5);
    assert!(refusal([q, k, k, q], packed).contains("lie in tensors of 2 sequences"));
    let bias = DeviceTensor::<f32>::zeroed(&stream, [2, 4, 5, 6]).unwrap();
    assert!(
        refusal([q, k, k, q], new().bias(&bias))
            .contains("(sequences, heads, queries, keys) = [2, 4, 5, 7]")
    );
}
