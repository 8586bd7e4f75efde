//! Products whose C is quantised to e4m3, on a GPU if there is one, against sums in f64: every kernel, the way by two
//! kernels, with scales and without, odd extents, chained products, and numbers that are not finite.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::host_matrix::HostMatrix;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Device, DeviceTensor, Error, F8E4M3, Gemm, Matrix, MatrixMut, Order, Quantize, Stream, bf16,
    layout,
};

/// The kernels that multiply and quantise.
const KERNELS: [&str; 2] = [
    "e4m3_256x128x128_2x1_coop_blocks_e4m3",
    "e4m3_64x128x128_1x1_ws_blocks_e4m3",
];

/// A product.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    /// Whether blocks of A and B have scales.
    has_scales: bool,
    /// Columns between the rows of C.
    padding: usize,
    /// In which order the scales of C lie.
    order: Order,
    powers: bool,
}

const PLAIN: Case = Case {
    extents: [200, 264, 400],
    has_scales: true,
    padding: 0,
    order: ColMajor,
    powers: false,
};

/// Computes a case by the kernel of this name, and compares C and its scales.
fn check(stream: &Stream, case: Case, kernel: Option<&str>) {
    let Case {
        extents: [m, n, k],
        has_scales,
        padding,
        order,
        powers,
    } = case;
    let blocks = |extent: usize| extent.div_ceil(128);
    let alpha = -0.75;
    let mut random = fastrand::Rng::with_seed((m + n + k) as u64);
    let a = HostMatrix::<F8E4M3>::new([m, k], RowMajor, || random.f64() * 4.0 - 2.0);
    let b = HostMatrix::<F8E4M3>::new([k, n], ColMajor, || random.f64() * 4.0 - 2.0);
    let of_a = HostMatrix::<f32>::new([m, blocks(k)], ColMajor, || random.f64() + 0.5);
    let of_b = HostMatrix::<f32>::new([blocks(k), blocks(n)], ColMajor, || random.f64() + 0.5);
    let (on_a, on_b) = (
        stream.upload(&a.elements).unwrap(),
        stream.upload(&b.elements).unwrap(),
    );
    let [on_of_a, on_of_b] = [&of_a, &of_b].map(|it| stream.upload(&it.elements).unwrap());
    let ld = n + padding;
    let mut on_c = stream.filled::<F8E4M3>(m * ld, 0xff).unwrap();
    let mut on_of_c = stream.filled::<f32>(m * blocks(n), 0xff).unwrap();
    let c = MatrixMut::with_ld(&mut on_c, m, n, RowMajor, ld).unwrap();
    let gemm = Gemm::<F8E4M3, F8E4M3>::new(
        Matrix::row_major(&on_a, m, k).unwrap(),
        Matrix::col_major(&on_b, k, n).unwrap(),
        c,
    );
    let gemm = by_kernel(kernel, gemm).alpha(alpha);
    let gemm = match has_scales {
        false => gemm,
        true => gemm.block_scales(
            Matrix::col_major(&on_of_a, m, blocks(k)).unwrap(),
            Matrix::col_major(&on_of_b, blocks(k), blocks(n)).unwrap(),
        ),
    };
    let quantize = match powers {
        false => Quantize::by_blocks(),
        true => Quantize::by_blocks().powers_of_two(),
    };
    let of_c = MatrixMut::packed(&mut on_of_c, m, blocks(n), order).unwrap();
    gemm.quantized(quantize, of_c).run(stream).unwrap();

    let c = stream.download(&on_c).unwrap();
    let of_c = HostMatrix {
        elements: stream.download(&on_of_c).unwrap(),
        extents: [m, blocks(n)],
        order,
    };
    for (i, block) in (0..m).flat_map(|i| (0..blocks(n)).map(move |block| (i, block))) {
        let columns = 128 * block..n.min(128 * block + 128);
        let sums = columns.map(|j| {
            let products = (0..k).map(|l| {
                let scale = match has_scales {
                    false => 1.0,
                    true => of_a.at(i, l / 128) * of_b.at(l / 128, j / 128),
                };
                f64::from(alpha) * a.at(i, l) * b.at(l, j) * scale
            });
            products.fold((0.0, 0.0), |(sum, squares), product| {
                (sum + product, squares + product * product)
            })
        });
        let sums: Vec<(f64, f64)> = sums.collect();
        // What the instruction drops of a k-tile's sum, and roundings that grow as √k.
        let dropped = (1e-6 * (k as f64).sqrt() + 1e-3)
            * sums.iter().fold(0.0f64, |most, it| most.max(it.1.sqrt()));
        let amax = sums.iter().fold(0.0f64, |amax, it| amax.max(it.0.abs()));
        let scale = of_c.at(i, block);
        match powers {
            _ if amax == 0.0 => assert_eq!(scale, 1.0),
            false => assert!(
                (448.0 * scale - amax).abs() <= dropped + 1e-5 * amax,
                "({i}, {block}) of {case:?} by {kernel:?}: {scale} of {amax}"
            ),
            true => assert!(
                scale.log2().fract() == 0.0
                    && ((amax - dropped) / 448.0..(amax + dropped) / 223.9).contains(&scale),
                "({i}, {block}) of {case:?} by {kernel:?}: {scale} of {amax}"
            ),
        }
        for (nth, (sum, _)) in sums.into_iter().enumerate() {
            let found = c[i * ld + 128 * block + nth].number() * scale;
            // Half of the step of three bits, and of the subnormal numbers.
            let most = 1.001 * (sum.abs() / 16.0 + scale * 2f64.powi(-10)) + dropped;
            assert!(
                (found - sum).abs() <= most,
                "C[{i}, {}] of {case:?} by {kernel:?}: {found}, not {sum}",
                128 * block + nth
            );
        }
    }
    for row in c.chunks(ld) {
        let padding = row[n..].iter();
        assert!(
            padding.map(|it| it.to_bits()).all(|it| it == 0xff),
            "{case:?}: padding was written"
        );
    }
}

