//! `embedding_bag` against a plain loop on the host, on a GPU if there is one: types, row lengths, bags by offsets and
//! of a fixed length, weights, and indices that are no rows of the table.

use cutlet::{
    Bags, Device, EmbeddingBag, Error, Index, Matrix, MatrixMut, OutOfRange, PooledElement,
    Pooling, Stream, embedding_bag_checked,
};
use half::{bf16, f16};

const TABLE_ROWS: usize = 23;

/// The pooled rows of a bag, with the weight of each. The order of the additions is that of the rows.
fn pooled(pooling: Pooling, rows: &[(&[f32], f32)], columns: usize) -> Vec<f32> {
    let of_column = |column: usize| {
        let values = rows.iter().map(|(row, weight)| row[column] * weight);
        match pooling {
            _ if rows.is_empty() => 0.0,
            Pooling::Sum => values.fold(0.0, |sum, value| sum + value),
            Pooling::Mean => values.fold(0.0, |sum, value| sum + value) / rows.len() as f32,
            Pooling::Max => values.fold(f32::NEG_INFINITY, f32::max),
        }
    };
    (0..columns).map(of_column).collect()
}

/// Random bags of up to 11 indices each.
struct Problem {
    indices: Vec<usize>,
    offsets: Vec<usize>,
    weights: Vec<f32>,
}

impl Problem {
    fn random(bags: usize, random: &mut fastrand::Rng) -> Problem {
        let mut offsets = vec![0];
        for bag in 0..bags {
            offsets.push(offsets[bag] + random.usize(..12));
        }
        let indices = (0..offsets[bags]).map(|_| random.usize(..TABLE_ROWS));
        Problem {
            indices: indices.collect(),
            weights: (0..offsets[bags]).map(|_| random.f32()).collect(),
            offsets,
        }
    }
}

