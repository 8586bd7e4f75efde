//! Products with few rows or columns, by the kernels that multiply a matrix with vectors, against exact sums of small
//! whole numbers. On a GPU if there is one.

use crate::convert::Convert;
use crate::place::{ALIGNED, Place};
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Device, Element, Error, Gemm, Matrix, MatrixMut, Operand, Precision,
};
use half::{bf16, f16};

trait Number: Element + Operand<Factor = f32> + Convert + PartialEq {}
impl Number for f32 {}
impl Number for bf16 {}
impl Number for f16 {}

/// Checks C = 2·A·B + beta·C. The C that is computed lies between rows of elements that stay as they are.
fn check<T: Number>(name: &str, [m, n, k]: [usize; 3], place: Place, beta: f32) {
    let stream = Device::auto().stream().unwrap();
    let ld = k + place.padding;
    let (a, b) = (place.small::<T>([m, k], 1), place.small::<T>([n, k], 2));
    let ldc = n + 1;
    let mut expected = ALIGNED.small::<T>([m + 1, ldc], 3);
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut on_c = stream.upload(&expected).unwrap();
    let from = |len: usize| place.offset.min(len)..;
    let gemm = Gemm::new(
        Matrix::with_ld(on_a.slice(from(a.len())).unwrap(), m, k, RowMajor, ld).unwrap(),
        Matrix::with_ld(on_b.slice(from(b.len())).unwrap(), k, n, ColMajor, ld).unwrap(),
        MatrixMut::with_ld(&mut on_c, m, n, RowMajor, ldc).unwrap(),
    );
    gemm.alpha(2.0)
        .beta(beta)
        .instance(name)
        .run(&stream)
        .unwrap_or_else(|error| panic!("{name} at {m}×{n}×{k}, {place:?}: {error}"));
    for i in 0..m {
        for j in 0..n {
            let product = |l: usize| {
                a[place.offset + i * ld + l].number() * b[place.offset + j * ld + l].number()
            };
            let sum: f64 = (0..k).map(product).sum();
            let c = &mut expected[i * ldc + j];
            *c = T::of(2.0 * sum + f64::from(beta) * c.number());
        }
    }
    let found = stream.download(&on_c).unwrap();
    assert!(
        found == expected,
        "{name} at {m}×{n}×{k}, {place:?}, beta {beta}"
    );
}

/// The kernels for elements of this type.
fn kernels<T: Number>() -> Vec<&'static str> {
    let backend = Device::auto().backend();
    let mut names = Gemm::<T>::instances(backend, RowMajor, ColMajor, Precision::Exact);
    names.retain(|name| name.starts_with("gemv_"));
    names
}

fn check_kernels<T: Number>() {
    let names = kernels::<T>();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let is_any = name.ends_with("_any");
        // Extents below, at and above a tile's; few rows of C, and few columns.
        for [m, n] in [[1, 1], [1, 20], [3, 9], [4, 8], [17, 2], [40, 5], [6, 6]] {
            for k in [0, 8, 504, 2056] {
                check::<T>(name, [m, n, k], ALIGNED, 0.0);
            }
            check::<T>(name, [m, n, 16], ALIGNED, -1.0);
            // With k = 1 and no padding, A is one column and B one row. They then count as column-major and row-major,
            // which no gemv kernel takes.
            for (k, offset, padding) in [(1, 0, 2), (7, 1, 0), (513, 0, 2), (1030, 3, 1)] {
                if is_any {
                    check::<T>(name, [m, n, k], Place { offset, padding }, 1.0);
                }
            }
        }
    }
}

#[test]
fn bf16_of_all_extents_and_places() {
    check_kernels::<bf16>();
}

#[test]
fn f16_of_all_extents_and_places() {
    check_kernels::<f16>();
}

#[test]
fn f32_of_all_extents_and_places() {
    check_kernels::<f32>();
}

/// A bias of rows and of columns, a residual and an activation, in both orientations.
#[test]
fn everything_is_fused() {
    let stream = Device::auto().stream().unwrap();
    for (m, n, k) in [(2, 19, 33), (19, 3, 33)] {
        let (a, b) = (
            ALIGNED.small::<f32>([m, k], 1),
            ALIGNED.small::<f32>([n, k], 2),
        );
        let (residual, bias) = (
            ALIGNED.small::<f32>([m, n], 3),
            ALIGNED.small::<f32>([1, m.max(n)], 4),
        );
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let on_residual = stream.upload(&residual).unwrap();
        let (of_rows, of_columns) = (
            stream.upload(&bias[..m]).unwrap(),
            stream.upload(&bias[..n]).unwrap(),
        );
        for along_rows in [true, false] {
            let bias_of = match along_rows {
                true => Bias::rows(&of_rows),
                false => Bias::columns(&of_columns),
            };
            let mut on_c = stream.filled::<f32>(m * n, 0xff).unwrap();
            let gemm = Gemm::new(
                Matrix::row_major(&on_a, m, k).unwrap(),
                Matrix::col_major(&on_b, k, n).unwrap(),
                MatrixMut::row_major(&mut on_c, m, n).unwrap(),
            );
            gemm.bias(bias_of)
                .source(Matrix::row_major(&on_residual, m, n).unwrap(), 3.0)
                .activation(Activation::Relu)
                .instance("gemv_f32_8x4_any")
                .run(&stream)
                .unwrap();
            let found = stream.download(&on_c).unwrap();
            for (at, found) in found.into_iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let sum: f32 = (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum();
                let bias = bias[if along_rows { i } else { j }];
                let expected = (sum + 3.0 * residual[at] + bias).max(0.0);
                assert_eq!(found, expected, "C[{i}, {j}] of {m}×{n}");
            }
        }
    }
}

/// Kernels that read 16 bytes at a time refuse rows that begin elsewhere.
#[test]
fn rows_that_begin_elsewhere_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let (a, b) = (
        stream.zeroed::<bf16>(40).unwrap(),
        stream.zeroed::<bf16>(90).unwrap(),
    );
    let mut c = stream.zeroed::<bf16>(9).unwrap();
    for (offset, k) in [(1, 8), (0, 9), (2, 8)] {
        let gemm = Gemm::new(
            Matrix::row_major(a.slice(offset..).unwrap(), 1, k).unwrap(),
            Matrix::col_major(&b, k, 9).unwrap(),
            MatrixMut::row_major(&mut c, 1, 9).unwrap(),
        );
        let refused = gemm.instance("gemv_bf16_4x1_16b").run(&stream);
        assert!(
            matches!(refused, Err(Error::Instance { .. })),
            "{offset}, {k}"
        );
    }
}
