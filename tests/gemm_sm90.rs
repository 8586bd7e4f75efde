//! `gemm` of bf16 and f16 against an f64 reference: every order, extents that are no multiple of a tile, padded leading
//! dimensions, alpha and beta. Needs a Hopper GPU or the CPU backend, which models the instructions that the kernels
//! use.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::place::{ALIGNED, Place};
use crate::rounding;
use cutlet::Order::{self, ColMajor, RowMajor};
use cutlet::{Device, Element, Error, Gemm, Matrix, MatrixMut, Operand, Precision, Stream, gemm};
use half::{bf16, f16};

trait Sixteen: Element + Operand<Factor = f32> + Convert {
    /// The distance between 1 and the next number.
    const EPSILON: f64;
}

impl Sixteen for bf16 {
    const EPSILON: f64 = 1.0 / 128.0;
}

impl Sixteen for f16 {
    const EPSILON: f64 = 1.0 / 1024.0;
}

/// A matrix on the host, with leading dimension `ld`.
struct Host<T> {
    elements: Vec<T>,
    order: Order,
    ld: usize,
}

impl<T: Sixteen> Host<T> {
    fn random(rows: usize, columns: usize, order: Order, padding: usize) -> Self {
        let run = if order == RowMajor { columns } else { rows };
        Self::with_ld(rows, columns, order, run.next_multiple_of(8) + padding)
    }

    /// A matrix without elements between its rows, or columns.
    fn packed(rows: usize, columns: usize, order: Order) -> Self {
        let run = if order == RowMajor { columns } else { rows };
        Self::with_ld(rows, columns, order, run)
    }

    fn with_ld(rows: usize, columns: usize, order: Order, ld: usize) -> Self {
        let count = if order == RowMajor { rows } else { columns };
        let mut random = fastrand::Rng::with_seed((rows * 7919 + columns) as u64);
        let elements = (0..ld * count)
            .map(|_| T::of(2.0 * random.f64() - 1.0))
            .collect();
        Host {
            elements,
            order,
            ld,
        }
    }

    fn at(&self, elements: &[T], row: usize, column: usize) -> f64 {
        let index = match self.order {
            RowMajor => row * self.ld + column,
            ColMajor => column * self.ld + row,
        };
        elements[index].number()
    }
}

fn check<T: Sixteen>(
    extents: (usize, usize, usize),
    orders: [Order; 3],
    padding: usize,
    factors: (f32, f32),
) {
    check_by::<T>(None, extents, orders, padding, factors);
}

/// Checks the kernel of this name, or the one that is chosen.
fn check_by<T: Sixteen>(
    kernel: Option<&str>,
    extents: (usize, usize, usize),
    orders: [Order; 3],
    padding: usize,
    factors: (f32, f32),
) {
    let stream = Device::auto().stream().unwrap();
    check_on::<T>(&stream, kernel, extents, orders, padding, factors);
}

/// Checks every instance for the type, also those that are not made for such extents.
fn check_every_instance<T: Sixteen>(extents: (usize, usize, usize), factors: (f32, f32)) {
    for a in [RowMajor, ColMajor] {
        for b in [RowMajor, ColMajor] {
            for name in Gemm::<T>::instances(Device::auto().backend(), a, b, Precision::Exact) {
                // Those of other families have tests of their own.
                if name.starts_with("mma_") || name.starts_with("gemv_") {
                    continue;
                }
                check_by::<T>(Some(name), extents, [a, b, RowMajor], 0, factors);
            }
        }
    }
}

