//! Batches and groups of products of 8-bit floats against sums in f64, on a GPU if there is one: every kernel, formats
//! of A and B, every kind of scales, sizes that are cut off, odd extents, a C that is added to, and scales that are not finite.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::fp8_formats::{E4m3, E4m3ByE5m2, E5m2, E5m2ByE4m3, Formats};
use cutlet::{
    Device, DeviceTensor, Element, Error, F8E4M3, Float, Gemm, Layout, Precision, Stream, Tensor,
    TensorMut, bf16, f16, layout,
};

/// The kernels.
const KERNELS: [&str; 3] = [
    "e4m3_grouped_128x128x128_1x1_coop_outer",
    "e4m3_grouped_64x128x128_1x1_ws_outer",
    "e4m3_grouped_128x128x128_2x1_coop_outer",
];
/// Those that have a body for the CPU.
const ON_THE_CPU: usize = 2;

/// Which rows the products have.
#[derive(Clone, Copy, Debug)]
enum Rows<'a> {
    /// Groups of these rows, in one A.
    InOne(&'a [usize]),
    /// So many of the first rows of an A of its own each.
    Masked(&'a [usize]),
    /// All rows of so many As, or of one that all products share.
    All { products: usize, share_a: bool },
}

/// Which scales an operand has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// One of all.
    One,
    /// One of each matrix.
    Matrix,
    /// One of each row, or column, of each matrix.
    Line,
}

/// Products of one launch.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    rows: Rows<'a>,
    /// Rows of an A, n and k.
    extents: [usize; 3],
    /// The scales of A and of B, if there are some.
    scales: Option<[Kind; 2]>,
    factors: [f32; 2],
    /// Columns between the rows of C, and elements before the first one.
    padding: usize,
    precision: Precision,
}

const PLAIN: Case<'_> = Case {
    rows: Rows::InOne(&[130, 0, 70, 1]),
    extents: [210, 264, 400],
    scales: Some([Kind::Line; 2]),
    factors: [1.0, 0.0],
    padding: 0,
    precision: Precision::Exact,
};

impl Case<'_> {
    /// How many products there are.
    fn products(&self) -> usize {
        match self.rows {
            Rows::InOne(sizes) | Rows::Masked(sizes) => sizes.len(),
            Rows::All { products, .. } => products,
        }
    }

    /// How many matrices A and C there are.
    fn matrices(&self) -> [usize; 2] {
        match self.rows {
            Rows::InOne(_) => [1, 1],
            Rows::Masked(sizes) => [sizes.len(); 2],
            Rows::All { products, share_a } => [if share_a { 1 } else { products }, products],
        }
    }

    /// The product that a row of a C is of.
    fn product_of(&self, matrix: usize, row: usize) -> Option<usize> {
        match self.rows {
            Rows::InOne(sizes) => {
                let ends = sizes.iter().scan(0, |end, size| {
                    *end += size;
                    Some(*end)
                });
                ends.into_iter().position(|end| row < end)
            }
            Rows::Masked(sizes) => (row < sizes[matrix]).then_some(matrix),
            Rows::All { .. } => Some(matrix),
        }
    }

    /// The sizes of groups, as the device reads them.
    fn sizes(&self) -> Vec<i32> {
        let mut end = 0;
        match self.rows {
            Rows::InOne(sizes) => sizes
                .iter()
                .map(|&size| {
                    end += size as i32;
                    end
                })
                .collect(),
            Rows::Masked(sizes) => sizes.iter().map(|&size| size as i32).collect(),
            Rows::All { .. } => Vec::new(),
        }
    }
}

/// The number of scales of an operand.
fn count(kind: Kind, lines: usize, matrices: usize) -> usize {
    match kind {
        Kind::One => 1,
        Kind::Matrix => matrices,
        Kind::Line => lines * matrices,
    }
}

/// The place of a scale.
fn place(kind: Kind, lines: usize, matrix: usize, line: usize) -> usize {
    match kind {
        Kind::One => 0,
        Kind::Matrix => matrix,
        Kind::Line => matrix * lines + line,
    }
}

