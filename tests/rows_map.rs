//! Functions of single elements, and conversions, against f64: every type, shapes that are one row or many, alignments,
//! and values that are not finite.

use cutlet::{
    Binary, CastElement, Device, DeviceTensor, F8E4M3, MapElement, Tensor, TensorMut, Unary, add,
    binary, binary_in_place, cast, layout, unary, unary_in_place,
};
use half::{bf16, f16};

use crate::activations::{gelu, gelu_erf};
use crate::convert::Convert;
use crate::random;

type Function = fn(f64) -> f64;
type OfTwo = fn(f64, f64) -> f64;

const UNARY: [(Unary, Function); 9] = [
    (Unary::Identity, |x| x),
    (Unary::Relu, |x| x.max(0.0)),
    (Unary::Gelu, gelu),
    (Unary::Silu, |x| x / (1.0 + (-x).exp())),
    (Unary::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
    (Unary::Tanh, f64::tanh),
    (Unary::Exp, f64::exp),
    (Unary::Square, |x| x * x),
    (Unary::GeluErf, gelu_erf),
];

const BINARY: [(Binary, OfTwo); 5] = [
    (Binary::Linear, |a, b| a + b),
    (Binary::Product, |a, b| a * b),
    (Binary::Quotient, |a, b| a / b),
    (Binary::Max, f64::max),
    (Binary::Min, f64::min),
];

/// (rows, columns, elements between rows, elements before the first one).
const SHAPES: [[usize; 4]; 9] = [
    [1, 1, 0, 0],
    [1, 4096, 0, 0],
    [1, 5003, 0, 0],
    [3, 1000, 0, 0],
    [1000, 3, 0, 1],
    [5, 520, 8, 0],
    [11, 77, 3, 0],
    [2, 1500, 1, 2],
    [40, 64, 64, 0],
];

/// Random numbers from −6 to 6.
fn numbers<T: Convert>(count: usize, seed: u64) -> Vec<T> {
    let mut random = random::generator(seed);
    (0..count)
        .map(|_| T::of(12.0 * random.f64() - 6.0))
        .collect()
}

fn check_all<T: MapElement + Convert>(tolerance: f64) {
    let stream = Device::auto().stream().unwrap();
    for (nth, [rows, columns, padding, begin]) in SHAPES.into_iter().enumerate() {
        let ld = columns + padding;
        let (a, b): (Vec<T>, Vec<T>) =
            (numbers(begin + rows * ld, 1), numbers(begin + rows * ld, 2));
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let layout = layout!((dyn rows, dyn columns):(dyn ld, 1));
        let tensor = |it| Tensor::<T>::new(it, layout).unwrap();
        let (of_a, of_b) = (on_a.slice(begin..).unwrap(), on_b.slice(begin..).unwrap());
        let compare =
            |found: &[T], kept: Option<&[T]>, exact: &dyn Fn(f64, f64) -> f64, what: &str| {
                for place in begin..begin + rows * ld {
                    let found = found[place].number();
                    if (place - begin) % ld >= columns {
                        let kept = kept.map(|it| it[place].number());
                        assert!(
                            kept.map_or(found.is_nan(), |it| it == found),
                            "{what}: padding was written"
                        );
                        continue;
                    }
                    let exact = exact(a[place].number(), b[place].number());
                    let error = tolerance * exact.abs() + 1e-6;
                    let case = format!("{what} of shape {nth}, at {place}: {found}, not {exact}");
                    assert!(found == exact || (found - exact).abs() <= error, "{case}");
                }
            };
        for (function, exact) in UNARY {
            let mut y = stream.filled::<T>(begin + rows * ld, 0xff).unwrap();
            let to = TensorMut::new(y.slice_mut(begin..).unwrap(), layout).unwrap();
            unary(&stream, function, tensor(of_a), to).unwrap();
            compare(
                &stream.download(&y).unwrap(),
                None,
                &|a, _| exact(a),
                &format!("{function:?}"),
            );
        }
        for (function, exact) in BINARY {
            let mut y = stream.upload(&a).unwrap();
            let to = TensorMut::new(y.slice_mut(begin..).unwrap(), layout).unwrap();
            binary_in_place(&stream, function, to, tensor(of_b)).unwrap();
            compare(
                &stream.download(&y).unwrap(),
                Some(&a),
                &exact,
                &format!("{function:?}"),
            );
        }
        let mut y = stream.upload(&a).unwrap();
        let to = TensorMut::new(y.slice_mut(begin..).unwrap(), layout).unwrap();
        unary_in_place(&stream, Unary::Relu.of(-0.5, 0.25), to).unwrap();
        let exact = |a: f64, _| (0.25 - 0.5 * a).max(0.0);
        compare(
            &stream.download(&y).unwrap(),
            Some(&a),
            &exact,
            "a scaled one",
        );
    }
}

#[test]
fn functions_of_f32_are_exact_to_f32() {
    check_all::<f32>(2e-6);
}

#[test]
fn functions_of_sixteen_bits_are_rounded_once() {
    check_all::<bf16>(2.0f64.powi(-8));
    check_all::<f16>(2.0f64.powi(-10));
}

/// GELU's small results, for negative numbers, are as exact as the others.
#[test]
fn gelu_by_the_error_function_has_the_documented_error() {
    let stream = Device::auto().stream().unwrap();
    let numbers: Vec<f32> = (-12_000..9_000).map(|it| it as f32 / 1000.0).collect();
    let count = numbers.len();
    let x = DeviceTensor::upload(&stream, &numbers, [count]).unwrap();
    let mut y = DeviceTensor::<f32>::zeroed(&stream, [count]).unwrap();
    unary(&stream, Unary::GeluErf, &x, &mut y).unwrap();
    let found = y.download(&stream).unwrap();
    for (x, found) in numbers.iter().zip(found) {
        let exact = gelu_erf(f64::from(*x));
        let within = if *x < -4.0 { 2e-5 } else { 3e-6 };
        let error = (f64::from(found) - exact).abs();
        assert!(error <= within * exact.abs(), "{x}: {found}, not {exact}");
    }
}

#[test]
fn functions_of_what_is_not_finite_are_their_limits() {
    let (high, nan) = (f32::INFINITY, f32::NAN);
    let stream = Device::auto().stream().unwrap();
    let x = stream
        .upload(&[-high, high, nan, 0.0, f32::MIN, f32::MAX, 100.0, -100.0])
        .unwrap();
    let of = |function: Unary| {
        let mut y = stream.zeroed::<f32>(8).unwrap();
        let x = Tensor::new(&x, [8]).unwrap();
        unary(&stream, function, x, TensorMut::new(&mut y, [8]).unwrap()).unwrap();
        stream.download(&y).unwrap()
    };
    let expected = [
        (Unary::Relu, [0.0, high, 0.0, 0.0, f32::MAX, 100.0, 0.0]),
        (Unary::Gelu, [0.0, high, 0.0, 0.0, f32::MAX, 100.0, 0.0]),
        (
            Unary::Silu,
            [0.0, high, 0.0, 0.0, f32::MAX, 100.0, -3.7835e-42],
        ),
        (Unary::Sigmoid, [0.0, 1.0, 0.5, 0.0, 1.0, 1.0, 3.8e-44]),
        (Unary::Tanh, [-1.0, 1.0, 0.0, -1.0, 1.0, 1.0, -1.0]),
        (Unary::Exp, [0.0, high, 1.0, 0.0, high, high, 3.8e-44]),
        (Unary::Square, [high, high, 0.0, high, high, 1e4, 1e4]),
        (Unary::GeluErf, [0.0, high, 0.0, 0.0, f32::MAX, 100.0, 0.0]),
    ];
    for (function, expected) in expected {
        let mut found = of(function);
        assert!(found.remove(2).is_nan(), "{function:?}");
        for (found, expected) in found.iter().zip(expected) {
            // A GPU flushes results below the normal numbers.
            let is_near = found == &expected || (found - expected).abs() < 1e-37;
            assert!(is_near, "{function:?}: {found}, not {expected}");
        }
    }
    let (a, b) = ([nan, 1.0, high, -0.0], [1.0, nan, -high, 0.0]);
    let (a, b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    for (function, last) in [(Binary::Max, [high, 0.0]), (Binary::Min, [-high, 0.0])] {
        let mut y = stream.zeroed::<f32>(4).unwrap();
        let (a, b) = (Tensor::new(&a, [4]).unwrap(), Tensor::new(&b, [4]).unwrap());
        binary(
            &stream,
            function,
            a,
            b,
            TensorMut::new(&mut y, [4]).unwrap(),
        )
        .unwrap();
        let found = stream.download(&y).unwrap();
        assert!(
            found[0].is_nan() && found[1].is_nan(),
            "{function:?}: {found:?}"
        );
        assert_eq!(found[2..], last);
    }
}

/// Converts numbers of every size, and compares with the conversion of f64.
fn check_cast<F: CastElement<T> + Convert, T: Convert>() {
    let stream = Device::auto().stream().unwrap();
    for [rows, columns, padding, begin] in SHAPES {
        let ld = columns + padding;
        let largest = |bytes: usize| if bytes == 1 { 448.0 } else { f64::INFINITY };
        let x: Vec<F> = (0..(begin + rows * ld) as i32)
            .map(|nth| f64::from(nth % 97 - 48) * 1.0625 * 2f64.powi(nth % 29 - 20))
            .map(|x| F::of(x.clamp(-largest(size_of::<F>()), largest(size_of::<F>()))))
            .collect();
        let layout = layout!((dyn rows, dyn columns):(dyn ld, 1));
        let on_x = stream.upload(&x).unwrap();
        let mut y = stream.filled::<T>(begin + rows * ld, 0xff).unwrap();
        let from = Tensor::new(on_x.slice(begin..).unwrap(), layout).unwrap();
        let to = TensorMut::new(y.slice_mut(begin..).unwrap(), layout).unwrap();
        cast(&stream, from, to).unwrap();
        let found = stream.download(&y).unwrap();
        for place in begin..begin + rows * ld {
            let found = found[place].number();
            match (place - begin) % ld < columns {
                false => assert!(found.is_nan(), "padding was written"),
                true => {
                    let x = x[place].number();
                    let most = largest(size_of::<T>());
                    let exact = T::of(x.clamp(-most, most)).number();
                    assert!(found == exact, "{x} became {found}, not {exact}");
                }
            }
        }
    }
}

#[test]
fn conversions_round_to_the_nearest() {
    check_cast::<f32, f16>();
    check_cast::<f32, bf16>();
    check_cast::<f32, F8E4M3>();
    check_cast::<f16, f32>();
    check_cast::<f16, bf16>();
    check_cast::<f16, F8E4M3>();
    check_cast::<bf16, f32>();
    check_cast::<bf16, f16>();
    check_cast::<bf16, F8E4M3>();
    check_cast::<F8E4M3, f32>();
    check_cast::<F8E4M3, f16>();
    check_cast::<F8E4M3, bf16>();
}

#[test]
fn conversions_keep_what_is_no_number() {
    let stream = Device::auto().stream().unwrap();
    let x = [f32::NAN, f32::INFINITY, -1e9, -0.0, 1e-9];
    let x = stream.upload(&x).unwrap();
    let mut y = stream.zeroed::<F8E4M3>(5).unwrap();
    let from = Tensor::new(&x, [5]).unwrap();
    cast(&stream, from, TensorMut::new(&mut y, [5]).unwrap()).unwrap();
    let found = stream.download(&y).unwrap();
    assert!(found[0].to_f32().is_nan());
    assert_eq!(
        [1, 2, 3, 4].map(|nth| found[nth].to_f32()),
        [448.0, -448.0, 0.0, 0.0]
    );
    assert_eq!(found[3].to_bits(), 0x80);
    let mut halves = stream.zeroed::<f16>(5).unwrap();
    cast(&stream, from, TensorMut::new(&mut halves, [5]).unwrap()).unwrap();
    let found = stream.download(&halves).unwrap();
    assert!(found[0].is_nan());
    assert_eq!(found[1..3], [f16::INFINITY, f16::NEG_INFINITY]);
}

#[test]
fn a_row_of_biases_is_added_to_all_rows() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.upload(&[1.0f32; 6 * 1030]).unwrap();
    let biases: Vec<f32> = (0..1030).map(|it| it as f32).collect();
    let biases = stream.upload(&biases).unwrap();
    let mut y = stream.zeroed::<f32>(6 * 1030).unwrap();
    let x = Tensor::new(&x, [6, 1030]).unwrap();
    let biases = Tensor::new(&biases, layout!((6, 1030):(0, 1))).unwrap();
    add(
        &stream,
        x,
        biases,
        TensorMut::new(&mut y, [6, 1030]).unwrap(),
    )
    .unwrap();
    let found = stream.download(&y).unwrap();
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(nth, y)| *y == (nth % 1030) as f32 + 1.0)
    );
}