fn check_on<T: Sixteen>(
    stream: &Stream,
    kernel: Option<&str>,
    (m, n, k): (usize, usize, usize),
    orders: [Order; 3],
    padding: usize,
    (alpha, beta): (f32, f32),
) {
    let a = Host::<T>::random(m, k, orders[0], padding);
    let b = Host::<T>::random(k, n, orders[1], padding);
    let mut c = Host::<T>::random(m, n, orders[2], padding);
    if beta == 0.0 {
        c.elements.fill(T::of(f64::NAN));
    }
    let (on_a, on_b) = (
        stream.upload(&a.elements).unwrap(),
        stream.upload(&b.elements).unwrap(),
    );
    let mut on_c = stream.upload(&c.elements).unwrap();
    let gemm = Gemm::new(
        Matrix::with_ld(&on_a, m, k, a.order, a.ld).unwrap(),
        Matrix::with_ld(&on_b, k, n, b.order, b.ld).unwrap(),
        MatrixMut::with_ld(&mut on_c, m, n, c.order, c.ld).unwrap(),
    );
    let mut gemm = by_kernel(kernel, gemm).alpha(alpha).beta(beta);
    gemm.run(stream).unwrap();
    let found = stream.download(&on_c).unwrap();

    // A small matrix is checked whole. Of a larger one, the last rows and some others are checked.
    let rows = (0..m).filter(|&i| m < 40 || i % 37 == 0 || i + 2 > m);
    for i in rows {
        for j in 0..n {
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for l in 0..k {
                let product = a.at(&a.elements, i, l) * b.at(&b.elements, l, j);
                sum += product;
                magnitude += product.abs();
            }
            let old = if beta == 0.0 {
                0.0
            } else {
                beta as f64 * c.at(&c.elements, i, j)
            };
            let expected = alpha as f64 * sum + old;
            let found = c.at(&found, i, j);
            let allowed = T::EPSILON * expected.abs()
                + rounding::of_sum(k, alpha.abs() as f64 * magnitude + old.abs());
            assert!(
                (found - expected).abs() <= allowed,
                "C[{i}, {j}] of {m}×{n}×{k}, {orders:?}: found {found}, expected {expected}"
            );
        }
    }
    let run = if c.order == RowMajor { n } else { m };
    for (i, (before, after)) in c.elements.iter().zip(&found).enumerate() {
        let outside = i % c.ld >= run;
        let same = before.number().to_bits() == after.number().to_bits();
        assert!(
            same || !outside,
            "element {i} lies outside C and was written"
        );
    }
}

#[test]
fn one_tile() {
    check::<bf16>(
        (128, 256, 64),
        [RowMajor, ColMajor, RowMajor],
        0,
        (1.0, 0.0),
    );
}

#[test]
fn awkward_extents() {
    for extents in [
        (1, 1, 1),
        (7, 129, 127),
        (129, 257, 72),
        (300, 20, 200),
        (20, 600, 8),
    ] {
        check::<bf16>(extents, [RowMajor, ColMajor, RowMajor], 0, (1.0, 0.0));
        check::<f16>(extents, [RowMajor, RowMajor, RowMajor], 8, (1.0, 0.0));
    }
}

#[test]
fn every_order() {
    for a in [RowMajor, ColMajor] {
        for b in [RowMajor, ColMajor] {
            for c in [RowMajor, ColMajor] {
                check::<bf16>((136, 264, 72), [a, b, c], 0, (1.0, 0.0));
                check::<f16>((72, 40, 136), [a, b, c], 16, (1.0, 0.0));
            }
        }
    }
}

#[test]
fn alpha_and_beta() {
    for factors in [(0.0, 0.0), (2.5, 0.0), (1.0, 1.0), (-0.5, 3.0)] {
        check::<bf16>((40, 264, 72), [RowMajor, ColMajor, RowMajor], 0, factors);
        check::<f16>((40, 24, 72), [RowMajor, ColMajor, ColMajor], 0, factors);
    }
}

/// TMA can neither read nor write such rows: A and B are copied, and threads write C.
#[test]
fn odd_leading_dimensions() {
    for orders in [
        [RowMajor, ColMajor, RowMajor],
        [ColMajor, RowMajor, RowMajor],
        [RowMajor, RowMajor, ColMajor],
    ] {
        check::<bf16>((70, 131, 67), orders, 1, (1.0, 0.0));
        check::<f16>((129, 33, 72), orders, 3, (1.0, 0.5));
    }
}

