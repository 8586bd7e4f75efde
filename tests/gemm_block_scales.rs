//! GEMM of 8-bit floats with scales of blocks against sums in f64, on a GPU if there is one: every kernel, formats of A
//! and B, every type of C, odd extents, orders that are copied, and what is fused.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::fp8_formats::{E4m3, E4m3ByE5m2, E5m2, E5m2ByE4m3, Formats};
use crate::host_matrix::HostMatrix;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Device, DeviceTensor, Element, F8E4M3, F8E5M2, Gemm, Matrix, MatrixMut, Order,
    Stream, bf16, f16, layout,
};

/// The kernels.
const KERNELS: [&str; 10] = [
    "e4m3_256x128x128_2x1_coop_blocks",
    "e4m3_128x128x128_2x1_coop_blocks",
    "e4m3_64x128x128_1x1_ws_blocks",
    "e4m3_64x64x128_1x1_ws_blocks",
    "e4m3_128x128x128_1x1_coop_kkm_blocks",
    "e4m3_128x128x128_4x1_coop_kkm_blocks",
    "e4m3_128x64x128_1x1_coop_kkm_blocks",
    "e4m3_128x64x128_2x2_coop_kkm_blocks",
    "e4m3_64x32x128_1x1_ws_kkm_blocks",
    "e4m3_64x32x128_2x2_ws_kkm_blocks",
];

/// A product, and how its operands lie.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    /// Of A, B, A's scales and B's.
    orders: [Order; 4],
    factors: [f32; 2],
    activation: Option<Activation>,
}

const PLAIN: Case = Case {
    extents: [200, 264, 400],
    orders: [RowMajor, ColMajor, ColMajor, ColMajor],
    factors: [1.0, 0.0],
    activation: None,
};

/// Computes a case by the kernel of this name, and compares each entry of C.
fn check<F: Formats, D: Convert>(stream: &Stream, case: Case, kernel: Option<&str>)
where
    F::Both: Element<D>,
{
    let Case {
        extents: [m, n, k],
        orders: [order_a, order_b, order_of_a, order_of_b],
        factors: [alpha, beta],
        activation,
    } = case;
    let blocks = |extent: usize| extent.div_ceil(128);
    let mut random = fastrand::Rng::with_seed((m + n + k) as u64);
    let a = HostMatrix::<F::A>::new([m, k], order_a, || random.f64() * 4.0 - 2.0);
    let b = HostMatrix::<F::B>::new([k, n], order_b, || random.f64() * 4.0 - 2.0);
    let of_a = HostMatrix::<f32>::new([m, blocks(k)], order_of_a, || random.f64() + 0.5);
    let of_b = HostMatrix::<f32>::new([blocks(k), blocks(n)], order_of_b, || random.f64() + 0.5);
    let nothing = if beta == 0.0 { f64::NAN } else { 1.5 };
    let old = HostMatrix::<D>::new([m, n], RowMajor, || nothing);

    let (on_a, on_b) = (
        stream.upload(&a.elements).unwrap(),
        stream.upload(&b.elements).unwrap(),
    );
    let on_of_a = stream.upload(&of_a.elements).unwrap();
    let on_of_b = stream.upload(&of_b.elements).unwrap();
    let mut on_c = stream.upload(&old.elements).unwrap();
    let gemm = F::gemm(
        Matrix::packed(&on_a, m, k, order_a).unwrap(),
        Matrix::packed(&on_b, k, n, order_b).unwrap(),
        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
    );
    let gemm = by_kernel(kernel, gemm)
        .alpha(alpha)
        .beta(beta)
        .block_scales(
            Matrix::packed(&on_of_a, m, blocks(k), order_of_a).unwrap(),
            Matrix::packed(&on_of_b, blocks(k), blocks(n), order_of_b).unwrap(),
        );
    let mut gemm = match activation {
        Some(activation) => gemm.activation(activation),
        None => gemm,
    };
    gemm.run(stream).unwrap();
    let found = HostMatrix {
        elements: stream.download(&on_c).unwrap(),
        ..old
    };
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let products = (0..k).map(|l| {
            let scales = of_a.at(i, l / 128) * of_b.at(l / 128, j / 128);
            a.at(i, l) * b.at(l, j) * scales
        });
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
            (sum + product, squares + product * product)
        });
        let added = if beta == 0.0 {
            0.0
        } else {
            f64::from(beta) * 1.5
        };
        let sum = f64::from(alpha) * sum + added;
        let expected = match activation {
            Some(Activation::Relu) => sum.max(0.0),
            _ => sum,
        };
        let most = tolerance(k, f64::from(alpha).abs() * squares.sqrt(), expected);
        let error = (found.at(i, j) - expected).abs();
        assert!(
            error <= most,
            "C[{i}, {j}] of {case:?} by {kernel:?}, {}: {error} > {most}",
            F::NAME
        );
    }
}

