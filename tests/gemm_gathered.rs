//! Gathered and scattered products against a plain loop, on a GPU if there is one: every type, orders of B, alignments,
//! indices that repeat or are out of range, factors, epilogues, groups and graphs. Elements are −1, 0 and 1, so that
//! every sum is exact.

use crate::batches::batch;
use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::small::{small, upload};
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Buffer, Device, Element, Error, Gemm, Index, IndexedRows, Matrix, MatrixMut,
    Order, OutOfRange, Stream,
};
use cutlet_host::Backend;
use half::{bf16, f16};

/// What C has where nothing writes it.
const UNTOUCHED: i32 = 77;

/// A product whose rows of A, or of C, are named.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// m, n and k.
    extents: [usize; 3],
    table_rows: usize,
    order_b: Order,
    /// Elements after each row, and after each run of B.
    padding: usize,
    alpha: i32,
    beta: i32,
    out_of_range: OutOfRange,
    /// The kernel, or any.
    kernel: Option<&'static str>,
}

const PLAIN: Case = Case {
    extents: [35, 20, 50],
    table_rows: 23,
    order_b: ColMajor,
    padding: 0,
    alpha: 1,
    beta: 0,
    out_of_range: OutOfRange::Error,
    kernel: None,
};

/// Rows with 16-byte alignment, of more tiles than one.
const ALIGNED: Case = Case {
    extents: [150, 264, 136],
    table_rows: 200,
    ..PLAIN
};

fn numbers<T: Convert>(stream: &Stream, buffer: &Buffer<T>) -> Vec<f64> {
    let elements = stream.download(buffer).unwrap();
    elements.into_iter().map(T::number).collect()
}

/// Compares all elements with the expected ones, rounded to `D`, which is exact for small ones.
fn compare<D: Convert>(found: &[f64], expected: &[f64], case: &Case) {
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let expected = D::of(expected).number();
        assert!(
            found == expected,
            "element {at} of {case:?}: {found}, not {expected}"
        );
    }
}

impl Case {
    /// The row of the table that an index stands for, if there is one.
    fn row(&self, index: i64) -> Option<usize> {
        let last = self.table_rows as i64 - 1;
        match self.out_of_range {
            OutOfRange::Clamp => (last >= 0).then(|| index.clamp(0, last) as usize),
            OutOfRange::Error | OutOfRange::Skip => {
                (0..=last).contains(&index).then_some(index as usize)
            }
        }
    }

    /// Indices of rows, of which some repeat.
    fn repeated(&self) -> Vec<i64> {
        let mut random = fastrand::Rng::with_seed(5);
        let [m, ..] = self.extents;
        let last = self.table_rows as i64 - 1;
        (0..m).map(|_| random.i64(0..=last)).collect()
    }

    /// Indices of rows, all different, and some out of range.
    fn different(&self) -> Vec<i64> {
        let mut random = fastrand::Rng::with_seed(6);
        let mut all: Vec<i64> = (-20..self.table_rows as i64 + 100).collect();
        random.shuffle(&mut all);
        all.truncate(self.extents[0]);
        all
    }

    /// Elements from one row of a matrix with so many columns to the next.
    fn ld(&self, columns: usize) -> usize {
        columns + self.padding
    }

    /// B's elements, and the index of one.
    fn b(&self) -> (Vec<i32>, impl Fn(usize, usize) -> usize) {
        let ([_, n, k], padding, order) = (self.extents, self.padding, self.order_b);
        let (run, count) = match order {
            RowMajor => (n, k),
            ColMajor => (k, n),
        };
        let index = move |row: usize, column: usize| match order {
            RowMajor => row * (run + padding) + column,
            ColMajor => column * (run + padding) + row,
        };
        (small(count * (run + padding), 2), index)
    }

