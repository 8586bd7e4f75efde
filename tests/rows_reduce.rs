//! Sums and extremes of rows against f64: every type, rows of every kind of length, alignments, and values that are not
//! finite.

use cutlet::{
    Device, Error, ReducedElement, Reduction, Tensor, TensorMut, argmax, argmin, layout, reduce,
};
use half::{bf16, f16};

use crate::convert::Convert;
use crate::random;

const REDUCTIONS: [Reduction; 5] = [
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Max,
    Reduction::Min,
    Reduction::Amax,
];

fn exact(x: &[f64], reduction: Reduction) -> f64 {
    let sum: f64 = x.iter().sum();
    match reduction {
        Reduction::Sum => sum,
        Reduction::Mean => sum / x.len() as f64,
        Reduction::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduction::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::Amax => x.iter().fold(0.0, |most, x| most.max(x.abs())),
    }
}

/// Reduces (matrices, rows, columns) whose rows are `padding` elements apart, the matrices twice that.
fn check<T: ReducedElement + Convert>(
    [matrices, rows, columns]: [usize; 3],
    padding: usize,
    begin: usize,
    tolerance: f64,
) {
    let stream = Device::auto().stream().unwrap();
    let ld = columns + padding;
    let ld_matrix = rows * ld + padding;
    let mut random = random::generator((rows * 7919 + columns) as u64);
    // Few different numbers, so that extremes are met several times.
    let x: Vec<T> = (0..begin + matrices * ld_matrix)
        .map(|_| T::of(f64::from(random.i32(-40..=40)) / 8.0))
        .collect();
    let on_x = stream.upload(&x).unwrap();
    let of_x = layout!((dyn matrices, dyn rows, dyn columns):(dyn ld_matrix, dyn ld, 1));
    let tensor = Tensor::new(on_x.slice(begin..).unwrap(), of_x).unwrap();
    // Results lie by columns.
    let of_y = layout!((dyn matrices, dyn rows):(1, dyn matrices));
    let row_of = |matrix: usize, row: usize| -> Vec<f64> {
        let from = begin + matrix * ld_matrix + row * ld;
        x[from..][..columns].iter().map(|it| it.number()).collect()
    };
    for reduction in REDUCTIONS {
        let mut y = stream.filled::<T>(matrices * rows, 0xff).unwrap();
        let to = TensorMut::new(&mut y, of_y).unwrap();
        reduce(&stream, reduction, tensor, to).unwrap();
        let y = stream.download(&y).unwrap();
        for (matrix, row) in (0..matrices).flat_map(|m| (0..rows).map(move |r| (m, r))) {
            let numbers = row_of(matrix, row);
            let (found, exact) = (
                y[row * matrices + matrix].number(),
                exact(&numbers, reduction),
            );
            let magnitude: f64 = numbers.iter().map(|it| it.abs()).sum();
            let error = tolerance * exact.abs() + 1e-6 * magnitude;
            assert!(
                (found - exact).abs() <= error,
                "{reduction:?} of {matrices}×{rows}×{columns}, row {row}: {found}, not {exact}"
            );
        }
    }
    for is_max in [true, false] {
        let mut indices = stream.filled::<i32>(matrices * rows, 0xff).unwrap();
        let to = TensorMut::new(&mut indices, of_y).unwrap();
        match is_max {
            true => argmax(&stream, tensor, to),
            false => argmin(&stream, tensor, to),
        }
        .unwrap();
        let indices = stream.download(&indices).unwrap();
        for (matrix, row) in (0..matrices).flat_map(|m| (0..rows).map(move |r| (m, r))) {
            let numbers = row_of(matrix, row);
            let reduction = if is_max {
                Reduction::Max
            } else {
                Reduction::Min
            };
            let most = exact(&numbers, reduction);
            let first = numbers.iter().position(|it| *it == most).unwrap();
            assert_eq!(
                indices[row * matrices + matrix],
                first as i32,
                "of {columns} columns, row {row}"
            );
        }
    }
}

fn check_all<T: ReducedElement + Convert>(tolerance: f64) {
    let extents = [
        [1, 1, 1],
        [2, 9, 1],
        [1, 3, 8],
        [2, 17, 64],
        [1, 3, 77],
        [1, 8, 256],
        [2, 3, 264],
        [1, 9, 512],
        [1, 2, 513],
        [2, 2, 2048],
        [1, 1, 4096],
        [1, 2, 4104],
        [1, 2, 9001],
    ];
    for extent in extents {
        for (padding, begin) in [(0, 0), (8, 0), (3, 1)] {
            check::<T>(extent, padding, begin, tolerance);
        }
    }
}

#[test]
fn reductions_are_exact_to_the_type() {
    check_all::<f32>(1e-6);
    check_all::<bf16>(2.0f64.powi(-8));
    check_all::<f16>(2.0f64.powi(-11));
}