#[test]
fn each_kernel_quantises_its_product() {
    let stream = Device::auto().stream().unwrap();
    for kernel in KERNELS {
        for extents in [[128, 128, 128], [200, 264, 400], [1, 72, 144]] {
            for (powers, order) in [(false, ColMajor), (true, RowMajor)] {
                let case = Case {
                    extents,
                    powers,
                    order,
                    ..PLAIN
                };
                check(&stream, case, Some(kernel));
            }
        }
    }
}

#[test]
fn any_product_is_quantised() {
    let stream = Device::auto().stream().unwrap();
    for has_scales in [false, true] {
        for (n, padding) in [(136, 0), (130, 6), (77, 0), (1, 3)] {
            let case = Case {
                extents: [67, n, 80],
                has_scales,
                padding,
                ..PLAIN
            };
            check(&stream, case, None);
        }
        for extents in [[5, 8, 0], [0, 8, 32]] {
            check(
                &stream,
                Case {
                    extents,
                    has_scales,
                    ..PLAIN
                },
                None,
            );
        }
    }
}

#[test]
fn a_quantised_product_is_the_next_ones_a() {
    let stream = Device::auto().stream().unwrap();
    let (m, k, hidden, n) = (20, 128, 256, 16);
    let ones = vec![F8E4M3::from_f32(1.0); hidden * k];
    let on_ones = stream.upload(&ones).unwrap();
    let scales = stream.upload(&[1f32; 64]).unwrap();
    let mut c = DeviceTensor::<F8E4M3>::zeroed(&stream, [m, hidden]).unwrap();
    let mut of_c = DeviceTensor::<f32>::zeroed(&stream, layout!((20, 2):(1, 20))).unwrap();
    let mut out = DeviceTensor::<bf16>::zeroed(&stream, [m, n]).unwrap();
    Gemm::new(
        Matrix::row_major(&on_ones, m, k).unwrap(),
        Matrix::col_major(&on_ones, k, hidden).unwrap(),
        &mut c,
    )
    .block_scales(
        Matrix::col_major(&scales, m, 1).unwrap(),
        Matrix::col_major(&scales, 1, 2).unwrap(),
    )
    .quantized(Quantize::by_blocks(), &mut of_c)
    .run(&stream)
    .unwrap();
    Gemm::new(
        &c,
        Matrix::col_major(&on_ones, hidden, n).unwrap(),
        &mut out,
    )
    .block_scales(&of_c, Matrix::col_major(&scales, 2, 1).unwrap())
    .run(&stream)
    .unwrap();
    let found = out.download(&stream).unwrap();
    assert!(
        found.iter().all(|it| it.to_f32() == 128.0 * 256.0),
        "{found:?}"
    );
}

