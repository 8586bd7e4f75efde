//! Kernels' tensors over an index table: rows that are read, written, clamped, and missing.

use cutlet_layout_core::{Engine, Gather, L, Tensor, Tv};

/// Two threads, each with two rows of two columns.
type Threads = Tv<L!(2:2@0), L!((2, 2):(1@1, 1@0))>;

const SOURCE: [i32; 6] = [10, 11, 20, 21, 30, 31];

/// The rows that both threads see, and the missing ones.
fn seen(indices: [i64; 4], rows: i32, clamps: bool) -> ([i32; 8], Vec<i64>) {
    // SAFETY: there is an index for each row, and the source has three rows.
    let tensor = unsafe {
        let rows = Gather::new(indices.as_ptr(), [rows, 2], 3, 2).clamped(clamps);
        Tensor::new(SOURCE.as_ptr(), rows)
    };
    let (mut values, mut missing) = ([0; 8], Vec::new());
    for thread in 0..2 {
        let own = tensor.partition::<Threads>(thread as u32);
        let loaded = own.load(-1);
        for v in 0..4 {
            values[4 * thread + v] = loaded.get(v);
        }
        own.bound().each_missing_row(|row| missing.push(row));
    }
    (values, missing)
}

#[test]
fn rows_are_those_that_the_table_names() {
    let (values, missing) = seen([2, 0, 1, 1], 4, false);
    assert_eq!(values, [30, 31, 10, 11, 20, 21, 20, 21]);
    assert!(missing.is_empty());
}

#[test]
fn rows_beyond_the_extents_have_no_index() {
    // The last index would be no row, but is not read.
    let (values, missing) = seen([2, 0, 1, 99], 3, false);
    assert_eq!(values, [30, 31, 10, 11, 20, 21, -1, -1]);
    assert!(missing.is_empty());
    assert_eq!(seen([2, 0, 1, 99], 3, true).0[6..], [-1, -1]);
}

#[test]
fn each_missing_row_is_told_once() {
    let (values, missing) = seen([2, 3, -1, i64::MIN], 4, false);
    assert_eq!(values, [30, 31, -1, -1, -1, -1, -1, -1]);
    assert_eq!(missing, [1, 2, 3]);
}

#[test]
fn clamped_indices_name_the_nearest_row() {
    let (values, missing) = seen([i64::MAX, 3, -1, i64::MIN], 4, true);
    assert_eq!(values, [30, 31, 30, 31, 10, 11, 10, 11]);
    assert!(missing.is_empty());
}

#[test]
fn a_store_scatters() {
    let (mut table, indices) = ([0; 6], [2i32, -1, 0, 7]);
    // SAFETY: there is an index for each row, and the table has three rows.
    let tensor = unsafe {
        let rows = Gather::new(indices.as_ptr(), [4, 2], 3, 2);
        Tensor::new(table.as_mut_ptr(), rows)
    };
    for thread in 0..2u32 {
        let own = tensor.partition::<Threads>(thread);
        own.store_with(|v| 10 * (thread as i32 + 1) + v as i32);
    }
    assert_eq!(table, [20, 21, 0, 0, 10, 11]);
}

#[test]
fn a_condition_decides_whether_an_element_is_read() {
    let memory = [5, 6];
    // SAFETY: the elements that are read exist.
    unsafe {
        assert_eq!(memory.as_ptr().load_if(1, true), Some(6));
        assert_eq!(memory.as_ptr().load_if(99, false), None);
    }
}

/// Memory without bytes: element `i` is `i`.
#[derive(Clone, Copy)]
struct Counted(i64);

impl Engine for Counted {
    type Element = i64;

    fn offset(self, index: i64) -> Self {
        Counted(self.0 + index)
    }

    unsafe fn load(self, index: i64) -> i64 {
        self.0 + index
    }
}

#[test]
fn a_table_may_have_more_elements_than_32_bits_count() {
    let (rows, ld) = (1i64 << 31, 1000);
    let indices = [rows - 1, 0, 2, rows];
    // SAFETY: there is an index for each row, and `Counted` has any element.
    let tensor =
        unsafe { Tensor::new(Counted(0), Gather::new(indices.as_ptr(), [4, 2], rows, ld)) };
    let values = tensor.partition::<Threads>(0u32).load(-1);
    assert_eq!(values.get(1), (rows - 1) * ld + 1);
    let values = tensor.partition::<Threads>(1u32).load(-1);
    assert_eq!([values.get(1), values.get(2)], [2 * ld + 1, -1]);
}
