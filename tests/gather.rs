//! `gather` against a copy of rows on the host, on a GPU if there is one: all access widths, both index types, padded
//! rows, and indices that are not rows of the table.

use cutlet::{
    Device, Error, Gather, HostError, Index, Matrix, MatrixMut, Order, OutOfRange, View, ViewMut,
    gather_checked,
};

/// Checks a gather of `rows` rows of `columns` bytes, with leading dimensions of `columns + padding`.
fn check<X: Index>(
    rows: usize,
    columns: usize,
    padding: usize,
    offset: usize,
    to_index: impl Fn(usize) -> X,
) {
    let table_rows = 50;
    let ld = columns + padding;
    let mut random = fastrand::Rng::with_seed((rows * 31 + columns) as u64);
    let mut table = vec![0u8; offset + table_rows * ld];
    random.fill(&mut table);
    let picks: Vec<usize> = (0..rows).map(|_| random.usize(..table_rows)).collect();
    let indices: Vec<X> = picks.iter().map(|&pick| to_index(pick)).collect();

    let stream = Device::auto().stream().unwrap();
    let on_table = stream.upload(&table).unwrap();
    let on_indices = stream.upload(&indices).unwrap();
    let mut output = stream.filled::<u8>(offset + rows * ld, 0xab).unwrap();
    gather_checked(
        &stream,
        Matrix::with_ld(
            on_table.slice(offset..).unwrap(),
            table_rows,
            columns,
            Order::RowMajor,
            ld,
        )
        .unwrap(),
        &on_indices,
        MatrixMut::with_ld(
            output.slice_mut(offset..).unwrap(),
            rows,
            columns,
            Order::RowMajor,
            ld,
        )
        .unwrap(),
    )
    .unwrap();
    let found = stream.download(&output).unwrap();

    for (row, pick) in picks.into_iter().enumerate() {
        let (at, from) = (offset + row * ld, offset + pick * ld);
        assert_eq!(
            found[at..at + columns],
            table[from..from + columns],
            "row {row} of {columns} bytes"
        );
        assert!(
            found[at + columns..at + ld]
                .iter()
                .all(|&byte| byte == 0xab),
            "padding of row {row}"
        );
    }
}

#[test]
fn every_row_length() {
    for columns in [
        1, 2, 3, 4, 6, 8, 12, 16, 48, 64, 127, 128, 129, 256, 260, 272, 1000, 1024, 2048, 4096,
        4112, 8192,
    ] {
        check::<i32>(37, columns, 0, 0, |index| index as i32);
        check::<i64>(5, columns, 0, 0, |index| index as i64);
    }
}

#[test]
fn every_number_of_rows() {
    for rows in [1, 7, 127, 129, 1000] {
        check::<i32>(rows, 64, 0, 0, |index| index as i32);
        check::<i64>(rows, 6, 0, 0, |index| index as i64);
    }
}

#[test]
fn padding_and_offsets_take_narrower_accesses() {
    for padding in [0, 1, 2, 4, 16] {
        for offset in [0, 1, 2, 4, 16] {
            check::<i32>(20, 64, padding, offset, |index| index as i32);
        }
    }
}

/// A grid has at most 65535 blocks along y, so that these rows take two launches.
#[test]
fn rows_longer_than_a_grid() {
    let columns = 65_535 * 128 + 5;
    let mut table = vec![0u8; 2 * columns];
    fastrand::Rng::with_seed(1).fill(&mut table);
    let stream = Device::auto().stream().unwrap();
    let on_table = stream.upload(&table).unwrap();
    let mut output = stream.zeroed::<u8>(columns).unwrap();
    gather_checked(
        &stream,
        Matrix::row_major(&on_table, 2, columns).unwrap(),
        &stream.upload(&[1i32]).unwrap(),
        MatrixMut::row_major(&mut output, 1, columns).unwrap(),
    )
    .unwrap();
    assert!(stream.download(&output).unwrap() == table[columns..]);
}

#[test]
fn a_single_row_has_any_leading_dimension() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1u32, 2, 3, 4]).unwrap();
    let mut output = stream.zeroed::<u32>(12).unwrap();
    let row = Matrix::with_ld(&table, 1, 4, Order::RowMajor, usize::MAX).unwrap();
    gather_checked(
        &stream,
        row,
        &stream.upload(&[0i32, 0, 0]).unwrap(),
        MatrixMut::row_major(&mut output, 3, 4).unwrap(),
    )
    .unwrap();
    let expected = [1, 2, 3, 4].repeat(3);
    assert_eq!(stream.download(&output).unwrap(), expected);
    let mut output = stream.zeroed::<u32>(4).unwrap();
    gather_checked(
        &stream,
        row,
        &stream.upload(&[0i32]).unwrap(),
        MatrixMut::with_ld(&mut output, 1, 4, Order::RowMajor, usize::MAX).unwrap(),
    )
    .unwrap();
    assert_eq!(stream.download(&output).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn elements_may_have_any_type() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1.5f64, 2.5, 3.5, 4.5, 5.5, 6.5]).unwrap();
    let indices = stream.upload(&[1i64, 1, 0]).unwrap();
    let mut output = stream.zeroed::<f64>(9).unwrap();
    gather_checked(
        &stream,
        Matrix::row_major(&table, 2, 3).unwrap(),
        &indices,
        MatrixMut::row_major(&mut output, 3, 3).unwrap(),
    )
    .unwrap();
    let row = [4.5, 5.5, 6.5];
    assert_eq!(
        stream.download(&output).unwrap(),
        [row, row, [1.5, 2.5, 3.5]].concat()
    );
}