    fn matrix_b<'a, T: Convert>(&self, b: &'a Buffer<T>) -> Matrix<'a, T> {
        let [_, n, k] = self.extents;
        let run = match self.order_b {
            RowMajor => n,
            ColMajor => k,
        };
        Matrix::with_ld(b, k, n, self.order_b, run + self.padding).unwrap()
    }

    /// Checks the report: the first row whose index is bad.
    fn check_report(&self, stream: &Stream, mut rows: IndexedRows, indices: &[i64]) {
        let bad = indices.iter().position(|&index| self.row(index).is_none());
        match (bad, self.out_of_range, rows.check(stream)) {
            (Some(row), OutOfRange::Error, Err(Error::IndexMissed { position, .. })) => {
                assert_eq!(position, row as u64);
            }
            (None, _, Ok(())) | (_, OutOfRange::Clamp | OutOfRange::Skip, Ok(())) => {}
            (bad, _, found) => panic!("the first bad row is {bad:?}, and the report {found:?}"),
        }
    }
}

/// `C = alpha·gather(table, rows)·B + beta·C`, and all that lies between C's rows.
fn check_gathered<
    T: Element<D> + Convert,
    D: Convert,
    X: Index + TryFrom<i64, Error: std::fmt::Debug>,
>(
    stream: &Stream,
    case: Case,
    indices: &[i64],
) where
    T::Factor: Convert,
{
    let Case {
        extents: [m, n, k],
        table_rows,
        alpha,
        beta,
        ..
    } = case;
    let (ld_table, ld_c) = (case.ld(k), case.ld(n));
    let table = small(table_rows * ld_table, 1);
    let (b, at_b) = case.b();
    let mut c = vec![UNTOUCHED; m * ld_c];
    let mut expected: Vec<f64> = c.iter().map(|&it| f64::from(it)).collect();
    for (row, &index) in indices.iter().enumerate() {
        for column in 0..n {
            let product = |row: usize, i: usize| table[row * ld_table + i] * b[at_b(i, column)];
            let sum: i32 = match case.row(index) {
                Some(row) => (0..k).map(|i| product(row, i)).sum(),
                None => 0,
            };
            let at = row * ld_c + column;
            c[at] = (at % 3) as i32;
            expected[at] = f64::from(alpha * sum + beta * c[at]);
            if beta == 0 {
                c[at] = UNTOUCHED;
            }
        }
    }
    let indices_x: Vec<X> = indices.iter().map(|&it| it.try_into().unwrap()).collect();
    let (table, b) = (
        upload::<T>(stream, &table).unwrap(),
        upload::<T>(stream, &b).unwrap(),
    );
    let mut c = upload::<D>(stream, &c).unwrap();
    let indices_x = stream.upload(&indices_x).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    let rows = rows.out_of_range(case.out_of_range);
    let gemm = Gemm::new(
        Matrix::with_ld(&table, table_rows, k, RowMajor, ld_table).unwrap(),
        case.matrix_b(&b),
        MatrixMut::with_ld(&mut c, m, n, RowMajor, ld_c).unwrap(),
    );
    by_kernel(case.kernel, gemm)
        .alpha(T::Factor::of(alpha.into()))
        .beta(T::Factor::of(beta.into()))
        .gather_a(rows.by(&indices_x).unwrap())
        .run(stream)
        .unwrap();
    compare::<D>(&numbers(stream, &c), &expected, &case);
    case.check_report(stream, rows, indices);
}

/// `table[rows[r]] = alpha·(A·B)[r] + beta·table[rows[r]]`, and all other rows of the table.
fn check_scattered<
    T: Element<D> + Convert,
    D: Convert,
    X: Index + TryFrom<i64, Error: std::fmt::Debug>,
