//! Operations on rows that indices name: the plain ones enqueue, and `check_indices` reports their bad indices.

use cutlet::{
    Bags, Device, DeviceTensor, Error, Pooling, Result, Stream, check_indices, embedding_bag,
    gather, gather_checked, scatter, scatter_add, take_along_dim,
};

const OPERATIONS: [&str; 5] = [
    "gather",
    "scatter",
    "scatter_add",
    "embedding_bag",
    "take_along_dim",
];

/// A table of three rows, two rows beside it, and an index for each of the two.
struct Operands {
    table: DeviceTensor<f32>,
    rows: DeviceTensor<f32>,
    indices: DeviceTensor<i32>,
}

impl Operands {
    fn new(stream: &Stream, indices: [i32; 2]) -> Self {
        Operands {
            table: DeviceTensor::upload(stream, &[1.0, 2.0, 3.0], [3, 1]).unwrap(),
            rows: DeviceTensor::upload(stream, &[10.0, 20.0], [2, 1]).unwrap(),
            indices: DeviceTensor::upload(stream, &indices, [2, 1]).unwrap(),
        }
    }

    /// Enqueues the operation of this name.
    fn enqueue(&mut self, stream: &Stream, name: &str) -> Result<()> {
        let Operands {
            table,
            rows,
            indices,
        } = self;
        let list = indices.buffer();
        match name {
            "gather" => gather(stream, &*table, list, rows),
            "scatter" => scatter(stream, &*rows, list, table),
            "scatter_add" => scatter_add(stream, &*rows, list, table),
            "embedding_bag" => {
                let bags = Bags::of_len(1);
                embedding_bag(stream, Pooling::Sum, &*table, list, bags, rows)
            }
            _ => take_along_dim(stream, &*table, 0, &*indices, rows),
        }
    }

    /// The table and the rows.
    fn all(&self, stream: &Stream) -> Vec<f32> {
        let (table, rows) = (self.table.download(stream), self.rows.download(stream));
        [table.unwrap(), rows.unwrap()].concat()
    }
}

/// The operation and the position of the bad index that a check reports.
fn missed(stream: &Stream) -> Option<(&'static str, u64)> {
    match check_indices(stream) {
        Ok(()) => None,
        Err(Error::IndexMissed {
            operation,
            position,
            ..
        }) => Some((operation, position)),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_bad_index_is_reported_by_the_next_check() {
    let stream = Device::auto().stream().unwrap();
    for name in OPERATIONS {
        let mut operands = Operands::new(&stream, [2, 3]);
        operands.enqueue(&stream, name).unwrap();
        let expected = match name {
            "scatter" => [1.0, 2.0, 10.0, 10.0, 20.0],
            "scatter_add" => [1.0, 2.0, 13.0, 10.0, 20.0],
            _ => [1.0, 2.0, 3.0, 3.0, 0.0],
        };
        assert_eq!(operands.all(&stream), expected, "{name}");
        assert_eq!(missed(&stream), Some((name, 1)));
        assert_eq!(missed(&stream), None, "{name}");
        Operands::new(&stream, [0, 2])
            .enqueue(&stream, name)
            .unwrap();
        assert_eq!(missed(&stream), None, "{name}");
    }
}

#[test]
fn each_operation_and_each_stream_has_a_report() {
    let device = Device::auto();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    for name in OPERATIONS {
        Operands::new(&stream, [-1, 9])
            .enqueue(&stream, name)
            .unwrap();
    }
    Operands::new(&other, [1, 1])
        .enqueue(&other, "gather")
        .unwrap();
    assert_eq!(missed(&other), None);
    let mut reported = OPERATIONS.map(|_| missed(&stream).unwrap());
    reported.sort();
    let mut expected = OPERATIONS.map(|name| (name, 0));
    expected.sort();
    assert_eq!(reported, expected);
    assert_eq!(missed(&stream), None);
}

/// A call that waits reports its own indices, whatever calls before it left.
#[test]
fn a_checked_call_reports_its_own_indices() {
    let stream = Device::auto().stream().unwrap();
    Operands::new(&stream, [7, 0])
        .enqueue(&stream, "gather")
        .unwrap();
    let Operands {
        table,
        mut rows,
        indices,
    } = Operands::new(&stream, [0, 3]);
    let checked = gather_checked(&stream, &table, indices.buffer(), &mut rows);
    assert!(
        matches!(
            checked,
            Err(Error::IndexOutOfRange {
                position: 1,
                index: 3,
                ..
            })
        ),
        "{checked:?}"
    );
    assert_eq!(missed(&stream), Some(("gather", 0)));
}

#[test]
fn plain_calls_are_captured_and_checked_ones_are_not() {
    let device = Device::auto();
    let stream = device.stream().unwrap();
    for name in OPERATIONS {
        let mut operands = Operands::new(&stream, [2, 0]);
        let mut alone = Operands::new(&stream, [2, 0]);
        let graph = device
            .capture(|stream| operands.enqueue(stream, name))
            .unwrap();
        // SAFETY: the operands are alive until the download has waited.
        unsafe { graph.launch(&stream).unwrap() };
        alone.enqueue(&stream, name).unwrap();
        assert_eq!(operands.all(&stream), alone.all(&stream), "{name}");
    }
    let mut operands = Operands::new(&stream, [2, 0]);
    let refused = device.capture(|stream| {
        let Operands {
            table,
            rows,
            indices,
        } = &mut operands;
        gather_checked(stream, &*table, indices.buffer(), rows)
    });
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("a gather that waits until it is done"),
        "{said}"
    );
}
