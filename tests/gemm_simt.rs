//! `gemm` of f32 against an f64 reference, on a GPU if there is one: awkward extents, every order, padded leading
//! dimensions, offsets that break alignment, alpha and beta.

use crate::by_kernel::by_kernel;
use crate::reference::Host;
use crate::rounding;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{Device, Error, Gemm, Matrix, MatrixMut, Order, Precision, gemm};

/// A call of `gemm`.
struct Case {
    m: usize,
    n: usize,
    k: usize,
    /// Orders of A, B and C.
    orders: [Order; 3],
    /// Elements between a run's end and the next run.
    padding: usize,
    /// Elements in front of each matrix in its buffer.
    offset: usize,
    alpha: f32,
    beta: f32,
    /// The kernel, or the one that is estimated to be the fastest.
    kernel: Option<&'static str>,
}

const PLAIN: Case = Case {
    m: 0,
    n: 0,
    k: 0,
    orders: [RowMajor; 3],
    padding: 0,
    offset: 0,
    alpha: 1.0,
    beta: 0.0,
    kernel: None,
};

fn check(case: &Case) {
    try_check(case).unwrap();
}

/// Computes the case and compares every element. An error is that of the call.
fn try_check(case: &Case) -> Result<(), Error> {
    let Case {
        m,
        n,
        k,
        orders,
        padding,
        offset,
        alpha,
        beta,
        kernel,
    } = *case;
    let a = Host::random(m, k, orders[0], padding, offset);
    let b = Host::random(k, n, orders[1], padding, offset);
    let mut c = Host::random(m, n, orders[2], padding, offset);
    if beta == 0.0 {
        c.poison();
    }

    let stream = Device::auto().stream().unwrap();
    let on_device = |host: &Host| stream.upload(&host.elements).unwrap();
    let (buffer_a, buffer_b, mut buffer_c) = (on_device(&a), on_device(&b), on_device(&c));
    let matrix = |host: &Host, buffer| {
        Matrix::with_ld(buffer, host.rows, host.columns, host.order, host.ld).unwrap()
    };
    let gemm = Gemm::new(
        matrix(&a, buffer_a.slice(offset..).unwrap()),
        matrix(&b, buffer_b.slice(offset..).unwrap()),
        MatrixMut::with_ld(buffer_c.slice_mut(offset..).unwrap(), m, n, c.order, c.ld).unwrap(),
    );
    by_kernel(kernel, gemm)
        .alpha(alpha)
        .beta(beta)
        .run(&stream)?;
    let found = c.with_elements(stream.download(&buffer_c).unwrap());

    found.assert_padding_untouched(&c);
    for i in 0..m {
        for j in 0..n {
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for l in 0..k {
                let product = a.at(i, l) as f64 * b.at(l, j) as f64;
                sum += product;
                magnitude += product.abs();
            }
            let old = if beta == 0.0 {
                0.0
            } else {
                beta as f64 * c.at(i, j) as f64
            };
            assert_close(
                found.at(i, j),
                alpha as f64 * sum + old,
                rounding::of_sum(k, alpha.abs() as f64 * magnitude + old.abs()),
                || {
                    format!(
                        "C[{i}, {j}] of {m}×{n}×{k}, {orders:?}, padding {padding}, offset {offset}"
                    )
                },
            );
        }
    }
    Ok(())
}

/// Fails unless `found` equals `expected` up to `allowed`.
fn assert_close(found: f32, expected: f64, allowed: f64, what: impl Fn() -> String) {
    let error = (f64::from(found) - expected).abs();
    assert!(
        error <= allowed + f64::from(f32::MIN_POSITIVE),
        "{}: found {found}, expected {expected}",
        what()
    );
}

#[test]
fn a_lost_product_of_a_long_sum_is_noticed() {
    let k = 4100;
    let a = Host::random(1, k, RowMajor, 0, 0);
    let b = Host::random(k, 1, RowMajor, 0, 0);
    let products = (0..k).map(|l| f64::from(a.at(0, l)) * f64::from(b.at(l, 0)));
    let magnitudes: Vec<f64> = products.map(f64::abs).collect();
    let allowed = rounding::of_sum(k, magnitudes.iter().sum());
    let noticed = magnitudes.iter().filter(|it| **it > 2.0 * allowed).count();
    assert!(noticed > k * 8 / 10, "{noticed} of {k}");
    check(&Case {
        m: 1,
        n: 1,
        k,
        ..PLAIN
    });
}

#[test]
fn awkward_extents() {
    for (m, n, k) in [
        (1, 1, 1),
        (7, 1, 127),
        (1, 129, 7),
        (127, 129, 1),
        (129, 127, 7),
        (128, 128, 128),
        (1000, 7, 16),
        (7, 1000, 129),
        (1, 1, 1000),
        (260, 132, 36),
    ] {
        check(&Case { m, n, k, ..PLAIN });
    }
}

