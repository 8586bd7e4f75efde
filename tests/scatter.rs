//! `scatter` and `scatter_add` against plain loops on the host, on a GPU if there is one: all access widths, both index
//! types, padded rows, repeated indices, and indices that are not rows of the table.

use cutlet::{
    AddElement, Device, Error, Index, Matrix, MatrixMut, Order, OutOfRange, Scatter, ScatterAdd,
    scatter_add_checked, scatter_checked,
};
use half::{bf16, f16};

/// A matrix of rows that are `padding` elements apart, `offset` elements into its memory.
#[derive(Clone, Copy)]
struct Place {
    columns: usize,
    padding: usize,
    offset: usize,
}

impl Place {
    fn packed(columns: usize) -> Place {
        Place {
            columns,
            padding: 0,
            offset: 0,
        }
    }

    fn ld(self) -> usize {
        self.columns + self.padding
    }

    fn len(self, rows: usize) -> usize {
        self.offset + rows * self.ld()
    }

    /// Where a row begins.
    fn row(self, row: usize) -> usize {
        self.offset + row * self.ld()
    }
}

/// Checks a scatter of `rows` rows of bytes to a table of 50. No index occurs twice.
fn check_scatter<X: Index>(rows: usize, place: Place, to_index: impl Fn(usize) -> X) {
    let table_rows = 50;
    let mut random = fastrand::Rng::with_seed((rows * 31 + place.columns) as u64);
    let mut source = vec![0u8; place.len(rows)];
    random.fill(&mut source);
    let mut picks: Vec<usize> = (0..table_rows).collect();
    random.shuffle(&mut picks);
    picks.truncate(rows);
    let indices: Vec<X> = picks.iter().map(|&pick| to_index(pick)).collect();

    let stream = Device::auto().stream().unwrap();
    let on_source = stream.upload(&source).unwrap();
    let mut table = stream.filled::<u8>(place.len(table_rows), 0xab).unwrap();
    let mut expected = vec![0xab; place.len(table_rows)];
    for (row, pick) in picks.into_iter().enumerate() {
        let from = &source[place.row(row)..][..place.columns];
        expected[place.row(pick)..][..place.columns].copy_from_slice(from);
    }
    scatter_checked(
        &stream,
        Matrix::with_ld(
            on_source.slice(place.offset..).unwrap(),
            rows,
            place.columns,
            Order::RowMajor,
            place.ld(),
        )
        .unwrap(),
        &stream.upload(&indices).unwrap(),
        MatrixMut::with_ld(
            table.slice_mut(place.offset..).unwrap(),
            table_rows,
            place.columns,
            Order::RowMajor,
            place.ld(),
        )
        .unwrap(),
    )
    .unwrap();
    let found = stream.download(&table).unwrap();
    assert!(found == expected, "{rows} rows of {}", place.columns);
}

#[test]
fn every_row_length() {
    for columns in [
        1, 2, 3, 4, 6, 8, 12, 16, 48, 64, 127, 128, 129, 256, 260, 272, 1000, 2048, 4112,
    ] {
        check_scatter::<i32>(37, Place::packed(columns), |index| index as i32);
        check_scatter::<i64>(5, Place::packed(columns), |index| index as i64);
    }
}

#[test]
fn padding_and_offsets_take_narrower_accesses() {
    for padding in [0, 1, 2, 4, 16] {
        for offset in [0, 1, 2, 4, 16] {
            let place = Place {
                columns: 64,
                padding,
                offset,
            };
            check_scatter::<i32>(20, place, |index| index as i32);
        }
    }
}

/// Each element of a row that several indices name comes from one of the rows.
#[test]
fn one_of_the_rows_with_the_same_index_stays() {
    let stream = Device::auto().stream().unwrap();
    for columns in [3, 64, 300] {
        let (rows, table_rows) = (700, 4);
        let source: Vec<u32> = (0..rows * columns).map(|i| (i / columns) as u32).collect();
        let indices: Vec<i32> = (0..rows as i32).map(|row| row % 3).collect();
        let mut table = stream.filled::<u32>(table_rows * columns, 0xff).unwrap();
        scatter_checked(
            &stream,
            Matrix::row_major(&stream.upload(&source).unwrap(), rows, columns).unwrap(),
            &stream.upload(&indices).unwrap(),
            MatrixMut::row_major(&mut table, table_rows, columns).unwrap(),
        )
        .unwrap();
        for (at, found) in stream.download(&table).unwrap().into_iter().enumerate() {
            let row = (at / columns) as u32;
            match row {
                3 => assert_eq!(found, u32::MAX),
                _ => assert!(found < rows as u32 && found % 3 == row, "{found} in {row}"),
            }
        }
    }
}

