//! `softmax` against f64: every type, rows of every kind of length, alignments, scales, masks, and values that are not
//! finite.

use cutlet::{
    Device, Error, Matrix, MatrixMut, Order, Softmax, SoftmaxElement, Tensor, layout, softmax,
};
use half::{bf16, f16};

use crate::random;

#[derive(Clone, Copy, Debug)]
struct Case {
    rows: usize,
    columns: usize,
    /// Elements between rows.
    padding: usize,
    /// Elements before the first row.
    begin: usize,
    scale: f32,
    past: Option<usize>,
    masked: bool,
    log: bool,
    in_place: bool,
}

/// The softmax of a row in f64, or its logarithm.
fn exact(z: &[f64], log: bool) -> Vec<f64> {
    let greatest = z.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    let sum: f64 = z.iter().map(|z| (z - greatest).exp()).sum();
    z.iter()
        .map(|z| match (log, greatest == f64::NEG_INFINITY) {
            (true, true) => f64::NEG_INFINITY,
            (false, true) => 0.0,
            (true, false) => z - greatest - sum.ln(),
            (false, false) => (z - greatest).exp() / sum,
        })
        .collect()
}

fn check<T: SoftmaxElement + Into<f64>>(case: Case, of: fn(f32) -> T, tolerance: f64) {
    let Case {
        rows,
        columns,
        padding,
        begin,
        ..
    } = case;
    let ld = columns + padding;
    let mut random = random::generator((rows * 7919 + columns) as u64);
    let x: Vec<T> = (0..begin + rows * ld)
        .map(|_| of(20.0 * random.f32() - 10.0))
        .collect();
    // Some elements are hidden, and the whole of the second row.
    let mask: Vec<T> = (0..begin + rows * ld)
        .map(
            |at| match at.wrapping_sub(begin) / ld == 1 || random.u8(..) < 60 {
                true => of(f32::NEG_INFINITY),
                false => of(random.f32()),
            },
        )
        .collect();
    let stream = Device::auto().stream().unwrap();
    let (mut on_x, on_mask) = (stream.upload(&x).unwrap(), stream.upload(&mask).unwrap());
    let mut on_y = stream.filled::<T>(begin + rows * ld, 0xff).unwrap();
    let mut operation = Softmax::new().scale(case.scale);
    if let Some(past) = case.past {
        operation = operation.causal(past);
    }
    if case.masked {
        let view = on_mask.slice(begin..).unwrap();
        operation =
            operation.mask(Matrix::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap());
    }
    if case.log {
        operation = operation.log();
    }
    let found = match case.in_place {
        true => {
            let view = on_x.slice_mut(begin..).unwrap();
            let x = MatrixMut::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap();
            operation.run_in_place(&stream, x).unwrap();
            stream.download(&on_x).unwrap()
        }
        false => {
            let view = on_x.slice(begin..).unwrap();
            let x = Matrix::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap();
            let view = on_y.slice_mut(begin..).unwrap();
            let y = MatrixMut::with_ld(view, rows, columns, Order::RowMajor, ld).unwrap();
            operation.run(&stream, x, y).unwrap();
            stream.download(&on_y).unwrap()
        }
    };
    for row in 0..rows {
        let from = begin + row * ld;
        let z: Vec<f64> = (0..columns)
            .map(|column| {
                let x: f64 = x[from + column].into();
                let seen = case.past.is_none_or(|past| column <= past + row);
                let added: f64 = mask[from + column].into();
                match (seen, case.masked) {
                    (false, _) => f64::NEG_INFINITY,
                    (true, true) => x * f64::from(case.scale) + added,
                    (true, false) => x * f64::from(case.scale),
                }
            })
            .collect();
        for (column, exact) in exact(&z, case.log).into_iter().enumerate() {
            let found: f64 = found[from + column].into();
            let error = tolerance * exact.abs() + if case.log { 1e-5 } else { 1e-7 };
            assert!(
                found == exact || (found - exact).abs() <= error,
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

fn check_all<T: SoftmaxElement + Into<f64>>(of: fn(f32) -> T, tolerance: f64) {
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
        [3, 1000],
        [2, 2048],
        [1, 4096],
        [2, 4104],
        [2, 9001],
    ];
    for (nth, [rows, columns]) in extents.into_iter().enumerate() {
        for (padding, begin) in [(0, 0), (8, 0), (3, 1)] {
            let bits = nth * 3 + padding;
            let case = Case {
                rows,
                columns,
                padding,
                begin,
                scale: if bits & 1 == 0 { 0.125 } else { -1.5 },
                past: (bits & 2 == 0).then_some(columns / 2),
                masked: bits % 3 == 0,
                log: bits % 5 < 2,
                in_place: bits & 4 == 0,
            };
            check(case, of, tolerance);
            check(
                Case {
                    log: !case.log,
                    masked: !case.masked,
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
    check_all::<f32>(|it| it, 4e-6);
}

#[test]
fn bf16_is_rounded_once() {
    check_all::<bf16>(bf16::from_f32, 2.0f64.powi(-8));
}

#[test]
fn f16_is_rounded_once() {
    check_all::<f16>(f16::from_f32, 2.0f64.powi(-10));
}

#[test]
fn a_causal_batch_hides_columns_by_the_row_of_its_matrix() {
    // (batch, head, query, key): the mask begins anew in each matrix.
    let (batches, heads, queries, keys) = (2, 3, 5, 7);
    let stream = Device::auto().stream().unwrap();
    let x = vec![1.5f32; batches * heads * queries * keys];
    let mut x = stream.upload(&x).unwrap();
    let scores = cutlet::TensorMut::new(&mut x, [batches, heads, queries, keys]).unwrap();
    Softmax::new()
        .causal(2)
        .run_in_place(&stream, scores)
        .unwrap();
    for (nth, row) in stream.download(&x).unwrap().chunks(keys).enumerate() {
        let seen = (nth % queries + 3).min(keys);
        assert!(
            row[..seen]
                .iter()
                .all(|it| (it - 1.0 / seen as f32).abs() < 1e-6),
            "row {nth}: {row:?}"
        );
        assert!(
            row[seen..].iter().all(|&it| it == 0.0),
            "row {nth}: {row:?}"
        );
    }
}

#[test]
fn a_mask_repeats_over_heads() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.upload(&[0.0f32; 2 * 3 * 2 * 4]).unwrap();
    let x = Tensor::new(&x, [2, 3, 2, 4]).unwrap();
    let mut mask = vec![0.0f32; 2 * 2 * 4];
    mask[9] = f32::NEG_INFINITY; // the second batch, the first query, the second key
    let mask = stream.upload(&mask).unwrap();
    let mask = Tensor::new(&mask, layout!((2, 3, 2, 4):(8, 0, 4, 1))).unwrap();
    let mut y = stream.zeroed::<f32>(48).unwrap();
    let to = cutlet::TensorMut::new(&mut y, [2, 3, 2, 4]).unwrap();
    Softmax::new().mask(mask).run(&stream, x, to).unwrap();
    for (nth, row) in stream.download(&y).unwrap().chunks(4).enumerate() {
        let third = 1.0 / 3.0;
        let expected = match nth >= 6 && nth % 2 == 0 {
            true => [third, 0.0, third, third],
            false => [0.25; 4],
        };
        assert!(
            row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "row {nth}: {row:?}"
        );
    }
}

#[test]
fn values_that_are_not_finite_stay_in_their_rows() {
    let stream = Device::auto().stream().unwrap();
    let (nan, high) = (f32::NAN, f32::INFINITY);
    let x = [
        -high,
        -high,
        -high,
        0.0,
        nan,
        1.0,
        high,
        1.0,
        f32::MIN,
        f32::MAX,
        3.0,
        3.0,
    ];
    let x = stream.upload(&x).unwrap();
    let mut y = stream.zeroed::<f32>(12).unwrap();
    let x = Matrix::row_major(&x, 6, 2).unwrap();
    softmax(&stream, x, MatrixMut::row_major(&mut y, 6, 2).unwrap()).unwrap();
    let found = stream.download(&y).unwrap();
    assert_eq!(found[..4], [0.0, 0.0, 0.0, 1.0]);
    assert!(found[4..8].iter().all(|it| it.is_nan()), "{found:?}");
    assert_eq!(found[8..], [0.0, 1.0, 0.5, 0.5]);
    let y_of_log = MatrixMut::row_major(&mut y, 6, 2).unwrap();
    Softmax::new().log().run(&stream, x, y_of_log).unwrap();
    let found = stream.download(&y).unwrap();
    assert_eq!(found[..4], [-high, -high, -high, 0.0]);
    assert!(found[4..8].iter().all(|it| it.is_nan()), "{found:?}");
}

#[test]
fn wrong_operands_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let mut x = stream.zeroed::<f32>(64).unwrap();
    let mask = stream.zeroed::<f32>(64).unwrap();
    let mask = Matrix::row_major(&mask, 4, 8).unwrap();
    let mut error = |operation: Softmax<'_, f32>| {
        let x = MatrixMut::row_major(&mut x, 8, 8).unwrap();
        match operation.run_in_place(&stream, x) {
            Err(error @ Error::Extents { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let found = error(Softmax::new().mask(mask));
    assert!(
        found.contains("x is (8,8):(8,1), and the mask is (4,8):(8,1)"),
        "{found}"
    );
    let found = error(Softmax::new().scale(f32::NAN));
    assert!(found.contains("the scale is NaN"), "{found}");
}
