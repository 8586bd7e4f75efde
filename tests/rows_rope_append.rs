//! New tokens whose keys are rotated into a cache: against rotations and copies of their own.

use std::collections::HashMap;

use cutlet::{
    CacheElement, Device, DeviceTensor, Error, Pairing, Rope, RopeTable, Tensor, TensorMut, bf16,
    f16, layout,
};

use crate::convert::Convert;
use crate::random;

const POSITIONS: usize = 50;

/// Appends (sequences, tokens) with so many heads of queries and of keys, whose tokens are `padding` elements apart, to
/// pages of 4 slots.
fn check<T: CacheElement + Convert>(
    [sequences, tokens]: [usize; 2],
    [of_queries, of_keys, features]: [usize; 3],
    padding: usize,
    pairing: Pairing,
) {
    let stream = Device::auto().stream().unwrap();
    let (count, all) = (sequences * tokens, of_queries + 2 * of_keys);
    let ld = all * features + padding;
    let mut random = random::generator((features + padding) as u64);
    let x: Vec<T> = (0..count * ld)
        .map(|_| T::of(4.0 * random.f64() - 2.0))
        .collect();
    let numbers =
        |numbers: &[i32]| DeviceTensor::upload(&stream, numbers, [sequences, tokens]).unwrap();
    let positions: Vec<i32> = (0..count)
        .map(|_| random.i32(-1..=POSITIONS as i32))
        .collect();
    // Slots before and behind those of the cache do not exist.
    let pages = count.div_ceil(4) + 1;
    let mut slots: Vec<i32> = (-1..=4 * pages as i32).collect();
    random.shuffle(&mut slots);
    slots.truncate(count);
    let table = RopeTable::new(&stream, POSITIONS, features, 10_000.0).unwrap();
    let rope = Rope::new(&table).pairing(pairing);
    let of_heads = layout!((dyn sequences, dyn tokens, dyn all, dyn features):
        (dyn (tokens * ld), dyn ld, dyn features, 1));

    // The rotation of all heads.
    let before = stream.upload(&x).unwrap();
    let mut rotated = stream.upload(&x).unwrap();
    let from = Tensor::new(&before, of_heads).unwrap();
    let to = TensorMut::new(&mut rotated, of_heads).unwrap();
    rope.run(&stream, &numbers(&positions), from, to).unwrap();
    let rotated = stream.download(&rotated).unwrap();

    let poison = vec![T::of(f64::NAN); 4 * pages * of_keys * features];
    let shape = [pages, 4, of_keys, features];
    let cache = || DeviceTensor::upload(&stream, &poison, shape).unwrap();
    let [mut keys, mut values] = [cache(), cache()];
    let mut heads = stream.upload(&x).unwrap();
    let on_heads = TensorMut::new(&mut heads, of_heads).unwrap();
    rope.append(
        &stream,
        &numbers(&positions),
        &numbers(&slots),
        on_heads,
        &mut keys,
        &mut values,
    )
    .unwrap();
    let heads = stream.download(&heads).unwrap();
    let [keys, values] = [keys, values].map(|it| it.download(&stream).unwrap());

    let same = |a: &[T], b: &[T]| {
        let bits = |it: &T| it.number().to_bits();
        a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(a, b)| bits(a) == bits(b) || a.number().is_nan() && b.number().is_nan())
    };
    let row = of_keys * features;
    let mut written = HashMap::new();
    for (token, slot) in slots.iter().enumerate() {
        let begin = token * ld;
        let end_of_queries = begin + of_queries * features;
        assert!(
            same(
                &heads[begin..end_of_queries],
                &rotated[begin..end_of_queries]
            ),
            "queries of token {token}"
        );
        let rest = end_of_queries..begin + ld;
        assert!(
            same(&heads[rest.clone()], &x[rest]),
            "what is behind the queries of token {token} was written"
        );
        written.insert(*slot, token);
    }
    for slot in 0..4 * pages {
        let found = [&keys, &values].map(|it| &it[slot * row..][..row]);
        let [key, value] = match written.get(&(slot as i32)) {
            Some(token) => {
                let begin = token * ld + of_queries * features;
                [&rotated[begin..][..row], &x[begin + row..][..row]]
            }
            None => [&poison[..row]; 2],
        };
        assert!(same(found[0], key), "keys of slot {slot}");
        assert!(same(found[1], value), "values of slot {slot}");
    }
}

#[test]
fn an_append_rotates_queries_and_keys_and_copies_values() {
    for heads in [[4, 2, 64], [3, 3, 6], [1, 1, 24], [8, 1, 128], [6, 2, 160]] {
        for (tokens, padding) in [([1, 1], 0), ([3, 1], 16), ([2, 7], 0), ([2, 40], 1)] {
            for pairing in [Pairing::Halves, Pairing::Neighbours] {
                check::<bf16>(tokens, heads, padding, pairing);
                check::<f16>(tokens, heads, padding, pairing);
            }
        }
    }
}

/// Values are copied bit for bit: a rotation by 0 would make infinities NaN.
#[test]
fn values_may_be_infinite() {
    let stream = Device::auto().stream().unwrap();
    let table = RopeTable::new(&stream, 1, 8, 100.0).unwrap();
    let of = |value: f32| DeviceTensor::upload(&stream, &[bf16::from_f32(value); 8], [1, 1, 8]);
    let (mut keys, mut values) = (of(0.0).unwrap(), of(0.0).unwrap());
    let infinite = [bf16::INFINITY; 24];
    let mut heads = DeviceTensor::upload(&stream, &infinite, [1, 3, 8]).unwrap();
    let zero = DeviceTensor::upload(&stream, &[0], [1]).unwrap();
    Rope::new(&table)
        .append(&stream, &zero, &zero, &mut heads, &mut keys, &mut values)
        .unwrap();
    assert_eq!(values.download(&stream).unwrap(), infinite[..8]);
}

#[test]
fn tensors_that_do_not_suit_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let table = RopeTable::new(&stream, 4, 8, 100.0).unwrap();
    let zeros = |shape: &[usize]| DeviceTensor::<bf16>::zeroed(&stream, shape).unwrap();
    let numbers = DeviceTensor::<i32>::zeroed(&stream, [2]).unwrap();
    let append = |heads: &[usize], keys: &[usize], values: &[usize]| {
        let (mut heads, mut keys, mut values) = (zeros(heads), zeros(keys), zeros(values));
        let rope = Rope::new(&table);
        rope.append(
            &stream,
            &numbers,
            &numbers,
            &mut heads,
            &mut keys,
            &mut values,
        )
    };
    for (heads, keys, values, part) in [
        // No head of queries.
        ([2, 2, 8], vec![5, 1, 8], vec![5, 1, 8], "the heads are"),
        // Other features, or other slots.
        ([2, 4, 8], vec![5, 1, 16], vec![5, 1, 16], "the cache has"),
        ([2, 4, 8], vec![5, 1, 8], vec![6, 1, 8], "of values"),
        // No slots.
        ([2, 4, 8], vec![1, 8], vec![1, 8], "give a cache"),
        // Positions of other tokens.
        ([3, 4, 8], vec![5, 1, 8], vec![5, 1, 8], "a number for each"),
    ] {
        let error = append(&heads, &keys, &values).unwrap_err();
        assert!(matches!(error, Error::Extents { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    append(&[2, 4, 8], &[5, 1, 8], &[5, 1, 8]).unwrap();
}
