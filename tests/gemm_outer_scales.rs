//! GEMM of 8-bit floats with scales of rows and columns against sums in f64, on a GPU if there is one: every kernel,
//! every type of C, both ways of adding, odd extents, other orders, and what is fused.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::host_matrix::HostMatrix;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Device, Element, Error, F8E4M3, Float, Gemm, Matrix, MatrixMut, Order,
    Precision, Stream, bf16, f16,
};

/// The kernels that multiply by the scales themselves.
const KERNELS: [&str; 12] = [
    "e4m3_256x128x128_2x1_coop_outer",
    "e4m3_128x128x128_2x1_coop_outer",
    "e4m3_64x128x128_1x1_ws_outer",
    "e4m3_128x256x128_2x1_coop_fast_outer",
    "e4m3_128x128x128_1x1_coop_fast_outer",
    "e4m3_64x128x128_1x1_ws_fast_outer",
    "e4m3_64x32x128_1x1_ws_kkm_outer",
    "e4m3_64x32x128_2x4_ws_kkm_outer",
    "e4m3_128x64x128_1x1_coop_kkm_outer",
    "e4m3_128x64x128_2x2_coop_kkm_outer",
    "e4m3_128x128x128_1x1_coop_kkm_outer",
    "e4m3_128x128x128_4x1_coop_kkm_outer",
];
/// Those that have a body for the CPU.
const ON_THE_CPU: [usize; 5] = [0, 2, 4, 6, 7];

/// A product with scales.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    /// Of A, B and C.
    orders: [Order; 3],
    /// Whether one scale is that of all rows of A, and of all columns of B.
    is_one: [bool; 2],
    factors: [f32; 2],
    /// Whether there is a bias, and ReLU after it.
    fused: bool,
    precision: Precision,
}

const PLAIN: Case = Case {
    extents: [200, 264, 400],
    orders: [RowMajor, ColMajor, RowMajor],
    is_one: [false; 2],
    factors: [1.0, 0.0],
    fused: false,
    precision: Precision::Exact,
};

/// Computes a case by the kernel of this name, and compares each entry of C.
fn check<D: Convert + Float>(stream: &Stream, case: Case, kernel: Option<&str>)
where
    F8E4M3: Element<D>,
{
    let Case {
        extents: [m, n, k],
        orders: [order_a, order_b, order_c],
        is_one: [one_a, one_b],
        factors: [alpha, beta],
        ..
    } = case;
    let mut random = fastrand::Rng::with_seed((m + n + k) as u64);
    let a = HostMatrix::<F8E4M3>::new([m, k], order_a, || random.f64() * 4.0 - 2.0);
    let b = HostMatrix::<F8E4M3>::new([k, n], order_b, || random.f64() * 4.0 - 2.0);
    let mut scales =
        |count: usize| -> Vec<f32> { (0..count).map(|_| random.f32() + 0.5).collect() };
    let of_a = scales(if one_a { 1 } else { m });
    let of_b = scales(if one_b { 1 } else { n });
    let bias: Vec<D> = (0..n).map(|j| D::of(j as f64 / 4.0 - 9.0)).collect();
    let nothing = if beta == 0.0 { f64::NAN } else { 1.5 };
    let old = HostMatrix::<D>::new([m, n], order_c, || nothing);

    let (on_a, on_b) = (
        stream.upload(&a.elements).unwrap(),
        stream.upload(&b.elements).unwrap(),
    );
    let (on_of_a, on_of_b) = (stream.upload(&of_a).unwrap(), stream.upload(&of_b).unwrap());
    let on_bias = stream.upload(&bias).unwrap();
    let mut on_c = stream.upload(&old.elements).unwrap();
    let gemm = Gemm::<F8E4M3, D>::new(
        Matrix::packed(&on_a, m, k, order_a).unwrap(),
        Matrix::packed(&on_b, k, n, order_b).unwrap(),
        MatrixMut::packed(&mut on_c, m, n, order_c).unwrap(),
    );
    let mut gemm = by_kernel(kernel, gemm)
        .alpha(alpha)
        .beta(beta)
        .precision(case.precision)
        .outer_scales(&on_of_a, &on_of_b);
    if case.fused {
        gemm = gemm
            .bias(Bias::columns(&on_bias))
            .activation(Activation::Relu);
    }
    gemm.run(stream).unwrap();
    let found = HostMatrix {
        elements: stream.download(&on_c).unwrap(),
        ..old
    };
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let products = (0..k).map(|l| a.at(i, l) * b.at(l, j));
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
            (sum + product, squares + product * product)
        });
        let scale = f64::from(alpha * of_a[i % of_a.len()] * of_b[j % of_b.len()]);
        let added = if beta == 0.0 {
            0.0
        } else {
            f64::from(beta) * 1.5
        };
        let (from_bias, floor) = match case.fused {
            true => (bias[j].number(), 0.0),
            false => (0.0, f64::NEG_INFINITY),
        };
        let expected = (scale * sum + added + from_bias).max(floor);
        // What the instruction drops of a k-tile's sum, or of the whole sum, and the rounding of C.
        let dropped = match case.precision {
            Precision::FastAccumulation => 2e-2,
            _ => 1e-6 * (k as f64).sqrt() + 1e-3,
        };
        let most = dropped * scale.abs() * squares.sqrt() + expected.abs() / 250.0 + 1e-6;
        let error = (found.at(i, j) - expected).abs();
        assert!(
            error <= most,
            "C[{i}, {j}] of {case:?} by {kernel:?}: {error} > {most}"
        );
    }
}