>(
    stream: &Stream,
    case: Case,
    indices: &[i64],
) where
    T::Factor: Convert,
{
    let Case {
        extents: [m, n, k],
        table_rows,
        alpha,
        beta,
        ..
    } = case;
    let (ld_a, ld_table) = (case.ld(k), case.ld(n));
    let a = small(m * ld_a, 1);
    let (b, at_b) = case.b();
    let table: Vec<i32> = (0..table_rows * ld_table)
        .map(|at| (at % 3) as i32)
        .collect();
    let mut expected: Vec<f64> = table.iter().map(|&it| f64::from(it)).collect();
    for (row, &index) in indices.iter().enumerate() {
        let Some(to) = case.row(index) else { continue };
        for column in 0..n {
            let product = |i: usize| a[row * ld_a + i] * b[at_b(i, column)];
            let sum: i32 = (0..k).map(product).sum();
            let at = to * ld_table + column;
            expected[at] = f64::from(alpha * sum + beta * table[at]);
        }
    }
    let indices_x: Vec<X> = indices.iter().map(|&it| it.try_into().unwrap()).collect();
    let (a, b) = (
        upload::<T>(stream, &a).unwrap(),
        upload::<T>(stream, &b).unwrap(),
    );
    let mut table = upload::<D>(stream, &table).unwrap();
    let indices_x = stream.upload(&indices_x).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    let rows = rows.out_of_range(case.out_of_range);
    let gemm = Gemm::new(
        Matrix::with_ld(&a, m, k, RowMajor, ld_a).unwrap(),
        case.matrix_b(&b),
        MatrixMut::with_ld(&mut table, table_rows, n, RowMajor, ld_table).unwrap(),
    );
    by_kernel(case.kernel, gemm)
        .alpha(T::Factor::of(alpha.into()))
        .beta(T::Factor::of(beta.into()))
        .scatter_c(rows.by(&indices_x).unwrap())
        .run(stream)
        .unwrap();
    compare::<D>(&numbers(stream, &table), &expected, &case);
    case.check_report(stream, rows, indices);
}

/// Both products with each policy, both index types, factors and orders of B.
fn check_both<T: Element<D> + Convert, D: Convert>(case: Case)
where
    T::Factor: Convert,
{
    let stream = Device::auto().stream().unwrap();
    let (repeated, different) = (case.repeated(), case.different());
    check_gathered::<T, D, i32>(&stream, case, &repeated);
    check_scattered::<T, D, i32>(&stream, case, &different);
    for out_of_range in [OutOfRange::Clamp, OutOfRange::Skip] {
        let case = Case {
            out_of_range,
            ..case
        };
        check_gathered::<T, D, i64>(&stream, case, &different);
    }
    let case = Case {
        alpha: -2,
        beta: 3,
        ..case
    };
    check_gathered::<T, D, i64>(&stream, case, &different);
    let skip = OutOfRange::Skip;
    let case = Case {
        out_of_range: skip,
        ..case
    };
    check_scattered::<T, D, i64>(&stream, case, &different);
}

/// A kernel of Hopper's tensor cores that takes B in an order.
fn on_wgmma(operation: &str, tile: &str, order_b: Order) -> Option<&'static str> {
    let suffix = match order_b {
        ColMajor => "",
        RowMajor => "_km",
    };
    Some(format!("bf16_{operation}_{tile}_coop{suffix}").leak())
}

/// Kernels of Hopper's tensor cores: with several tiles and clusters, with rows that end in a part of a copy, and with
/// more k-tiles than stages.
fn check_on_wgmma(operation: &str, check: impl Fn(&Stream, Case)) {
    let stream = Device::auto().stream().unwrap();
    for tile in ["128x256x64_2x1", "128x128x64_1x1"] {
        for order_b in [ColMajor, RowMajor] {
            let has_body = order_b == ColMajor || tile == "128x128x64_1x1";
            if stream.device().backend() == Backend::Cpu && !has_body {
                continue;
            }
            let case = Case {
                order_b,
                kernel: on_wgmma(operation, tile, order_b),
                ..ALIGNED
            };
            check(&stream, case);
            check(
                &stream,
                Case {
                    extents: [40, 32, 64 * 9 + 8],
                    padding: 8,
                    table_rows: 60,
                    alpha: 3,
                    beta: -1,
                    ..case
                },
            );
        }
        // The elements between rows are not read.
        check(
            &stream,
            Case {
                extents: [129, 27, 77],
                padding: 3,
                kernel: on_wgmma(operation, tile, ColMajor),
                ..ALIGNED
            },
        );
    }
}

#[test]
fn wgmma_multiplies_gathered_rows() {
    check_on_wgmma("gathered", |stream, case| {
        check_gathered::<bf16, bf16, i32>(stream, case, &case.repeated());
        check_gathered::<bf16, bf16, i64>(stream, case, &case.different());
    });
}

