//! `Attention::backward` against f64: types, heads, masks, packed sequences, strides, and what is refused.

use cutlet::{Attention, Device, DeviceTensor, Error, Stream, Tensor, TensorMut, layout};
use half::{bf16, f16};

use crate::attention::{CAUSAL, Case, Operands, PLAIN, Rounded, ends, numbers};

/// A gradient in f64, and the sum of its terms without signs.
struct Expected {
    gradient: Vec<f64>,
    size: Vec<f64>,
}

impl Expected {
    fn zeros(count: usize) -> Self {
        Expected {
            gradient: vec![0.0; count],
            size: vec![0.0; count],
        }
    }

    /// Adds `factor · row` to the elements from `at` on. Without signs, the factor is at most `size`.
    fn add(&mut self, at: usize, [factor, size]: [f64; 2], row: &[f64]) {
        for (feature, value) in row.iter().enumerate() {
            self.gradient[at + feature] += factor * value;
            self.size[at + feature] += size * value.abs();
        }
    }
}

/// The tensors of a call in f64, the keys that each query sees, and its weights.
struct Exact<'a> {
    case: &'a Case,
    queries: Vec<f64>,
    keys: Vec<f64>,
    values: Vec<f64>,
    output_gradient: Vec<f64>,
    sinks: &'a [f32],
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Exact<'_> {
    fn scale(&self) -> f64 {
        let features = self.case.features as f64;
        self.case.scale.map_or(1.0 / features.sqrt(), f64::from)
    }

    /// Where the row of a query begins.
    fn of_query(&self, [sequence, query, head]: [usize; 3]) -> usize {
        let Case {
            queries,
            heads,
            features,
            ..
        } = *self.case;
        ((sequence * queries + query) * heads + head) * features
    }

    /// Where the row of a key begins that a head of queries sees.
    fn of_key(&self, [sequence, key, head]: [usize; 3]) -> usize {
        let Case {
            keys,
            heads,
            heads_of_keys,
            features,
            ..
        } = *self.case;
        ((sequence * keys + key) * heads_of_keys + head / (heads / heads_of_keys)) * features
    }

    /// The keys that a query sees, and its weights of them.
    fn weights(&self, [sequence, query, head]: [usize; 3]) -> Vec<(usize, f64)> {
        let Case {
            queries,
            keys,
            features,
            ..
        } = *self.case;
        let own = query as i64 + keys as i64 - queries as i64;
        let [before, after] = self.case.window.unwrap_or([usize::MAX; 2]);
        let most = |keys: usize| i64::try_from(keys).unwrap_or(i64::MAX);
        let is_seen = |key: &usize| {
            let distance = *key as i64 - own;
            -distance <= most(before) && distance <= most(after)
        };
        let q = &self.queries[self.of_query([sequence, query, head])..][..features];
        let score = |key| {
            self.scale()
                * dot(
                    q,
                    &self.keys[self.of_key([sequence, key, head])..][..features],
                )
        };
        let scores: Vec<(usize, f64)> = (0..keys)
            .filter(is_seen)
            .map(|key| (key, score(key)))
            .collect();
        let sink = self.case.has_sinks.then(|| f64::from(self.sinks[head]));
        let all = || scores.iter().map(|it| it.1).chain(sink);
        let largest = all().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = all().map(|score| (score - largest).exp()).sum();
        scores
            .iter()
            .map(|(key, score)| (*key, (score - largest).exp() / sum))
            .collect()
    }

    /// The gradients of queries, keys and values.
    fn gradients(&self) -> [Expected; 3] {
        let Case {
            sequences,
            queries,
            heads,
            features,
            ..
        } = *self.case;
        let [mut of_queries, mut of_keys, mut of_values] =
            [&self.queries, &self.keys, &self.values].map(|it| Expected::zeros(it.len()));
        for sequence in 0..sequences {
            for query in 0..queries {
                for head in 0..heads {
                    let row = self.of_query([sequence, query, head]);
                    let gradient = &self.output_gradient[row..][..features];
                    let weights = self.weights([sequence, query, head]);
                    let key = |key| self.of_key([sequence, key, head]);
                    let of_weight = |nth| dot(gradient, &self.values[key(nth)..][..features]);
                    let sizes = |nth| {
                        let value = &self.values[key(nth)..][..features];
                        gradient
                            .iter()
                            .zip(value)
                            .map(|(g, v)| (g * v).abs())
                            .sum::<f64>()
                    };
                    let sum: f64 = weights
                        .iter()
                        .map(|(nth, weight)| weight * of_weight(*nth))
                        .sum();
                    // The output is rounded before it is multiplied by its gradient.
                    let size: f64 = weights
                        .iter()
                        .map(|(nth, weight)| weight * sizes(*nth))
                        .sum();
                    for (nth, weight) in &weights {
                        let of_score = self.scale() * weight * (of_weight(*nth) - sum);
                        let of_score = [of_score, of_score.abs() + self.scale() * weight * size];
                        of_values.add(key(*nth), [*weight; 2], gradient);
                        of_keys.add(key(*nth), of_score, &self.queries[row..][..features]);
                        of_queries.add(row, of_score, &self.keys[key(*nth)..][..features]);
                    }
                }
            }
        }
        [of_queries, of_keys, of_values]
    }
}

