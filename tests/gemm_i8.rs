//! GEMM of i8: sums in i32 at the ends of their ranges, and into floats with scales of rows and columns against f64, on
//! a GPU if there is one.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::turns::has_turn;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Device, Element, Error, Float, Gemm, Matrix, MatrixMut, Operand, Order,
    Precision, Stream, bf16, f16,
};

/// The kernels for K-major operands into a C of `D` that compute no Cᵀ.
fn kernels<D>() -> Vec<&'static str>
where
    D: cutlet::DeviceData,
    i8: Element<D>,
{
    let backend = Device::auto().backend();
    let mut names = Gemm::<i8, D>::instances(backend, RowMajor, ColMajor, Precision::Exact);
    names.sort_unstable();
    names.dedup();
    names
}

/// Which kernels of these multiply by `wgmma`.
fn by_wgmma(names: &[&str]) -> usize {
    names.iter().filter(|name| name.starts_with("i8_")).count()
}

/// `A·B` of elements `a` and `b` and of this k, by a kernel, where C was poisoned.
fn product(stream: &Stream, kernel: &str, [a, b]: [i8; 2], k: usize) -> Vec<i32> {
    let (m, n) = (67, 68);
    let on_a = stream.upload(&vec![a; m * k]).unwrap();
    let on_b = stream.upload(&vec![b; k * n]).unwrap();
    let mut on_c = stream.upload(&vec![0x7EAD_BEEF; m * n]).unwrap();
    let gemm = Gemm::<i8, i32>::new(
        Matrix::row_major(&on_a, m, k).unwrap(),
        Matrix::col_major(&on_b, k, n).unwrap(),
        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
    );
    by_kernel(Some(kernel), gemm).run(stream).unwrap();
    stream.download(&on_c).unwrap()
}

#[test]
fn sums_are_exact_at_the_ends_of_the_range() {
    let stream = Device::auto().stream().unwrap();
    let kernels = kernels::<i32>();
    assert!(by_wgmma(&kernels) > 2, "{kernels:?}");
    for kernel in kernels {
        for (elements, k) in [([-128, -128], 400), ([-128, 127], 1040), ([127, 127], 16)] {
            let [a, b] = elements.map(i32::from);
            let found = product(&stream, kernel, elements, k);
            let expected = a * b * k as i32;
            let wrong = found.iter().position(|&it| it != expected);
            assert_eq!(wrong, None, "{kernel} of {elements:?} and k = {k}");
        }
    }
}

/// A product with scales.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    /// Of A, B and C.
    orders: [Order; 3],
    /// The numbers of scales of A and B, if they have some: of all rows and columns, or one.
    is_one: Option<[bool; 2]>,
    alpha: i32,
    beta: i32,
    /// Whether there is a bias, and ReLU after it.
    fused: bool,
}

const PLAIN: Case = Case {
    extents: [200, 264, 400],
    orders: [RowMajor, ColMajor, RowMajor],
    is_one: Some([false; 2]),
    alpha: 1,
    beta: 0,
    fused: false,
};

/// Where an element of a packed matrix lies.
fn place([rows, columns]: [usize; 2], order: Order, [i, j]: [usize; 2]) -> usize {
    match order {
        RowMajor => i * columns + j,
        ColMajor => j * rows + i,
    }
}