/// What the instruction drops of a k-tile's sum, roundings that grow as √k, and the rounding of C. `root` is that of the
/// sum of the squares of products.
fn tolerance(k: usize, root: f64, expected: f64) -> f64 {
    (1e-6 * (k as f64).sqrt() + 1e-3) * root + expected.abs() / 250.0
}

/// Whether the device has a kernel: not all have a body for the CPU.
fn has(stream: &Stream, kernel: &str) -> bool {
    stream.device().compute_capability().is_some()
        || ["e4m3_256", "e4m3_64x128", "e4m3_64x32"]
            .iter()
            .any(|it| kernel.starts_with(it))
}

#[test]
fn each_kernel_scales_its_products() {
    let stream = Device::auto().stream().unwrap();
    for kernel in KERNELS.into_iter().filter(|it| has(&stream, it)) {
        for extents in [
            [128, 128, 128],
            [200, 264, 400],
            [300, 136, 528],
            [1, 72, 1000],
            [130, 512, 200],
        ] {
            check::<E4m3, bf16>(&stream, Case { extents, ..PLAIN }, Some(kernel));
        }
    }
}

/// A cluster of 256 columns multiplies tiles beyond C, whose scales would lie past the end. The CPU backend ends such a
/// read in an error.
#[test]
fn clusters_that_reach_past_the_scales_read_the_last_ones() {
    let stream = Device::auto().stream().unwrap();
    let kernel = "e4m3_64x32x128_4x1_ws_kkm_blocks";
    for extents in [
        [20, 32, 160],
        [20, 128, 100],
        [20, 200, 160],
        [9, 304, 256],
        [33, 512, 300],
    ] {
        check::<E4m3, bf16>(&stream, Case { extents, ..PLAIN }, Some(kernel));
    }
}

#[test]
fn every_decomposition_scales_its_products() {
    let stream = Device::auto().stream().unwrap();
    for kernel in KERNELS
        .into_iter()
        .filter(|it| it.contains("1x1") && it.contains("kkm"))
    {
        if !has(&stream, kernel) {
            continue;
        }
        for decomposition in ["data_parallel", "split_k_serial", "stream_k_one_tile"] {
            let name = format!("{kernel}/{decomposition}");
            for extents in [[20, 56, 1280], [31, 64, 650], [1, 40, 1100]] {
                check::<E4m3, bf16>(&stream, Case { extents, ..PLAIN }, Some(&name));
            }
        }
    }
    let of_rows = [
        "e4m3_64x128x128_1x1_ws_blocks/split_k_serial",
        "e4m3_64x64x128_1x1_ws_blocks/split_k_serial",
        "e4m3_64x64x128_1x1_ws_blocks/stream_k_one_tile",
    ];
    for name in of_rows.into_iter().filter(|it| has(&stream, it)) {
        for extents in [[20, 56, 1280], [63, 61, 650]] {
            check::<E4m3, bf16>(&stream, Case { extents, ..PLAIN }, Some(name));
        }
    }
}

/// Any number of rows, by the kernel that is chosen.
#[test]
fn few_rows_are_multiplied() {
    let stream = Device::auto().stream().unwrap();
    for extents in [[1, 136, 512], [2, 256, 700], [17, 200, 384], [33, 328, 256]] {
        check::<E4m3, bf16>(&stream, Case { extents, ..PLAIN }, None);
        check::<E4m3, f32>(&stream, Case { extents, ..PLAIN }, None);
    }
}

