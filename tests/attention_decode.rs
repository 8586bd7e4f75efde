//! `AttentionDecode` against f64: lengths, pages, splits, groups, windows, and caches whose other memory is NaN.

use cutlet::{
    AttentionDecode, AttentionElement, Device, DeviceTensor, Error, Tensor, capture, layout,
};
use half::{bf16, f16};

use crate::random;

/// A call. Tensors are of random numbers.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The keys of each sequence.
    lengths: &'static [usize],
    queries: usize,
    heads: usize,
    heads_of_keys: usize,
    features: usize,
    /// Keys of a page, or none.
    page: Option<usize>,
    /// Whether the tensor's keys are those of the sequences.
    without_lengths: bool,
    splits: Option<usize>,
    window: Option<[usize; 2]>,
    scale: Option<f32>,
    soft_cap: f32,
    has_sinks: bool,
}

const PLAIN: Case = Case {
    lengths: &[70],
    queries: 1,
    heads: 8,
    heads_of_keys: 2,
    features: 64,
    page: None,
    without_lengths: false,
    splits: None,
    window: None,
    scale: None,
    soft_cap: 0.0,
    has_sinks: false,
};

/// An element type, with the relative error of a rounding.
trait Rounded: AttentionElement + Into<f64> {
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

/// Numbers with the moments of a normal distribution.
fn numbers<T: Rounded>(count: usize, seed: u64) -> Vec<T> {
    let mut random = random::generator(seed);
    let mut uniform = move || random.f32() + random.f32() + random.f32();
    (0..count).map(|_| T::of(2.0 * uniform() - 3.0)).collect()
}

/// The cache: keys and values by row of memory, where each key's row is, and the table of pages.
struct Cache<T> {
    keys: Vec<T>,
    values: Vec<T>,
    /// The row of each key of each sequence.
    rows: Vec<Vec<usize>>,
    table: Vec<i32>,
    /// The keys of a sequence of the tensor, or of its pages.
    longest: usize,
}

impl<T: Rounded> Cache<T> {
    /// A cache whose rows that are no key's are NaN.
    fn random(case: &Case) -> Self {
        let longest = *case.lengths.iter().max().unwrap();
        let longest = longest + if case.without_lengths { 0 } else { 5 };
        let page = case.page.unwrap_or(longest);
        let of_sequence = longest.div_ceil(page);
        let pages = of_sequence * case.lengths.len();
        // Each sequence's pages lie apart, in no order.
        let table: Vec<usize> = match case.page {
            None => (0..pages).collect(),
            Some(_) => {
                let prime = 7919;
                assert!(!pages.is_multiple_of(prime));
                (0..pages).map(|nth| (nth * prime + 3) % pages).collect()
            }
        };
        let rows: Vec<Vec<usize>> = case
            .lengths
            .iter()
            .enumerate()
            .map(|(sequence, length)| {
                let row =
                    |key: usize| table[sequence * of_sequence + key / page] * page + key % page;
                (0..*length).map(row).collect()
            })
            .collect();
        let of_row = case.heads_of_keys * case.features;
        let mut is_used = vec![false; pages * page];
        rows.iter().flatten().for_each(|row| is_used[*row] = true);
        let elements = |seed| {
            let mut elements = numbers::<T>(pages * page * of_row, seed);
            for (row, elements) in elements.chunks_mut(of_row).enumerate() {
                if !is_used[row] {
                    elements.fill(T::of(f32::NAN));
                }
            }
            elements
        };
        let (keys, values) = (elements(2), elements(3));
        // Numbers of pages that no key is in are those of no page.
        let named = |(nth, page_of): (usize, &usize)| {
            let begins_at = nth % of_sequence * page;
            match begins_at < case.lengths[nth / of_sequence] {
                true => *page_of as i32,
                false => -1,
            }
        };
        let table = table.iter().enumerate().map(named).collect();
        Cache {
            keys,
            values,
            rows,
            table,
            longest: of_sequence * page,
        }
    }
}

/// The output of a query in f64, the sum of its weights' products without signs, and the logarithm of its sum.
fn exact<T: Rounded>(
    case: &Case,
    cache: &Cache<T>,
    query: &[T],
    sinks: &[f32],
    [sequence, nth, head]: [usize; 3],
) -> (Vec<f64>, Vec<f64>, f64) {
    let (rows, features) = (&cache.rows[sequence], case.features);
    let head_of_keys = head / (case.heads / case.heads_of_keys);
    let of = |elements: &[T], key: usize| -> Vec<f64> {
        let first = (rows[key] * case.heads_of_keys + head_of_keys) * features;
        elements[first..][..features]
            .iter()
            .map(|it| (*it).into())
            .collect()
    };
    let own = nth as i64 + rows.len() as i64 - case.queries as i64;
    let [before, after] = case.window.unwrap_or([usize::MAX, 0]);
    let is_seen = |key: &usize| {
        let distance = *key as i64 - own;
        let most = |keys: usize| i64::try_from(keys).unwrap_or(i64::MAX);
        -distance <= most(before) && distance <= most(after)
    };
    let score = |key: usize| {
        let product: f64 = query
            .iter()
            .zip(of(&cache.keys, key))
            .map(|(q, k)| (*q).into() * k)
            .sum();
        let score = product * case.scale.map_or(1.0 / (features as f64).sqrt(), f64::from);
        match f64::from(case.soft_cap) {
            0.0 => score,
            cap => cap * (score / cap).tanh(),
        }
    };
    let scores: Vec<(usize, f64)> = (0..rows.len())
        .filter(is_seen)
        .map(|key| (key, score(key)))
        .collect();
    let sink = case.has_sinks.then(|| f64::from(sinks[head]));
    let all = || scores.iter().map(|(_, score)| *score).chain(sink);
    let largest = all().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = all().map(|score| (score - largest).exp()).sum();
    let (mut output, mut size) = (vec![0.0; features], vec![0.0; features]);
    for (key, score) in scores {
        let weight = (score - largest).exp() / sum;
        for (feature, value) in of(&cache.values, key).into_iter().enumerate() {
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

/// Runs a call, and compares the output with loops.
fn check<T: Rounded>(case: Case) {
    let stream = Device::auto().stream().unwrap();
    let cache = Cache::<T>::random(&case);
    let Case {
        queries,
        heads,
        heads_of_keys,
        features,
        ..
    } = case;
    let sequences = case.lengths.len();
    let shape = [sequences, queries, heads, features];
    let all_queries = numbers::<T>(shape.iter().product(), 1);
    let sinks: Vec<f32> = (0..heads).map(|head| head as f32 / 2.0 - 1.0).collect();
    let of_cache = match case.page {
        None => [sequences, cache.longest, heads_of_keys, features],
        Some(page) => [
            cache.keys.len() / page / heads_of_keys / features,
            page,
            heads_of_keys,
            features,
        ],
    };
    let upload = |elements: &[T], shape| DeviceTensor::upload(&stream, elements, shape).unwrap();
    let (q, k, v) = (
        upload(&all_queries, shape),
        upload(&cache.keys, of_cache),
        upload(&cache.values, of_cache),
    );
    let lengths: Vec<i32> = case.lengths.iter().map(|it| *it as i32).collect();
    let lengths = stream.upload(&lengths).unwrap();
    let columns = cache.table.len() / sequences;
    let table = DeviceTensor::upload(&stream, &cache.table, [sequences, columns]).unwrap();
    let device_sinks = stream.upload(&sinks).unwrap();
    let poisoned = stream.filled::<T>(all_queries.len(), 0xFF).unwrap();
    let mut output = DeviceTensor::new(poisoned, shape).unwrap();

    let poisoned = stream
        .filled::<f32>(sequences * queries * heads, 0xFF)
        .unwrap();
    let mut sums = DeviceTensor::new(poisoned, [sequences, queries, heads]).unwrap();

    let mut call = AttentionDecode::new()
        .soft_cap(case.soft_cap)
        .log_sum_exp(&mut sums);
    if !case.without_lengths {
        call = call.lengths(lengths.view());
    }
    if case.page.is_some() {
        call = call.paged(&table);
    }
    if let Some(splits) = case.splits {
        call = call.splits(splits);
    }
    if let Some([before, after]) = case.window {
        call = call.window(before, after);
    }
    if let Some(scale) = case.scale {
        call = call.scale(scale);
    }
    if case.has_sinks {
        call = call.sinks(device_sinks.view());
    }
    call.run(&stream, &q, &k, &v, &mut output).unwrap();
    let (output, sums) = (
        output.download(&stream).unwrap(),
        sums.download(&stream).unwrap(),
    );
    for (row, found) in sums.into_iter().enumerate() {
        let at = [row / heads / queries, row / heads % queries, row % heads];
        let of_row = row * features..(row + 1) * features;
        let (expected, size, logarithm) =
            exact(&case, &cache, &all_queries[of_row.clone()], &sinks, at);
        let found = f64::from(found);
        // A GPU's hyperbolic tangent has an error of 2⁻¹¹.
        assert!(
            found == logarithm || (found - logarithm).abs() < 5e-3 * (1.0 + logarithm.abs()),
            "{case:?}: the logarithm of {at:?} is {found}, not {logarithm}"
        );
        for (feature, found) in output[of_row].iter().enumerate() {
            let (found, expected, size): (f64, _, _) =
                ((*found).into(), expected[feature], size[feature]);
            // Weights and the result are rounded, and scores are sums in f32.
            let most = 2.0 * T::EPSILON * (size + expected.abs()) + 1e-3 * size;
            assert!(
                (found - expected).abs() <= most,
                "{case:?}: sequence, query and head {at:?}, feature {feature} is {found}, not {expected} ± {most}"
            );
        }
    }
}

#[test]
fn lengths_of_all_kinds() {
    for lengths in [&[70][..], &[1], &[0], &[16, 0, 65, 1], &[64, 63, 129]] {
        check::<bf16>(Case { lengths, ..PLAIN });
        check::<f16>(Case {
            lengths,
            splits: Some(3),
            features: 128,
            ..PLAIN
        });
        check::<bf16>(Case {
            lengths: &lengths[..1],
            without_lengths: lengths[0] > 0,
            ..PLAIN
        });
    }
}

#[test]
fn heads_of_all_sizes() {
    for features in [8, 40, 64, 72, 120, 128, 136, 256] {
        check::<bf16>(Case { features, ..PLAIN });
        check::<f16>(Case {
            features,
            splits: Some(2),
            queries: 2,
            ..PLAIN
        });
    }
}

#[test]
fn groups_and_queries() {
    for (heads, heads_of_keys) in [(2, 2), (8, 2), (8, 1), (15, 3)] {
        for queries in [1, 3, 16] {
            let case = Case {
                heads,
                heads_of_keys,
                queries,
                lengths: &[90, 7],
                ..PLAIN
            };
            check::<bf16>(case);
            check::<f16>(Case {
                splits: Some(2),
                features: 128,
                ..case
            });
        }
    }
}

#[test]
fn pages_in_any_order() {
    for page in [1, 16, 24, 64] {
        let case = Case {
            page: Some(page),
            lengths: &[130, 0, 1, 67, 64],
            ..PLAIN
        };
        check::<bf16>(case);
        check::<f16>(Case {
            splits: Some(4),
            queries: 2,
            features: 128,
            ..case
        });
    }
}

#[test]
fn more_splits_than_keys_and_few() {
    for splits in [1, 2, 5, 40] {
        let case = Case {
            splits: Some(splits),
            lengths: &[300, 17, 0],
            has_sinks: true,
            ..PLAIN
        };
        check::<bf16>(case);
        check::<bf16>(Case {
            features: 128,
            page: Some(16),
            ..case
        });
    }
}

#[test]
fn windows_caps_scales_and_sinks() {
    for window in [
        [0, 0],
        [20, 0],
        [33, 2],
        [usize::MAX, usize::MAX],
        [usize::MAX, 0],
    ] {
        let case = Case {
            window: Some(window),
            lengths: &[150, 10],
            queries: 4,
            ..PLAIN
        };
        check::<bf16>(case);
        check::<f16>(Case {
            splits: Some(3),
            has_sinks: true,
            page: Some(16),
            ..case
        });
    }
    check::<bf16>(Case {
        soft_cap: 3.0,
        scale: Some(0.4),
        ..PLAIN
    });
    check::<f16>(Case {
        soft_cap: 30.0,
        has_sinks: true,
        features: 128,
        ..PLAIN
    });
}

#[test]
fn long_caches_are_split_without_being_asked() {
    check::<bf16>(Case {
        lengths: &[2500],
        heads: 2,
        heads_of_keys: 1,
        ..PLAIN
    });
}

#[test]
fn keys_out_of_the_window_may_be_nan() {
    let stream = Device::auto().stream().unwrap();
    let mut keys = vec![f16::ONE; 40 * 64];
    // A query sees the last five keys, whose first one no tile of sixteen begins with.
    keys[..35 * 64].fill(f16::NAN);
    let k = DeviceTensor::upload(&stream, &keys, [1, 40, 1, 64]).unwrap();
    let q = DeviceTensor::upload(&stream, &[f16::ONE; 64], [1, 1, 1, 64]).unwrap();
    let mut output = DeviceTensor::<f16>::zeroed(&stream, [1, 1, 1, 64]).unwrap();
    AttentionDecode::new()
        .window(4, 0)
        .run(&stream, &q, &k, &k, &mut output)
        .unwrap();
    assert_eq!(output.download(&stream).unwrap(), [f16::ONE; 64]);
}

#[test]
fn numbers_of_no_page_and_wrong_lengths_reach_no_other_memory() {
    let stream = Device::auto().stream().unwrap();
    let k = DeviceTensor::upload(&stream, &[bf16::ONE; 3 * 16 * 64], [3, 16, 1, 64]).unwrap();
    let q = DeviceTensor::upload(&stream, &[bf16::ZERO; 2 * 64], [2, 1, 1, 64]).unwrap();
    let mut output = DeviceTensor::<bf16>::zeroed(&stream, [2, 1, 1, 64]).unwrap();
    let table = DeviceTensor::upload(&stream, &[0, 3, i32::MAX, i32::MIN], [2, 2]).unwrap();
    let lengths = stream.upload(&[i32::MAX, -7]).unwrap();
    AttentionDecode::new()
        .paged(&table)
        .lengths(lengths.view())
        .run(&stream, &q, &k, &k, &mut output)
        .unwrap();
    let output = output.download(&stream).unwrap();
    // All scores are 0, and the values of the second page are, too.
    assert!(output[..64].iter().all(|it| it.to_f32() == 0.5));
    assert!(output[64..].iter().all(|it| it.to_f32() == 0.0));
}

#[test]
fn parts_of_one_tensor_need_no_copy() {
    let stream = Device::auto().stream().unwrap();
    // (sequence, key or value, head, key, feature)
    let cache = numbers::<bf16>(2 * 2 * 3 * 50 * 64, 1);
    let both = stream.upload(&cache).unwrap();
    let part = |nth: usize| {
        let by_heads = layout!((2, 50, 3, 64):(19200, 64, 3200, 1));
        Tensor::new(both.slice(nth * 3 * 50 * 64..).unwrap(), by_heads).unwrap()
    };
    let queries = numbers::<bf16>(2 * 3 * 64, 2);
    let q = DeviceTensor::upload(&stream, &queries, [2, 1, 3, 64]).unwrap();
    let mut output = DeviceTensor::<bf16>::zeroed(&stream, [2, 1, 3, 64]).unwrap();
    AttentionDecode::new()
        .run(&stream, &q, part(0), part(1), &mut output)
        .unwrap();
    let found = output.download(&stream).unwrap();

    let contiguous = |nth: usize| {
        let at = |s: usize, key: usize, head: usize| (((s * 2 + nth) * 3 + head) * 50 + key) * 64;
        let rows: Vec<bf16> = (0..2)
            .flat_map(|s| (0..50).flat_map(move |key| (0..3).map(move |head| at(s, key, head))))
            .flat_map(|first| cache[first..][..64].to_vec())
            .collect();
        DeviceTensor::upload(&stream, &rows, [2, 50, 3, 64]).unwrap()
    };
    let (k, v) = (contiguous(0), contiguous(1));
    AttentionDecode::new()
        .run(&stream, &q, &k, &v, &mut output)
        .unwrap();
    assert_eq!(found, output.download(&stream).unwrap());
}

#[test]
fn a_graph_of_a_step_sees_new_lengths() {
    let device = Device::auto();
    let stream = device.stream().unwrap();
    let mut keys = vec![f16::ONE; 64 * 64];
    keys[40 * 64..].fill(f16::from_f32(3.0));
    let v = DeviceTensor::upload(&stream, &keys, [1, 64, 1, 64]).unwrap();
    let k = DeviceTensor::<f16>::zeroed(&stream, [1, 64, 1, 64]).unwrap();
    let q = DeviceTensor::<f16>::zeroed(&stream, [1, 1, 1, 64]).unwrap();
    let mut output = DeviceTensor::<f16>::zeroed(&stream, [1, 1, 1, 64]).unwrap();
    let mut lengths = stream.upload(&[40]).unwrap();
    let graph = capture(&device, |stream| {
        let call = AttentionDecode::new().lengths(lengths.view()).splits(2);
        call.run(stream, &q, &k, &v, &mut output)
    })
    .unwrap();
    // SAFETY: nothing else uses the tensors before the download has waited.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(output.download(&stream).unwrap()[0], f16::ONE);
    stream.copy_from_host(&[60], &mut lengths).unwrap();
    // SAFETY: as above.
    unsafe { graph.launch(&stream).unwrap() };
    let mean = output.download(&stream).unwrap()[0].to_f32();
    assert!((mean - 100.0 / 60.0).abs() < 1e-2, "{mean}");
}

/// What a call answers to tensors of these shapes.
fn refusal(shapes: [[usize; 4]; 4], call: AttentionDecode<'_>) -> String {
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
    let (q, k) = ([2, 1, 4, 64], [2, 7, 2, 64]);
    let new = AttentionDecode::new;
    let agree = "give keys and values of one shape and the same strides";
    assert!(refusal([q, [2, 7, 3, 64], [2, 7, 3, 64], q], new()).contains(agree));
    assert!(refusal([q, k, [2, 8, 2, 64], q], new()).contains(agree));
    assert!(refusal([q, [3, 7, 2, 64], [3, 7, 2, 64], q], new()).contains(agree));
    assert!(refusal([q, k, k, [2, 1, 4, 72]], new()).contains(agree));
    let large = [1, 2, 1, 264];
    assert!(refusal([large; 4], new()).contains("heads have 264 features; give up to 256"));
    assert!(
        refusal([q, k, k, q], new().scale(0.0))
            .contains("the scale is 0; give a finite number above 0")
    );
    assert!(refusal([q, k, k, q], new().soft_cap(f32::NAN)).contains("the soft cap is NaN"));
    assert!(refusal([q, k, k, q], new().splits(0)).contains("0 splits of 7 keys"));
    assert!(
        refusal([q, k, k, q], new().splits(usize::MAX)).contains("so few that there are up to")
    );
    let stream = Device::auto().stream().unwrap();
    let numbers = stream.zeroed::<f32>(3).unwrap();
    assert!(
        refusal([q, k, k, q], new().sinks(numbers.view()))
            .contains("the sinks are 3 numbers for 4 heads")
    );
    let lengths = stream.zeroed::<i32>(3).unwrap();
    let wrong = refusal([q, k, k, q], new().lengths(lengths.view()));
    assert!(wrong.contains("the lengths are 3 numbers for 2 sequences"));
    let page = [1, 2048, 1, 8];
    let table = DeviceTensor::<i32>::zeroed(&stream, [1, 1 << 20]).unwrap();
    let wrong = refusal(
        [[1, 1, 1, 8], page, page, [1, 1, 1, 8]],
        new().paged(&table),
    );
    assert!(wrong.contains("a sequence may have 2147483648 keys; give up to 536870912"));
    let table = DeviceTensor::<i32>::zeroed(&stream, [3, 1]).unwrap();
    assert!(
        refusal([q, k, k, q], new().paged(&table)).contains("for 2 sequences; give a row for each")
    );
}
