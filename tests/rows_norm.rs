//! `rms_norm` and `layer_norm` against f64: every type, rows of every kind of length, alignments, strides, and values
//! that are not finite.

use cutlet::{
    Device, Error, Matrix, MatrixMut, Norm, NormElement, Order, Tensor, TensorMut, layout, rms_norm,
};
use half::{bf16, f16};

use crate::random;

/// What is normalised, and how.
#[derive(Clone, Copy, Debug)]
struct Case {
    rows: usize,
    columns: usize,
    /// Elements between rows.
    padding: usize,
    /// Elements before the first row.
    begin: usize,
    centred: bool,
    with_residual: bool,
    with_weight: bool,
    with_bias: bool,
    in_place: bool,
}

const EPSILON: f64 = 1e-5;

/// The normalisation of a row in f64.
fn exact(h: &[f64], case: &Case, weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let count = h.len() as f64;
    let mean = match case.centred {
        true => h.iter().sum::<f64>() / count,
        false => 0.0,
    };
    let variance = h.iter().map(|h| (h - mean).powi(2)).sum::<f64>() / count;
    let root = (variance + f64::from(EPSILON as f32)).sqrt();
    let normal = h.iter().map(|h| (h - mean) / root);
    let weighted = normal
        .zip(weight)
        .map(|(normal, weight)| match case.with_weight {
            true => normal * weight,
            false => normal,
        });
    let biased = weighted
        .zip(bias)
        .map(|(normal, bias)| match case.with_bias {
            true => normal + bias,
            false => normal,
        });
    biased.collect()
}

/// Normalises random rows, and compares all. `tolerance` is the rounding of an element.
fn check<T: NormElement + Into<f64>>(case: Case, of: fn(f32) -> T, tolerance: f64) {
    let Case {
        rows,
        columns,
        padding,
        begin,
        ..
    } = case;
    let ld = columns + padding;
    let mut random = random::generator((rows * 7919 + columns) as u64);
    let mut numbers =
        |count: usize| -> Vec<T> { (0..count).map(|_| of(4.0 * random.f32() - 1.5)).collect() };
    let (x, residual) = (numbers(begin + rows * ld), numbers(begin + rows * ld));
    let (weight, bias) = (numbers(begin + columns), numbers(begin + columns));
    let stream = Device::auto().stream().unwrap();
    let mut on_x = stream.upload(&x).unwrap();
    let mut on_residual = stream.upload(&residual).unwrap();
    let (on_weight, on_bias) = (
        stream.upload(&weight).unwrap(),
        stream.upload(&bias).unwrap(),
    );
    let mut on_y = stream.filled::<T>(begin + rows * ld, 0xff).unwrap();
    let list = layout!(dyn columns);
    let mut norm = match case.centred {
        true => Norm::layer(EPSILON as f32),
        false => Norm::rms(EPSILON as f32),
    };
    if case.with_weight {
        norm = norm.weight(Tensor::new(on_weight.slice(begin..).unwrap(), list).unwrap());
    }
    if case.with_bias {
        norm = norm.bias(Tensor::new(on_bias.slice(begin..).unwrap(), list).unwrap());
    }
    if case.with_residual {
        let view = on_residual.slice_mut(begin..).unwrap();
        norm = norm.residual(MatrixMut::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap());
    }
    let found = match case.in_place {
        true => {
            let view = on_x.slice_mut(begin..).unwrap();
            let x = MatrixMut::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap();
            norm.run_in_place(&stream, x).unwrap();
            stream.download(&on_x).unwrap()
        }
        false => {
            let view = on_x.slice(begin..).unwrap();
            let x = Matrix::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap();
            let view = on_y.slice_mut(begin..).unwrap();
            let y = MatrixMut::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap();
            norm.run(&stream, x, y).unwrap();
            stream.download(&on_y).unwrap()
        }
    };
    let sums = stream.download(&on_residual).unwrap();
    let wide = |elements: &[T]| -> Vec<f64> { elements.iter().map(|&it| it.into()).collect() };
    let (weight, bias) = (wide(&weight[begin..]), wide(&bias[begin..]));
    for row in 0..rows {
        let from = begin + row * ld;
        let mut h = wide(&x[from..][..columns]);
        if case.with_residual {
            let sum = wide(&sums[from..][..columns]);
            for ((h, sum), residual) in h.iter_mut().zip(sum).zip(&residual[from..]) {
                let exact: f64 = *h + Into::<f64>::into(*residual);
                assert!(
                    (sum - exact).abs() <= tolerance * exact.abs(),
                    "{case:?}, row {row}: {sum}, not {exact}"
                );
                *h = sum;
            }
        }
        let exact = exact(&h, &case, &weight, &bias);
        for (column, exact) in exact.into_iter().enumerate() {
            let found: f64 = found[from + column].into();
            // A bias may cancel most of the product, whose error stays.
            let error = tolerance * exact.abs() + 4e-6 * (1.0 + exact.abs());
            assert!(
                (found - exact).abs() <= error,
                "{case:?}, ({row}, {column}): {found}, not {exact}"
            );
        }
        let padding = &found[from + columns..][..padding];
        let kept = padding.iter().zip(&x[from + columns..]).all(|(found, x)| {
            let (found, x): (f64, f64) = ((*found).into(), (*x).into());
            if case.in_place {
                found == x
            } else {
                found.is_nan()
            }
        });
        assert!(kept, "{case:?}: padding was written");
    }
}

