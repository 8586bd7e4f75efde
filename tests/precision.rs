//! The arithmetic of element types: each precision of f32 products is within its documented error, and what a type does
//! not have is refused.

use crate::random;
use cutlet::{
    Activation, Bias, Buffer, Device, Error, Gemm, Matrix, MatrixMut, Order, Precision, Stream,
};
use half::bf16;

const PRECISIONS: [Precision; 3] = [Precision::Exact, Precision::Tf32, Precision::Tf32x3];

/// Numbers between −1 and 1 with all of f32's bits.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut random = random::generator(seed);
    (0..count).map(|_| 2.0 * random.f32() - 1.0).collect()
}

/// ‖A·B + bias − C‖ / ‖A·B + bias‖, for a row-major C.
fn error(
    [m, n, k]: [usize; 3],
    at: [impl Fn(usize, usize) -> f32; 2],
    bias: &[f32],
    c: &[f32],
) -> f64 {
    let (mut errors, mut squares) = (0.0, 0.0);
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let products = (0..k).map(|l| f64::from(at[0](i, l)) * f64::from(at[1](l, j)));
        let exact = products.sum::<f64>() + f64::from(bias[j]);
        errors += (f64::from(c[i * n + j]) - exact).powi(2);
        squares += exact.powi(2);
    }
    (errors / squares).sqrt()
}

#[test]
fn each_precision_is_within_its_error() {
    use Order::{ColMajor, RowMajor};
    let stream = Device::auto().stream().unwrap();
    let bias = numbers(132, 3);
    let on_bias = stream.upload(&bias).unwrap();
    for (m, n, k) in [(70, 132, 96), (64, 64, 500), (33, 31, 17)] {
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        for orders in [[RowMajor, ColMajor], [RowMajor; 2], [ColMajor, RowMajor]] {
            for precision in PRECISIONS {
                for fused in [false, true] {
                    let mut on_c = stream.zeroed::<f32>(m * n).unwrap();
                    let mut gemm = Gemm::new(
                        Matrix::packed(&on_a, m, k, orders[0]).unwrap(),
                        Matrix::packed(&on_b, k, n, orders[1]).unwrap(),
                        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
                    );
                    if fused {
                        gemm = gemm.bias(Bias::columns(on_bias.slice(..n).unwrap()));
                    }
                    gemm.precision(precision).run(&stream).unwrap();
                    let c = stream.download(&on_c).unwrap();
                    let at = [(&a, orders[0], m, k), (&b, orders[1], k, n)].map(
                        |(elements, order, rows, columns)| {
                            move |i: usize, j: usize| match order {
                                RowMajor => elements[i * columns + j],
                                ColMajor => elements[j * rows + i],
                            }
                        },
                    );
                    let added = if fused {
                        bias[..n].to_vec()
                    } else {
                        vec![0.0; n]
                    };
                    let found = error([m, n, k], at, &added, &c);
                    let most = match precision {
                        Precision::Tf32 => 5e-4,
                        _ => 1e-6,
                    };
                    assert!(
                        found <= most,
                        "{m}×{n}×{k}, {orders:?}, {precision}, fused {fused}: {found:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn other_elements_have_no_precisions() {
    let stream = Device::cpu().stream().unwrap();
    let elements = stream.zeroed::<bf16>(64).unwrap();
    let mut c = stream.zeroed::<bf16>(64).unwrap();
    for precision in PRECISIONS {
        let (a, c) = (square(&elements), square_mut(&mut c));
        let mut gemm = Gemm::new(a, a, c).precision(precision);
        match (precision, gemm.run(&stream)) {
            (Precision::Exact, done) => done.unwrap(),
            (_, refused) => {
                let error = refused.unwrap_err();
                assert!(matches!(error, Error::Arithmetic { .. }));
                let said = format!("gemm: the precision {precision} was asked for, but it is for");
                assert!(error.to_string().starts_with(&said), "{error}");
            }
        }
    }
}

#[test]
fn a_plan_is_of_one_precision() {
    let stream: Stream = Device::cpu().stream().unwrap();
    let elements = stream.zeroed::<f32>(64).unwrap();
    let mut c = stream.zeroed::<f32>(64).unwrap();
    let a = square(&elements);
    let mut planned = Gemm::new(a, a, square_mut(&mut c)).precision(Precision::Tf32);
    let plan = planned.plan(&stream).unwrap();
    for precision in PRECISIONS {
        let mut gemm = Gemm::new(a, a, square_mut(&mut c)).precision(precision);
        match plan.run(&stream, &mut gemm) {
            Ok(()) => assert_eq!(precision, Precision::Tf32),
            Err(error) => {
                assert_ne!(precision, Precision::Tf32);
                let said = format!("{precision} products");
                assert!(error.to_string().contains(&said), "{error}");
                assert!(error.to_string().contains("tf32 products"), "{error}");
            }
        }
    }
}

fn square<T: cutlet::DeviceData>(elements: &Buffer<T>) -> Matrix<'_, T> {
    Matrix::row_major(elements, 8, 8).unwrap()
}

fn square_mut<T: cutlet::DeviceData>(elements: &mut Buffer<T>) -> MatrixMut<'_, T> {
    MatrixMut::row_major(elements, 8, 8).unwrap()
}

#[test]
fn only_relu_is_computed_in_f64_and_i32() {
    let stream = Device::cpu().stream().unwrap();
    let (wide, narrow) = (
        stream.zeroed::<f64>(64).unwrap(),
        stream.zeroed::<i8>(64).unwrap(),
    );
    let mut c = (
        stream.zeroed::<f64>(64).unwrap(),
        stream.zeroed::<i32>(64).unwrap(),
    );
    for activation in [Activation::Gelu, Activation::Silu, Activation::GeluErf] {
        let in_f64 = Gemm::new(square(&wide), square(&wide), square_mut(&mut c.0));
        let in_i32 = Gemm::new(square(&narrow), square(&narrow), square_mut(&mut c.1));
        for refused in [
            in_f64.activation(activation).run(&stream),
            in_i32.activation(activation).run(&stream),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Arithmetic { .. }), "{error}");
            assert!(error.to_string().contains("only ReLU"), "{error}");
        }
    }
}