#[test]
fn bad_indices_are_reported_and_not_read() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap();
    let mut plan = Gather::new(stream.device()).unwrap();
    for bad in [-1i64, 3, i64::MAX, i64::MIN] {
        let indices = stream.upload(&[2, 0, bad, 1, bad]).unwrap();
        let mut output = stream.filled::<u32>(10, 0xff).unwrap();
        let table = Matrix::row_major(&table, 3, 2).unwrap();
        plan.enqueue(
            &stream,
            table,
            &indices,
            MatrixMut::row_major(&mut output, 5, 2).unwrap(),
        )
        .unwrap();
        let error = plan.check(&stream).unwrap_err();
        assert!(
            matches!(error, Error::IndexMissed { position: 2, .. }),
            "{error}"
        );
        assert_eq!(
            stream.download(&output).unwrap(),
            [5, 6, 1, 2, 0, 0, 3, 4, 0, 0]
        );
        plan.check(&stream).expect("an error is reported once");
        let output = MatrixMut::row_major(&mut output, 5, 2).unwrap();
        let error = gather_checked(&stream, table, &indices, output).unwrap_err();
        assert!(
            matches!(error, Error::IndexOutOfRange { position: 2, index, table_rows: 3, .. } if index == bad),
            "{error}"
        );
    }
}

#[test]
fn no_indices_are_no_error() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1u32, 2]).unwrap();
    let indices = stream.upload::<i32>(&[]).unwrap();
    let mut output = stream.zeroed::<u32>(0).unwrap();
    gather_checked(
        &stream,
        Matrix::row_major(&table, 1, 2).unwrap(),
        &indices,
        MatrixMut::row_major(&mut output, 0, 2).unwrap(),
    )
    .unwrap();
}