#[test]
fn operands_and_scales_in_other_orders_are_copied() {
    let stream = Device::auto().stream().unwrap();
    for orders in [
        [ColMajor, ColMajor, ColMajor, RowMajor],
        [RowMajor, RowMajor, RowMajor, ColMajor],
        [ColMajor, RowMajor, RowMajor, RowMajor],
    ] {
        for extents in [[130, 70, 333], [67, 129, 200]] {
            check::<E4m3, bf16>(
                &stream,
                Case {
                    extents,
                    orders,
                    ..PLAIN
                },
                None,
            );
        }
    }
}

#[test]
fn any_c_is_written() {
    let stream = Device::auto().stream().unwrap();
    for factors in [[1.0, 0.0], [-2.0, 1.0], [0.5, 3.0]] {
        for extents in [[70, 136, 300], [67, 77, 300]] {
            let case = Case {
                extents,
                factors,
                ..PLAIN
            };
            check::<E4m3, f32>(&stream, case, None);
            check::<E4m3, bf16>(&stream, case, None);
        }
    }
    for extents in [[5, 8, 0], [0, 8, 200]] {
        let factors = [1.0, 2.0];
        check::<E4m3, bf16>(
            &stream,
            Case {
                extents,
                factors,
                ..PLAIN
            },
            None,
        );
    }
    let activation = Some(Activation::Relu);
    check::<E4m3, f16>(
        &stream,
        Case {
            activation,
            ..PLAIN
        },
        None,
    );
}

#[test]
fn scales_of_other_extents_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let zeros = stream.zeroed::<F8E4M3>(64 * 200).unwrap();
    let scales = stream.zeroed::<f32>(1000).unwrap();
    let mut on_c = stream.zeroed::<bf16>(64 * 64).unwrap();
    let mut refused = |order: Order, rows: usize, columns: usize| {
        let c = MatrixMut::packed(&mut on_c, 64, 64, order).unwrap();
        let a = Matrix::row_major(&zeros, 64, 200).unwrap();
        let b = Matrix::col_major(&zeros, 200, 64).unwrap();
        let of_a = Matrix::row_major(&scales, rows, columns).unwrap();
        let of_b = Matrix::row_major(&scales, 2, 1).unwrap();
        let run = Gemm::new(a, b, c).block_scales(of_a, of_b).run(&stream);
        run.unwrap_err().to_string()
    };
    let error = refused(RowMajor, 64, 1);
    assert!(
        error.contains("A's scales are 64×1, and the product of 64×64×200 has 64×2"),
        "{error}"
    );
    let error = refused(ColMajor, 64, 2);
    assert!(error.contains("C is column-major"), "{error}");
}

/// Groups of rows, or a batch.
#[derive(Clone, Copy, Debug)]
struct Groups<'a> {
    /// The rows of each.
    sizes: &'a [usize],
    /// The rows of A, of all groups together or of each.
    rows: usize,
    of: Of,
    extents: [usize; 2],
}

/// What groups are of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    /// Of one A.
    OneA,
    /// Of the first rows of an A each.
    FirstRows,
    /// Of all rows of an A each.
    Batch,
}