/// Computes a case by the kernel of this name, and compares each entry of C.
fn check<D: Convert + Float>(stream: &Stream, case: Case, kernel: Option<&str>)
where
    i8: Element<D> + Operand<Factor = i32>,
{
    let Case {
        extents: [m, n, k],
        orders: [order_a, order_b, order_c],
        is_one,
        ..
    } = case;
    let mut random = fastrand::Rng::with_seed((m + n + k) as u64);
    let a: Vec<i8> = (0..m * k).map(|_| random.i8(..)).collect();
    let b: Vec<i8> = (0..k * n).map(|_| random.i8(..)).collect();
    let [one_a, one_b] = is_one.unwrap_or([true; 2]);
    // So large that the scale of a sum of 1 is a normal number of f16.
    let mut scales = |count: usize| -> Vec<f32> {
        let scale = || (random.f32() + 0.5) / 16.0;
        std::iter::repeat_with(scale).take(count).collect()
    };
    let of_a = scales(if one_a { 1 } else { m });
    let of_b = scales(if one_b { 1 } else { n });
    let bias: Vec<D> = (0..n).map(|j| D::of(j as f64 / 4.0 - 9.0)).collect();
    let old = if case.beta == 0 { f64::NAN } else { 1.5 };

    let on_a = stream.upload(&a).unwrap();
    let on_b = stream.upload(&b).unwrap();
    let on_of_a = stream.upload(&of_a).unwrap();
    let on_of_b = stream.upload(&of_b).unwrap();
    let on_bias = stream.upload(&bias).unwrap();
    let mut on_c = stream.upload(&vec![D::of(old); m * n]).unwrap();
    let gemm = Gemm::<i8, D>::new(
        Matrix::packed(&on_a, m, k, order_a).unwrap(),
        Matrix::packed(&on_b, k, n, order_b).unwrap(),
        MatrixMut::packed(&mut on_c, m, n, order_c).unwrap(),
    );
    let mut gemm = by_kernel(kernel, gemm).alpha(case.alpha).beta(case.beta);
    if is_one.is_some() {
        gemm = gemm.outer_scales(&on_of_a, &on_of_b);
    }
    if case.fused {
        gemm = gemm
            .bias(Bias::columns(&on_bias))
            .activation(Activation::Relu);
    }
    gemm.run(stream).unwrap();
    let found = stream.download(&on_c).unwrap();
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let at = |l: usize| {
            let of_a = i32::from(a[place([m, k], order_a, [i, l])]);
            of_a * i32::from(b[place([k, n], order_b, [l, j])])
        };
        let sum: i32 = (0..k).map(at).sum();
        let scale = match is_one {
            None => 1.0,
            Some(_) => f64::from(of_a[i % of_a.len()]) * f64::from(of_b[j % of_b.len()]),
        };
        let scaled = f64::from(case.alpha) * scale * f64::from(sum);
        let from_old = match case.beta {
            0 => 0.0,
            beta => f64::from(beta) * old,
        };
        let (from_bias, floor) = match case.fused {
            true => (bias[j].number(), 0.0),
            false => (0.0, f64::NEG_INFINITY),
        };
        let expected = (scaled + from_old + from_bias).max(floor);
        let found = found[place([m, n], order_c, [i, j])].number();
        // Several roundings to f32, and that of C.
        let terms = scaled.abs() + from_old.abs() + from_bias.abs();
        let most = terms * 4e-7 + expected.abs() * rounding::<D>();
        let error = (found - expected).abs();
        assert!(
            error <= most,
            "C[{i}, {j}] of {case:?} by {kernel:?}: {found}, {expected}"
        );
    }
}

/// The relative error of a number that is rounded to `D`.
fn rounding<D: Convert>() -> f64 {
    let next = (1..30).find(|&bits| D::of(1.0 + 0.5f64.powi(bits)).number() == 1.0);
    0.5f64.powi(next.unwrap_or(30))
}

#[test]
fn each_kernel_scales_its_sums() {
    fn check_all<D: Convert + Float>(stream: &Stream)
    where
        i8: Element<D> + Operand<Factor = i32>,
    {
        let kernels = kernels::<D>();
        assert!(by_wgmma(&kernels) > 0, "{kernels:?}");
        let kernels = kernels.into_iter().filter(|it| it.starts_with("i8_"));
        for (nth, kernel) in kernels.enumerate() {
            for extents in [[136, 136, 272], [1, 72, 528]] {
                check::<D>(stream, Case { extents, ..PLAIN }, Some(kernel));
            }
            let which = [[true, false], [false, true], [true, true]];
            for (of_which, is_one) in which.into_iter().enumerate() {
                if !has_turn(nth + of_which, which.len()) {
                    continue;
                }
                let case = Case {
                    extents: [70, 72, 80],
                    is_one: Some(is_one),
                    alpha: -3,
                    ..PLAIN
                };
                check::<D>(stream, case, Some(kernel));
            }
        }
    }
    let stream = Device::auto().stream().unwrap();
    check_all::<bf16>(&stream);
    check_all::<f16>(&stream);
    check_all::<f32>(&stream);
}