#[test]
fn wgmma_scatters_its_rows() {
    check_on_wgmma("scattered", |stream, case| {
        check_scattered::<bf16, bf16, i32>(stream, case, &case.different());
    });
}

/// Products of a type, in rows of any alignment, and in rows of whole vectors.
fn check_type<T: Element<D> + Convert, D: Convert>()
where
    T::Factor: Convert,
{
    for order_b in [ColMajor, RowMajor] {
        check_both::<T, D>(Case { order_b, ..PLAIN });
    }
    let extents = [70, 24, 64];
    check_both::<T, D>(Case { extents, ..PLAIN });
}

#[test]
fn rows_of_f32() {
    check_type::<f32, f32>();
}

#[test]
fn rows_of_bf16() {
    check_type::<bf16, bf16>();
}

#[test]
fn rows_of_f16() {
    check_type::<f16, f16>();
}

#[test]
fn rows_of_f64() {
    check_type::<f64, f64>();
}

#[test]
fn rows_of_i8() {
    check_type::<i8, i32>();
}

#[test]
fn mma_sync_has_kernels_for_16_bits() {
    for (kernel, order_b) in [
        ("mma_bf16_rows_64x64x64_kk", ColMajor),
        ("mma_bf16_rows_any_kk", ColMajor),
        ("mma_bf16_rows_any_kn", RowMajor),
    ] {
        check_both::<bf16, bf16>(Case {
            extents: [70, 24, 80],
            order_b,
            kernel: Some(kernel),
            ..PLAIN
        });
    }
}

#[test]
fn a_gathered_product_may_have_another_type() {
    let stream = Device::auto().stream().unwrap();
    let extents = [70, 24, 200];
    for case in [PLAIN, Case { extents, ..PLAIN }] {
        check_gathered::<bf16, f32, i32>(&stream, case, &case.repeated());
        check_gathered::<f32, bf16, i32>(&stream, case, &case.different());
    }
}

#[test]
fn shapes_without_rows_columns_or_k() {
    let stream = Device::auto().stream().unwrap();
    for extents in [[0, 16, 16], [16, 0, 16], [16, 16, 0], [1, 1, 1]] {
        let case = Case { extents, ..PLAIN };
        check_gathered::<bf16, bf16, i32>(&stream, case, &case.repeated());
        check_gathered::<f32, f32, i64>(&stream, case, &case.repeated());
        let case = Case {
            table_rows: 40,
            ..case
        };
        let all: Vec<i64> = (0..extents[0] as i64).collect();
        check_scattered::<bf16, bf16, i32>(&stream, case, &all);
        check_scattered::<f32, f32, i64>(&stream, case, &all);
    }
    // Every index of a table without rows is bad. Without k, no row is read.
    let case = Case {
        table_rows: 0,
        ..PLAIN
    };
    check_gathered::<bf16, bf16, i32>(&stream, case, &[3; 35]);
    check_gathered::<f32, f32, i32>(&stream, case, &[0; 35]);
    let clamp = Case {
        out_of_range: OutOfRange::Clamp,
        ..case
    };
    check_gathered::<f64, f64, i32>(&stream, clamp, &[0; 35]);
}

#[test]
fn nan_in_c_or_beyond_a_row_is_not_read() {
    let stream = Device::auto().stream().unwrap();
    let [m, n, k, ld] = [130, 40, 72, 80];
    let mut table = vec![bf16::NAN; 50 * ld];
    for row in table.chunks_mut(ld) {
        row[..k].fill(bf16::ONE);
    }
    let table = stream.upload(&table).unwrap();
    let b = stream.upload(&vec![bf16::ONE; k * n]).unwrap();
    let indices = stream.upload(&vec![49i32; m]).unwrap();
    let mut c = stream.upload(&vec![bf16::NAN; m * n]).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    Gemm::new(
        Matrix::with_ld(&table, 50, k, RowMajor, ld).unwrap(),
        Matrix::col_major(&b, k, n).unwrap(),
        MatrixMut::row_major(&mut c, m, n).unwrap(),
    )
    .gather_a(rows.by(&indices).unwrap())
    .run(&stream)
    .unwrap();
    assert_eq!(
        stream.download(&c).unwrap(),
        vec![bf16::from_f32(72.0); m * n]
    );
}