impl<'a> Exact<'a> {
    fn of<T: Rounded>(case: &'a Case, of: &'a Operands<T>, output_gradient: &[T]) -> Self {
        let exact = |of: &[T]| of.iter().map(|it| (*it).into()).collect();
        Exact {
            case,
            queries: exact(&of.queries),
            keys: exact(&of.keys),
            values: exact(&of.values),
            output_gradient: exact(output_gradient),
            sinks: &of.sinks,
        }
    }
}

/// Compares gradients of queries, keys and values with f64.
fn compare<T: Rounded>(case: &Case, found: [&[T]; 3], expected: [Expected; 3]) {
    for ((name, found), expected) in ["queries", "keys", "values"]
        .iter()
        .zip(found)
        .zip(expected)
    {
        assert_eq!(found.len(), expected.gradient.len());
        for (nth, found) in found.iter().enumerate() {
            let found: f64 = (*found).into();
            let (expected, size) = (expected.gradient[nth], expected.size[nth]);
            // Weights, their gradients, the output and the result are rounded, and scores are sums in f32. Small
            // numbers of f16 are multiples of 2⁻²⁴.
            let small = (case.queries + case.keys) as f64 * 2f64.powi(-24);
            let most = T::EPSILON * (2.0 * size + expected.abs()) + 6e-3 * size + small;
            assert!(
                (found - expected).abs() <= most,
                "{case:?}: element {nth} of the {name}' gradient is {found}, not {expected} ± {most}"
            );
        }
    }
}

/// A tensor of NaNs.
fn poisoned<T: Rounded>(stream: &Stream, shape: [usize; 4]) -> DeviceTensor<T> {
    let memory = stream.filled::<T>(shape.iter().product(), 0xFF).unwrap();
    DeviceTensor::new(memory, shape).unwrap()
}

/// The gradients of the output for a case.
fn output_gradients<T: Rounded>(of: &Operands<T>) -> Vec<T> {
    numbers(of.queries.len(), 6)
        .into_iter()
        .map(T::of)
        .collect()
}

/// Runs a call and its backward pass, and compares the gradients.
fn check<T: Rounded>(case: Case) {
    let stream = Device::auto().stream().unwrap();
    let of = Operands::<T>::random(&case);
    let gradient = output_gradients(&of);
    let Case {
        sequences,
        queries,
        keys,
        heads,
        heads_of_keys,
        features,
        ..
    } = case;
    let of_queries = [sequences, queries, heads, features];
    let of_keys = [sequences, keys, heads_of_keys, features];
    let upload = |of: &[T], shape| DeviceTensor::upload(&stream, of, shape).unwrap();
    let q = upload(&of.queries, of_queries);
    let (k, v) = (upload(&of.keys, of_keys), upload(&of.values, of_keys));
    let gradient_on_device = upload(&gradient, of_queries);
    let sinks = stream.upload(&of.sinks).unwrap();
    let mut output = poisoned::<T>(&stream, of_queries);
    let mut sums = DeviceTensor::<f32>::zeroed(&stream, [sequences, queries, heads]).unwrap();
    let new = || {
        let call = Attention::new();
        let call = match case.window {
            None => call,
            Some([before, after]) => call.window(before, after),
        };
        match case.scale {
            None => call,
            Some(scale) => call.scale(scale),
        }
    };
    let call = match case.has_sinks {
        true => new().sinks(sinks.view()),
        false => new(),
    };
    call.log_sum_exp(&mut sums)
        .run(&stream, &q, &k, &v, &mut output)
        .unwrap();
    let mut dq = poisoned::<T>(&stream, of_queries);
    let (mut dk, mut dv) = (
        poisoned::<T>(&stream, of_keys),
        poisoned::<T>(&stream, of_keys),
    );
    let gradients = (&mut dq, &mut dk, &mut dv);
    new()
        .backward(
            &stream,
            (&q, &k, &v),
            (&output, &sums),
            &gradient_on_device,
            gradients,
        )
        .unwrap();
    let found = [dq, dk, dv].map(|it| it.download(&stream).unwrap());
    let expected = Exact::of(&case, &of, &gradient).gradients();
    compare(&case, [&found[0], &found[1], &found[2]], expected);
}