/// Checks `C = A·B + beta·C` of K-major A and B at these places, all of C's buffer included.
fn check_places(kernel: Option<&str>, [m, n, k]: [usize; 3], places: [Place; 3], beta: f32) {
    let stream = Device::auto().stream().unwrap();
    let [in_a, in_b, in_c] = places;
    let (a, b) = (in_a.small::<bf16>([m, k], 1), in_b.small::<bf16>([n, k], 2));
    let mut expected = in_c.small::<bf16>([m, n], 3);
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut on_c = stream.upload(&expected).unwrap();
    let [lda, ldb, ldc] = [k + in_a.padding, k + in_b.padding, n + in_c.padding];
    let gemm = Gemm::new(
        Matrix::with_ld(on_a.slice(in_a.offset..).unwrap(), m, k, RowMajor, lda).unwrap(),
        Matrix::with_ld(on_b.slice(in_b.offset..).unwrap(), k, n, ColMajor, ldb).unwrap(),
        MatrixMut::with_ld(on_c.slice_mut(in_c.offset..).unwrap(), m, n, RowMajor, ldc).unwrap(),
    );
    by_kernel(kernel, gemm).beta(beta).run(&stream).unwrap();
    for i in 0..m {
        for j in 0..n {
            let row_a = &a[in_a.offset + i * lda..][..k];
            let row_b = &b[in_b.offset + j * ldb..][..k];
            let products = row_a
                .iter()
                .zip(row_b)
                .map(|(a, b)| a.to_f32() * b.to_f32());
            let c = &mut expected[in_c.offset + i * ldc + j];
            *c = bf16::from_f32(products.sum::<f32>() + beta * c.to_f32());
        }
    }
    let found = stream.download(&on_c).unwrap();
    let differs = found
        .iter()
        .zip(&expected)
        .position(|(found, expected)| found != expected);
    if let Some(at) = differs {
        panic!(
            "element {at} of C's buffer for {m}×{n}×{k} at {places:?}: {}, not {}",
            found[at], expected[at]
        );
    }
}

/// Rows of C begin at every element of a unit of TMA, at odd and even distances, and end within a word. What lies
/// between rows stays as it is.
#[test]
fn rows_of_c_begin_anywhere() {
    for name in [
        "bf16_64x32x64_1x1_ws",
        "bf16_64x48x64_1x1_ws",
        "bf16_64x64x64_1x1_ws",
        "bf16_128x112x64_1x1_coop",
        "bf16_128x128x64_2x1_pingpong",
        "bf16_192x192x64_1x1_coop3",
    ] {
        for offset in 0..8 {
            let c = Place {
                offset,
                padding: [1, 2, 5, 8][offset % 4],
            };
            for n in [57, 130 + offset] {
                check_places(Some(name), [70, n, 16], [ALIGNED, ALIGNED, c], 0.0);
            }
        }
    }
}

/// The same with few elements, or rows.
#[test]
fn short_rows_of_c_begin_anywhere() {
    for offset in 0..4 {
        for [m, n] in [[1, 1], [3, 1], [17, 2], [65, 3], [1, 7], [1, 63], [2, 65]] {
            for beta in [0.0, 2.0] {
                let c = Place {
                    offset,
                    padding: offset + 1,
                };
                check_places(None, [m, n, 8], [ALIGNED, ALIGNED, c], beta);
            }
        }
    }
}

/// A, B, or both are copied, by one launch: as one tile of the copy, as many, and with an end within a pair of
/// elements.
#[test]
fn either_operand_is_copied() {
    let kernel = Some("bf16_64x64x64_1x1_ws");
    for [in_a, in_b] in [[1, 0], [0, 3], [2, 5]].map(|offsets| {
        offsets.map(|offset| Place {
            offset,
            padding: offset,
        })
    }) {
        for extents in [[3, 5, 8], [70, 9, 520], [9, 40, 1040], [33, 65, 513]] {
            check_places(kernel, extents, [in_a, in_b, ALIGNED], 0.0);
        }
    }
}

/// Every decomposition of a kernel that applies computes the same C, where rows start at cache lines, and where a line
/// may be in two k-tiles.
#[test]
fn every_decomposition_of_a_kernel() {
    let stream = Device::auto().stream().unwrap();
    for extents in [(60, 50, 1280), (60, 50, 1288)] {
        let mut ways = ways(&stream, extents);
        ways.retain(|name| name.starts_with("bf16_64x64x64_1x1_ws/"));
        assert!(ways.len() > 2, "{ways:?}");
        for name in &ways {
            let orders = [RowMajor, ColMajor, RowMajor];
            check_on::<bf16>(&stream, Some(name), extents, orders, 0, (1.0, 0.0));
        }
    }
    assert!(ways(&stream, (0, 50, 1280)).is_empty());
}

/// The names of the kernels for a product of these extents, with and without a decomposition.
fn ways(stream: &Stream, (m, n, k): (usize, usize, usize)) -> Vec<String> {
    let [a, b] = [m * k, k * n].map(|count| stream.zeroed::<bf16>(count).unwrap());
    let mut c = stream.zeroed::<bf16>(m * n).unwrap();
    let mut gemm = Gemm::new(
        Matrix::row_major(&a, m, k).unwrap(),
        Matrix::col_major(&b, k, n).unwrap(),
        MatrixMut::row_major(&mut c, m, n).unwrap(),
    );
    gemm.candidates(stream).unwrap()
}