#[test]
fn bad_indices_are_reported_and_not_written() {
    let stream = Device::auto().stream().unwrap();
    let source = stream.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap();
    let source = Matrix::row_major(&source, 3, 2).unwrap();
    for bad in [-1i64, 2, i64::MAX, i64::MIN] {
        let indices = stream.upload(&[1, bad, 0]).unwrap();
        let scattered = |policy: Option<OutOfRange>| {
            let mut table = stream.upload(&[9u32; 4]).unwrap();
            let to = MatrixMut::row_major(&mut table, 2, 2).unwrap();
            let result = match policy {
                None => scatter_checked(&stream, source, &indices, to),
                Some(policy) => {
                    let mut plan = Scatter::new(stream.device()).unwrap().out_of_range(policy);
                    plan.enqueue(&stream, source, &indices, to).unwrap();
                    let checked = plan.check(&stream);
                    plan.check(&stream).expect("an error is reported once");
                    checked
                }
            };
            (result, stream.download(&table).unwrap())
        };
        let (result, table) = scattered(None);
        assert_eq!(table, [5, 6, 1, 2]);
        let error = result.unwrap_err();
        assert!(
            matches!(error, Error::IndexOutOfRange { operation: "scatter", position: 1, index, .. } if index == bad),
            "{error}"
        );
        let (result, table) = scattered(Some(OutOfRange::Error));
        assert_eq!(table, [5, 6, 1, 2]);
        assert!(matches!(
            result.unwrap_err(),
            Error::IndexMissed { position: 1, .. }
        ));
        let (result, table) = scattered(Some(OutOfRange::Skip));
        result.unwrap();
        assert_eq!(table, [5, 6, 1, 2]);
        // The nearest row is that of one other index.
        let (result, table) = scattered(Some(OutOfRange::Clamp));
        result.unwrap();
        match bad < 0 {
            true => assert!(table == [3, 4, 1, 2] || table == [5, 6, 1, 2], "{table:?}"),
            false => assert!(table == [5, 6, 3, 4] || table == [5, 6, 1, 2], "{table:?}"),
        }
    }
}

#[test]
fn extents_and_overlaps_are_checked() {
    let stream = Device::auto().stream().unwrap();
    let source = stream.zeroed::<u32>(12).unwrap();
    let mut table = stream.zeroed::<u32>(12).unwrap();
    let mut said = |columns: usize, indices: usize| {
        let indices = stream.zeroed::<i32>(indices).unwrap();
        let to = MatrixMut::row_major(&mut table, 3, columns).unwrap();
        let from = Matrix::row_major(&source, 4, 3).unwrap();
        scatter_checked(&stream, from, &indices, to)
            .unwrap_err()
            .to_string()
    };
    assert!(said(4, 4).contains("the source has 3 columns and the table has 4"));
    assert!(said(3, 3).contains("there are 3 indices, and 4 rows that need one"));
}

/// Small whole numbers, whose sums are exact in all types.
fn check_add<T: AddElement + PartialEq + std::fmt::Debug, X: Index>(
    rows: usize,
    place: Place,
    to_element: impl Fn(f32) -> T,
    to_index: impl Fn(usize) -> X,
) {
    let table_rows = 9;
    let mut random = fastrand::Rng::with_seed((rows * 31 + place.columns) as u64);
    let mut numbers = |rows: usize| -> Vec<f32> {
        (0..place.len(rows))
            .map(|_| f32::from(random.i8(-2..=2)))
            .collect()
    };
    let (source, table) = (numbers(rows), numbers(table_rows));
    let picks: Vec<usize> = (0..rows).map(|_| random.usize(..table_rows)).collect();
    let mut expected = table.clone();
    for (row, &pick) in picks.iter().enumerate() {
        for column in 0..place.columns {
            expected[place.row(pick) + column] += source[place.row(row) + column];
        }
    }
    let to_elements = |numbers: &[f32]| numbers.iter().map(|&x| to_element(x)).collect::<Vec<T>>();
    let indices: Vec<X> = picks.iter().map(|&pick| to_index(pick)).collect();

    let stream = Device::auto().stream().unwrap();
    let on_source = stream.upload(&to_elements(&source)).unwrap();
    let mut on_table = stream.upload(&to_elements(&table)).unwrap();
    let PlaceOf { from, to } = matrices(&on_source, &mut on_table, rows, table_rows, place);
    scatter_add_checked(&stream, from, &stream.upload(&indices).unwrap(), to).unwrap();
    let found = stream.download(&on_table).unwrap();
    assert_eq!(found, to_elements(&expected), "rows of {}", place.columns);
}

