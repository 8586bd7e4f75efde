//! GEMM of e5m2, and of e4m3 beside e5m2, against sums in f64, on a GPU if there is one: every kernel, every type of C,
//! scales of rows and columns, infinities and NaN.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::fp8_formats::{E4m3ByE5m2, E5m2, E5m2ByE4m3, Formats};
use crate::host_matrix::HostMatrix;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Bias, Device, Element, F8E4M3, F8E5M2, Float, Gemm, Matrix, MatrixMut, Order, Precision,
    Stream, bf16, f16,
};

/// A product, and how its operands lie.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    /// Of A and B.
    orders: [Order; 2],
    /// Whether rows and columns have scales.
    is_scaled: bool,
    /// Whether there is a bias.
    is_biased: bool,
    precision: Precision,
}

const PLAIN: Case = Case {
    extents: [200, 264, 400],
    orders: [RowMajor, ColMajor],
    is_scaled: false,
    is_biased: false,
    precision: Precision::Exact,
};

/// Computes a case by the kernel of this name, and compares each entry of C.
fn check<F: Formats, D: Convert + Float>(stream: &Stream, case: Case, kernel: Option<&str>)
where
    F::Both: Element<D>,
{
    let Case {
        extents: [m, n, k],
        orders: [order_a, order_b],
        is_scaled,
        is_biased,
        precision,
    } = case;
    let mut random = fastrand::Rng::with_seed((m + n + k) as u64);
    let a = HostMatrix::<F::A>::new([m, k], order_a, || random.f64() * 4.0 - 2.0);
    let b = HostMatrix::<F::B>::new([k, n], order_b, || random.f64() * 4.0 - 2.0);
    let of_a: Vec<f32> = (0..m).map(|_| random.f32() + 0.5).collect();
    let of_b: Vec<f32> = (0..n).map(|_| random.f32() + 0.5).collect();
    let bias: Vec<D> = (0..n).map(|j| D::of(j as f64 / 4.0)).collect();
    let (on_a, on_b) = (
        stream.upload(&a.elements).unwrap(),
        stream.upload(&b.elements).unwrap(),
    );
    let (on_of_a, on_of_b) = (stream.upload(&of_a).unwrap(), stream.upload(&of_b).unwrap());
    let on_bias = stream.upload(&bias).unwrap();
    let mut on_c = stream.upload(&vec![D::of(f64::NAN); m * n]).unwrap();
    let gemm = F::gemm(
        Matrix::packed(&on_a, m, k, order_a).unwrap(),
        Matrix::packed(&on_b, k, n, order_b).unwrap(),
        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
    );
    let mut gemm = by_kernel(kernel, gemm).precision(precision);
    if is_biased {
        gemm = gemm.bias(Bias::columns(&on_bias));
    }
    if is_scaled {
        gemm = gemm.outer_scales(&on_of_a, &on_of_b);
    }
    gemm.run(stream).unwrap();
    let found = stream.download(&on_c).unwrap();
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let products = (0..k).map(|l| a.at(i, l) * b.at(l, j));
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
            (sum + product, squares + product * product)
        });
        let scale = if is_scaled {
            f64::from(of_a[i] * of_b[j])
        } else {
            1.0
        };
        let added = if is_biased { bias[j].number() } else { 0.0 };
        let expected = scale * sum + added;
        // What the instruction drops of a sum, which is a k-tile's or the whole one, and the rounding of C.
        let dropped = match precision {
            Precision::FastAccumulation => 2e-2,
            _ => 1e-6 * (k as f64).sqrt() + 1e-3,
        };
        let most = dropped * scale * squares.sqrt() + expected.abs() / 250.0;
        let error = (found[i * n + j].number() - expected).abs();
        assert!(
            error <= most,
            "C[{i}, {j}] of {case:?} by {kernel:?}, {}: {error} > {most}",
            F::NAME
        );
    }
}

