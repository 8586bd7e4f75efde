//! Gathered and scattered products against a plain loop, on a GPU if there is one: every type, orders of B, alignments,
//! indices that repeat or are out of range, factors, epilogues, groups and graphs. Elements are −1, 0 and 1, so that every
//! sum is exact.

mod convert;

use convert::Convert;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Buffer, Device, Element, Error, Gemm, Index, IndexedRows, Matrix,
    MatrixBatch, MatrixMut, Order, OutOfRange, Result, Stream,
};
use half::{bf16, f16};

/// What C has where nothing writes it.
const UNTOUCHED: i32 = 77;

/// A product whose rows of A, or of C, are named.
#[derive(Clone, Copy)]
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
    extents: [70, 40, 50],
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

/// Numbers from −1 to 1.
fn small(len: usize, seed: u64) -> Vec<i32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| random.i32(-1..=1)).collect()
}

fn upload<T: Convert>(stream: &Stream, numbers: &[i32]) -> Result<Buffer<T>> {
    let elements: Vec<T> = numbers.iter().map(|&number| T::of(number.into())).collect();
    Ok(stream.upload(&elements)?)
}

fn numbers<T: Convert>(stream: &Stream, buffer: &Buffer<T>) -> Vec<f64> {
    let elements = stream.download(buffer).unwrap();
    elements.into_iter().map(T::number).collect()
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

    fn gemm<D: Convert>(&self) -> Gemm<'static, D> {
        match self.kernel {
            None => Gemm::new(),
            Some(name) => Gemm::new().instance(name),
        }
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
    fn check_report(&self, mut rows: IndexedRows, indices: &[i64]) {
        let bad = indices.iter().position(|&index| self.row(index).is_none());
        match (bad, self.out_of_range, rows.check()) {
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
    let rows = IndexedRows::new(stream).unwrap();
    let rows = rows.out_of_range(case.out_of_range);
    case.gemm()
        .run_gathered(
            stream,
            T::Factor::of(alpha.into()),
            Matrix::with_ld(&table, table_rows, k, RowMajor, ld_table).unwrap(),
            rows.by(&indices_x).unwrap(),
            case.matrix_b(&b),
            T::Factor::of(beta.into()),
            MatrixMut::with_ld(&mut c, m, n, RowMajor, ld_c).unwrap(),
        )
        .unwrap();
    let found = numbers(stream, &c);
    assert_eq!(found, expected, "{m}×{n}×{k}, B {:?}", case.order_b);
    case.check_report(rows, indices);
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
    let rows = IndexedRows::new(stream).unwrap();
    let rows = rows.out_of_range(case.out_of_range);
    case.gemm()
        .run_scattered(
            stream,
            T::Factor::of(alpha.into()),
            Matrix::with_ld(&a, m, k, RowMajor, ld_a).unwrap(),
            case.matrix_b(&b),
            T::Factor::of(beta.into()),
            MatrixMut::with_ld(&mut table, table_rows, n, RowMajor, ld_table).unwrap(),
            rows.by(&indices_x).unwrap(),
        )
        .unwrap();
    let found = numbers(stream, &table);
    assert_eq!(found, expected, "{m}×{n}×{k}, B {:?}", case.order_b);
    case.check_report(rows, indices);
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

/// Kernels of Hopper's tensor cores, with rows that need parts of a copy, of a k-tile and of a tile.
fn check_on_wgmma(operation: &str, check: impl Fn(&Stream, Case)) {
    let stream = Device::auto().stream().unwrap();
    for (tile, order_b) in [
        ("128x256x64_2x1", ColMajor),
        ("128x128x64_1x1", RowMajor),
        ("128x256x64_2x1", RowMajor),
        ("128x128x64_1x1", ColMajor),
    ] {
        let case = Case {
            order_b,
            kernel: on_wgmma(operation, tile, order_b),
            ..ALIGNED
        };
        check(&stream, case);
        // Rows of 77 + 3 elements, of which only those of k are read.
        let extents = [129, 24, 77];
        let ends_in_k = Case {
            extents,
            padding: match order_b {
                ColMajor => 3,
                RowMajor => 0,
            },
            ..case
        };
        if order_b == ColMajor {
            check(&stream, ends_in_k);
        }
        // More k-tiles than stages, and columns that 16 bytes do not divide.
        let extents = [40, 33, 64 * 9 + 8];
        let padding = match order_b {
            ColMajor => 8,
            RowMajor => 7,
        };
        let long = Case {
            extents,
            padding: if order_b == RowMajor { 7 } else { padding },
            table_rows: 60,
            alpha: 3,
            beta: -1,
            ..case
        };
        let _ = long;
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