/// Packed matrices, row-major or column-major.
fn matrices([rows, columns, count]: [usize; 3], is_row_major: bool) -> Layout {
    match is_row_major {
        true => layout!((dyn rows, dyn columns, dyn count):(dyn columns, 1, dyn (rows * columns))),
        false => layout!((dyn rows, dyn columns, dyn count):(1, dyn rows, dyn (rows * columns))),
    }
}

/// Random numbers from −2 to 2.
fn numbers<T: Convert>(random: &mut fastrand::Rng, count: usize) -> Vec<T> {
    (0..count)
        .map(|_| T::of(random.f64() * 4.0 - 2.0))
        .collect()
}

const OLD: f64 = 7.0;

/// Computes a case by the kernel of this name, and compares each entry of C. Rows of no product stay.
fn check<F: Formats, D: Convert + Float>(stream: &Stream, case: Case<'_>, kernel: Option<&str>)
where
    F::Both: Element<D>,
{
    let [m, n, k] = case.extents;
    let ([of_a, of_c], products) = (case.matrices(), case.products());
    let [alpha, beta] = case.factors;
    let mut random = fastrand::Rng::with_seed((m * 31 + n * 7 + k) as u64);
    let a: Vec<F::A> = numbers(&mut random, of_a * m * k);
    let b: Vec<F::B> = numbers(&mut random, products * n * k);
    let mut some = |kind, lines, matrices| -> Vec<f32> {
        let scales = count(kind, lines, matrices);
        (0..scales).map(|_| random.f32() + 0.5).collect()
    };
    let [kind_a, kind_b] = case.scales.unwrap_or([Kind::One; 2]);
    let (scales_a, scales_b) = match case.scales {
        Some(_) => (some(kind_a, m, of_a), some(kind_b, n, products)),
        None => (vec![1.0], vec![1.0]),
    };
    let ld = n + case.padding;
    // Old elements that no product may read are NaN.
    let is_masked = !matches!(case.rows, Rows::All { .. });
    let old = if is_masked || beta != 0.0 {
        OLD
    } else {
        f64::NAN
    };
    let c = vec![D::of(old); case.padding + of_c * m * ld];

    let on_a = DeviceTensor::upload(stream, &a, matrices([m, k, of_a], true)).unwrap();
    let on_b = DeviceTensor::upload(stream, &b, matrices([k, n, products], false)).unwrap();
    let on_scales = [&scales_a, &scales_b].map(|it| stream.upload(it).unwrap());
    let on_sizes = stream.upload(&case.sizes()).unwrap();
    let mut on_c = stream.upload(&c).unwrap();
    let to = TensorMut::new(
        on_c.slice_mut(case.padding..).unwrap(),
        layout!((dyn m, dyn n, dyn of_c):(dyn ld, 1, dyn (m * ld))),
    )
    .unwrap();
    let gemm = F::gemm(&on_a, &on_b, to);
    let mut gemm = by_kernel(kernel, gemm)
        .alpha(alpha)
        .beta(beta)
        .precision(case.precision);
    if case.scales.is_some() {
        gemm = gemm.outer_scales(&on_scales[0], &on_scales[1]);
    }
    gemm = match case.rows {
        Rows::InOne(_) => gemm.group_ends(&on_sizes),
        Rows::Masked(_) => gemm.group_rows(&on_sizes),
        Rows::All { .. } => gemm,
    };
    gemm.run(stream).unwrap();

    let c = stream.download(&on_c).unwrap();
    for (matrix, row, j) in (0..of_c * m).flat_map(|at| (0..n).map(move |j| (at / m, at % m, j))) {
        let found = c[case.padding + (matrix * m + row) * ld + j].number();
        let Some(product) = case.product_of(matrix, row) else {
            assert_eq!(
                found, OLD,
                "C[{row}, {j}, {matrix}] of {case:?} is in no group"
            );
            continue;
        };
        let nth_a = if of_a == 1 { 0 } else { product };
        let products = (0..k).map(|l| {
            let b = b[(product * n + j) * k + l].number();
            a[(nth_a * m + row) * k + l].number() * b
        });
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
            (sum + product, squares + product * product)
        });
        let scale =
            alpha * scales_a[place(kind_a, m, nth_a, row)] * scales_b[place(kind_b, n, product, j)];
        let added = if beta == 0.0 {
            0.0
        } else {
            f64::from(beta) * OLD
        };
        let expected = f64::from(scale) * sum + added;
        // What the instruction drops of a sum, which is a k-tile's or the whole one, roundings that grow as √k, and the
        // rounding of C.
        let dropped = match case.precision {
            Precision::FastAccumulation => 2e-2,
            _ => 1e-6 * (k as f64).sqrt() + 1e-3,
        };
        let most =
            dropped * f64::from(scale.abs()) * squares.sqrt() + expected.abs() / 250.0 + 1e-6;
        let error = (found - expected).abs();
        assert!(
            error <= most,
            "C[{row}, {j}, {matrix}] of {case:?} by {kernel:?}, {}: {error} > {most}",
            F::NAME
        );
    }
    for row in 0..of_c * m {
        let padding = &c[case.padding + row * ld + n..][..case.padding.min(ld - n)];
        let is_old = |it: &D| it.number().to_bits() == D::of(old).number().to_bits();
        assert!(padding.iter().all(is_old), "{case:?}: padding was written");
    }
}

