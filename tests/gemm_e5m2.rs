//! GEMM of e5m2, and of e4m3 beside e5m2, against sums in f64, on a GPU if there is one: every kernel, every type of C,
//! scales of rows and columns, infinities and NaN.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::host_matrix::HostMatrix;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Bias, Buffer, Device, Element, F8E4M3, F8E5M2, Float, Gemm, Matrix, MatrixMut, MixedF8,
    Operand, Order, Stream, bf16, f16,
};

/// A format of A and one of B.
trait Formats {
    type A: Convert;
    type B: Convert;
    /// The element type of both.
    type Both: Operand<Factor = f32> + Element<bf16> + Element<f16> + Element<f32>;
    /// How names of kernels begin.
    const NAME: &'static str;

    /// The product.
    fn gemm<'a, D: Float>(
        a: Matrix<'a, Self::A>,
        b: Matrix<'a, Self::B>,
        c: MatrixMut<'a, D>,
    ) -> Gemm<'a, Self::Both, D>;

    /// With scales of rows and columns.
    fn scaled<'a, D: Float>(
        gemm: Gemm<'a, Self::Both, D>,
        of_a: &'a Buffer<f32>,
        of_b: &'a Buffer<f32>,
    ) -> Gemm<'a, Self::Both, D>;
}

macro_rules! formats {
    ($($name:ident: $a:ty, $b:ty => $both:ty, $new:ident, $prefix:literal;)+) => {$(
        struct $name;
        impl Formats for $name {
            type A = $a;
            type B = $b;
            type Both = $both;
            const NAME: &'static str = $prefix;

            fn gemm<'a, D: Float>(
                a: Matrix<'a, $a>,
                b: Matrix<'a, $b>,
                c: MatrixMut<'a, D>,
            ) -> Gemm<'a, $both, D> {
                Gemm::<$both, D>::$new(a, b, c)
            }

            fn scaled<'a, D: Float>(
                gemm: Gemm<'a, $both, D>,
                of_a: &'a Buffer<f32>,
                of_b: &'a Buffer<f32>,
            ) -> Gemm<'a, $both, D> {
                gemm.outer_scales(of_a, of_b)
            }
        }
    )+};
}
formats! {
    E5m2: F8E5M2, F8E5M2 => F8E5M2, new, "e5m2";
    E4m3ByE5m2: F8E4M3, F8E5M2 => MixedF8<F8E4M3, F8E5M2>, mixed, "e4m3e5m2";
    E5m2ByE4m3: F8E5M2, F8E4M3 => MixedF8<F8E5M2, F8E4M3>, mixed, "e5m2e4m3";
}

/// A product, and how its operands lie.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    /// Of A and B.
    orders: [Order; 2],
    /// Whether rows and columns have scales, and there is a bias.
    is_scaled: bool,
}

const PLAIN: Case = Case {
    extents: [200, 264, 400],
    orders: [RowMajor, ColMajor],
    is_scaled: false,
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
    let mut gemm = by_kernel(kernel, gemm);
    if is_scaled {
        gemm = F::scaled(gemm.bias(Bias::columns(&on_bias)), &on_of_a, &on_of_b);
    }
    gemm.run(stream).unwrap();
    let found = stream.download(&on_c).unwrap();
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let products = (0..k).map(|l| a.at(i, l) * b.at(l, j));
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
            (sum + product, squares + product * product)
        });
        let (scale, added) = match is_scaled {
            true => (f64::from(of_a[i] * of_b[j]), bias[j].number()),
            false => (1.0, 0.0),
        };
        let expected = scale * sum + added;
        // What the instruction drops of a k-tile's sum, and the rounding of C.
        let dropped = (1e-6 * (k as f64).sqrt() + 1e-3) * scale * squares.sqrt();
        let most = dropped + expected.abs() / 250.0;
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
    for tile in ["256x128x128", "128x128x128"] {
        // Those of 256 rows have no body for the CPU.
        if is_gpu || tile.starts_with("128") {
            let kernel = format!("{}_{tile}_2x1_coop", F::NAME);
            for extents in [[300, 136, 528], [1, 72, 1008]] {
                check::<F, bf16>(&stream, Case { extents, ..PLAIN }, Some(&kernel));
            }
        }
    }
    for is_scaled in [false, true] {
        let case = Case {
            extents: [67, 77, 304],
            is_scaled,
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