#[test]
fn rows_that_repeat_are_stored_once_each() {
    let stream = Device::auto().stream().unwrap();
    let [m, n, k] = [300, 64, 8];
    let a: Vec<f32> = (0..m * k).map(|at| ((at / k) % 7) as f32).collect();
    let b = stream.upload(&vec![1.0f32; k * n]).unwrap();
    let a = stream.upload(&a).unwrap();
    // Rows that are equal go to the same row of the table.
    let indices: Vec<i32> = (0..m as i32).map(|row| row % 7).collect();
    let indices = stream.upload(&indices).unwrap();
    let mut table = stream.upload(&vec![f32::NAN; 7 * n]).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    Gemm::new(
        Matrix::row_major(&a, m, k).unwrap(),
        Matrix::row_major(&b, k, n).unwrap(),
        MatrixMut::row_major(&mut table, 7, n).unwrap(),
    )
    .scatter_c(rows.by(&indices).unwrap())
    .run(&stream)
    .unwrap();
    for (row, found) in stream.download(&table).unwrap().chunks(n).enumerate() {
        assert_eq!(found, vec![(row * k) as f32; n]);
    }
}

/// A row of the table that two of the product's rows are added to: the CPU backend refuses it, also in a graph, and a
/// GPU keeps all other rows right.
#[test]
fn rows_that_repeat_are_not_added_to() {
    let device = Device::auto();
    let stream = device.stream().unwrap();
    let [m, n, k] = [200, 64, 8];
    let a = stream.upload(&vec![1.0f32; m * k]).unwrap();
    let b = stream.upload(&vec![1.0f32; k * n]).unwrap();
    let mut table = stream.upload(&vec![1.0f32; m * n]).unwrap();
    let run = |stream: &Stream, policy, indices: &Buffer<i32>, table: &mut Buffer<f32>, beta| {
        let rows = IndexedRows::new(stream.device())?.out_of_range(policy);
        Gemm::new(
            Matrix::row_major(&a, m, k)?,
            Matrix::row_major(&b, k, n)?,
            MatrixMut::row_major(table, m, n)?,
        )
        .beta(beta)
        .scatter_c(rows.by(indices)?)
        .run(stream)
    };
    let indices = |of_last: i32| {
        let mut indices: Vec<i32> = (0..m as i32).collect();
        indices[m - 1] = of_last;
        indices[m - 2] = of_last;
        stream.upload(&indices).unwrap()
    };
    let (repeated, beyond) = (indices(7), indices(1000));
    let is_refused = |result: cutlet::Result<()>| {
        let said = result.unwrap_err().to_string();
        assert!(
            said.contains("names row 7 of the table, as one before it does, and beta is not 0"),
            "{said}"
        );
    };
    let mut added = |policy, indices, beta| run(&stream, policy, indices, &mut table, beta);
    added(OutOfRange::Error, &repeated, 0.0).unwrap();
    added(OutOfRange::Skip, &beyond, 1.0).unwrap();
    let result = added(OutOfRange::Error, &repeated, 1.0);
    let clamped = added(OutOfRange::Clamp, &beyond, 1.0);
    match device.backend() {
        Backend::Cpu => {
            is_refused(result);
            let said = clamped.unwrap_err().to_string();
            assert!(
                said.contains("index 1000 at position 199 names row 199"),
                "{said}"
            );
        }
        Backend::Gpu => {
            result.unwrap();
            clamped.unwrap();
            let table = stream.download(&table).unwrap();
            assert_eq!(table[8 * n], 3.0 * k as f32 + k as f32);
        }
    }
}

