//! Tensors of kernels: misuse that the compiler cannot refuse panics, in some cases only with debug
//! assertions.

use std::panic::catch_unwind;

use cutlet_layout_core::{AnyStrides, Fixed, Fragment, Gather, L, RowMajor, Tensor, Tv};

type Row = Tv<L!(2:1@0), L!(2:1@1)>;

#[test]
fn a_fragment_is_read_from_the_beginning_of_a_vector() {
    /// Two rows of four values, each read in one access.
    type Rows = Tv<L!(1:1@0), L!((4, 2):(1@1, 1@0)), 4>;

    let memory: [i32; 16] = core::array::from_fn(|i| i as i32);
    // SAFETY: the extents and the leading dimension stay inside the array, whose engine reads vectors
    // element by element.
    let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([2, 4], 8)) };
    let read = |first| {
        let mut row = Fragment::<i32, L!(4:1)>::filled(-1);
        tensor.partition::<Rows>(0).load_into(&mut row, first);
        [0, 1, 2, 3].map(|v| row.get(v))
    };
    assert_eq!((read(0), read(4)), ([0, 1, 2, 3], [8, 9, 10, 11]));
    for first in [2, 8, usize::MAX - 3] {
        assert!(catch_unwind(|| read(first)).is_err(), "{first}");
    }
}

/// The message of a panic.
fn panic_of(f: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let payload = catch_unwind(f).expect_err("it panics");
    payload.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn a_tile_that_begins_beyond_31_bits_is_refused_with_the_product() {
    type Tile = L!((1024, 4):(1@0, 1@1));
    let memory = [0; 4];
    // SAFETY: the extents stay inside the array.
    let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([1, 4], 4)) };
    let origin = |row, column| tensor.local_tile::<Tile>((row, column)).origin();
    assert_eq!(origin((1 << 21) - 1, 0), [i32::MAX - 1023, 0]);
    let text = panic_of(|| _ = origin(3_000_000u32, 0));
    let expected = "tile 3000000 of 1024 rows begins after 3000000 * 1024 = 3072000000 rows: coordinates are below 2^31";
    assert!(text.contains(expected), "{text}");
    // The product of these has the lower 32 bits of an ordinary one.
    let text = panic_of(|| _ = origin(1 << 22, 0));
    assert!(text.contains("4194304 * 1024 = 4294967296 rows"), "{text}");
    let text = panic_of(|| _ = origin(0, 1 << 29));
    assert!(
        text.contains("536870912 * 4 = 2147483648 columns"),
        "{text}"
    );
}

#[test]
fn an_extent_that_was_cut_to_32_bits_is_refused() {
    let memory = [0; 4];
    let rows = 3_000_000_000u64;
    let text = panic_of(|| {
        // SAFETY: no element is read.
        unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([rows as i32, 4], 4)) };
    });
    let expected = "a tensor is made of -1294967296 x 4 elements: extents are not negative and below 2^31, so check the cast";
    assert!(text.contains(expected), "{text}");
}

#[test]
#[should_panic(
    expected = "partitioned for thread 7, and its thread layout has 2: mask the index, or lay out more threads"
)]
fn threads_beyond_a_tile_are_noticed() {
    let memory = [0; 4];
    // SAFETY: the tile has four elements.
    let tile = unsafe { Tensor::new(memory.as_ptr(), Fixed::<L!((2, 2):(1, 2))>::new()) };
    tile.partition::<Row>(7);
}

#[cfg_attr(not(debug_assertions), ignore = "debug assertions are off")]
#[test]
#[should_panic(
    expected = "covers less of it: take a tile by local_tile, or call partition_partial"
)]
fn a_matrix_larger_than_its_partition_is_noticed() {
    let memory = [0; 8];
    // SAFETY: the extents stay inside the array.
    let matrix = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([2, 4], 4)) };
    matrix.partition::<Row>(0);
}

#[test]
fn a_partition_by_another_name_may_leave_out_and_share_elements() {
    /// Threads 0 and 2 have the first half of row 0, 1 and 3 that of row 1.
    type Halves = Tv<L!((2, 2):(1@0, 0)), L!(2:1@1)>;

    let memory: [i32; 8] = core::array::from_fn(|i| i as i32);
    // SAFETY: the extents stay inside the array.
    let matrix = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([2, 4], 4)) };
    let tile = matrix.local_tile::<L!((2, 4):(1@0, 1@1))>((0, 0));
    let row = tile.partition_partial::<Row>(1).load(-1);
    assert_eq!([row.get(0), row.get(1)], [4, 5]);
    let row = tile.partition_broadcast::<Halves>(3).load(-1);
    assert_eq!([row.get(0), row.get(1)], [4, 5]);
}

#[test]
fn values_of_every_matrix_have_coordinates() {
    type Tile = L!((2, 4):(1@0, 1@1));
    type Threads = Tv<L!(4:1@1), L!(2:1@0)>;

    let memory: [i32; 24] = core::array::from_fn(|i| i as i32);
    let identity = Tensor::identity([4, 6]).local_tile::<Tile>((1, 1));
    let rows = [1i32, 0, 3, 2];
    // SAFETY: the extents and the strides stay inside the array, and the table names rows of the matrix.
    let (plain, any, gathered) = unsafe {
        (
            Tensor::new(memory.as_ptr(), RowMajor::new([4, 6], 6)).local_tile::<Tile>((1, 1)),
            Tensor::new(memory.as_ptr(), AnyStrides::new([4, 6], [6, 1]))
                .local_tile::<Tile>((1, 1)),
            Tensor::new(memory.as_ptr(), Gather::new(rows.as_ptr(), [4, 6], 4, 6))
                .local_tile::<Tile>((1, 1)),
        )
    };
    for thread in 0..4u32 {
        let coordinates = identity.partition::<Threads>(thread).load([-1; 2]);
        for v in 0..2 {
            let expected = [2 + v as i32, 4 + thread as i32];
            assert_eq!(
                identity.partition::<Threads>(thread).coordinate(v),
                expected
            );
            assert_eq!(plain.partition::<Threads>(thread).coordinate(v), expected);
            assert_eq!(any.partition::<Threads>(thread).coordinate(v), expected);
            assert_eq!(
                gathered.partition::<Threads>(thread).coordinate(v),
                expected
            );
            let inside = thread < 2;
            assert_eq!(coordinates.get(v), if inside { expected } else { [-1; 2] });
        }
    }
    let first = gathered.partition::<Threads>(0u32);
    assert_eq!(first.moved_along_rows(8).coordinate(1), [3, 12]);
}