fn check_all<F: Formats>() {
    let stream = Device::auto().stream().unwrap();
    let is_gpu = stream.device().compute_capability().is_some();
    for kernel in [
        "64x128x128_1x1_ws",
        "256x128x128_2x1_coop",
        "128x128x128_1x2_coop",
        "128x64x128_2x1_coop_kkm",
        "64x32x128_1x1_ws_kkm",
    ] {
        // The others have no body for the CPU.
        if is_gpu || kernel.starts_with("64x") {
            let kernel = F::kernel(kernel);
            for extents in [[300, 136, 528], [1, 72, 1008]] {
                check::<F, bf16>(&stream, Case { extents, ..PLAIN }, Some(&kernel));
            }
        }
    }
    for kernel in ["256x128x128_2x1_coop_outer", "64x32x128_1x1_ws_kkm_outer"] {
        if is_gpu {
            let kernel = F::kernel(kernel);
            let case = Case {
                is_scaled: true,
                ..PLAIN
            };
            check::<F, bf16>(&stream, case, Some(&kernel));
        }
    }
    let precision = Precision::FastAccumulation;
    for is_scaled in [false, true] {
        let case = Case {
            is_scaled,
            precision,
            ..PLAIN
        };
        check::<F, bf16>(&stream, case, None);
    }
    for (is_scaled, is_biased) in [(false, false), (true, false), (true, true)] {
        let case = Case {
            extents: [67, 77, 304],
            is_scaled,
            is_biased,
            ..PLAIN
        };
        check::<F, bf16>(&stream, case, None);
        check::<F, f16>(&stream, case, None);
        check::<F, f32>(&stream, case, None);
    }
    let orders = [ColMajor, RowMajor];
    check::<F, f32>(
        &stream,
        Case {
            extents: [67, 77, 100],
            orders,
            ..PLAIN
        },
        None,
    );
}

#[test]
fn e5m2_by_e5m2() {
    check_all::<E5m2>();
}

#[test]
fn e4m3_by_e5m2() {
    check_all::<E4m3ByE5m2>();
}

#[test]
fn e5m2_by_e4m3() {
    check_all::<E5m2ByE4m3>();
}

#[test]
fn infinities_and_nan_are_those_of_the_operands() {
    let stream = Device::auto().stream().unwrap();
    let (m, n, k) = (16, 32, 128);
    let mut a = vec![F8E5M2::from_f32(1.0); m * k];
    a[0] = F8E5M2::from_f32(f32::INFINITY);
    a[k] = F8E5M2::from_f32(f32::NAN);
    a[2 * k] = F8E5M2::from_f32(f32::NEG_INFINITY);
    a[2 * k + 1] = F8E5M2::from_f32(f32::INFINITY);
    a[3 * k] = F8E5M2::from_f32(57344.0);
    let on_a = stream.upload(&a).unwrap();
    let on_b = stream.upload(&vec![F8E4M3::from_f32(1.0); k * n]).unwrap();
    let mut on_c = stream.zeroed::<f32>(m * n).unwrap();
    Gemm::mixed(
        Matrix::row_major(&on_a, m, k).unwrap(),
        Matrix::col_major(&on_b, k, n).unwrap(),
        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
    )
    .run(&stream)
    .unwrap();
    let c = stream.download(&on_c).unwrap();
    let rows: Vec<f32> = c.chunks(n).map(|row| row[5]).collect();
    assert_eq!(rows[0], f32::INFINITY);
    assert!(rows[1].is_nan() && rows[2].is_nan(), "{rows:?}");
    assert_eq!(rows[4], 128.0);
    // The tensor cores keep 14 bits of a k-tile's sum.
    assert!((57344.0..=57344.0 + 128.0).contains(&rows[3]), "{rows:?}");
}

#[test]
fn a_column_major_c_of_two_formats_is_refused() {
    let stream = Device::cpu().stream().unwrap();
    let on_a = stream.zeroed::<F8E4M3>(64 * 64).unwrap();
    let on_b = stream.zeroed::<F8E5M2>(64 * 64).unwrap();
    let mut on_c = stream.zeroed::<bf16>(64 * 64).unwrap();
    let error = Gemm::mixed(
        Matrix::row_major(&on_a, 64, 64).unwrap(),
        Matrix::col_major(&on_b, 64, 64).unwrap(),
        MatrixMut::col_major(&mut on_c, 64, 64).unwrap(),
    )
    .run(&stream)
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("A and B have different formats; make C row-major"),
        "{error}"
    );
}