fn check_all<T: NormElement + Into<f64>>(of: fn(f32) -> T, tolerance: f64) {
    let extents = [
        [1, 1],
        [9, 1],
        [1, 8],
        [17, 64],
        [3, 77],
        [8, 256],
        [5, 264],
        [9, 512],
        [2, 513],
        [2, 1000],
        [2, 2048],
        [1, 4096],
        [2, 4104],
        [1, 9001],
    ];
    for (nth, [rows, columns]) in extents.into_iter().enumerate() {
        for (padding, begin) in [(0, 0), (8, 0), (3, 1)] {
            // All combinations of these are met, each with several extents.
            let bits = nth * 3 + padding;
            let case = Case {
                rows,
                columns,
                padding,
                begin,
                centred: bits & 1 == 0,
                with_residual: bits & 2 == 0,
                with_weight: bits & 4 == 0,
                with_bias: bits % 3 == 0,
                in_place: bits % 5 < 2,
            };
            check(case, of, tolerance);
            check(
                Case {
                    centred: !case.centred,
                    in_place: !case.in_place,
                    ..case
                },
                of,
                tolerance,
            );
        }
    }
}

#[test]
fn f32_is_exact_to_f32() {
    check_all::<f32>(|it| it, 1e-6);
}

#[test]
fn bf16_is_rounded_once() {
    check_all::<bf16>(bf16::from_f32, 2.0f64.powi(-8));
}

#[test]
fn f16_is_rounded_once() {
    check_all::<f16>(f16::from_f32, 2.0f64.powi(-11));
}

#[test]
fn heads_of_a_strided_tensor_are_rows() {
    // (batch, sequence, head, dimension) of the keys in (batch, sequence, q k or v, head, dimension).
    let (batches, tokens, heads, width) = (2, 3, 4, 16);
    let stream = Device::auto().stream().unwrap();
    let x: Vec<f32> = (0..batches * tokens * 3 * heads * width)
        .map(|i| ((i * 37) % 101) as f32 - 50.0)
        .collect();
    let mut buffer = stream.upload(&x).unwrap();
    let all = TensorMut::new(&mut buffer, layout!((2, 3, 3, 4, 16):(576, 192, 64, 16, 1))).unwrap();
    let keys = all.slice(&cutlet::shape!((_, _, 1, _, _))).unwrap();
    Norm::rms(0.0).run_in_place(&stream, keys).unwrap();
    let found = stream.download(&buffer).unwrap();
    for (nth, (found, x)) in found.chunks(width).zip(x.chunks(width)).enumerate() {
        let is_key = nth / heads % 3 == 1;
        let mean = x.iter().map(|x| f64::from(x * x)).sum::<f64>() / width as f64;
        let root = if is_key { mean.sqrt() } else { 1.0 };
        for (found, x) in found.iter().zip(x) {
            let exact = f64::from(*x) / root;
            assert!(
                (f64::from(*found) - exact).abs() <= 1e-6 * exact.abs(),
                "row {nth}: {found}, not {exact}"
            );
        }
    }
}

