//! Products of 8-bit floats whose A is rows of a table, against sums in f64, on a GPU if there is one: every kind of
//! scales, both types of indices, groups, and indices outside of the table.

use crate::convert::Convert;
use crate::fp8_formats::{E4m3, E4m3ByE5m2, E5m2, E5m2ByE4m3, Formats};
use crate::host_matrix::HostMatrix;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Device, DeviceTensor, Element, F8E4M3, Float, Gemm, IndexedRows, Matrix, MatrixMut, Order,
    OutOfRange, RowIndices, Stream, bf16, f16, layout,
};

/// The scales of the table's rows and of B.
#[derive(Clone, Copy, Debug)]
enum Scales {
    None,
    /// Of rows and columns.
    Outer,
    /// Of blocks, which lie in this order in the table's.
    Blocks(Order),
}

/// Rows of the table.
const TABLE: usize = 50;

/// Multiplies rows of a table, and compares each entry of C.
fn check<F: Formats, D: Convert + Float>(
    stream: &Stream,
    indices: &[i64],
    [n, k]: [usize; 2],
    scales: Scales,
    wide: bool,
) where
    F::Both: Element<D>,
{
    let m = indices.len();
    let mut random = fastrand::Rng::with_seed((m + n + k) as u64);
    let table = HostMatrix::<F::A>::new([TABLE, k], RowMajor, || random.f64() * 4.0 - 2.0);
    let b = HostMatrix::<F::B>::new([k, n], ColMajor, || random.f64() * 4.0 - 2.0);
    let (blocks_k, blocks_n) = (k.div_ceil(128), n.div_ceil(128));
    let order = match scales {
        Scales::Blocks(order) => order,
        Scales::None | Scales::Outer => RowMajor,
    };
    let mut scale = || random.f64() + 0.5;
    let of_rows = HostMatrix::<f32>::new([TABLE, 1], RowMajor, &mut scale);
    let of_columns = HostMatrix::<f32>::new([1, n], RowMajor, &mut scale);
    let of_a = HostMatrix::<f32>::new([TABLE, blocks_k], order, &mut scale);
    let of_b = HostMatrix::<f32>::new([blocks_k, blocks_n], ColMajor, &mut scale);

    let on_table = stream.upload(&table.elements).unwrap();
    let on_b = stream.upload(&b.elements).unwrap();
    let scales_of = |it: &HostMatrix<f32>| stream.upload(&it.elements).unwrap();
    let [on_rows, on_columns, on_of_a, on_of_b] =
        [&of_rows, &of_columns, &of_a, &of_b].map(scales_of);
    let narrow: Vec<i32> = indices.iter().map(|&it| it as i32).collect();
    let (on_narrow, on_wide) = (
        stream.upload(&narrow).unwrap(),
        stream.upload(indices).unwrap(),
    );
    let mut on_c = stream.upload(&vec![D::of(f64::NAN); m * n]).unwrap();
    let mut rows = IndexedRows::new(stream.device()).unwrap();
    let named: RowIndices<'_> = match wide {
        false => rows.by(&on_narrow).unwrap(),
        true => rows.by(&on_wide).unwrap(),
    };
    let mut gemm = F::gemm(
        Matrix::row_major(&on_table, TABLE, k).unwrap(),
        Matrix::col_major(&on_b, k, n).unwrap(),
        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
    )
    .alpha(0.5)
    .gather_a(named);
    gemm = match scales {
        Scales::None => gemm,
        Scales::Outer => gemm.outer_scales(&on_rows, &on_columns),
        Scales::Blocks(_) => gemm.block_scales(
            Matrix::packed(&on_of_a, TABLE, blocks_k, order).unwrap(),
            Matrix::col_major(&on_of_b, blocks_k, blocks_n).unwrap(),
        ),
    };
    gemm.run(stream).unwrap();
    rows.check(stream).unwrap();
    let c = stream.download(&on_c).unwrap();
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let row = indices[i] as usize;
        let products = (0..k).map(|l| {
            let scale = match scales {
                Scales::None => 1.0,
                Scales::Outer => of_rows.at(row, 0) * of_columns.at(0, j),
                Scales::Blocks(_) => of_a.at(row, l / 128) * of_b.at(l / 128, j / 128),
            };
            0.5 * table.at(row, l) * b.at(l, j) * scale
        });
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
            (sum + product, squares + product * product)
        });
        let dropped = (1e-6 * (k as f64).sqrt() + 1e-3) * squares.sqrt();
        let most = dropped + sum.abs() / 250.0 + 1e-6;
        let error = (c[i * n + j].number() - sum).abs();
        assert!(
            error <= most,
            "C[{i}, {j}] of {m}×{n}×{k}, {scales:?}, {}: {error} > {most}",
            F::NAME
        );
    }
}

#[test]
fn gathered_rows_have_the_scales_of_their_rows() {
    let stream = Device::auto().stream().unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let indices: Vec<i64> = (0..70).map(|_| random.i64(0..TABLE as i64)).collect();
    for scales in [
        Scales::None,
        Scales::Outer,
        Scales::Blocks(RowMajor),
        Scales::Blocks(ColMajor),
    ] {
        check::<E4m3, bf16>(&stream, &indices, [136, 272], scales, false);
        // Rows of the table are not at multiples of 16 bytes.
        check::<E4m3, bf16>(&stream, &indices[..33], [77, 133], scales, true);
        check::<E4m3, f32>(&stream, &indices[..9], [24, 40], scales, true);
        check::<E4m3, f16>(&stream, &indices[..1], [8, 16], scales, false);
    }
    check::<E4m3, bf16>(&stream, &[], [8, 16], Scales::Outer, false);
}