/// A decomposition that does not apply is refused.
#[test]
fn an_unknown_decomposition_is_refused() {
    let stream = Device::auto().stream().unwrap();
    let (m, n, k) = (60, 50, 1280);
    let [a, b] = [m * k, k * n].map(|count| stream.zeroed::<bf16>(count).unwrap());
    let mut c = stream.zeroed::<bf16>(m * n).unwrap();
    for unknown in ["bf16_64x64x64_1x1_ws/", "bf16_64x64x64_1x1_ws/split"] {
        let gemm = Gemm::new(
            Matrix::row_major(&a, m, k).unwrap(),
            Matrix::col_major(&b, k, n).unwrap(),
            MatrixMut::row_major(&mut c, m, n).unwrap(),
        );
        let refused = gemm.instance(unknown).plan(&stream);
        let said = refused.unwrap_err().to_string();
        assert!(said.contains(unknown), "{said}");
    }
}

#[test]
fn rows_of_c_that_end_within_a_unit_of_tma() {
    check::<bf16>((70, 131, 72), [RowMajor, ColMajor, RowMajor], 0, (1.0, 0.0));
    check::<bf16>((70, 131, 72), [RowMajor, ColMajor, RowMajor], 0, (1.0, 2.0));
}

#[test]
fn matrices_at_odd_addresses() {
    let (m, n, k) = (20, 24, 40);
    let stream = Device::auto().stream().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut elements = |count: usize| -> Vec<bf16> {
        (0..count)
            .map(|_| bf16::from_f32(2.0 * random.f32() - 1.0))
            .collect()
    };
    let (a, b) = (elements(1 + m * k), elements(3 + k * n));
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut on_c = stream.filled::<bf16>(2 + m * n, 0xff).unwrap();
    gemm(
        &stream,
        1.0,
        Matrix::row_major(on_a.slice(1..).unwrap(), m, k).unwrap(),
        Matrix::row_major(on_b.slice(3..).unwrap(), k, n).unwrap(),
        0.0,
        MatrixMut::row_major(on_c.slice_mut(1..).unwrap(), m, n).unwrap(),
    )
    .unwrap();
    let c = stream.download(&on_c).unwrap();
    assert!(c[0].is_nan() && c[1 + m * n].is_nan());
    for i in 0..m {
        for j in 0..n {
            let products = (0..k).map(|l| a[1 + i * k + l].to_f64() * b[3 + l * n + j].to_f64());
            let expected: f64 = products.sum();
            let found = c[1 + i * n + j].to_f64();
            assert!(
                (found - expected).abs() < 0.04,
                "C[{i}, {j}]: {found}, not {expected}"
            );
        }
    }
}

/// Packed vectors of lengths that TMA could not use as a leading dimension. TMA can read them all the same, in either
/// order: a vector has no second row that would have to be aligned.
#[test]
fn products_with_vectors() {
    let stream = Device::auto().stream().unwrap();
    let number = |i: usize| (i * 7 % 11 % 3) as f64 - 1.0;
    let elements = |count: usize| -> Vec<bf16> { (0..count).map(number).map(bf16::of).collect() };
    let orders = [RowMajor, ColMajor];
    for [m, n, k] in [
        [1, 131, 67],
        [131, 1, 67],
        [1, 40, 1027],
        [40, 1, 1027],
        [33, 72, 1],
        [1, 72, 1],
        [1, 1, 100],
    ] {
        let of_a = |row: usize, l: usize, order| match order {
            RowMajor => row * k + l,
            ColMajor => l * m + row,
        };
        let of_b = |l: usize, column: usize, order| match order {
            RowMajor => l * n + column,
            ColMajor => column * k + l,
        };
        let on_a = stream.upload(&elements(m * k)).unwrap();
        let on_b = stream.upload(&elements(k * n)).unwrap();
        for [a, b, c] in (0..8).map(|i| [i & 1, i >> 1 & 1, i >> 2].map(|order| orders[order])) {
            let mut on_c = stream.filled::<bf16>(m * n, 0xff).unwrap();
            gemm(
                &stream,
                1.0,
                Matrix::packed(&on_a, m, k, a).unwrap(),
                Matrix::packed(&on_b, k, n, b).unwrap(),
                0.0,
                MatrixMut::packed(&mut on_c, m, n, c).unwrap(),
            )
            .unwrap();
            let found = stream.download(&on_c).unwrap();
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let product = |l| number(of_a(row, l, a)) * number(of_b(l, column, b));
                let expected = bf16::of((0..k).map(product).sum());
                let at = match c {
                    RowMajor => row * n + column,
                    ColMajor => column * m + row,
                };
                assert_eq!(
                    found[at], expected,
                    "({row}, {column}) of {m}×{n}×{k}, {a:?} {b:?} {c:?}"
                );
            }
        }
    }
}