/// The operands of a scatter.
struct PlaceOf<'a, T: AddElement> {
    from: Matrix<'a, T>,
    to: MatrixMut<'a, T>,
}

fn matrices<'a, T: AddElement>(
    source: &'a cutlet::Buffer<T>,
    table: &'a mut cutlet::Buffer<T>,
    rows: usize,
    table_rows: usize,
    place: Place,
) -> PlaceOf<'a, T> {
    let Place {
        columns, offset, ..
    } = place;
    let order = Order::RowMajor;
    let source = source.slice(offset..).unwrap();
    let table = table.slice_mut(offset..).unwrap();
    PlaceOf {
        from: Matrix::with_ld(source, rows, columns, order, place.ld()).unwrap(),
        to: MatrixMut::with_ld(table, table_rows, columns, order, place.ld()).unwrap(),
    }
}

#[test]
fn sums_of_every_row_length_and_type() {
    for columns in [1, 2, 3, 4, 8, 16, 40, 127, 128, 136, 512, 1032] {
        let place = Place::packed(columns);
        check_add::<f32, i32>(41, place, |x| x, |index| index as i32);
        check_add::<f16, i64>(41, place, f16::from_f32, |index| index as i64);
        check_add::<bf16, i32>(41, place, bf16::from_f32, |index| index as i32);
    }
}

#[test]
fn sums_of_padded_rows() {
    for padding in [0, 1, 2, 4] {
        for offset in [0, 1, 2, 4] {
            let place = Place {
                columns: 64,
                padding,
                offset,
            };
            check_add::<f32, i32>(20, place, |x| x, |index| index as i32);
            check_add::<bf16, i32>(20, place, bf16::from_f32, |index| index as i32);
        }
    }
}

#[test]
fn bad_indices_add_nothing() {
    let stream = Device::auto().stream().unwrap();
    let source = stream.upload(&[1.0f32, 2.0, 4.0]).unwrap();
    let indices = stream.upload(&[0i32, 5, 1]).unwrap();
    let mut table = stream.upload(&[0.5f32, 0.25]).unwrap();
    let mut plan = ScatterAdd::new(stream.device()).unwrap();
    let mut add = |plan: &mut ScatterAdd| {
        plan.enqueue(
            &stream,
            Matrix::row_major(&source, 3, 1).unwrap(),
            &indices,
            MatrixMut::row_major(&mut table, 2, 1).unwrap(),
        )
        .unwrap();
        let sums = stream.download(&table).unwrap();
        (plan.check(&stream), sums)
    };
    let (checked, sums) = add(&mut plan);
    assert_eq!(sums, [1.5, 4.25]);
    let said = checked.unwrap_err().to_string();
    assert!(
        said.starts_with("scatter_add: ") && said.contains("its row was left out"),
        "{said}"
    );
    let (checked, sums) = add(&mut plan.out_of_range(OutOfRange::Clamp));
    checked.unwrap();
    assert_eq!(sums, [2.5, 10.25]);
}

/// Indices of a table of 1000 rows, of which some occur often.
fn repeating_indices(rows: usize) -> Vec<(&'static str, Vec<i64>)> {
    let mut random = fastrand::Rng::with_seed(rows as u64);
    let mut shuffled: Vec<i64> = (0..1000).collect();
    random.shuffle(&mut shuffled);
    let mut elevens: Vec<i64> = (0..rows as i64).map(|row| row / 11).collect();
    random.shuffle(&mut elevens);
    let zipf = (0..rows).map(|_| 1000f64.powf(random.f64()) as i64 - 1);
    let mut given = vec![
        ("equal", vec![7; rows]),
        ("pairs", (0..rows as i64).map(|row| row / 2).collect()),
        ("Zipf", zipf.collect()),
        ("elevens", elevens),
        ("distinct", shuffled[..rows].to_vec()),
    ];
    let mut often_bad = vec![3; rows];
    for (nth, index) in often_bad.iter_mut().enumerate() {
        match nth % 4 {
            0 => *index = -1,
            1 => *index = 1000 + (nth as i64 % 3),
            _ => (),
        }
    }
    given.push(("bad", often_bad));
    given
}