#[test]
fn heads_of_all_sizes() {
    for features in [8, 40, 64, 96, 128] {
        check::<bf16>(Case {
            features,
            keys: 150,
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
        (63, 200),
        (128, 128),
        (257, 161),
    ] {
        let case = Case {
            queries,
            keys,
            ..PLAIN
        };
        check::<bf16>(case);
        check::<bf16>(Case {
            sequences: 2,
            window: CAUSAL,
            features: 128,
            ..case
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
        for (queries, keys, features) in [(300, 300, 64), (150, 400, 128), (200, 90, 64)] {
            check::<bf16>(Case {
                queries,
                keys,
                features,
                window: Some(window),
                ..PLAIN
            });
        }
    }
}

#[test]
fn heads_that_share_keys_add_up_their_gradients() {
    for (heads, heads_of_keys) in [(4, 4), (6, 2), (5, 1)] {
        check::<f16>(Case {
            heads,
            heads_of_keys,
            sequences: 2,
            window: CAUSAL,
            scale: Some(0.3),
            ..PLAIN
        });
    }
}

#[test]
fn sinks_are_in_the_logarithms() {
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
fn tensors_may_have_strides() {
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
    let gradient = output_gradients(&of);
    let shape = [2, 70, 3, 64];
    let upload = |of: &[bf16]| DeviceTensor::upload(&stream, of, shape).unwrap();
    let (q, gradient_on_device) = (upload(&of.queries), upload(&gradient));
    // Keys and values are parts of one tensor: (sequence, row, part, head, feature).
    let row = 3 * 64;
    let both: Vec<bf16> = (0..2 * 70)
        .flat_map(|at| [&of.keys[at * row..][..row], &of.values[at * row..][..row]].concat())
        .collect();
    let both = stream.upload(&both).unwrap();
    let part = |nth: usize| {
        let rows = layout!((2, 70, 3, 64):(26880, 384, 64, 1));
        Tensor::new(both.slice(nth * row..).unwrap(), rows).unwrap()
    };
    let mut output = poisoned::<bf16>(&stream, shape);
    // The logarithms and the gradients lie by heads.
    let mut sums = stream.zeroed::<f32>(2 * 3 * 70).unwrap();
    let sums_by_heads = layout!((2, 70, 3):(210, 1, 70));
    let new = || Attention::new().causal();
    new()
        .log_sum_exp(TensorMut::new(&mut sums, sums_by_heads).unwrap())
        .run(&stream, &q, part(0), part(1), &mut output)
        .unwrap();
    let memory = || stream.filled::<bf16>(of.queries.len(), 0xFF).unwrap();
    let [mut dq, mut dk, mut dv] = [memory(), memory(), memory()];
    let by_heads = layout!((2, 70, 3, 64):(13440, 64, 4480, 1));
    let [of_queries, of_keys, of_values] =
        [&mut dq, &mut dk, &mut dv].map(|it| TensorMut::new(it, by_heads).unwrap());
    let sums = Tensor::new(&sums, sums_by_heads).unwrap();
    new()
        .backward(
            &stream,
            (&q, part(0), part(1)),
            (&output, sums),
            &gradient_on_device,
            (of_queries, of_keys, of_values),
        )
        .unwrap();
    let at = |s: usize, q: usize, h: usize| ((s * 3 + h) * 70 + q) * 64;
    let [dq, dk, dv] = [dq, dk, dv].map(|it| {
        let it = stream.download(&it).unwrap();
        let rows = (0..2 * 70 * 3).map(|row| at(row / 210, row / 3 % 70, row % 3));
        rows.flat_map(|at| it[at..][..64].to_vec())
            .collect::<Vec<_>>()
    });
    let expected = Exact::of(&case, &of, &gradient).gradients();
    compare(&case, [&dq, &dk, &dv], expected);
}

#[test]
fn packed_sequences_of_any_lengths() {
    let stream = Device::auto().stream().unwrap();
    for (window, features) in [(None, 64), (CAUSAL, 128), (Some([50, 0]), 64)] {
        let lengths = [(3, 3), (0, 0), (200, 150), (5, 0), (0, 7), (130, 129)];
        let of_queries = ends(lengths.iter().map(|it| it.0));
        let of_keys = ends(lengths.iter().map(|it| it.1));
        let [queries, keys] = [&of_queries, &of_keys].map(|it| it[lengths.len()] as usize);
        let case = Case {
            queries,
            keys,
            heads: 2,
            features,
            window,
            ..PLAIN
        };
        let of = Operands::<bf16>::random(&case);
        let gradient = output_gradients(&of);
        let (shape, shape_of_keys) = ([1, queries, 2, features], [1, keys, 1, features]);
        let upload = |of: &[bf16], shape| DeviceTensor::upload(&stream, of, shape).unwrap();
        let (q, gradient_on_device) = (upload(&of.queries, shape), upload(&gradient, shape));
        let (k, v) = (
            upload(&of.keys, shape_of_keys),
            upload(&of.values, shape_of_keys),
        );
        let mut output = poisoned::<bf16>(&stream, shape);
        let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, queries, 2]).unwrap();
        let [first_queries, first_keys] =
            [&of_queries, &of_keys].map(|it| stream.upload(it).unwrap());
        let new = || {
            let [before, after] = window.unwrap_or([usize::MAX; 2]);
            Attention::new().window(before, after).packed(
                first_queries.view(),
                first_keys.view(),
                200,
            )
        };
        new()
            .log_sum_exp(&mut sums)
            .run(&stream, &q, &k, &v, &mut output)
            .unwrap();
        let mut dq = poisoned::<bf16>(&stream, shape);
        let [mut dk, mut dv] = [shape_of_keys; 2].map(|it| poisoned::<bf16>(&stream, it));
        let gradients = (&mut dq, &mut dk, &mut dv);
        new()
            .backward(
                &stream,
                (&q, &k, &v),
                (&output, &sums),
                &gradient_on_device,
                gradients,
            )
            .unwrap();
        let [dq, dk, dv] = [dq, dk, dv].map(|it| it.download(&stream).unwrap());
        for (nth, (queries, keys)) in lengths.into_iter().enumerate() {
            let (query, key) = (of_queries[nth] as usize, of_keys[nth] as usize);
            let rows = |of: &[bf16], first: usize, count: usize, width: usize| {
                of[first * width..][..count * width].to_vec()
            };
            let of_sequence = Operands {
                queries: rows(&of.queries, query, queries, 2 * features),
                keys: rows(&of.keys, key, keys, features),
                values: rows(&of.values, key, keys, features),
                bias: Vec::new(),
                slopes: Vec::new(),
                sinks: Vec::new(),
            };
            let case = Case {
                queries,
                keys,
                ..case
            };
            let gradient = rows(&gradient, query, queries, 2 * features);
            let expected = Exact::of(&case, &of_sequence, &gradient).gradients();
            let found = [
                rows(&dq, query, queries, 2 * features),
                rows(&dk, key, keys, features),
                rows(&dv, key, keys, features),
            ];
            compare(&case, [&found[0], &found[1], &found[2]], expected);
        }
    }
}

#[test]
fn turns_give_the_same_bits_in_each_run() {
    let stream = Device::auto().stream().unwrap();
    for (features, keys, window) in [
        (64, 600, None),
        (128, 600, CAUSAL),
        (64, 500, Some([150, 20])),
    ] {
        let case = Case {
            queries: 500,
            keys,
            heads: 2,
            features,
            window,
            ..PLAIN
        };
        let of = Operands::<bf16>::random(&case);
        let gradient = output_gradients(&of);
        let (shape, shape_of_keys) = ([1, 500, 2, features], [1, keys, 1, features]);
        let upload = |of: &[bf16], shape| DeviceTensor::upload(&stream, of, shape).unwrap();
        let (q, gradient_on_device) = (upload(&of.queries, shape), upload(&gradient, shape));
        let k = upload(&of.keys, shape_of_keys);
        let v = upload(&of.values, shape_of_keys);
        let mut output = poisoned::<bf16>(&stream, shape);
        let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, 500, 2]).unwrap();
        let [before, after] = window.unwrap_or([usize::MAX; 2]);
        let new = || Attention::new().window(before, after);
        new()
            .log_sum_exp(&mut sums)
            .run(&stream, &q, &k, &v, &mut output)
            .unwrap();
        let run = || {
            let mut dq = poisoned::<bf16>(&stream, shape);
            let [mut dk, mut dv] = [shape_of_keys; 2].map(|it| poisoned::<bf16>(&stream, it));
            let gradients = (&mut dq, &mut dk, &mut dv);
            let results = (&output, &sums);
            new()
                .deterministic()
                .backward(
                    &stream,
                    (&q, &k, &v),
                    results,
                    &gradient_on_device,
                    gradients,
                )
                .unwrap();
            [dq, dk, dv].map(|it| it.download(&stream).unwrap())
        };
        let first = run();
        assert!(first == run(), "{case:?}: two runs differ");
        let expected = Exact::of(&case, &of, &gradient).gradients();
        compare(&case, [&first[0], &first[1], &first[2]], expected);
    }
}

/// What a call answers to queries and keys of these shapes, to a gradient of the output and to gradients of keys.
fn refusal(
    [queries, keys]: [[usize; 4]; 2],
    [output_gradient, of_keys]: [[usize; 4]; 2],
    call: Attention<'_>,
) -> String {
    let stream = Device::auto().stream().unwrap();
    let zeros = |shape: [usize; 4]| DeviceTensor::<bf16>::zeroed(&stream, shape).unwrap();
    let (q, k, v, o) = (zeros(queries), zeros(keys), zeros(keys), zeros(queries));
    let sums = DeviceTensor::<f32>::zeroed(&stream, [queries[0], queries[1], queries[2]]).unwrap();
    let (mut dq, mut dk, mut dv) = (zeros(queries), zeros(of_keys), zeros(keys));
    let gradients = (&mut dq, &mut dk, &mut dv);
    let error = call
        .backward(
            &stream,
            (&q, &k, &v),
            (&o, &sums),
            &zeros(output_gradient),
            gradients,
        )
        .unwrap_err();
    let is_of_attention = matches!(
        error,
        Error::Extents {
            operation: "attention",
            ..
        }
    );
    assert!(is_of_attention, "{error}");
    error.to_string()
}

#[test]
fn wrong_operands_are_refused() {
    let (q, k) = ([2, 5, 4, 64], [2, 7, 2, 64]);
    let new = Attention::new;
    let wrong_shape = |gradients| refusal([q, k], gradients, new());
    assert!(
        wrong_shape([k, k]).contains(
            "the output's gradient has (sequences, rows, heads, features) = [2, 7, 2, 64]"
        )
    );
    assert!(
        wrong_shape([q, q])
            .contains("the keys' gradient has (sequences, rows, heads, features) = [2, 5, 4, 64]")
    );
    let large = [1, 2, 1, 136];
    assert!(
        refusal([large; 2], [large; 2], new())
            .contains("heads have 136 features; the backward pass takes up to 128")
    );
    assert!(
        refusal([q, k], [q, k], new().soft_cap(1.0)).contains("the backward pass has a soft cap")
    );
    let stream = Device::auto().stream().unwrap();
    let bias = DeviceTensor::<f32>::zeroed(&stream, [2, 4, 5, 7]).unwrap();
    assert!(refusal([q, k], [q, k], new().bias(&bias)).contains("the backward pass has a bias"));
    let slopes = stream.zeroed::<f32>(4).unwrap();
    assert!(
        refusal([q, k], [q, k], new().slopes(slopes.view()))
            .contains("the backward pass has slopes")
    );
}