/// The kernels that the device has, and the one that is estimated to be the fastest.
fn kernels(stream: &Stream) -> Vec<Option<&'static str>> {
    let count = match stream.device().compute_capability() {
        Some(_) => KERNELS.len(),
        None => ON_THE_CPU,
    };
    let named = KERNELS[..count].iter().copied().map(Some);
    named.chain([None]).collect()
}

#[test]
fn groups_in_one_a_have_a_factor_or_scales() {
    let stream = Device::auto().stream().unwrap();
    for kernel in kernels(&stream) {
        check::<E4m3, bf16>(&stream, PLAIN, kernel);
        let case = Case {
            rows: Rows::InOne(&[3, 61]),
            extents: [64, 128, 128],
            ..PLAIN
        };
        let none = Case {
            scales: None,
            factors: [-0.5, 0.0],
            ..case
        };
        check::<E4m3, bf16>(&stream, none, kernel);
        for scales in [[Kind::One, Kind::Line], [Kind::Line, Kind::Matrix]] {
            let scales = Some(scales);
            check::<E4m3, bf16>(&stream, Case { scales, ..case }, kernel);
        }
    }
}

#[test]
fn masked_groups_have_a_factor_or_scales() {
    let stream = Device::auto().stream().unwrap();
    for kernel in kernels(&stream) {
        let case = Case {
            rows: Rows::Masked(&[5, 132, 0]),
            extents: [132, 136, 272],
            ..PLAIN
        };
        check::<E4m3, bf16>(&stream, case, kernel);
        let case = Case {
            rows: Rows::Masked(&[1, 20]),
            extents: [20, 72, 16],
            ..PLAIN
        };
        let scales = None;
        check::<E4m3, bf16>(&stream, Case { scales, ..case }, kernel);
        for scales in [[Kind::Matrix, Kind::One], [Kind::One, Kind::Matrix]] {
            let scales = Some(scales);
            check::<E4m3, bf16>(&stream, Case { scales, ..case }, kernel);
        }
    }
}

#[test]
fn batches_have_a_factor_or_scales() {
    let stream = Device::auto().stream().unwrap();
    for kernel in kernels(&stream) {
        for share_a in [false, true] {
            let case = Case {
                rows: Rows::All {
                    products: 3,
                    share_a,
                },
                extents: [70, 136, 144],
                ..PLAIN
            };
            check::<E4m3, bf16>(&stream, case, kernel);
            let scales = None;
            check::<E4m3, bf16>(&stream, Case { scales, ..case }, kernel);
            let scales = Some([Kind::Matrix; 2]);
            check::<E4m3, bf16>(&stream, Case { scales, ..case }, kernel);
        }
    }
}