#[test]
fn operands_and_c_may_have_any_order_and_alignment() {
    let stream = Device::auto().stream().unwrap();
    for orders in [
        [ColMajor, ColMajor, RowMajor],
        [RowMajor, RowMajor, RowMajor],
        [RowMajor, ColMajor, ColMajor],
        [ColMajor, RowMajor, ColMajor],
    ] {
        for extents in [[136, 72, 336], [67, 129, 201]] {
            let case = Case {
                extents,
                orders,
                ..PLAIN
            };
            check::<bf16>(&stream, case, None);
            check::<f32>(&stream, case, None);
        }
    }
}

#[test]
fn factors_bias_and_activation_come_after_the_scales() {
    let stream = Device::auto().stream().unwrap();
    for (alpha, beta) in [(1, 0), (-2, 1), (3, -4)] {
        for (fused, is_one) in [(true, Some([false; 2])), (false, None), (true, None)] {
            for extents in [[70, 136, 304], [5, 7, 33]] {
                let case = Case {
                    extents,
                    alpha,
                    beta,
                    fused,
                    is_one,
                    ..PLAIN
                };
                check::<f32>(&stream, case, None);
                if is_one.is_some() {
                    check::<bf16>(&stream, case, None);
                    check::<f16>(&stream, case, None);
                }
            }
        }
    }
    // Without k, C is what is added.
    for extents in [[5, 8, 0], [0, 8, 200]] {
        check::<bf16>(
            &stream,
            Case {
                extents,
                beta: 2,
                fused: true,
                ..PLAIN
            },
            None,
        );
    }
}

#[test]
fn sums_beyond_the_bits_of_f32_are_rounded_once() {
    let stream = Device::auto().stream().unwrap();
    let (n, k) = (16, 2000);
    let on_a = stream.upload(&vec![-128i8; k]).unwrap();
    // One product less than a whole number of 2¹⁴.
    let mut column = vec![-128i8; k];
    column[0] = -127;
    let on_b = stream.upload(&column.repeat(n)).unwrap();
    let mut on_c = stream.zeroed::<f32>(n).unwrap();
    Gemm::<i8, f32>::new(
        Matrix::row_major(&on_a, 1, k).unwrap(),
        Matrix::col_major(&on_b, k, n).unwrap(),
        MatrixMut::row_major(&mut on_c, 1, n).unwrap(),
    )
    .run(&stream)
    .unwrap();
    let sum = 128 * 128 * 2000 - 128;
    assert_eq!(stream.download(&on_c).unwrap(), vec![sum as f32; n]);
}

#[test]
fn other_numbers_of_scales_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let (on_a, on_b) = (
        stream.zeroed::<i8>(64 * 32).unwrap(),
        stream.zeroed::<i8>(32 * 16).unwrap(),
    );
    let mut on_c = stream.zeroed::<bf16>(64 * 16).unwrap();
    let (of_a, of_b) = (
        stream.zeroed::<f32>(63).unwrap(),
        stream.zeroed::<f32>(16).unwrap(),
    );
    let error = Gemm::<i8, bf16>::new(
        Matrix::row_major(&on_a, 64, 32).unwrap(),
        Matrix::col_major(&on_b, 32, 16).unwrap(),
        MatrixMut::row_major(&mut on_c, 64, 16).unwrap(),
    )
    .outer_scales(&of_a, &of_b)
    .run(&stream)
    .unwrap_err();
    assert!(matches!(error, Error::Extents { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("A's scales are 63, and C has 64 rows; give one for each"),
        "{error}"
    );
}