/// Sums of some rows in f64, and how far each element may be from them: each addition rounds by at most `unit` of the
/// sum of magnitudes.
fn sums_and_bounds(
    source: &[f64],
    table: &[f64],
    places: [Place; 2],
    rows: &[Option<usize>],
    unit: f64,
) -> Vec<(f64, f64)> {
    let [from, to] = places;
    let mut sums: Vec<_> = table.iter().map(|&x| (x, x.abs(), 1)).collect();
    for (row, pick) in rows.iter().enumerate() {
        for column in 0..from.columns {
            let Some(pick) = *pick else { continue };
            let value = source[from.row(row) + column];
            let (sum, magnitudes, additions) = &mut sums[to.row(pick) + column];
            *sum += value;
            *magnitudes += value.abs();
            *additions += 1;
        }
    }
    let bound = |magnitudes: f64, additions: i32| unit * magnitudes * f64::from(additions);
    sums.into_iter()
        .map(|(sum, magnitudes, additions)| match additions {
            1 => (sum, 0.0),
            _ => (sum, bound(magnitudes, additions)),
        })
        .collect()
}

/// Checks sums of random numbers with all of [`repeating_indices`], and with all policies for bad ones.
fn check_repeating<T: AddElement + PartialEq + std::fmt::Debug>(
    rows: usize,
    [from_place, to_place]: [Place; 2],
    unit: f64,
    to_element: impl Fn(f32) -> T,
    to_f64: impl Fn(T) -> f64,
) {
    let table_rows = 1000;
    let mut random = fastrand::Rng::with_seed((rows * 31 + from_place.columns) as u64);
    let mut numbers =
        |len: usize| -> Vec<T> { (0..len).map(|_| to_element(random.f32() - 0.25)).collect() };
    let (source, table) = (
        numbers(from_place.len(rows)),
        numbers(to_place.len(table_rows)),
    );
    let [in_f64, table_in_f64] =
        [&source, &table].map(|values| values.iter().map(|&x| to_f64(x)).collect::<Vec<f64>>());
    let stream = Device::auto().stream().unwrap();
    let on_source = stream.upload(&source).unwrap();
    for (name, indices) in repeating_indices(rows) {
        let policies = [OutOfRange::Error, OutOfRange::Clamp, OutOfRange::Skip];
        let count = if name == "bad" { policies.len() } else { 1 };
        for &policy in &policies[..count] {
            let row_of = |&index: &i64| match policy {
                OutOfRange::Clamp => Some(index.clamp(0, table_rows as i64 - 1) as usize),
                _ => usize::try_from(index).ok().filter(|&row| row < table_rows),
            };
            let picks: Vec<_> = indices.iter().map(row_of).collect();
            let first_bad = picks.iter().position(Option::is_none);
            let mut on_table = stream.upload(&table).unwrap();
            let from = Matrix::with_ld(
                on_source.slice(from_place.offset..).unwrap(),
                rows,
                from_place.columns,
                Order::RowMajor,
                from_place.ld(),
            );
            let to = MatrixMut::with_ld(
                on_table.slice_mut(to_place.offset..).unwrap(),
                table_rows,
                to_place.columns,
                Order::RowMajor,
                to_place.ld(),
            );
            let mut plan = ScatterAdd::new(stream.device())
                .unwrap()
                .out_of_range(policy);
            plan.enqueue(
                &stream,
                from.unwrap(),
                &stream.upload(&indices).unwrap(),
                to.unwrap(),
            )
            .unwrap();
            match (plan.check(&stream), first_bad) {
                (Err(Error::IndexMissed { position, .. }), Some(bad)) => {
                    assert!(policy == OutOfRange::Error && position == bad as u64);
                }
                (checked, bad) => {
                    assert!(checked.is_ok() && (bad.is_none() || policy == OutOfRange::Skip));
                }
            }
            let found = stream.download(&on_table).unwrap();
            let places = [from_place, to_place];
            let expected = sums_and_bounds(&in_f64, &table_in_f64, places, &picks, unit);
            for (at, (found, (sum, bound))) in found.iter().zip(expected).enumerate() {
                assert!(
                    (to_f64(*found) - sum).abs() <= bound,
                    "{rows} rows of {} with {name} indices: {found:?} at {at} is not {sum} ± {bound}",
                    from_place.columns
                );
            }
        }
    }
}