#[test]
fn values_that_are_not_finite_stay_in_their_rows() {
    let stream = Device::auto().stream().unwrap();
    let (nan, high) = (f32::NAN, f32::INFINITY);
    let x = [1.0, nan, 1.0, -high, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0];
    let mut buffer = stream.upload(&x).unwrap();
    let mut rows = MatrixMut::row_major(&mut buffer, 5, 2).unwrap();
    Norm::rms(1e-6).run_in_place(&stream, rows).unwrap();
    let found = stream.download(&buffer).unwrap();
    assert!(found[0].is_nan() && found[1].is_nan());
    // The root is infinite.
    assert!(found[2] == 0.0 && found[3].is_nan(), "{found:?}");
    assert_eq!(found[4..6], [0.0, 0.0]);
    assert!((found[6] - 1.0).abs() < 1e-5);
    rows = MatrixMut::row_major(&mut buffer, 5, 2).unwrap();
    Norm::layer(1e-6).run_in_place(&stream, rows).unwrap();
    let found = stream.download(&buffer).unwrap();
    assert!(found[..4].iter().all(|it| it.is_nan()));
    assert_eq!(
        found[4..],
        [0.0; 6],
        "rows of equal elements have no deviation"
    );
}

#[test]
fn empty_matrices_are_normalised_to_nothing() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.zeroed::<f32>(0).unwrap();
    let mut y = stream.zeroed::<f32>(0).unwrap();
    let x = Matrix::row_major(&x, 0, 8).unwrap();
    let y = MatrixMut::row_major(&mut y, 0, 8).unwrap();
    Norm::rms(1e-6).run(&stream, x, y).unwrap();
}

#[test]
fn wrong_operands_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.zeroed::<f32>(64).unwrap();
    let weight = stream.zeroed::<f32>(8).unwrap();
    let mut buffer = stream.zeroed::<f32>(64).unwrap();
    let x = Matrix::row_major(&x, 8, 8).unwrap();
    let weight = Tensor::new(&weight, layout!(8)).unwrap();
    let mut error = |x: Matrix<'_, f32>, weight: Tensor<'_, f32>, rows: usize| {
        let y = MatrixMut::row_major(&mut buffer, rows, 8).unwrap();
        match rms_norm(&stream, x, weight, 1e-6, y) {
            Err(error @ (Error::Extents { .. } | Error::Overlap { .. })) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let found = error(x, weight, 4);
    assert!(
        found.contains("x is (8,8):(8,1), and y is (4,8):(8,1)"),
        "{found}"
    );
    let found = error(x.transposed(), weight, 8);
    assert!(
        found.contains("x is (8,8):(1,8), and its last mode, which is a row, is not contiguous"),
        "{found}"
    );
    let short = weight
        .slice(&cutlet::shape!(_))
        .unwrap()
        .composition(&layout!(4))
        .unwrap();
    let found = error(x, short, 8);
    assert!(
        found.contains("the weight is 4:1, and a row has 8 elements"),
        "{found}"
    );
    // Four modes, of which none continues another.
    let apart = stream.zeroed::<f32>(10_000).unwrap();
    let apart = Tensor::new(&apart, layout!((2, 2, 2, 2, 2):(1000, 300, 50, 7, 1))).unwrap();
    let mut y = stream.zeroed::<f32>(32).unwrap();
    let y = TensorMut::new(&mut y, [2, 2, 2, 2, 2]).unwrap();
    let found = Norm::rms(1e-6)
        .run(&stream, apart, y)
        .unwrap_err()
        .to_string();
    assert!(
        found.contains("more than 3 modes of rows do not continue one another"),
        "{found}"
    );
}