#[test]
fn with_k_of_0_c_is_scaled() {
    for orders in [
        [RowMajor, ColMajor, RowMajor],
        [ColMajor, RowMajor, ColMajor],
    ] {
        check::<bf16>((20, 33, 0), orders, 0, (1.0, 0.5));
        check::<f16>((20, 40, 0), orders, 0, (1.0, 0.0));
    }
}

#[test]
fn with_k_of_0_alpha_is_ignored() {
    let stream = Device::auto().stream().unwrap();
    let nothing = stream.zeroed::<bf16>(0).unwrap();
    for alpha in [f32::INFINITY, f32::NAN] {
        let mut c = stream.upload(&[bf16::from_f32(3.0); 64]).unwrap();
        gemm(
            &stream,
            alpha,
            Matrix::row_major(&nothing, 8, 0).unwrap(),
            Matrix::row_major(&nothing, 0, 8).unwrap(),
            0.5,
            MatrixMut::row_major(&mut c, 8, 8).unwrap(),
        )
        .unwrap();
        assert_eq!(stream.download(&c).unwrap(), [bf16::from_f32(1.5); 64]);
    }
}

/// Extents of a product with splits, of a plain one, and of one whose operands are copied first.
const DIFFERENT_PATHS: [(usize, usize, usize); 3] = [(64, 64, 2048), (200, 136, 264), (65, 67, 63)];

/// Launches of all threads use the buffers that are kept per stream.
#[test]
fn threads_share_streams() {
    let device = Device::auto();
    let (one, other) = (device.stream().unwrap(), device.stream().unwrap());
    std::thread::scope(|scope| {
        for stream in [&one, &one, &other] {
            scope.spawn(move || {
                for extents in DIFFERENT_PATHS {
                    let orders = [RowMajor, ColMajor, RowMajor];
                    check_on::<bf16>(stream, None, extents, orders, 0, (1.0, 0.5));
                }
            });
        }
    });
}

#[test]
fn products_can_be_captured() {
    let stream = Device::auto().stream().unwrap();
    for (m, n, k) in DIFFERENT_PATHS {
        let (a, b) = (
            Host::<bf16>::random(m, k, RowMajor, 1),
            Host::<bf16>::random(k, n, ColMajor, 1),
        );
        let [on_a, on_b] = [&a, &b].map(|host| stream.upload(&host.elements).unwrap());
        let mut c = stream.zeroed::<bf16>(m * n).unwrap();
        let multiply = |stream: &Stream, c: &mut cutlet::Buffer<bf16>| {
            gemm(
                stream,
                1.0,
                Matrix::with_ld(&on_a, m, k, a.order, a.ld)?,
                Matrix::with_ld(&on_b, k, n, b.order, b.ld)?,
                0.0,
                MatrixMut::row_major(c, m, n)?,
            )
        };
        multiply(&stream, &mut c).unwrap();
        let expected = stream.download(&c).unwrap();
        let captured = stream.device().capture(|stream| {
            multiply(stream, &mut c)?;
            multiply(stream, &mut c)
        });
        let graph = captured.unwrap();
        for _ in 0..2 {
            stream.fill_bytes(&mut c, 0xff).unwrap();
            // SAFETY: the matrices live past the download.
            unsafe { graph.launch(&stream).unwrap() };
            assert!(
                stream.download(&c).unwrap() == expected,
                "{m}×{n}×{k} in a graph"
            );
        }
    }
}

/// The k-tiles are split, and the fixup or a second kernel adds the partials.
#[test]
fn few_tiles_with_many_k_tiles() {
    check::<bf16>(
        (30, 40, 4100),
        [RowMajor, ColMajor, RowMajor],
        0,
        (1.0, 0.0),
    );
    check::<f16>(
        (60, 33, 4096),
        [ColMajor, RowMajor, RowMajor],
        0,
        (0.5, 2.0),
    );
}