/// Multiplies groups of rows by the kernel of this name, and compares each entry of C. Rows in no group stay.
fn check_groups<F: Formats>(stream: &Stream, groups: Groups<'_>, kernel: Option<&str>) {
    let Groups {
        sizes,
        rows,
        of,
        extents: [n, k],
    } = groups;
    let in_one = of == Of::OneA;
    const OLD: f64 = 7.0;
    let count = sizes.len();
    let matrices = if in_one { 1 } else { count };
    let (k_blocks, n_blocks) = (k.div_ceil(128), n.div_ceil(128));
    let mut random = fastrand::Rng::with_seed((n + k) as u64);
    let all = rows * matrices;
    let a = HostMatrix::<F::A>::new([all, k], RowMajor, || random.f64() * 4.0 - 2.0);
    let b = HostMatrix::<F::B>::new([k, n * count], ColMajor, || random.f64() * 4.0 - 2.0);
    let of_a: Vec<f32> = (0..all * k_blocks).map(|_| random.f32() + 0.5).collect();
    let of_b: Vec<f32> = (0..k_blocks * n_blocks * count)
        .map(|_| random.f32() + 0.5)
        .collect();
    let (mut ends, mut end) = (Vec::new(), 0);
    for &size in sizes {
        end += size as i32;
        ends.push(end);
    }
    let counts: Vec<i32> = sizes.iter().map(|&size| size as i32).collect();
    let on_sizes = stream.upload(if in_one { &ends } else { &counts }).unwrap();

    let upload = |elements: &[f32], layout| DeviceTensor::upload(stream, elements, layout).unwrap();
    let on_a = DeviceTensor::upload(
        stream,
        &a.elements,
        layout!((dyn rows, dyn k, dyn matrices):(dyn k, 1, dyn (rows * k))),
    )
    .unwrap();
    let on_b = DeviceTensor::upload(
        stream,
        &b.elements,
        layout!((dyn k, dyn n, dyn count):(1, dyn k, dyn (k * n))),
    )
    .unwrap();
    let on_of_a = upload(
        &of_a,
        layout!((dyn rows, dyn k_blocks, dyn matrices):(1, dyn rows, dyn (rows * k_blocks))),
    );
    let on_of_b = upload(
        &of_b,
        layout!((dyn k_blocks, dyn n_blocks, dyn count):(1, dyn k_blocks, dyn (k_blocks * n_blocks))),
    );
    let mut on_c = DeviceTensor::upload(
        stream,
        &vec![bf16::from_f64(OLD); all * n],
        layout!((dyn rows, dyn n, dyn matrices):(dyn n, 1, dyn (rows * n))),
    )
    .unwrap();
    let gemm = F::gemm(&on_a, &on_b, &mut on_c);
    let gemm = by_kernel(kernel, gemm).block_scales(&on_of_a, &on_of_b);
    let mut gemm = match of {
        Of::OneA => gemm.group_ends(&on_sizes),
        Of::FirstRows => gemm.group_rows(&on_sizes),
        Of::Batch => gemm,
    };
    gemm.run(stream).unwrap();
    let c = on_c.download(stream).unwrap();
    let group_of = |row: usize| match in_one {
        true => ends.iter().position(|&end| (row as i32) < end),
        false => (row % rows < sizes[row / rows]).then_some(row / rows),
    };
    for (row, j) in (0..all).flat_map(|row| (0..n).map(move |j| (row, j))) {
        let found = c[row * n + j].to_f64();
        let Some(group) = group_of(row) else {
            assert_eq!(found, OLD, "C[{row}, {j}] of {groups:?} is in no group");
            continue;
        };
        let products = (0..k).map(|l| {
            let first = row / rows * rows * k_blocks;
            let scale_a = of_a[first + l / 128 * rows + row % rows];
            let scale_b = of_b[(group * n_blocks + j / 128) * k_blocks + l / 128];
            a.at(row, l) * b.at(l, group * n + j) * f64::from(scale_a * scale_b)
        });
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
            (sum + product, squares + product * product)
        });
        let (error, most) = ((found - sum).abs(), tolerance(k, squares.sqrt(), sum));
        assert!(
            error <= most,
            "C[{row}, {j}] of {groups:?} by {kernel:?}, {}: {error} > {most}",
            F::NAME
        );
    }
}

#[test]
fn groups_of_rows_have_scales_of_blocks() {
    let stream = Device::auto().stream().unwrap();
    let is_gpu = stream.device().compute_capability().is_some();
    let mut kernels = vec![None, Some("e4m3_grouped_128x128x128_1x1_coop_blocks")];
    if is_gpu {
        kernels.push(Some("e4m3_grouped_64x128x128_1x1_ws_blocks"));
    }
    for kernel in kernels {
        for (sizes, rows, of, extents) in [
            (&[130, 0, 70, 1][..], 210, Of::OneA, [264, 400]),
            (&[3, 61], 64, Of::OneA, [128, 128]),
            (&[5, 132, 0], 132, Of::FirstRows, [136, 272]),
            (&[68, 68, 68], 68, Of::Batch, [136, 272]),
        ] {
            let groups = Groups {
                sizes,
                rows,
                of,
                extents,
            };
            check_groups::<E4m3>(&stream, groups, kernel);
        }
    }
}

#[test]
fn products_of_a_batch_run_one_by_one_where_no_kernel_has_them_all() {
    let stream = Device::auto().stream().unwrap();
    // Rows of A are not at multiples of 16 bytes.
    for extents in [[40, 77], [136, 300]] {
        let groups = Groups {
            sizes: &[9, 9],
            rows: 9,
            of: Of::Batch,
            extents,
        };
        check_groups::<E4m3>(&stream, groups, None);
    }
}