#[test]
fn a_graph_refuses_rows_that_repeat_at_its_launch() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let one = stream.upload(&[1.0f32; 2]).unwrap();
    let mut indices = stream.upload(&[0i64, 1]).unwrap();
    let mut table = stream.upload(&[0.0f32; 2]).unwrap();
    let rows = IndexedRows::new(&device).unwrap();
    let graph = device
        .capture(|stream| {
            Gemm::new(
                Matrix::row_major(&one, 2, 1)?,
                Matrix::row_major(one.slice(..1)?, 1, 1)?,
                MatrixMut::row_major(&mut table, 2, 1)?,
            )
            .beta(1.0)
            .scatter_c(rows.by(&indices)?)
            .run(stream)
        })
        .unwrap();
    // SAFETY: the matrices live until the end.
    unsafe { graph.launch(&stream).unwrap() };
    stream.copy_from_host(&[1, 1], &mut indices).unwrap();
    // SAFETY: as above.
    let said = unsafe { graph.launch(&stream) }.unwrap_err().to_string();
    assert!(said.contains("index 1 at position 1 names row 1"), "{said}");
    assert_eq!(stream.download(&table).unwrap(), [1.0, 1.0]);
}

#[test]
fn bias_and_activation_are_of_the_products_rows() {
    let stream = Device::auto().stream().unwrap();
    let indices = stream.upload(&[2i32, 0]).unwrap();
    let bias = stream.upload(&[100.0f32, -100.0]).unwrap();
    let two = stream.upload(&[1.0f32, 2.0, 3.0]).unwrap();
    let one = stream.upload(&[1.0f32]).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    let mut c = stream.upload(&[10.0f32, 20.0]).unwrap();
    Gemm::new(
        Matrix::row_major(&two, 3, 1).unwrap(),
        Matrix::row_major(&one, 1, 1).unwrap(),
        MatrixMut::row_major(&mut c, 2, 1).unwrap(),
    )
    .beta(2.0)
    .gather_a(rows.by(&indices).unwrap())
    .bias(Bias::rows(&bias))
    .activation(Activation::Relu)
    .run(&stream)
    .unwrap();
    assert_eq!(stream.download(&c).unwrap(), [123.0, 0.0]);
    let mut table = stream.upload(&[10.0f32, 20.0, 30.0]).unwrap();
    Gemm::new(
        Matrix::row_major(two.view().slice(0..2).unwrap(), 2, 1).unwrap(),
        Matrix::row_major(&one, 1, 1).unwrap(),
        MatrixMut::row_major(&mut table, 3, 1).unwrap(),
    )
    .beta(2.0)
    .scatter_c(rows.by(&indices).unwrap())
    .bias(Bias::rows(&bias))
    .activation(Activation::Relu)
    .run(&stream)
    .unwrap();
    assert_eq!(stream.download(&table).unwrap(), [0.0, 20.0, 161.0]);
}

/// Groups of rows whose A is gathered, one of which is empty.
fn check_groups<T: Element + Convert>(kernel: Option<&str>) {
    let stream = Device::auto().stream().unwrap();
    let [m, n, k, table_rows] = [200, 48, 72, 31];
    let ends = [5, 5, 150, 190];
    let (table, b) = (small(table_rows * k, 1), small(ends.len() * k * n, 2));
    let mut random = fastrand::Rng::with_seed(3);
    let indices: Vec<i32> = (0..m).map(|_| random.i32(-1..table_rows as i32)).collect();
    let mut expected = vec![f64::from(UNTOUCHED); m * n];
    let mut first = 0;
    for (group, &end) in ends.iter().enumerate() {
        for (row, column) in (first..end).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let b = |i: usize| b[group * k * n + column * k + i];
            let sum: i32 = match usize::try_from(indices[row]) {
                Ok(from) => (0..k).map(|i| table[from * k + i] * b(i)).sum(),
                Err(_) => 0,
            };
            expected[row * n + column] = f64::from(sum);
        }
        first = end;
    }
    let table = upload::<T>(&stream, &table).unwrap();
    let b = upload::<T>(&stream, &b).unwrap();
    let mut c = upload::<T>(&stream, &vec![UNTOUCHED; m * n]).unwrap();
    let on_device = stream.upload(&indices).unwrap();
    let group_ends: Vec<i32> = ends.iter().map(|&end| end as i32).collect();
    let group_ends = stream.upload(&group_ends).unwrap();
    let mut rows = IndexedRows::new(stream.device()).unwrap();
    let gemm = Gemm::new(
        Matrix::row_major(&table, table_rows, k).unwrap(),
        batch(&b, ends.len(), k, n, ColMajor),
        MatrixMut::row_major(&mut c, m, n).unwrap(),
    );
    by_kernel(kernel, gemm)
        .group_ends(&group_ends)
        .gather_a(rows.by(&on_device).unwrap())
        .run(&stream)
        .unwrap();
    assert_eq!(numbers(&stream, &c), expected, "{kernel:?}");
    let bad = indices[..190].iter().position(|&index| index < 0);
    match rows.check(&stream) {
        Err(Error::IndexMissed { position, .. }) => {
            assert_eq!(Some(position as usize), bad, "{kernel:?}");
        }
        found => panic!("{bad:?} was reported as {found:?}"),
    }
}