/// A launch begins while the one before it ends, and its A is the C of the one before. It must not read what was
/// prefetched before C was written.
#[test]
fn chained_products_read_what_was_written() {
    check_chain::<128>(None);
}

/// The same with copies of A and B: they begin while the product before ends, which reads the copies before.
#[test]
fn chained_products_copy_what_was_written() {
    check_chain::<127>(Some("bf16_64x64x64_1x1_ws"));
}

fn check_chain<const EXTENT: usize>(kernel: Option<&str>) {
    const PRODUCTS: usize = 16;
    let stream = Device::auto().stream().unwrap();
    let first = Host::<bf16>::packed(EXTENT, EXTENT, RowMajor);
    let factor = Host::<bf16>::random(EXTENT, EXTENT, ColMajor, 8 + EXTENT % 8);
    let on_factor = stream.upload(&factor.elements).unwrap();
    let chain = |waits: bool| {
        let mut from = stream.upload(&first.elements).unwrap();
        let mut to = stream.filled::<bf16>(EXTENT * EXTENT, 0xff).unwrap();
        for _ in 0..PRODUCTS {
            let gemm = Gemm::new(
                Matrix::row_major(&from, EXTENT, EXTENT).unwrap(),
                Matrix::with_ld(&on_factor, EXTENT, EXTENT, ColMajor, factor.ld).unwrap(),
                MatrixMut::row_major(&mut to, EXTENT, EXTENT).unwrap(),
            );
            by_kernel(kernel, gemm).alpha(0.15).run(&stream).unwrap();
            if waits {
                stream.synchronize().unwrap();
            }
            std::mem::swap(&mut from, &mut to);
        }
        stream.download(&from).unwrap()
    };
    let expected = chain(true);
    assert!(expected.iter().any(|entry| entry.to_f32().abs() > 0.01));
    for _ in 0..4 {
        assert!(chain(false) == expected);
    }
}

#[test]
fn every_instance_for_bf16() {
    check_every_instance::<bf16>((150, 288, 200), (1.0, 0.0));
}

#[test]
fn every_instance_for_f16() {
    check_every_instance::<f16>((70, 39, 136), (2.0, 1.0));
}

/// Edge tiles shift back to end at C's edge, and overlap their neighbours: in rows, in columns, and where a tile only
/// completes a cluster.
#[test]
fn edge_tiles_shift_back() {
    for name in [
        "bf16_128x112x64_2x1_coop",
        "bf16_256x160x64_1x2_coop",
        "bf16_192x192x64_1x1_coop3",
        "bf16_128x128x64_2x1_pingpong",
        "bf16_64x64x64_4x1_ws",
        "bf16_128x80x64_1x2_coop_kkm",
        "bf16_64x32x64_1x1_ws_kkm",
        "bf16_256x112x64_1x1_coop_kkm",
    ] {
        for extents in [
            (129, 272, 72),
            (300, 264, 64),
            (257, 520, 136),
            (40, 480, 8),
        ] {
            let orders = [RowMajor, ColMajor, RowMajor];
            check_by::<bf16>(Some(name), extents, orders, 0, (1.0, 0.0));
        }
    }
}

/// With so many tiles, clusters claim slots by SM affinity. Each launch must leave the slots as it found them.
#[test]
fn every_slot_of_every_launch_is_claimed() {
    let stream = Device::auto().stream().unwrap();
    let clusters = (stream.device().multiprocessors() / 2).max(1) as usize;
    let kernel = Some("bf16_64x64x64_2x1_ws");
    let orders = [RowMajor, ColMajor, RowMajor];
    for n in [
        128 * 2 * clusters,
        128 * 3 * clusters - 40,
        128 * 4 * clusters,
    ] {
        check_on::<bf16>(&stream, kernel, (250, n, 72), orders, 0, (1.0, 0.0));
    }
}

#[test]
fn instances_that_do_not_fit_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let a = stream.zeroed::<bf16>(64).unwrap();
    let mut c = stream.zeroed::<bf16>(64).unwrap();
    let backend = Device::auto().backend();
    let name = Gemm::<bf16>::instances(backend, ColMajor, RowMajor, Precision::Exact)[0];
    let a = Matrix::row_major(&a, 8, 8).unwrap();
    let gemm = Gemm::new(a, a, MatrixMut::row_major(&mut c, 8, 8).unwrap());
    let error = gemm.instance(name).run(&stream).unwrap_err();
    assert!(matches!(error, Error::Instance { .. }), "{error}");
    assert!(error.to_string().contains(name), "{error}");
}
