//! `take_along_dim` against a plain loop on the host, on a GPU if there is one: all widths, dimensions, index types,
//! and indices outside of the table.

use cutlet::{
    Device, DeviceData, DeviceTensor, Error, Index, Layout, OutOfRange, TakeAlongDim, layout,
    take_along_dim_checked,
};

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
    let mut of_output = shape.to_vec();
    of_output[dim] = taken;
    let mut output = DeviceTensor::<T>::zeroed(&stream, &of_output[..]).unwrap();
    take_along_dim_checked(
        &stream,
        &DeviceTensor::upload(&stream, &table, shape).unwrap(),
        dim,
        &DeviceTensor::upload(&stream, &indices, &of_output[..]).unwrap(),
        &mut output,
    )
    .unwrap();
    let found = output.download(&stream).unwrap();
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
    let table = DeviceTensor::upload(&stream, &[1u32, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    let indices = DeviceTensor::upload(&stream, &[2i64, -1, 3, i64::MIN], [2, 2]).unwrap();
    for (policy, expected) in [
        (OutOfRange::Error, [3, 0, 0, 0]),
        (OutOfRange::Clamp, [3, 1, 6, 4]),
        (OutOfRange::Skip, [3, 9, 9, 9]),
    ] {
        let mut output = DeviceTensor::upload(&stream, &[9u32; 4], [2, 2]).unwrap();
        let mut plan = TakeAlongDim::new(stream.device())
            .unwrap()
            .out_of_range(policy);
        plan.enqueue(&stream, &table, 1, &indices, &mut output)
            .unwrap();
        match plan.check(&stream) {
            Err(Error::IndexMissed { position: 1, .. }) => assert_eq!(policy, OutOfRange::Error),
            checked => checked.unwrap(),
        }
        assert_eq!(output.download(&stream).unwrap(), expected);
    }
    let mut output = DeviceTensor::upload(&stream, &[9u32; 4], [2, 2]).unwrap();
    let said = take_along_dim_checked(&stream, &table, 1, &indices, &mut output).unwrap_err();
    assert!(
        said.to_string().contains("index -1 at position 1"),
        "{said}"
    );
}

#[test]
fn shapes_are_checked() {
    let stream = Device::auto().stream().unwrap();
    let said = |table: Layout, dim: usize, indices: Layout, output: Layout| {
        let table = DeviceTensor::<u32>::zeroed(&stream, table).unwrap();
        let indices = DeviceTensor::<i32>::zeroed(&stream, indices).unwrap();
        let mut output = DeviceTensor::<u32>::zeroed(&stream, output).unwrap();
        take_along_dim_checked(&stream, &table, dim, &indices, &mut output)
            .unwrap_err()
            .to_string()
    };
    let (two, three) = (layout!((2, 2):(2, 1)), layout!((2, 3):(3, 1)));
    let refused = said(three, 2, two, two);
    assert!(
        refused.contains("dimension 2 was asked for, but the table has 2 modes"),
        "{refused}"
    );
    let refused = said(three, 1, two, three);
    assert!(
        refused.contains("the indices' shape is (2,2), and the output's (2,3)"),
        "{refused}"
    );
    let refused = said(three, 0, two, two);
    assert!(
        refused.contains("the table's shape is (2,3), and the output's (2,2)"),
        "{refused}"
    );
    let refused = said(layout!((2, 3):(1, 2)), 1, two, two);
    assert!(
        refused.contains("the table: (2,3):(1,2), and elements are taken of packed rows"),
        "{refused}"
    );
}

/// A mode may be a tuple, and any stride of a mode of one element is packed.
#[test]
fn tuples_are_modes() {
    let stream = Device::auto().stream().unwrap();
    let table: Vec<u32> = (0..12).collect();
    let in_table = layout!(((2, 3), 1, 2):((6, 2), 77, 1));
    let table = DeviceTensor::upload(&stream, &table, in_table).unwrap();
    let indices = DeviceTensor::upload(
        &stream,
        &[1i32, 0, 0, 1, 1, 0],
        layout!(((2, 3), 1, 1):((3, 1), 5, 9)),
    );
    let mut output =
        DeviceTensor::<u32>::zeroed(&stream, layout!(((2, 3), 1, 1):((3, 1), 1, 1))).unwrap();
    take_along_dim_checked(&stream, &table, 2, &indices.unwrap(), &mut output).unwrap();
    assert_eq!(output.download(&stream).unwrap(), [1, 2, 4, 7, 9, 10]);
}