#[test]
fn groups_of_gathered_rows() {
    check_groups::<bf16>(Some("bf16_gathered_128x256x64_2x1_coop"));
    check_groups::<bf16>(Some("bf16_gathered_128x128x64_1x1_coop"));
    check_groups::<bf16>(Some("mma_bf16_rows_any_kk"));
    check_groups::<f16>(None);
    check_groups::<f32>(None);
    check_groups::<f64>(None);
}

/// Groups of rows whose C is scattered, one of which is empty. The last rows are in no group.
fn check_scattered_groups<T: Element + Convert>(kernel: Option<&str>) {
    let stream = Device::auto().stream().unwrap();
    let [m, n, k, table_rows] = [200, 48, 72, 260];
    let ends = [5usize, 5, 150, 190];
    let (a, b) = (small(m * k, 1), small(ends.len() * k * n, 2));
    let mut indices: Vec<i32> = (-3..table_rows as i32).collect();
    fastrand::Rng::with_seed(4).shuffle(&mut indices);
    indices.truncate(m);
    let mut expected = vec![f64::from(UNTOUCHED); table_rows * n];
    let mut first = 0;
    for (group, &end) in ends.iter().enumerate() {
        for (row, column) in (first..end).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let b = |i: usize| b[group * k * n + column * k + i];
            if let Ok(to) = usize::try_from(indices[row]) {
                let sum: i32 = (0..k).map(|i| a[row * k + i] * b(i)).sum();
                expected[to * n + column] = f64::from(sum);
            }
        }
        first = end;
    }
    let a = upload::<T>(&stream, &a).unwrap();
    let b = upload::<T>(&stream, &b).unwrap();
    let mut table = upload::<T>(&stream, &vec![UNTOUCHED; table_rows * n]).unwrap();
    let on_device = stream.upload(&indices).unwrap();
    let group_ends = stream.upload(&ends.map(|end| end as i32)).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    let rows = rows.out_of_range(OutOfRange::Skip);
    let gemm = Gemm::new(
        Matrix::row_major(&a, m, k).unwrap(),
        batch(&b, ends.len(), k, n, ColMajor),
        MatrixMut::row_major(&mut table, table_rows, n).unwrap(),
    );
    by_kernel(kernel, gemm)
        .group_ends(&group_ends)
        .scatter_c(rows.by(&on_device).unwrap())
        .run(&stream)
        .unwrap();
    assert_eq!(numbers(&stream, &table), expected, "{kernel:?}");
}

#[test]
fn groups_of_scattered_rows() {
    check_scattered_groups::<bf16>(Some("bf16_scattered_128x256x64_2x1_coop"));
    check_scattered_groups::<bf16>(Some("bf16_scattered_128x128x64_1x1_coop"));
    check_scattered_groups::<bf16>(Some("mma_bf16_rows_any_kk"));
    check_scattered_groups::<f16>(None);
    check_scattered_groups::<f32>(None);
    check_scattered_groups::<f64>(None);
}