#[test]
fn any_c_is_written_and_added_to() {
    let stream = Device::auto().stream().unwrap();
    let in_batch = Rows::All {
        products: 2,
        share_a: false,
    };
    for rows in [Rows::InOne(&[20, 45]), Rows::Masked(&[65, 9]), in_batch] {
        for (n, padding) in [(136, 8), (77, 0), (78, 5), (1, 3)] {
            for factors in [[1.0, 0.0], [0.5, -3.0]] {
                let case = Case {
                    rows,
                    extents: [65, n, 48],
                    factors,
                    padding,
                    ..PLAIN
                };
                check::<E4m3, bf16>(&stream, case, None);
            }
        }
    }
    // Products of a batch run one by one where no kernel has them all.
    let case = Case {
        rows: in_batch,
        extents: [33, 40, 37],
        ..PLAIN
    };
    for scales in [Some([Kind::Line; 2]), Some([Kind::Matrix; 2]), None] {
        let case = Case { scales, ..case };
        check::<E4m3, bf16>(&stream, case, None);
        check::<E4m3, f16>(&stream, case, None);
        check::<E4m3, f32>(&stream, case, None);
    }
}

#[test]
fn sizes_beyond_the_rows_are_cut_off_and_scales_that_are_not_finite_stay_in_their_rows() {
    let stream = Device::auto().stream().unwrap();
    let (m, n, k) = (40, 16, 32);
    let ones = vec![F8E4M3::of(1.0); m * k];
    let on_a = DeviceTensor::upload(&stream, &ones, [m, k]).unwrap();
    let on_b =
        DeviceTensor::upload(&stream, &ones[..2 * n * k], matrices([k, n, 2], false)).unwrap();
    let mut of_a = vec![1.0f32; m];
    (of_a[3], of_a[4], of_a[39]) = (f32::NAN, f32::INFINITY, 1e38);
    let of_b: Vec<f32> = (0..2 * n)
        .map(|it| if it < n { 1.0 } else { 2.0 })
        .collect();
    let (of_a, of_b) = (stream.upload(&of_a).unwrap(), stream.upload(&of_b).unwrap());
    let ends = stream.upload(&[20, 1000]).unwrap();
    let mut on_c = DeviceTensor::upload(&stream, &vec![bf16::NAN; m * n], [m, n]).unwrap();
    Gemm::new(&on_a, &on_b, &mut on_c)
        .outer_scales(&of_a, &of_b)
        .group_ends(&ends)
        .run(&stream)
        .unwrap();
    let c = on_c.download(&stream).unwrap();
    for (row, entries) in c.chunks(n).enumerate() {
        let expected = match row {
            3 => f32::NAN,
            4 | 39 => f32::INFINITY,
            ..20 => 32.0,
            _ => 64.0,
        };
        let is_it = |it: &bf16| it.to_f32() == expected || it.is_nan() && expected.is_nan();
        assert!(entries.iter().all(is_it), "row {row}: {entries:?}");
    }
}

#[test]
fn other_numbers_of_scales_and_other_types_of_c_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let zeros = stream.zeroed::<F8E4M3>(3 * 64 * 32).unwrap();
    let scales = stream.zeroed::<f32>(64).unwrap();
    let ends = stream.zeroed::<i32>(3).unwrap();
    let a = Tensor::new(&zeros.slice(..64 * 32).unwrap(), [64, 32]).unwrap();
    let b = Tensor::new(&zeros, matrices([32, 64, 3], false)).unwrap();
    let mut on_c = DeviceTensor::<bf16>::zeroed(&stream, [64, 64]).unwrap();
    let error = Gemm::new(a, b, &mut on_c)
        .outer_scales(&scales, &scales)
        .group_ends(&ends)
        .run(&stream)
        .unwrap_err();
    assert!(matches!(error, Error::Extents { .. }), "{error}");
    let found = "B's scales are 64, and there are 3 matrices of 64 columns; give one for each of the columns of each \
                 matrix, one for each matrix, or one for all";
    assert!(error.to_string().contains(found), "{error}");

    let mut on_c = DeviceTensor::<f16>::zeroed(&stream, [64, 64]).unwrap();
    let error = Gemm::new(a, b, &mut on_c)
        .group_ends(&ends)
        .run(&stream)
        .unwrap_err();
    assert!(matches!(error, Error::Arithmetic { .. }), "{error}");
    assert!(
        error.to_string().contains("of bf16 for 8-bit floats"),
        "{error}"
    );
}