fn check<T: PooledElement + PartialEq + std::fmt::Debug, X: Index>(
    columns: usize,
    to_element: impl Fn(f32) -> T,
    to_f32: impl Fn(T) -> f32,
    to_index: impl Fn(usize) -> X,
) {
    let stream = Device::auto().stream().unwrap();
    let mut random = fastrand::Rng::with_seed(columns as u64);
    let bags = 70;
    let problem = Problem::random(bags, &mut random);
    let elements: Vec<T> = (0..TABLE_ROWS * columns)
        .map(|_| to_element(random.f32() - 0.5))
        .collect();
    let values: Vec<f32> = elements.iter().map(|&element| to_f32(element)).collect();
    let on_table = stream.upload(&elements).unwrap();
    let table = Matrix::row_major(&on_table, TABLE_ROWS, columns).unwrap();
    let indices: Vec<X> = problem
        .indices
        .iter()
        .map(|&index| to_index(index))
        .collect();
    let offsets: Vec<X> = problem.offsets.iter().map(|&at| to_index(at)).collect();
    let on_indices = stream.upload(&indices).unwrap();
    let on_offsets = stream.upload(&offsets).unwrap();
    let on_weights = stream.upload(&problem.weights).unwrap();
    for (pooling, weighted) in [
        (Pooling::Sum, false),
        (Pooling::Sum, true),
        (Pooling::Mean, false),
        (Pooling::Max, false),
    ] {
        let mut output = stream.filled::<T>(bags * columns, 0x7f).unwrap();
        let to = MatrixMut::row_major(&mut output, bags, columns).unwrap();
        let of = Bags::from_offsets(&on_offsets).unwrap();
        let mut plan = EmbeddingBag::new(stream.device(), pooling).unwrap();
        match weighted {
            true => plan.enqueue_weighted(&stream, table, &on_indices, &on_weights, of, to),
            false => plan.enqueue(&stream, table, &on_indices, of, to),
        }
        .unwrap();
        plan.check(&stream).unwrap();
        let found = stream.download(&output).unwrap();
        for bag in 0..bags {
            let rows: Vec<_> = (problem.offsets[bag]..problem.offsets[bag + 1])
                .map(|at| {
                    let row = &values[problem.indices[at] * columns..][..columns];
                    (row, if weighted { problem.weights[at] } else { 1.0 })
                })
                .collect();
            for (column, expected) in pooled(pooling, &rows, columns).into_iter().enumerate() {
                // A GPU may round a product and a sum together.
                let found = to_f32(found[bag * columns + column]);
                let close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
                assert!(
                    close || to_element(expected) == to_element(found),
                    "{pooling:?} of {columns} columns, bag {bag}: {found}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn every_type_and_row_length() {
    for columns in [1, 3, 4, 8, 16, 60, 64, 65, 128, 264] {
        check(columns, |x| x, |x| x, |index| index as i32);
        check(columns, bf16::from_f32, bf16::to_f32, |index| index as i64);
        check(columns, f16::from_f32, f16::to_f32, |index| index as i32);
    }
}

/// Sums of a column of ones: the number of rows in each bag that exist.
fn counts(
    stream: &Stream,
    policy: OutOfRange,
    indices: &[i64],
    offsets: &[i32],
) -> (cutlet::Result<()>, Vec<f32>) {
    let table = stream.upload(&[1.0f32; 3]).unwrap();
    let bags = offsets.len() - 1;
    let mut output = stream.filled::<f32>(bags, 0xff).unwrap();
    let mut plan = EmbeddingBag::new(stream.device(), Pooling::Sum)
        .unwrap()
        .out_of_range(policy);
    plan.enqueue(
        stream,
        Matrix::row_major(&table, 3, 1).unwrap(),
        &stream.upload(indices).unwrap(),
        Bags::from_offsets(&stream.upload(offsets).unwrap()).unwrap(),
        MatrixMut::row_major(&mut output, bags, 1).unwrap(),
    )
    .unwrap();
    (plan.check(stream), stream.download(&output).unwrap())
}

#[test]
fn bad_indices_count_in_no_bag() {
    let stream = Device::auto().stream().unwrap();
    let indices = [0, 1, 2, 0, 1, 2, 3, 2, i64::MIN, -1];
    let (checked, counted) = counts(&stream, OutOfRange::Error, &indices, &[0, 8, 10]);
    assert_eq!(counted, [7.0, 0.0]);
    let error = checked.unwrap_err();
    assert!(
        matches!(
            error,
            Error::IndexMissed {
                operation: "embedding_bag",
                position: 6,
                ..
            }
        ),
        "{error}"
    );
    let (checked, counted) = counts(&stream, OutOfRange::Skip, &indices, &[0, 8, 10]);
    checked.unwrap();
    assert_eq!(counted, [7.0, 0.0]);
    let (checked, counted) = counts(&stream, OutOfRange::Clamp, &indices, &[0, 8, 10]);
    checked.unwrap();
    assert_eq!(counted, [8.0, 2.0]);
}

#[test]
fn offsets_that_do_not_increase_or_exist_are_harmless() {
    let stream = Device::auto().stream().unwrap();
    let offsets = [-5, 2, 1, i32::MAX, 3];
    let (checked, counted) = counts(&stream, OutOfRange::Error, &[0, 1, 2, 0], &offsets);
    checked.unwrap();
    assert_eq!(counted, [2.0, 0.0, 3.0, 0.0]);
}

#[test]
fn bags_of_a_fixed_length() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1.0f32, 2.0, 4.0]).unwrap();
    let indices = stream.upload(&[0i32, 1, 2, 2, 1, 1]).unwrap();
    let mut output = stream.zeroed::<f32>(2).unwrap();
    embedding_bag_checked(
        &stream,
        Pooling::Max,
        Matrix::row_major(&table, 3, 1).unwrap(),
        &indices,
        Bags::of_len(3),
        MatrixMut::row_major(&mut output, 2, 1).unwrap(),
    )
    .unwrap();
    assert_eq!(stream.download(&output).unwrap(), [4.0, 4.0]);
}

#[test]
fn extents_are_checked() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.zeroed::<f32>(6).unwrap();
    let table = Matrix::row_major(&table, 3, 2).unwrap();
    let indices = stream.zeroed::<i32>(5).unwrap();
    let mut output = stream.zeroed::<f32>(4).unwrap();
    let mut said = |pooling, bags, weights: Option<usize>| {
        let output = MatrixMut::row_major(&mut output, 2, 2).unwrap();
        let mut plan = EmbeddingBag::new(stream.device(), pooling).unwrap();
        let result = match weights {
            None => plan.enqueue(&stream, table, &indices, bags, output),
            Some(len) => {
                let weights = stream.zeroed::<f32>(len).unwrap();
                plan.enqueue_weighted(&stream, table, &indices, &weights, bags, output)
            }
        };
        result.unwrap_err().to_string()
    };
    let offsets = stream.zeroed::<i32>(2).unwrap();
    let bags = Bags::from_offsets(&offsets).unwrap();
    let text = said(Pooling::Sum, bags, None);
    assert!(text.contains("there are 2 offsets and 2 rows"), "{text}");
    let text = said(Pooling::Sum, Bags::of_len(3), None);
    assert!(text.contains("there are 5 indices for 2 rows"), "{text}");
    let offsets = stream.zeroed::<i32>(3).unwrap();
    let bags = Bags::from_offsets(&offsets).unwrap();
    let text = said(Pooling::Max, bags, Some(5));
    assert!(text.contains("the pooling is Max"), "{text}");
    let text = said(Pooling::Sum, bags, Some(4));
    assert!(text.contains("there are 4 weights and 5 indices"), "{text}");
}