#[test]
fn values_that_are_not_finite_are_extremes_of_their_rows() {
    let (high, nan) = (f32::INFINITY, f32::NAN);
    let stream = Device::auto().stream().unwrap();
    let x = [
        -high, -high, 1.0, nan, nan, high, 5.0, nan, -0.0, 0.0, 0.0, -0.0,
    ];
    let x = stream.upload(&x).unwrap();
    let x = Tensor::new(&x, [6, 2]).unwrap();
    let of = |reduction| {
        let mut y = stream.zeroed::<f32>(6).unwrap();
        reduce(
            &stream,
            reduction,
            x,
            TensorMut::new(&mut y, [6, 1]).unwrap(),
        )
        .unwrap();
        stream.download(&y).unwrap()
    };
    let are_nan = |found: Vec<f32>| -> Vec<bool> { found.iter().map(|it| it.is_nan()).collect() };
    let found = of(Reduction::Max);
    assert_eq!((found[0], found[4], found[5]), (-high, 0.0, 0.0));
    for reduction in REDUCTIONS {
        assert_eq!(
            are_nan(of(reduction)),
            [false, true, true, true, false, false],
            "{reduction:?}"
        );
    }
    let mut indices = stream.zeroed::<i32>(6).unwrap();
    argmax(&stream, x, TensorMut::new(&mut indices, [6]).unwrap()).unwrap();
    assert_eq!(stream.download(&indices).unwrap(), [0, 1, 0, 1, 0, 0]);
    argmin(&stream, x, TensorMut::new(&mut indices, [6]).unwrap()).unwrap();
    assert_eq!(stream.download(&indices).unwrap(), [0, 1, 0, 1, 0, 0]);
}

/// Rows that are too few for all multiprocessors are searched in parts, of which the first with the extreme counts.
#[test]
fn long_rows_are_searched_in_parts() {
    let stream = Device::auto().stream().unwrap();
    for (values, highest, lowest) in [
        (vec![(9_000, 5.0f32), (60_000, 5.0), (61, -2.0)], 9_000, 61),
        (
            vec![(65_535, 1.0), (2_050, -1.0), (65_530, -1.0)],
            65_535,
            2_050,
        ),
        (
            vec![(40_000, f32::NAN), (50_000, f32::NAN), (3, 8.0)],
            40_000,
            40_000,
        ),
        (vec![(0, 0.0)], 0, 0),
    ] {
        // The second length has no equal parts.
        for (rows, columns) in [(1, 65_536), (2, 65_536), (1, 65_544)] {
            let mut x = vec![bf16::from_f32(0.0); rows * columns];
            for row in x.chunks_mut(columns) {
                for &(at, value) in &values {
                    row[at] = bf16::from_f32(value);
                }
            }
            let x = stream.upload(&x).unwrap();
            let x = Tensor::new(&x, [rows, columns]).unwrap();
            let mut places = stream.upload(&vec![-1; rows]).unwrap();
            argmax(&stream, x, TensorMut::new(&mut places, [rows]).unwrap()).unwrap();
            assert_eq!(stream.download(&places).unwrap(), vec![highest; rows]);
            argmin(&stream, x, TensorMut::new(&mut places, [rows, 1]).unwrap()).unwrap();
            assert_eq!(stream.download(&places).unwrap(), vec![lowest; rows]);
        }
    }
}

/// Rows with gaps, and one row several times, are searched in parts, too. Those of several modes are not.
#[test]
fn long_rows_may_lie_anywhere() {
    let (stream, columns) = (Device::auto().stream().unwrap(), 65_536);
    let mut x = vec![0.0f32; 4 * (columns + 8)];
    for (row, at) in [7, 65_000, 40_000, 1].into_iter().enumerate() {
        x[row * (columns + 8) + at] = 1.0;
    }
    let x = stream.upload(&x).unwrap();
    let apart = columns + 8;
    for (layout, expected) in [
        (
            layout!((4, dyn columns):(dyn apart, 1)),
            [7, 65_000, 40_000, 1],
        ),
        (layout!((4, dyn columns):(0, 1)), [7; 4]),
    ] {
        let mut places = stream.upload(&[-1; 4]).unwrap();
        let x = Tensor::new(&x, layout).unwrap();
        argmax(&stream, x, TensorMut::new(&mut places, [4]).unwrap()).unwrap();
        assert_eq!(stream.download(&places).unwrap(), expected);
    }
    let twice = 2 * apart;
    let nested = layout!(((2, 2), dyn columns):((dyn apart, dyn twice), 1));
    let mut places = stream.upload(&[-1; 4]).unwrap();
    let to = TensorMut::new(&mut places, layout!(((2, 2), 1):((1, 2), 0))).unwrap();
    argmax(&stream, Tensor::new(&x, nested).unwrap(), to).unwrap();
    assert_eq!(stream.download(&places).unwrap(), [7, 65_000, 40_000, 1]);
}

#[test]
fn wrong_results_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.zeroed::<f32>(24).unwrap();
    let x = Tensor::new(&x, [2, 3, 4]).unwrap();
    let mut y = stream.zeroed::<f32>(24).unwrap();
    let to = TensorMut::new(&mut y, [3, 2]).unwrap();
    match reduce(&stream, Reduction::Sum, x, to) {
        Err(error @ Error::Extents { .. }) => {
            let expected =
                "the layout of y is (3,2):(2,1), and the rows are those of (2,3,4):(12,4,1)";
            assert!(error.to_string().contains(expected), "{error}");
        }
        other => panic!("{other:?}"),
    }
}