/// Single products and groups of two formats by some kernels. Those of e4m3 have the same code.
fn check_formats<F: Formats>() {
    let stream = Device::auto().stream().unwrap();
    let is_gpu = stream.device().compute_capability().is_some();
    for kernel in [
        "64x128x128_1x1_ws_blocks",
        "256x128x128_2x1_coop_blocks",
        "64x32x128_1x1_ws_kkm_blocks",
    ] {
        // The others have no body for the CPU.
        if is_gpu || kernel.starts_with("64x") {
            let kernel = F::kernel(kernel);
            for extents in [[130, 136, 400], [1, 72, 1000]] {
                check::<F, bf16>(&stream, Case { extents, ..PLAIN }, Some(&kernel));
            }
        }
    }
    let odd = Case {
        extents: [67, 77, 300],
        orders: [ColMajor, RowMajor, RowMajor, RowMajor],
        factors: [-2.0, 1.0],
        ..PLAIN
    };
    check::<F, bf16>(&stream, odd, None);
    check::<F, f32>(&stream, odd, None);
    let few = Case {
        extents: [17, 200, 384],
        activation: Some(Activation::Relu),
        ..PLAIN
    };
    check::<F, f16>(&stream, few, None);
    let grouped = format!("{}_grouped_128x128x128_1x1_coop_blocks", F::NAME);
    for kernel in [None, Some(grouped.as_str())] {
        for (sizes, rows, of) in [
            (&[130, 0, 70, 1][..], 210, Of::OneA),
            (&[5, 132, 0], 132, Of::FirstRows),
            (&[68, 68], 68, Of::Batch),
        ] {
            let groups = Groups {
                sizes,
                rows,
                of,
                extents: [136, 272],
            };
            check_groups::<F>(&stream, groups, kernel);
        }
    }
}

#[test]
fn e5m2_by_e5m2_has_scales_of_blocks() {
    check_formats::<E5m2>();
}

#[test]
fn e4m3_by_e5m2_has_scales_of_blocks() {
    check_formats::<E4m3ByE5m2>();
}

#[test]
fn e5m2_by_e4m3_has_scales_of_blocks() {
    check_formats::<E5m2ByE4m3>();
}

/// Scales that are not finite reach their row, or their columns, and the infinities of e5m2 reach the sums.
#[test]
fn what_is_not_finite_stays_in_its_row() {
    let stream = Device::auto().stream().unwrap();
    let (m, n, k) = (72, 136, 256);
    let mut a = vec![F8E5M2::from_f32(1.0); m * k];
    a[5 * k] = F8E5M2::from_f32(f32::INFINITY);
    a[6 * k + 200] = F8E5M2::from_f32(57344.0);
    let mut of_a = vec![1f32; m * 2];
    (of_a[1], of_a[m + 2], of_a[3]) = (f32::NAN, f32::INFINITY, 1e38);
    let mut of_b = [1f32; 4];
    of_b[3] = 4.0;
    let on_a = stream.upload(&a).unwrap();
    let on_b = stream.upload(&vec![F8E4M3::from_f32(1.0); k * n]).unwrap();
    let (of_a, of_b) = (stream.upload(&of_a).unwrap(), stream.upload(&of_b).unwrap());
    let mut on_c = stream.upload(&vec![bf16::NAN; m * n]).unwrap();
    Gemm::mixed(
        Matrix::row_major(&on_a, m, k).unwrap(),
        Matrix::col_major(&on_b, k, n).unwrap(),
        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
    )
    .block_scales(
        Matrix::col_major(&of_a, m, 2).unwrap(),
        Matrix::col_major(&of_b, 2, 2).unwrap(),
    )
    .run(&stream)
    .unwrap();
    let c = stream.download(&on_c).unwrap();
    for (row, entries) in c.chunks(n).enumerate() {
        let (first, last) = (entries[0].to_f32(), entries[n - 1].to_f32());
        let is_expected = match row {
            1 => first.is_nan() && last.is_nan(),
            2 | 3 | 5 => [first, last] == [f32::INFINITY; 2],
            // The tensor cores keep 14 bits of a k-tile's sum.
            6 => first > 57000.0 && last > 4.0 * 57000.0,
            _ => [first, last] == [256.0, 128.0 + 4.0 * 128.0],
        };
        assert!(is_expected, "row {row}: {first} and {last}");
    }
}