#[test]
fn extents_and_orders_are_checked() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.zeroed::<u32>(12).unwrap();
    let indices = stream.zeroed::<i32>(3).unwrap();
    let mut output = stream.zeroed::<u32>(12).unwrap();
    let mut refused = |order: Order, rows: usize, columns: usize, why: &str| {
        let error = gather_checked(
            &stream,
            Matrix::packed(&table, 4, 3, order).unwrap(),
            &indices,
            MatrixMut::row_major(&mut output, rows, columns).unwrap(),
        )
        .unwrap_err();
        assert!(
            matches!(
                error,
                Error::Extents {
                    operation: "gather",
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(Order::RowMajor, 3, 4, "the table has 3 columns");
    refused(Order::RowMajor, 4, 3, "there are 3 indices");
    refused(Order::ColMajor, 3, 3, "give row-major ones");
}

/// The output may begin where an operand ends, but must not overlap one.
#[test]
fn an_output_that_overlaps_an_operand_is_refused() {
    let stream = Device::auto().stream().unwrap();
    let buffer = stream.zeroed::<i32>(12 + 3 + 9).unwrap();
    let run = |first: u64| {
        let (device, address) = (stream.device(), buffer.view().address() + 4 * first);
        // SAFETY: the memory is the buffer's, which nothing else uses meanwhile.
        let output = unsafe { ViewMut::<i32>::from_raw(device, address, 9) }.unwrap();
        gather_checked(
            &stream,
            Matrix::row_major(buffer.slice(..12).unwrap(), 4, 3).unwrap(),
            buffer.slice(12..15).unwrap(),
            MatrixMut::row_major(output, 3, 3).unwrap(),
        )
    };
    for (first, overlapped) in [(0, "the table"), (11, "the table"), (14, "the indices")] {
        let said = run(first).unwrap_err().to_string();
        let expected = format!("gather: the output overlaps {overlapped};");
        assert!(said.starts_with(&expected), "{first}: {said}");
    }
    run(15).unwrap();
}

#[test]
fn a_graph_reads_the_indices_when_it_runs() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap();
    let mut indices = stream.upload(&[0i32, 1]).unwrap();
    let mut output = stream.zeroed::<u32>(4).unwrap();
    let mut plan = Gather::new(stream.device()).unwrap();
    let matrix = Matrix::row_major(&table, 3, 2).unwrap();
    let mut enqueue =
        |stream: &cutlet::Stream, plan: &mut Gather, indices: &cutlet::Buffer<i32>| {
            let output = MatrixMut::row_major(&mut output, 2, 2).unwrap();
            plan.enqueue(stream, matrix, indices, output)
        };
    let captured = stream
        .device()
        .capture(|stream| enqueue(stream, &mut plan, &indices));
    let graph = captured.unwrap();
    for (picks, gathered, missed) in [
        ([2, 0], [5, 6, 1, 2], None),
        ([1, 3], [3, 4, 0, 0], Some(1)),
        ([1, 1], [3, 4, 3, 4], None),
    ] {
        stream.copy_from_host(&picks, &mut indices).unwrap();
        // SAFETY: the plan and the buffers live past the download.
        unsafe { graph.launch(&stream).unwrap() };
        assert_eq!(stream.download(&output).unwrap(), gathered);
        let reported = match plan.check(&stream) {
            Err(Error::IndexMissed { position, .. }) => Some(position),
            checked => checked.map(|()| None).unwrap(),
        };
        assert_eq!(reported, missed);
    }
}

#[test]
fn a_gather_that_waits_cannot_be_captured() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.zeroed::<u32>(12).unwrap();
    let indices = stream.zeroed::<i32>(3).unwrap();
    let mut output = stream.zeroed::<u32>(9).unwrap();
    let captured = stream.device().capture(|stream| {
        gather_checked(
            stream,
            Matrix::row_major(&table, 4, 3)?,
            &indices,
            MatrixMut::row_major(&mut output, 3, 3)?,
        )
    });
    let error = captured.unwrap_err();
    assert!(
        matches!(error, Error::Host(HostError::Capturing { .. })),
        "{error}"
    );
}

#[test]
fn operands_of_another_stream_are_refused() {
    let device = Device::auto();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let table = other.scratch::<u32>(12).unwrap();
    let indices = stream.zeroed::<i32>(3).unwrap();
    let mut output = stream.zeroed::<u32>(9).unwrap();
    let output = MatrixMut::row_major(&mut output, 3, 3).unwrap();
    let table = Matrix::row_major(table.view(), 4, 3).unwrap();
    let said = gather_checked(&stream, table, &indices, output)
        .unwrap_err()
        .to_string();
    let expected = "gather: the table is memory of another stream";
    assert!(said.starts_with(expected), "{said}");
}

/// The rows of a table of three that indices give, by policy. An output row that is left as it was has 9s.
#[test]
fn indices_out_of_range_are_clamped_or_skipped() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap();
    for (policy, expected) in [
        (
            OutOfRange::Clamp,
            [[5, 6], [5, 6], [1, 2], [3, 4], [5, 6], [1, 2]],
        ),
        (
            OutOfRange::Skip,
            [[5, 6], [9, 9], [9, 9], [3, 4], [9, 9], [9, 9]],
        ),
    ] {
        let mut plan = Gather::new(stream.device()).unwrap().out_of_range(policy);
        let mut gathered = |indices: View<'_, i64>| {
            let mut output = stream.upload(&[9u32; 12]).unwrap();
            plan.enqueue(
                &stream,
                Matrix::row_major(&table, 3, 2).unwrap(),
                indices,
                MatrixMut::row_major(&mut output, 6, 2).unwrap(),
            )
            .unwrap();
            plan.check(&stream).unwrap();
            stream.download(&output).unwrap()
        };
        let indices = stream.upload(&[2, 3, -1, 1, i64::MAX, i64::MIN]).unwrap();
        assert_eq!(gathered(indices.view()), expected.as_flattened());
    }
}

/// Clamped indices of an empty table name no row of it.
#[test]
fn an_empty_table_is_never_read() {
    let stream = Device::auto().stream().unwrap();
    let table = stream.zeroed::<u32>(0).unwrap();
    let indices = stream.upload(&[0i32, 1]).unwrap();
    for policy in [OutOfRange::Error, OutOfRange::Clamp, OutOfRange::Skip] {
        let mut plan = Gather::new(stream.device()).unwrap().out_of_range(policy);
        let mut output = stream.upload(&[9u32; 8]).unwrap();
        plan.enqueue(
            &stream,
            Matrix::row_major(&table, 0, 4).unwrap(),
            &indices,
            MatrixMut::row_major(&mut output, 2, 4).unwrap(),
        )
        .unwrap();
        assert_eq!(plan.check(&stream).is_err(), policy == OutOfRange::Error);
        let left = if policy == OutOfRange::Skip { 9 } else { 0 };
        assert_eq!(stream.download(&output).unwrap(), [left; 8]);
    }
}