#[test]
fn what_is_not_finite_stays_in_its_block() {
    let stream = Device::auto().stream().unwrap();
    let (m, n, k) = (3, 256, 16);
    let mut a = vec![F8E4M3::from_f32(1.0); m * k];
    a[k] = F8E4M3::from_bits(0x7f);
    let mut b = vec![F8E4M3::from_f32(1.0); n * k];
    b[5 * k] = F8E4M3::from_bits(0x7f);
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let (of_a, of_b) = (
        stream.upload(&[1.0, 1.0, f32::INFINITY]).unwrap(),
        stream.upload(&[1f32, 2.0]).unwrap(),
    );
    let mut c = DeviceTensor::<F8E4M3>::zeroed(&stream, [m, n]).unwrap();
    let mut of_c = DeviceTensor::<f32>::zeroed(&stream, [m, 2]).unwrap();
    Gemm::new(
        Matrix::row_major(&on_a, m, k).unwrap(),
        Matrix::col_major(&on_b, k, n).unwrap(),
        &mut c,
    )
    .block_scales(
        Matrix::col_major(&of_a, m, 1).unwrap(),
        Matrix::col_major(&of_b, 1, 2).unwrap(),
    )
    .quantized(Quantize::by_blocks().powers_of_two(), &mut of_c)
    .run(&stream)
    .unwrap();
    let (c, of_c) = (
        c.download(&stream).unwrap(),
        of_c.download(&stream).unwrap(),
    );
    assert_eq!(of_c[..2], [1.0 / 16.0, 1.0 / 8.0]);
    // Of numbers that are all NaN, the scale is 1.
    assert_eq!(of_c[2..4], [1.0, 1.0]);
    let at = |i: usize, j: usize| c[i * n + j].to_f32();
    assert!(at(0, 5).is_nan() && at(0, 4) == 256.0 && at(0, 255) == 256.0);
    assert!((0..n).all(|j| at(1, j).is_nan()));
    assert_eq!((at(2, 0), at(2, 128)), (448.0, 448.0));
}

#[test]
fn what_no_kernel_quantises_is_refused() {
    let stream = Device::cpu().stream().unwrap();
    let zeros = stream.zeroed::<F8E4M3>(8 * 16).unwrap();
    let mut on_c = stream.zeroed::<F8E4M3>(64).unwrap();
    let mut scales = stream.zeroed::<f32>(16).unwrap();
    let mut said = |order: Order, columns: usize, quantize: Option<Quantize>, beta: f32| {
        let a = Matrix::row_major(&zeros, 8, 16).unwrap();
        let b = Matrix::col_major(&zeros, 16, 8).unwrap();
        let c = MatrixMut::packed(&mut on_c, 8, 8, order).unwrap();
        let of_c = MatrixMut::row_major(&mut scales, 8, columns).unwrap();
        let gemm = Gemm::<F8E4M3, F8E4M3>::new(a, b, c).beta(beta);
        let mut gemm = match quantize {
            Some(quantize) => gemm.quantized(quantize, of_c),
            None => gemm,
        };
        match gemm.run(&stream) {
            Err(error @ (Error::Extents { .. } | Error::Arithmetic { .. })) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let blocks = Some(Quantize::by_blocks());
    let error = said(RowMajor, 2, blocks, 0.0);
    assert!(
        error.contains("the scales of C are 8×2, and a C of 8×8 has 8×1"),
        "{error}"
    );
    let error = said(ColMajor, 1, blocks, 0.0);
    assert!(
        error.contains("C is column-major, and blocks of C have rows"),
        "{error}"
    );
    let error = said(RowMajor, 1, Some(Quantize::by_rows()), 0.0);
    assert!(error.contains("quantise it by blocks"), "{error}");
    let error = said(RowMajor, 1, blocks, 1.0);
    assert!(error.contains("something fused"), "{error}");
    let error = said(RowMajor, 1, None, 0.0);
    assert!(error.contains("give them by `quantized`"), "{error}");
}