#[test]
fn rows_of_each_format_are_gathered() {
    fn check_format<F: Formats>(stream: &Stream) {
        let indices = [40, 3, 7, 7, 0, 49, 22, 11, 3];
        for scales in [Scales::None, Scales::Outer, Scales::Blocks(ColMajor)] {
            check::<F, bf16>(stream, &indices, [136, 272], scales, false);
        }
        check::<F, f32>(stream, &indices, [23, 37], Scales::Blocks(RowMajor), true);
    }
    let stream = Device::auto().stream().unwrap();
    check_format::<E5m2>(&stream);
    check_format::<E4m3ByE5m2>(&stream);
    check_format::<E5m2ByE4m3>(&stream);
}

#[test]
fn groups_of_gathered_rows_keep_rows_of_no_group() {
    let stream = Device::auto().stream().unwrap();
    let (n, k, ends) = (24, 32, [3, 3, 7]);
    let of_row = |row: usize| (row % 5) as f32;
    let table: Vec<F8E4M3> = (0..TABLE * k)
        .map(|at| F8E4M3::from_f32(of_row(at / k)))
        .collect();
    let b: Vec<F8E4M3> = (0..3 * n * k)
        .map(|at| F8E4M3::from_f32(1.0 + (at / (n * k)) as f32))
        .collect();
    let of_a: Vec<f32> = (0..TABLE).map(|row| 1.0 + (row % 3) as f32).collect();
    let indices = [40i32, 3, 7, 7, 0, 49, 22, 11];
    let on_table = DeviceTensor::upload(&stream, &table, [TABLE, k]).unwrap();
    let on_b = layout!((dyn k, dyn n, 3):(1, dyn k, dyn (k * n)));
    let on_b = DeviceTensor::upload(&stream, &b, on_b).unwrap();
    let (on_of_a, on_of_b) = (
        stream.upload(&of_a).unwrap(),
        stream.upload(&[2f32, 4.0, 8.0]).unwrap(),
    );
    let (on_ends, on_indices) = (
        stream.upload(&ends).unwrap(),
        stream.upload(&indices).unwrap(),
    );
    let mut on_c = DeviceTensor::upload(&stream, &[bf16::from_f32(7.0); 8 * 24], [8, n]).unwrap();
    let mut rows = IndexedRows::new(stream.device()).unwrap();
    Gemm::new(&on_table, &on_b, &mut on_c)
        .outer_scales(&on_of_a, &on_of_b)
        .group_ends(&on_ends)
        .gather_a(rows.by(&on_indices).unwrap())
        .run(&stream)
        .unwrap();
    rows.check(&stream).unwrap();
    for (row, entries) in on_c.download(&stream).unwrap().chunks(n).enumerate() {
        let index = indices[row] as usize;
        let product = |group: usize| {
            let scales = of_a[index] * [2.0, 4.0, 8.0][group];
            of_row(index) * (1 + group) as f32 * k as f32 * scales
        };
        let expected = match row {
            ..3 => product(0),
            3..7 => product(2),
            _ => 7.0,
        };
        assert!(
            entries.iter().all(|it| it.to_f32() == expected),
            "row {row}: {entries:?}"
        );
    }
}

#[test]
fn rows_that_are_not_the_tables_are_zeros_or_reported() {
    let stream = Device::auto().stream().unwrap();
    let (n, k) = (8, 16);
    let ones = stream
        .upload(&vec![F8E4M3::from_f32(1.0); TABLE * k])
        .unwrap();
    let scales = stream.upload(&[2f32; TABLE]).unwrap();
    let one = stream.upload(&[1f32]).unwrap();
    let on_indices = stream.upload(&[1i32, TABLE as i32, -1]).unwrap();
    for (out_of_range, others) in [
        (OutOfRange::Skip, 0.0),
        (OutOfRange::Error, 0.0),
        (OutOfRange::Clamp, 32.0),
    ] {
        let mut rows = IndexedRows::new(stream.device())
            .unwrap()
            .out_of_range(out_of_range);
        let mut on_c = stream.upload(&[bf16::NAN; 3 * 8]).unwrap();
        Gemm::new(
            Matrix::row_major(&ones, TABLE, k).unwrap(),
            Matrix::col_major(&ones, k, n).unwrap(),
            MatrixMut::row_major(&mut on_c, 3, n).unwrap(),
        )
        .outer_scales(&scales, &one)
        .gather_a(rows.by(&on_indices).unwrap())
        .run(&stream)
        .unwrap();
        let is_reported = rows.check(&stream).is_err();
        assert_eq!(is_reported, out_of_range == OutOfRange::Error);
        let c = stream.download(&on_c).unwrap();
        let firsts = [0, 1, 2].map(|row| c[row * n].to_f32());
        assert_eq!(firsts, [32.0, others, others], "{out_of_range:?}");
    }
}
