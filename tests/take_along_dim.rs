//! `take_along_dim` against a plain loop on the host, on a GPU if there is one: all widths, dimensions, index types,
//! and indices outside of the table.

use cutlet::{Device, DeviceData, Error, Index, OutOfRange, TakeAlongDim, take_along_dim};

/// Checks a gather of `taken` elements along a dimension.
fn check<T: DeviceData + PartialEq, X: Index>(
    shape: &[usize],
    dim: usize,
    taken: usize,
    to_element: impl Fn(u64) -> T,
    to_index: impl Fn(usize) -> X,
) {
    let mut random = fastrand::Rng::with_seed((taken + dim) as u64);
    let outer: usize = shape[..dim].iter().product();
    let inner: usize = shape[dim + 1..].iter().product();
    let table: Vec<T> = (0..outer * shape[dim] * inner)
        .map(|_| to_element(random.u64(..)))
        .collect();
    let picks: Vec<usize> = (0..outer * taken * inner)
        .map(|_| random.usize(..shape[dim]))
        .collect();
    let indices: Vec<X> = picks.iter().map(|&pick| to_index(pick)).collect();
    let stream = Device::auto().stream().unwrap();
    let mut output = stream.zeroed::<T>(indices.len()).unwrap();
    take_along_dim(
        &stream,
        &stream.upload(&table).unwrap(),
        shape,
        dim,
        &stream.upload(&indices).unwrap(),
        &mut output,
    )
    .unwrap();
    let found = stream.download(&output).unwrap();
    for (at, &pick) in picks.iter().enumerate() {
        let (outer, inner_at) = (at / inner / taken, at % inner);
        let expected = table[(outer * shape[dim] + pick) * inner + inner_at];
        assert!(
            found[at] == expected,
            "element {at} of {shape:?} along {dim}"
        );
    }
}

#[test]
fn every_width_and_dimension() {
    for shape in [
        &[7][..],
        &[5, 9],
        &[3, 4, 5],
        &[2, 3, 2, 150],
        &[2, 2, 1030],
    ] {
        for dim in 0..shape.len() {
            for taken in [1, 6, 200] {
                check(shape, dim, taken, |x| x as u8, |index| index as i32);
                check(shape, dim, taken, |x| x as u16, |index| index as i64);
                check(shape, dim, taken, |x| x as u32, |index| index as i32);
                check(shape, dim, taken, |x| x, |index| index as i64);
                check(shape, dim, taken, |x| [x, !x], |index| index as i32);
            }
        }
    }
}

#[test]
fn indices_outside_of_the_table_follow_the_policy() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap();
    let indices = stream.upload(&[2i64, -1, 3, i64::MIN]).unwrap();
    for (policy, expected) in [
        (OutOfRange::Error, [3, 0, 0, 0]),
        (OutOfRange::Clamp, [3, 1, 6, 4]),
        (OutOfRange::Skip, [3, 9, 9, 9]),
    ] {
        let mut output = stream.upload(&[9u32; 4]).unwrap();
        let mut plan = TakeAlongDim::new(stream.device())
            .unwrap()
            .out_of_range(policy);
        plan.enqueue(&stream, &table, &[2, 3], 1, &indices, &mut output)
            .unwrap();
        match plan.check(&stream) {
            Err(Error::IndexMissed { position: 1, .. }) => assert_eq!(policy, OutOfRange::Error),
            checked => checked.unwrap(),
        }
        assert_eq!(stream.download(&output).unwrap(), expected);
    }
    let mut output = stream.upload(&[9u32; 4]).unwrap();
    let said = take_along_dim(&stream, &table, &[2, 3], 1, &indices, &mut output).unwrap_err();
    assert!(
        said.to_string().contains("index -1 at position 1"),
        "{said}"
    );
}

#[test]
fn extents_are_checked() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.zeroed::<u32>(6).unwrap();
    let said = |shape: &[usize], dim: usize, indices: usize, output: usize| {
        let indices = stream.zeroed::<i32>(indices).unwrap();
        let mut output = stream.zeroed::<u32>(output).unwrap();
        take_along_dim(&stream, &table, shape, dim, &indices, &mut output)
            .unwrap_err()
            .to_string()
    };
    assert!(said(&[2, 3], 2, 4, 4).contains("dimension 2 was asked for"));
    assert!(said(&[2, 4], 1, 4, 4).contains("the table has 6 elements"));
    assert!(said(&[2, 3], 1, 3, 3).contains("there are 3 indices, but 2 elements"));
    assert!(said(&[2, 3], 1, 4, 6).contains("there are 4 indices and the output has 6"));
}

#[test]
fn nothing_is_taken_of_nothing() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.zeroed::<u32>(0).unwrap();
    let indices = stream.zeroed::<i32>(0).unwrap();
    let mut output = stream.zeroed::<u32>(0).unwrap();
    take_along_dim(&stream, &table, &[0, 3], 0, &indices, &mut output).unwrap();
}