/// Half the distance from 1 to the next number.
const F32: f64 = 1.0 / (1u64 << 24) as f64;
const F16: f64 = 1.0 / (1u64 << 11) as f64;
const BF16: f64 = 1.0 / (1u64 << 8) as f64;

#[test]
fn sums_of_rows_with_equal_indices() {
    // More rows than a block has, and the last block has few.
    for (rows, columns) in [
        (530, 16),
        (530, 4),
        (270, 3),
        (140, 64),
        (133, 72),
        (35, 129),
        (37, 516),
    ] {
        let places = [Place::packed(columns); 2];
        check_repeating(rows, places, F32, |x| x, f64::from);
        check_repeating(rows, places, F16, f16::from_f32, f64::from);
        check_repeating(rows, places, BF16, bf16::from_f32, f64::from);
    }
}

#[test]
fn sums_of_unaligned_rows_with_equal_indices() {
    for (padding, offset) in [(0, 1), (1, 0), (2, 2), (4, 4)] {
        for columns in [8, 132] {
            let unaligned = Place {
                columns,
                padding,
                offset,
            };
            for places in [
                [unaligned, Place::packed(columns)],
                [Place::packed(columns), unaligned],
            ] {
                check_repeating(65, places, F32, |x| x, f64::from);
                check_repeating(65, places, BF16, bf16::from_f32, f64::from);
            }
        }
    }
}

/// A 1 does not change 256 in bf16, but the sum of the rows of a block does.
#[test]
fn rows_of_a_block_are_added_in_f32_before_they_are_rounded() {
    let stream = Device::auto().stream().unwrap();
    // Columns, and the rows that a block combines.
    for (columns, rows) in [
        (32, 512),
        (24, 512),
        (128, 128),
        (512, 128),
        (1024, 16),
        (3, 256),
        (129, 16),
    ] {
        let source = stream.upload(&vec![bf16::ONE; rows * columns]).unwrap();
        let indices = stream.upload(&vec![1i32; rows]).unwrap();
        let before = bf16::from_f32(256.0);
        let mut table = stream.upload(&vec![before; 2 * columns]).unwrap();
        scatter_add_checked(
            &stream,
            Matrix::row_major(&source, rows, columns).unwrap(),
            &indices,
            MatrixMut::row_major(&mut table, 2, columns).unwrap(),
        )
        .unwrap();
        let found = stream.download(&table).unwrap();
        let (untouched, sums) = found.split_at(columns);
        assert!(untouched.iter().all(|&x| x == before));
        let sum = bf16::from_f32(256.0 + rows as f32);
        assert!(
            sums.iter().all(|&x| x == sum),
            "rows of {columns}: {sums:?}"
        );
    }
}

/// A sum, and then each piece of the terms: the first piece's terms one by one, the others as sums.
fn sum_of_pieces(sum: f32, terms: &[f32], piece: usize) -> f32 {
    let (first, others) = terms.split_at(terms.len().min(piece));
    let sum = first.iter().fold(sum, |sum, term| sum + term);
    let others = others.chunks(piece);
    others.fold(sum, |sum, terms| {
        sum + terms.iter().fold(0.0, |sum, term| sum + term)
    })
}

/// Rows of a piece: a power of two of at most 32 KiB, but from 64 to 256.
fn rows_of_piece(row_bytes: usize) -> usize {
    let fit = [256, 128]
        .into_iter()
        .find(|piece| piece * row_bytes <= 32 << 10);
    fit.unwrap_or(64)
}