#[test]
fn every_order_aligned_and_not() {
    for a in [RowMajor, ColMajor] {
        for b in [RowMajor, ColMajor] {
            for c in [RowMajor, ColMajor] {
                check(&Case {
                    m: 132,
                    n: 136,
                    k: 20,
                    orders: [a, b, c],
                    ..PLAIN
                });
                check(&Case {
                    m: 129,
                    n: 131,
                    k: 17,
                    orders: [a, b, c],
                    ..PLAIN
                });
            }
        }
    }
}

#[test]
fn leading_dimensions_and_offsets() {
    for padding in [0, 1, 4] {
        for offset in [0, 1, 4] {
            check(&Case {
                m: 20,
                n: 24,
                k: 28,
                padding,
                offset,
                ..PLAIN
            });
            let orders = [ColMajor, RowMajor, ColMajor];
            check(&Case {
                m: 20,
                n: 24,
                k: 28,
                orders,
                padding,
                offset,
                ..PLAIN
            });
        }
    }
}

#[test]
fn alpha_and_beta() {
    for (alpha, beta) in [(0.0, 0.0), (2.5, 0.0), (1.0, 1.0), (-0.5, 3.0), (0.0, 2.0)] {
        check(&Case {
            m: 33,
            n: 65,
            k: 19,
            alpha,
            beta,
            ..PLAIN
        });
        check(&Case {
            m: 64,
            n: 64,
            k: 32,
            alpha,
            beta,
            ..PLAIN
        });
    }
}

#[test]
fn empty_problems() {
    for (m, n, k) in [(0, 5, 5), (5, 0, 5), (0, 0, 0)] {
        check(&Case { m, n, k, ..PLAIN });
    }
    check(&Case {
        m: 5,
        n: 6,
        k: 0,
        beta: 0.0,
        ..PLAIN
    });
    check(&Case {
        m: 5,
        n: 6,
        k: 0,
        beta: 2.0,
        ..PLAIN
    });
}

#[test]
fn every_instance() {
    for (a, b) in [RowMajor, ColMajor]
        .map(|a| [(a, RowMajor), (a, ColMajor)])
        .concat()
    {
        let mut names = Gemm::<f32>::instances(Device::auto().backend(), a, b, Precision::Exact);
        // Those for few rows or columns have tests of their own.
        names.retain(|name| !name.starts_with("gemv_"));
        assert!(names.len() >= 3, "{names:?}");
        for name in names {
            let case = |k, offset| Case {
                m: 140,
                n: 268,
                k,
                orders: [a, b, RowMajor],
                offset,
                kernel: Some(name),
                ..PLAIN
            };
            // More k-tiles than stages, the last one in part.
            check(&case(212, 0));
            // Few k-tiles, and none.
            check(&case(8, 0));
            check(&case(0, 0));
            match name.ends_with("_any") {
                true => check(&case(35, 1)),
                false => {
                    let said = try_check(&case(36, 1)).unwrap_err().to_string();
                    assert!(said.contains(name), "{said}");
                }
            }
        }
    }
}

#[test]
fn extents_are_checked() {
    let stream = Device::auto().stream().unwrap();
    let buffer = stream.zeroed::<f32>(64).unwrap();
    assert!(matches!(
        Matrix::row_major(&buffer, 9, 8),
        Err(Error::Matrix { .. })
    ));
    assert!(matches!(
        Matrix::with_ld(&buffer, 4, 8, RowMajor, 7),
        Err(Error::Matrix { .. })
    ));
    assert!(matches!(
        Matrix::with_ld(&buffer, usize::MAX, 8, RowMajor, usize::MAX),
        Err(Error::Matrix { .. })
    ));

    let mut output = stream.zeroed::<f32>(64).unwrap();
    let a = Matrix::row_major(&buffer, 4, 5).unwrap();
    let b = Matrix::row_major(&buffer, 6, 4).unwrap();
    let c = MatrixMut::row_major(&mut output, 4, 4).unwrap();
    let error = gemm(&stream, 1.0, a, b, 0.0, c).unwrap_err();
    assert_eq!(
        error.to_string(),
        "gemm: the columns of A and the rows of B are 5 and 6; make them agree"
    );
}

#[test]
fn matrices_of_another_stream_are_refused() {
    let device = Device::auto();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let a = stream.zeroed::<f32>(6).unwrap();
    let mut scratch = other.scratch::<f32>(4).unwrap();
    let a = Matrix::row_major(&a, 2, 3).unwrap();
    let c = MatrixMut::row_major(scratch.view_mut(), 2, 2).unwrap();
    let said = gemm(&stream, 1.0, a, a.transposed(), 0.0, c)
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("gemm: C is memory of another stream"),
        "{said}"
    );
}
