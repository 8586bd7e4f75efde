//! Tensors that TMA cannot move: every fault is found, in the order of the map's arguments.

use cutlet_layout_core::{TensorMapFault, TensorMapShape};

/// 64 rows of 128 elements of two bytes, in boxes of 64 rows by 64 with the widest swizzle.
const GOOD: TensorMapShape = TensorMapShape {
    rank: 2,
    extent: [128, 64, 1, 1, 1],
    stride: [128, 0, 0, 0],
    element_bytes: 2,
    box_rank: 2,
    box_extent: [64, 64, 1, 1, 1],
    element_stride: [1; 5],
    swizzle_bytes: 128,
};

fn faults(shape: &TensorMapShape) -> Vec<String> {
    let elements = shape.stride[0].saturating_mul(shape.extent[1]);
    shape.faults(0, elements).map(|it| it.to_string()).collect()
}

#[test]
fn a_tensor_that_tma_can_move_has_no_faults() {
    assert!(faults(&GOOD).is_empty());
}

#[test]
fn all_faults_of_one_map_are_found() {
    let bad = TensorMapShape {
        rank: 6,
        extent: [0, 64, 1, 1, 1],
        stride: [127, 1 << 40, 16, 16],
        box_rank: 0,
        box_extent: [257, 256, 0, 1, 1],
        ..GOOD
    };
    assert_eq!(
        faults(&bad),
        [
            "the tensor has 6 dimensions",
            "the box has 0 dimensions, and the tensor 6",
            "dimension 0 has 0 elements",
            "its rows are 254 bytes apart",
            "its matrices are 2199023255552 bytes apart",
            "the box has 257 elements along dimension 0",
            "the box has 0 elements along dimension 2",
            "a line of the box has 514 bytes, and the swizzle spans 128",
        ]
    );
    let address: Vec<_> = GOOD.faults(24, 8191).collect();
    assert_eq!(
        address,
        [
            TensorMapFault::End { elements: 8191 },
            TensorMapFault::Address { address: 24 }
        ]
    );
}

#[test]
fn a_box_fits_into_shared_memory() {
    let large = TensorMapShape {
        rank: 3,
        extent: [128, 256, 8, 1, 1],
        stride: [128, 1 << 15, 0, 0],
        box_rank: 3,
        box_extent: [64, 256, 8, 1, 1],
        ..GOOD
    };
    let found: Vec<_> = large.faults(0, u64::MAX).collect();
    assert_eq!(
        found,
        [TensorMapFault::BoxBytes {
            bytes: 64 * 256 * 8 * 2
        }]
    );
    // No product overflows.
    let box_extent = [u32::MAX; 5];
    let huge = TensorMapShape {
        box_extent,
        ..large
    };
    assert!(
        huge.faults(0, u64::MAX)
            .any(|it| it == TensorMapFault::BoxBytes { bytes: u64::MAX })
    );
}

#[test]
fn a_box_takes_every_first_to_eighth_element() {
    let every = |stride: u32, rows: u32| TensorMapShape {
        box_extent: [64, rows, 1, 1, 1],
        element_stride: [1, stride, 1, 1, 1],
        ..GOOD
    };
    for (stride, rows) in [(1, 256), (2, 128), (8, 32)] {
        assert!(faults(&every(stride, rows)).is_empty(), "{stride}, {rows}");
    }
    assert_eq!(
        faults(&every(2, 129)),
        ["the box has 258 elements along dimension 1"]
    );
    for stride in [0, 9] {
        let found = format!("the box has an element stride of {stride} along dimension 1");
        assert_eq!(faults(&every(stride, 8)), [found]);
    }
    let of_lines = TensorMapShape {
        element_stride: [2, 1, 1, 1, 1],
        ..GOOD
    };
    assert_eq!(
        faults(&of_lines),
        ["the box has an element stride of 2 along dimension 0"]
    );
    assert_eq!(
        every(2, 8).to_string(),
        "a tensor map of 64 × 128 elements of 2 bytes in boxes of 8 × 64 with element strides of 2 × 1"
    );
}

#[test]
fn lines_fit_the_swizzle() {
    for (columns, span, fits) in [
        (64, 128, true),
        (32, 64, true),
        (16, 32, true),
        (8, 16, true),
    ]
    .into_iter()
    .chain([
        (24, 16, true),
        (32, 128, false),
        (4, 16, false),
        (24, 48, false),
    ]) {
        let box_extent = [columns, 64, 1, 1, 1];
        let shape = TensorMapShape {
            box_extent,
            swizzle_bytes: span,
            ..GOOD
        };
        assert_eq!(
            faults(&shape).is_empty(),
            fits,
            "{columns} in a span of {span}"
        );
    }
}