#[test]
fn graphs_gather_what_the_indices_are_at_a_launch() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1.0f32, 2.0, 3.0]).unwrap();
    let b = stream.upload(&[10.0f32]).unwrap();
    let mut indices = stream.upload(&[0i32, 1]).unwrap();
    let mut c = stream.zeroed::<f32>(2).unwrap();
    let mut rows = IndexedRows::new(stream.device()).unwrap();
    let graph = stream
        .device()
        .capture(|stream| {
            Gemm::new(
                Matrix::row_major(&table, 3, 1)?,
                Matrix::row_major(&b, 1, 1)?,
                MatrixMut::row_major(&mut c, 2, 1)?,
            )
            .gather_a(rows.by(&indices)?)
            .run(stream)
        })
        .unwrap();
    for (numbers, expected) in [([2, 0], [30.0, 10.0]), ([1, 3], [20.0, 0.0])] {
        stream.copy_from_host(&numbers, &mut indices).unwrap();
        // SAFETY: the matrices live until the download.
        unsafe { graph.launch(&stream).unwrap() };
        assert_eq!(stream.download(&c).unwrap(), expected);
    }
    assert!(matches!(
        rows.check(&stream),
        Err(Error::IndexMissed { position: 1, .. })
    ));
}

#[test]
fn wrong_operands_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1.0f32; 12]).unwrap();
    let b = stream.upload(&[1.0f32; 12]).unwrap();
    let indices = stream.upload(&[0i32; 3]).unwrap();
    let mut c = stream.zeroed::<f32>(12).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    let b = Matrix::row_major(&b, 3, 4).unwrap();
    let mut gathered = |table: Matrix<'_, f32>, c_rows, order| {
        let c = MatrixMut::packed(&mut c, c_rows, 4, order).unwrap();
        Gemm::new(table, b, c)
            .gather_a(rows.by(&indices).unwrap())
            .run(&stream)
            .map_err(|error| error.to_string())
    };
    let of = Matrix::row_major(&table, 4, 3).unwrap();
    assert_eq!(gathered(of, 3, RowMajor), Ok(()));
    assert_eq!(
        gathered(of, 2, RowMajor),
        Err("gemm: the indices and the rows of C are 3 and 2; make them agree".to_string())
    );
    let column_major =
        "gemm: the rows of a table are copied, and A or C is column-major; make both row-major";
    assert_eq!(gathered(of, 3, ColMajor), Err(column_major.to_string()));
    let of = Matrix::col_major(&table, 4, 3).unwrap();
    assert_eq!(gathered(of, 3, RowMajor), Err(column_major.to_string()));

    let mut c = stream.zeroed::<f32>(12).unwrap();
    let of = Matrix::row_major(&table, 4, 3).unwrap();
    let unknown = Gemm::new(of, b, MatrixMut::row_major(&mut c, 3, 4).unwrap())
        .instance("no_such_kernel")
        .gather_a(rows.by(&indices).unwrap())
        .run(&stream);
    let Err(Error::Instance { names, .. }) = unknown else {
        panic!("{unknown:?}")
    };
    assert!(
        !names.is_empty() && names.iter().all(|name| name.contains("rows")),
        "{names:?}"
    );
    let a = Matrix::row_major(&table, 3, 3).unwrap();
    let scattered = Gemm::new(a, b, MatrixMut::row_major(&mut c, 3, 4).unwrap())
        .scatter_c(rows.by(&indices).unwrap())
        .residual(Matrix::row_major(&table, 3, 4).unwrap())
        .run(&stream);
    assert_eq!(
        scattered.unwrap_err().to_string(),
        "gemm: a scattered product has no residual; use the table, and `beta`"
    );
    let half = stream.upload(&[bf16::ONE; 12]).unwrap();
    let scattered = Gemm::new(
        Matrix::row_major(&half, 3, 3).unwrap(),
        Matrix::row_major(&half, 3, 4).unwrap(),
        MatrixMut::row_major(&mut c, 3, 4).unwrap(),
    )
    .beta(1.0)
    .scatter_c(rows.by(&indices).unwrap())
    .run(&stream);
    assert!(matches!(scattered, Err(Error::Arithmetic { .. })));
}