#[test]
fn groups_have_fast_accumulation() {
    let stream = Device::auto().stream().unwrap();
    let precision = Precision::FastAccumulation;
    let in_batch = Rows::All {
        products: 3,
        share_a: false,
    };
    let fast = "e4m3_grouped_128x128x128_2x1_coop_fast_outer";
    for kernel in [None, Some(fast)] {
        for rows in [
            Rows::InOne(&[130, 0, 70, 1]),
            Rows::Masked(&[5, 132, 0]),
            in_batch,
        ] {
            for (scales, factors) in [(Some([Kind::Line; 2]), [1.0, 0.0]), (None, [-0.5, 2.0])] {
                let case = Case {
                    rows,
                    scales,
                    factors,
                    precision,
                    ..PLAIN
                };
                check::<E4m3, bf16>(&stream, case, kernel);
            }
        }
    }
    let case = Case {
        extents: [210, 77, 48],
        padding: 3,
        precision,
        ..PLAIN
    };
    check::<E4m3, bf16>(&stream, case, None);
    // A kernel of fast accumulation is no candidate without it.
    let zeros = stream.zeroed::<F8E4M3>(64 * 32).unwrap();
    let ends = stream.upload(&[64i32]).unwrap();
    let mut on_c = DeviceTensor::<bf16>::zeroed(&stream, [64, 64]).unwrap();
    let error = Gemm::new(
        Tensor::new(&zeros, [64, 32]).unwrap(),
        Tensor::new(&zeros, matrices([32, 64, 1], false)).unwrap(),
        &mut on_c,
    )
    .group_ends(&ends)
    .instance(fast)
    .run(&stream)
    .unwrap_err();
    assert!(matches!(error, Error::Instance { .. }), "{error}");
}

/// Groups and a batch of two formats by some kernels. Those of e4m3 have the same code.
fn check_formats<F: Formats>() {
    let stream = Device::auto().stream().unwrap();
    let is_gpu = stream.device().compute_capability().is_some();
    let in_batch = Rows::All {
        products: 2,
        share_a: true,
    };
    for kernel in [
        "64x128x128_1x1_ws",
        "128x128x128_1x1_coop",
        "128x128x128_2x1_coop",
    ] {
        // The others have no body for the CPU.
        if !is_gpu && !kernel.starts_with("64") {
            continue;
        }
        let kernel = format!("{}_grouped_{kernel}_outer", F::NAME);
        for rows in [
            Rows::InOne(&[130, 0, 70, 1]),
            Rows::Masked(&[5, 132, 0]),
            in_batch,
        ] {
            let case = Case {
                rows,
                extents: [210, 136, 272],
                ..PLAIN
            };
            check::<F, bf16>(&stream, case, Some(&kernel));
        }
    }
    let odd = Case {
        rows: Rows::InOne(&[20, 45]),
        extents: [65, 77, 48],
        scales: None,
        factors: [0.5, -3.0],
        padding: 5,
        ..PLAIN
    };
    check::<F, bf16>(&stream, odd, None);
    // Products of a batch run one by one where no kernel has them all.
    let one_by_one = Case {
        rows: in_batch,
        extents: [33, 40, 37],
        ..PLAIN
    };
    check::<F, f32>(&stream, one_by_one, None);
}

#[test]
fn groups_of_e5m2_by_e5m2() {
    check_formats::<E5m2>();
}

#[test]
fn groups_of_e4m3_by_e5m2() {
    check_formats::<E4m3ByE5m2>();
}

#[test]
fn groups_of_e5m2_by_e4m3() {
    check_formats::<E5m2ByE4m3>();
}
