//! `swiglu` and `silu_mul` against f64, on a GPU if there is one: every type, extents that fill no tile, and alignments.

use cutlet::{Device, Error, GatedElement, Matrix, MatrixMut, Order, silu_mul, swiglu};
use half::{bf16, f16};

/// Where a row of the source has its gates and ups.
#[derive(Clone, Copy)]
enum Pairs {
    /// They alternate: [`swiglu`].
    Alternating,
    /// The gates come first: [`silu_mul`] of two halves.
    Halves,
}

/// Computes rows of `columns` results that are `padding` elements apart, and compares all.
fn check<T: GatedElement + Into<f64>>(
    of: fn(f32) -> T,
    pairs: Pairs,
    [rows, columns]: [usize; 2],
    padding: usize,
    tolerance: f64,
) {
    let stream = Device::auto().stream().unwrap();
    let (ld_source, ld_output) = (2 * columns + padding, columns + padding);
    let mut random = fastrand::Rng::with_seed(1);
    let source: Vec<T> = (0..rows * ld_source)
        .map(|_| of(8.0 * random.f32() - 4.0))
        .collect();
    let on_device = stream.upload(&source).unwrap();
    let mut output = stream.filled::<T>(rows * ld_output, 0xff).unwrap();
    let source_from = |first: usize, columns: usize| {
        let from = on_device.slice(first..).unwrap();
        Matrix::with_ld(from, rows, columns, Order::RowMajor, ld_source).unwrap()
    };
    let to = MatrixMut::with_ld(&mut output, rows, columns, Order::RowMajor, ld_output).unwrap();
    match pairs {
        Pairs::Alternating => swiglu(&stream, source_from(0, 2 * columns), to),
        Pairs::Halves => {
            let [gates, ups] = [0, columns].map(|first| source_from(first, columns));
            silu_mul(&stream, gates, ups, to)
        }
    }
    .unwrap();
    let output = stream.download(&output).unwrap();
    for (row, column) in (0..rows).flat_map(|row| (0..ld_output).map(move |column| (row, column))) {
        let found: f64 = output[row * ld_output + column].into();
        if column >= columns {
            assert!(found.is_nan(), "padding was written at ({row}, {column})");
            continue;
        }
        let at = match pairs {
            Pairs::Alternating => [2 * column, 2 * column + 1],
            Pairs::Halves => [column, columns + column],
        };
        let [gate, up] = at.map(|at| source[row * ld_source + at].into());
        let exact = gate / (1.0 + (-gate).exp()) * up;
        let error = (found - exact).abs();
        assert!(
            error <= tolerance * exact.abs().max(1e-2),
            "({row}, {column}): {found}, not {exact}"
        );
    }
}

fn check_all<T: GatedElement + Into<f64>>(of: fn(f32) -> T, tolerance: f64) {
    for extents in [[1, 1], [8, 128], [9, 132], [33, 260], [5, 77], [40, 64]] {
        for padding in [0, 1, 8] {
            for pairs in [Pairs::Alternating, Pairs::Halves] {
                check(of, pairs, extents, padding, tolerance);
            }
        }
    }
}

#[test]
fn f32_is_exact_to_f32() {
    check_all::<f32>(|it| it, 1e-5);
}

#[test]
fn sixteen_bits_are_rounded_once() {
    check_all::<bf16>(bf16::from_f32, 2.0f64.powi(-8));
    check_all::<f16>(f16::from_f32, 2.0f64.powi(-10));
}

#[test]
fn wrong_operands_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let source = stream.zeroed::<f32>(64).unwrap();
    let mut outputs = [0; 2].map(|_| stream.zeroed::<f32>(64).unwrap());
    let [wide, high] = &mut outputs;
    let error = |source, output| match swiglu(&stream, source, output) {
        Err(error @ Error::Extents { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let four = Matrix::row_major(&source, 4, 8).unwrap();
    let found = error(four, MatrixMut::row_major(wide, 4, 8).unwrap());
    assert!(
        found.contains("the source is 4×8, and the output is 4×8"),
        "{found}"
    );
    let found = error(four, MatrixMut::col_major(high, 4, 4).unwrap());
    assert!(found.contains("column-major"), "{found}");
}

#[test]
fn wrong_gates_and_ups_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let source = stream.zeroed::<f32>(64).unwrap();
    let mut output = stream.zeroed::<f32>(64).unwrap();
    let mut error = |gates, ups, rows| {
        let output = MatrixMut::row_major(&mut output, rows, 4).unwrap();
        silu_mul(&stream, gates, ups, output)
            .unwrap_err()
            .to_string()
    };
    let four = Matrix::row_major(&source, 4, 4).unwrap();
    let found = error(four, four, 5);
    assert!(
        found.contains("the gates are 4×4, and the output is 5×4"),
        "{found}"
    );
    let found = error(four, Matrix::row_major(&source, 4, 5).unwrap(), 4);
    assert!(
        found.contains("the ups are 4×5, and the output is 4×4"),
        "{found}"
    );
    let found = error(four, four.transposed(), 4);
    assert!(found.contains("column-major"), "{found}");
}

#[test]
fn infinite_gates_give_their_limits() {
    let stream = Device::auto().stream().unwrap();
    let (high, nan) = (f32::INFINITY, f32::NAN);
    let source = [-high, 2.0, high, 2.0, nan, 2.0, f32::MIN, 2.0];
    let source = stream.upload(&source).unwrap();
    let mut output = stream.zeroed::<f32>(4).unwrap();
    swiglu(
        &stream,
        Matrix::row_major(&source, 1, 8).unwrap(),
        MatrixMut::row_major(&mut output, 1, 4).unwrap(),
    )
    .unwrap();
    let found = stream.download(&output).unwrap();
    assert!(found[2].is_nan(), "{found:?}");
    assert_eq!([found[0], found[1], found[3]], [0.0, high, 0.0]);
}