/// The kernels that the device has.
fn kernels(stream: &Stream) -> Vec<&'static str> {
    match stream.device().compute_capability() {
        Some(_) => KERNELS.to_vec(),
        None => ON_THE_CPU.map(|nth| KERNELS[nth]).to_vec(),
    }
}

#[test]
fn each_kernel_scales_its_sums() {
    let stream = Device::auto().stream().unwrap();
    for kernel in kernels(&stream) {
        let case = Case {
            precision: match kernel.contains("fast") {
                true => Precision::FastAccumulation,
                false => Precision::Exact,
            },
            ..PLAIN
        };
        for extents in [[300, 136, 528], [1, 72, 528]] {
            check::<bf16>(&stream, Case { extents, ..case }, Some(kernel));
        }
        for is_one in [[true, false], [false, true], [true, true]] {
            let case = Case {
                extents: [70, 72, 80],
                is_one,
                factors: [-3.0, 0.0],
                ..case
            };
            check::<bf16>(&stream, case, Some(kernel));
        }
    }
}

/// Kernels that compute Cᵀ take odd numbers of scales, and split k.
#[test]
fn every_decomposition_scales_its_sums() {
    let stream = Device::auto().stream().unwrap();
    let kernels = kernels(&stream).into_iter();
    for kernel in kernels.filter(|it| it.contains("1x1") && it.contains("kkm")) {
        for decomposition in ["data_parallel", "split_k_serial", "stream_k_one_tile"] {
            let name = format!("{kernel}/{decomposition}");
            for extents in [[20, 56, 1280], [31, 64, 656], [1, 40, 1104]] {
                for is_one in [[false; 2], [true; 2]] {
                    let case = Case {
                        extents,
                        is_one,
                        factors: [-0.5, 0.0],
                        ..PLAIN
                    };
                    check::<bf16>(&stream, case, Some(&name));
                }
            }
        }
    }
}

#[test]
fn any_c_is_written() {
    let stream = Device::auto().stream().unwrap();
    for precision in [Precision::Exact, Precision::FastAccumulation] {
        for extents in [[70, 136, 304], [67, 77, 300]] {
            let case = Case {
                extents,
                precision,
                ..PLAIN
            };
            check::<bf16>(&stream, case, None);
            check::<f16>(&stream, case, None);
            check::<f32>(&stream, case, None);
        }
    }
    // Without k, C is what is added.
    for extents in [[5, 8, 0], [0, 8, 200]] {
        let factors = [1.0, 2.0];
        check::<bf16>(
            &stream,
            Case {
                extents,
                factors,
                ..PLAIN
            },
            None,
        );
    }
}

#[test]
fn operands_and_c_may_have_any_order() {
    let stream = Device::auto().stream().unwrap();
    for orders in [
        [ColMajor, ColMajor, RowMajor],
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
    for (factors, fused) in [([0.5, 3.0], false), ([-2.0, 0.0], true), ([2.0, 1.0], true)] {
        let case = Case {
            extents: [70, 136, 304],
            factors,
            fused,
            ..PLAIN
        };
        check::<f32>(&stream, case, None);
        check::<bf16>(&stream, case, None);
        check::<f16>(&stream, case, None);
    }
}

#[test]
fn the_plan_of_aligned_scales_is_not_that_of_others() {
    let stream = Device::auto().stream().unwrap();
    let (m, n, k) = (64, 128, 128);
    let ones = vec![F8E4M3::from_f32(1.0); n * k];
    let (on_a, on_b) = (
        stream.upload(&ones[..m * k]).unwrap(),
        stream.upload(&ones).unwrap(),
    );
    let scales: Vec<f32> = (0..n as u16 + 1).map(f32::from).collect();
    let on_scales = stream.upload(&scales).unwrap();
    let one = stream.upload(&[1.0f32]).unwrap();
    for first in [0, 1] {
        let of_b = on_scales.view().slice(first..first + n).unwrap();
        let mut on_c = stream.zeroed::<f32>(m * n).unwrap();
        let mut in_bf16 = stream.zeroed::<bf16>(m * n).unwrap();
        let a = Matrix::row_major(&on_a, m, k).unwrap();
        let b = Matrix::col_major(&on_b, k, n).unwrap();
        let c = MatrixMut::row_major(&mut on_c, m, n).unwrap();
        Gemm::new(a, b, c)
            .outer_scales(&one, of_b)
            .run(&stream)
            .unwrap();
        let c = MatrixMut::row_major(&mut in_bf16, m, n).unwrap();
        Gemm::new(a, b, c)
            .outer_scales(&one, of_b)
            .run(&stream)
            .unwrap();
        let expected: Vec<f32> = scales[first..][..n].iter().map(|it| it * 128.0).collect();
        let found = stream.download(&on_c).unwrap();
        assert!(
            found.chunks(n).all(|row| row == expected),
            "from {first} on"
        );
        // 128 times a number of 8 bits is a bf16.
        let found = stream.download(&in_bf16).unwrap();
        let rows = found.iter().map(|it| it.to_f32()).collect::<Vec<_>>();
        assert!(rows.chunks(n).all(|row| row == expected), "from {first} on");
    }
}

#[test]
fn other_numbers_of_scales_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let zeros = stream.zeroed::<F8E4M3>(64 * 32).unwrap();
    let scales = stream.zeroed::<f32>(63).unwrap();
    let mut on_c = stream.zeroed::<bf16>(64 * 64).unwrap();
    let error = Gemm::new(
        Matrix::row_major(&zeros, 64, 32).unwrap(),
        Matrix::col_major(&zeros, 32, 64).unwrap(),
        MatrixMut::row_major(&mut on_c, 64, 64).unwrap(),
    )
    .outer_scales(&scales, &scales)
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