/// Checks sums of random numbers, bit by bit, against a loop that adds in the order of the source.
fn check_in_order<T: AddElement + PartialEq + std::fmt::Debug>(
    rows: usize,
    table_rows: usize,
    place: Place,
    to_element: impl Fn(f32) -> T,
    to_f32: impl Fn(T) -> f32,
) {
    let mut random = fastrand::Rng::with_seed((rows * 31 + place.columns) as u64);
    let mut numbers = |rows: usize| -> Vec<T> {
        (0..place.len(rows))
            .map(|_| to_element(random.f32() - 0.5))
            .collect()
    };
    let (source, mut expected) = (numbers(rows), numbers(table_rows));
    // Half of the indices are those of few rows, and some are no rows at all.
    let indices: Vec<i64> = (0..rows)
        .map(|_| match random.u8(..8) {
            0 => random.i64(..),
            1..4 => random.i64(0..3.min(table_rows as i64)),
            _ => random.i64(0..table_rows as i64),
        })
        .collect();
    let stream = Device::auto().stream().unwrap();
    let on_source = stream.upload(&source).unwrap();
    let mut on_table = stream.upload(&expected).unwrap();
    let PlaceOf { from, to } = matrices(&on_source, &mut on_table, rows, table_rows, place);
    let mut plan = ScatterAdd::new(stream.device()).unwrap().in_order();
    plan.enqueue(&stream, from, &stream.upload(&indices).unwrap(), to)
        .unwrap();
    let found = stream.download(&on_table).unwrap();

    let valid = |&index: &i64| usize::try_from(index).is_ok_and(|index| index < table_rows);
    let first_bad = indices.iter().position(|index| !valid(index));
    match (plan.check(&stream), first_bad) {
        (Err(Error::IndexMissed { position, .. }), Some(bad)) => assert_eq!(position, bad as u64),
        (checked, bad) => assert!(checked.is_ok() && bad.is_none(), "{checked:?}, {bad:?}"),
    }
    let piece = rows_of_piece(place.columns * size_of::<T>());
    let mut rows_of = std::collections::BTreeMap::<usize, Vec<usize>>::new();
    for (row, index) in indices.iter().enumerate().filter(|(_, index)| valid(index)) {
        rows_of.entry(*index as usize).or_default().push(row);
    }
    for (table_row, of_row) in rows_of {
        for column in 0..place.columns {
            let sum = &mut expected[place.row(table_row) + column];
            let terms = of_row.iter().map(|&row| source[place.row(row) + column]);
            let terms: Vec<f32> = terms.map(&to_f32).collect();
            *sum = to_element(sum_of_pieces(to_f32(*sum), &terms, piece));
        }
    }
    assert!(found == expected, "{rows} rows of {}", place.columns);
}

#[test]
fn sums_in_order_are_the_same_bit_by_bit() {
    for columns in [1, 3, 8, 36, 128, 300, 520] {
        let place = Place::packed(columns);
        check_in_order(100, 7, place, |x| x, |x| x);
        check_in_order(100, 7, place, bf16::from_f32, bf16::to_f32);
        check_in_order(100, 7, place, f16::from_f32, f16::to_f32);
    }
}

/// Most rows belong to few rows of the table, and have one, two or several pieces.
#[test]
fn rows_with_one_index_are_added_in_pieces() {
    for rows in [64, 65, 257, 1100, 3000] {
        check_in_order(rows, 3, Place::packed(2), |x| x, |x| x);
        check_in_order(rows, 9, Place::packed(36), |x| x, |x| x);
        check_in_order(rows, 2, Place::packed(40), bf16::from_f32, bf16::to_f32);
        check_in_order(rows, 5, Place::packed(17), f16::from_f32, f16::to_f32);
    }
    check_in_order(700, 2, Place::packed(264), |x| x, |x| x);
    check_in_order(500, 1, Place::packed(264), bf16::from_f32, bf16::to_f32);
}

/// Keys of two and three digits, in several blocks.
#[test]
fn many_indices_of_a_long_table_are_sorted() {
    check_in_order(9000, 70_000, Place::packed(2), |x| x, |x| x);
    check_in_order(9000, 300_000, Place::packed(2), |x| x, |x| x);
    check_in_order(4096, 511, Place::packed(4), |x| x, |x| x);
    check_in_order(4097, 512, Place::packed(4), |x| x, |x| x);
    check_in_order(1, 1, Place::packed(4), |x| x, |x| x);
}

#[test]
fn sums_in_order_of_padded_rows() {
    for (padding, offset) in [(1, 0), (4, 4), (0, 2)] {
        let place = Place {
            columns: 64,
            padding,
            offset,
        };
        check_in_order(50, 9, place, |x| x, |x| x);
        check_in_order(50, 9, place, bf16::from_f32, bf16::to_f32);
    }
}
