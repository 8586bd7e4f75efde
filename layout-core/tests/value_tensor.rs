//! Tensors over layout values: engines, slices, tiles, partitions, gathers and recasts.

use std::cmp::Ordering;
use std::panic::catch_unwind;

use cutlet_layout_core::{
    ComposedLayout, Counting, Direct, IntTuple, Swizzle, ValueTensor, compare_elementwise, layout,
    shape, tile,
};

fn count<const N: usize>() -> [i32; N] {
    std::array::from_fn(|i| i as i32)
}

#[test]
fn elements_are_found_by_coordinates_in_any_form() {
    let memory = count::<21>();
    let tensor = ValueTensor::new(&memory[..], layout!((3, (2, 3)):(3, (12, 1))));
    assert_eq!(tensor[16], 17);
    assert_eq!(tensor[(1, 5)], 17);
    assert_eq!(tensor[(1, (1, 2))], 17);
    assert_eq!(tensor.at((1, 5)), 17);
    assert_eq!((tensor.size(), tensor.rank()), (18, 2));
}

/// A tutorial places 5 at 4; it is at 13, and 15 is at 4.
#[test]
fn the_element_at_4_is_15() {
    let tensor = ValueTensor::new(Counting, layout!((3, (2, 3)):(3, (12, 1))));
    assert_eq!(tensor.at(4), 15.into());
    assert_eq!(tensor.at((1, 1)), 15.into());
    assert_eq!(tensor.at(13), 5.into());
}

#[test]
fn arrays_own_their_elements() {
    let mut tensor = ValueTensor::new([0; 12], layout!((3, 4):(4, 1)));
    tensor.fill(1);
    tensor[(2, 3)] = 5;
    assert_eq!(tensor.engine()[11], 5);
    assert_eq!(tensor.iter().sum::<i32>(), 16);
    let mut view = tensor.view_mut().slice(&shape!((1, _)));
    view.fill(7);
    assert_eq!(tensor.engine()[4..8], [7; 4]);
    assert_eq!(
        tensor
            .view()
            .slice(&shape!((_, 0)))
            .iter()
            .collect::<Vec<_>>(),
        [1, 7, 1]
    );
}

#[test]
fn what_is_not_in_memory_is_an_error_in_words() {
    let memory = count::<4>();
    let tensor = ValueTensor::new(&memory[..], layout!((2, 3):(1, 2)));
    let panic = catch_unwind(|| tensor[(1, 2)]).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert_eq!(
        message,
        "tensor: index 5 is outside of the 4 elements in memory"
    );
    let coordinates = ValueTensor::new(&memory[..], layout!((2, 2):(1@0, 1@1)));
    assert!(catch_unwind(|| coordinates[(1, 1)]).is_err());
}

#[test]
fn local_tile_is_the_share_of_a_block_of_threads() {
    let memory = count::<24>();
    let matrix = ValueTensor::new(&memory[..], layout!((4, 6):(6, 1)));
    let tile = matrix.local_tile(&tile!(<2, 3>), &shape!((1, 1)));
    assert_eq!(tile.outer().to_string(), "(_2,_3):(_6,_1)");
    assert_eq!(tile.iter().collect::<Vec<_>>(), [15, 21, 16, 22, 17, 23]);
    // All tiles of a row of tiles: modes past the coordinate stay.
    let row = matrix.local_tile(&tile!(<2, 3>), &shape!((1, _)));
    assert_eq!(row.outer().to_string(), "(_2,_3,_2):(_6,_1,_3)");
    assert_eq!(row[(0, 0, 1)], 15);
    // Tile 3 by its 1-D coordinate.
    assert_eq!(matrix.local_tile(&tile!(<2, 3>), &shape!(3))[0], 15);
}

#[test]
fn tiles_and_threads_that_there_are_not_are_errors_in_words() {
    let matrix = ValueTensor::new(Counting, layout!((4, 6):(6, 1)));
    let tiler = tile!(<2, 3>);
    let refused = |at: IntTuple| {
        let panic = catch_unwind(|| matrix.local_tile(&tiler, &at)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    assert_eq!(
        refused(shape!((0, 3))),
        "inner_partition: (_4,_6):(_6,_1) in tiles of <_2:_1,_3:_1> has no tile (_0,_3): there are (_2,_2)"
    );
    for at in [shape!((2, _)), shape!((_, -1)), shape!(4), shape!((2))] {
        assert!(refused(at).contains("has no tile"), "{at}");
    }
    for at in [shape!((2, 0)), shape!((_, 3)), shape!(6)] {
        assert!(
            catch_unwind(|| matrix.outer_partition(&tiler, &at)).is_err(),
            "{at}"
        );
    }
    // If the tiler does not divide the tensor, the last tiles reach beyond it.
    let last = matrix.local_tile(&tile!(<2, 4>), &shape!((1, 1)));
    assert_eq!(last.at((0, 3)), 19.into());
    assert!(catch_unwind(|| matrix.local_tile(&tile!(<2, 4>), &shape!((1, 2)))).is_err());

    let (threads, projection) = (layout!((2, 3, 1):(1, 2, 6)), shape!((1, _, 1)));
    let a = ValueTensor::new(Counting, layout!((4, 2):(1, 4)));
    let ninth = catch_unwind(|| a.local_partition_projected(&threads, 9, &projection));
    assert!(ninth.is_err());
}

#[test]
fn local_tile_projected_leaves_out_what_the_operand_lacks() {
    let a = ValueTensor::new(Counting, layout!((8, 16):(16, 1)));
    let (tiler, coord) = (tile!(<4, 2, 8>), shape!((1, 5, _)));
    let tiles = a.local_tile_projected(&tiler, &coord, &shape!((1, _, 1)));
    assert_eq!(tiles.outer().to_string(), "(_4,_8,_2):(_16,_1,_8)");
    assert_eq!(tiles.at(0), 64.into());
}

#[test]
fn local_partition_deals_elements_to_threads() {
    let matrix = ValueTensor::new(Counting, layout!((4, 6):(1, 4)));
    let threads = layout!((2, 3):(3, 1));
    let mut all: Vec<i64> = (0..6)
        .flat_map(|t| {
            matrix
                .local_partition(&threads, t)
                .iter()
                .collect::<Vec<_>>()
        })
        .map(|i| i.leaf(0).value())
        .collect();
    all.sort();
    assert_eq!(all, (0..24).collect::<Vec<i64>>());
    assert_eq!(
        matrix.local_partition(&threads, 1).at(0),
        4.into(),
        "thread 1 is at (0, 1)"
    );
    assert!(catch_unwind(|| matrix.local_partition(&threads, 6)).is_err());

    // Threads (M, N, K) = (2, 3, 1): the operand (M, K) is shared by threads of the same m.
    let threads = layout!((2, 3, 1):(1, 2, 6));
    let a = ValueTensor::new(Counting, layout!((4, 2):(1, 4)));
    let first = a.local_partition_projected(&threads, 1, &shape!((1, _, 1)));
    let second = a.local_partition_projected(&threads, 5, &shape!((1, _, 1)));
    assert_eq!(
        first.iter().collect::<Vec<_>>(),
        second.iter().collect::<Vec<_>>()
    );
    assert_eq!(first.at(0), 1.into());
}

#[test]
fn inner_and_outer_partition_are_rows_and_columns_of_the_division() {
    let matrix = ValueTensor::new(Counting, layout!((4, 6):(1, 4)));
    let (tiler, at) = (tile!(<2, 3>), shape!((1, 0)));
    let divided = matrix.zipped_divide(&tiler);
    for i in 0..6i64 {
        let inner = matrix.inner_partition(&tiler, &at).at(i);
        assert_eq!(inner, divided.at((i, (1, 0))));
    }
    for i in 0..4i64 {
        let outer = matrix.outer_partition(&tiler, &at).at(i);
        assert_eq!(outer, divided.at(((1, 0), i)));
    }
}

#[test]
fn divisions_and_groups_act_on_the_layout() {
    let tensor = ValueTensor::new(Counting, layout!((4, 6):(1, 4)));
    let text = |t: ValueTensor<Counting>| t.outer().to_string();
    assert_eq!(
        text(tensor.logical_divide(&tile!(<2, 3>))),
        "((_2,_2),(_3,_2)):((_1,_2),(_4,_12))"
    );
    assert_eq!(
        text(tensor.tiled_divide(&tile!(<2, 3>))),
        "((_2,_3),_2,_2):((_1,_4),_2,_12)"
    );
    assert_eq!(
        text(tensor.flat_divide(&tile!(<2, 3>))),
        "(_2,_3,_2,_2):(_1,_4,_2,_12)"
    );
    assert_eq!(
        text(tensor.flat_divide(&tile!(<2, 3>)).group_modes(0, 2)),
        "((_2,_3),_2,_2):((_1,_4),_2,_12)"
    );
    assert_eq!(text(tensor.composition(&layout!(6:4))), "_6:_4");
    assert_eq!(
        text(tensor.composition_by_mode(&tile!(<2:2, 2:3>))),
        "(_2,_2):(_2,_12)"
    );
}

/// A tutorial's listing, with a fixed table in place of its random one, and with the tensor that it
/// leaves out.
#[test]
fn a_tensor_over_a_gather() {
    let table: [i64; 16] = std::array::from_fn(|i| (i as i64 * 37 + 11) % 256);
    let inner = |c: &IntTuple| IntTuple::from(table[c.leaf(0).value() as usize]);
    let gather = ComposedLayout::new(inner, IntTuple::from(0), layout!((16)));
    for i in 0..16i64 {
        assert_eq!(
            format!("{i} -> {}", gather.call(&i.into())),
            format!("{i} -> {}", table[i as usize])
        );
    }
    let data: [i32; 256] = std::array::from_fn(|i| i as i32);
    let tensor = ValueTensor::composed(&data[..], gather);
    assert_eq!(tensor[0], 11);
    assert_eq!(tensor.iter().map(i64::from).collect::<Vec<_>>(), table);
    // Slices and partitions act on the outer layout.
    let mine = tensor.local_partition(&layout!(4:1), 3);
    assert_eq!(
        mine.iter().map(i64::from).collect::<Vec<_>>(),
        [3, 7, 11, 15].map(|i| table[i])
    );
    let tile = tensor.local_tile(&tile!(<4>), &shape!((2)));
    assert_eq!(tile.iter().map(i64::from).collect::<Vec<_>>(), table[8..12]);
}

#[test]
fn rows_are_gathered_and_scattered_by_a_table() {
    let rows = [2i64, 0, 3];
    let inner = move |c: &IntTuple| {
        let (row, column) = (c.leaf(0).value(), c.leaf(1).value());
        IntTuple::from(rows[row as usize] * 5 + column)
    };
    let outer = layout!((3, 5):(1@0, 1@1));
    let layout = ComposedLayout::new(inner, IntTuple::EMPTY, outer);
    let layout = ComposedLayout::new(*layout.inner(), shape!((0, 0)), *layout.outer());

    let source = count::<20>();
    let gathered = ValueTensor::composed(&source[..], layout);
    assert_eq!(
        gathered.slice(&shape!((0, _))).iter().collect::<Vec<_>>(),
        [10, 11, 12, 13, 14]
    );
    assert_eq!(gathered[(2, 4)], 19);

    let mut target = [0; 20];
    let mut scattered = ValueTensor::composed(&mut target[..], layout);
    scattered.copy_from(&ValueTensor::new(count::<15>(), layout!((3, 5):(5, 1))));
    assert_eq!(
        target,
        [
            5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 10, 11, 12, 13, 14
        ]
    );
}

#[test]
fn swizzled_tensors_permute_their_memory() {
    let layout = ComposedLayout::new(Swizzle::new(2, 0, 2), 0.into(), layout!((4, 4):(4, 1)));
    let mut tensor = ValueTensor::composed([0; 16], layout);
    for row in 0..4 {
        for column in 0..4 {
            tensor[(row, column)] = row * 4 + column;
        }
    }
    assert_eq!(tensor.engine()[4..8], [5, 4, 7, 6]);
    assert_eq!(
        tensor
            .view()
            .slice(&shape!((1, _)))
            .iter()
            .collect::<Vec<_>>(),
        [4, 5, 6, 7]
    );
}

#[test]
fn coordinates_tell_what_is_outside() {
    let extent = shape!((5, 7));
    let (tiler, threads) = (tile!(<4, 4>), layout!((2, 2):(1, 2)));
    let memory = count::<35>();
    let mut copied = [-1; 35];
    for tile in 0..4i64 {
        for thread in 0..4 {
            let at = IntTuple::from((tile % 2, tile / 2));
            let coords = ValueTensor::coordinates(&extent)
                .local_tile(&tiler, &at)
                .local_partition(&threads, thread);
            let layout = layout!((5, 7):(7, 1));
            let source = ValueTensor::new(&memory[..], layout)
                .local_tile(&tiler, &at)
                .local_partition(&threads, thread);
            let mut target = ValueTensor::new(&mut copied[..], layout)
                .local_tile(&tiler, &at)
                .local_partition(&threads, thread);
            target.copy_if(&source, |c| {
                compare_elementwise(&coords.at(c), &extent) == Some(Ordering::Less)
            });
        }
    }
    assert_eq!(copied, memory);
}

#[test]
fn a_static_extent_of_1_has_an_inside_and_an_outside() {
    let extent = shape!((1, 7));
    let coords = ValueTensor::coordinates(&extent);
    let tiles = coords.zipped_divide(&tile!(<4, 4>));
    assert_eq!(tiles.outer().mode(0).to_string(), "(_4,_4):(_1@0,_1@1)");
    // A tile of 4×4 at the corner of a 1×7 matrix has 1×3 elements inside.
    let (tile, at) = (tile!(<4, 4>), shape!((0, 1)));
    let memory = [1; 7];
    let matrix = ValueTensor::new(&memory[..], layout!((1, 7):(7, 1))).local_tile(&tile, &at);
    let coords = coords.local_tile(&tile, &at);
    let mut inside = ValueTensor::new([0; 16], layout!((4, 4):(1, 4)));
    inside.copy_if(&matrix, |c| {
        compare_elementwise(&coords.at(c), &extent) == Some(Ordering::Less)
    });
    assert_eq!(inside.iter().sum::<i32>(), 3);
}

#[test]
fn fragments_are_compact_registers() {
    let partition = layout!(((2, 2), 3):((8, 64), 512));
    let fragment = ValueTensor::<[f32; 12]>::fragment_like(&partition, 0.5);
    assert_eq!(fragment.outer().to_string(), "((_2,_2),_3):((_1,_2),_4)");
    assert_eq!(fragment.iter().sum::<f32>(), 6.0);
    let panic =
        catch_unwind(|| ValueTensor::<[f32; 8]>::fragment_like(&partition, 0.0)).unwrap_err();
    assert!(
        panic
            .downcast_ref::<String>()
            .unwrap()
            .contains("takes 12 elements, not 8")
    );
}

#[test]
fn recasts_read_the_same_bytes() {
    let mut memory: [u32; 8] = std::array::from_fn(|i| 0x0101_0101 * i as u32);
    let words = ValueTensor::new(&memory[..], layout!((2, 4):(4, 1)));
    let bytes = words.recast::<u8>();
    assert_eq!(bytes.outer().to_string(), "(_2,_16):(_16,_1)");
    assert_eq!(bytes[(1, 5)], 5);
    let halves = words.slice(&shape!((1, _))).recast::<u16>();
    assert_eq!(halves[2], 0x0505);
    let back = bytes.recast::<u32>();
    assert_eq!(
        back.iter().collect::<Vec<_>>(),
        words.iter().collect::<Vec<_>>()
    );
    let torn = catch_unwind(|| {
        bytes
            .slice(&shape!((0, _)))
            .composition(&layout!(3:1))
            .recast::<u16>()
    });
    assert!(torn.is_err());
    let from_byte_1 = ComposedLayout::new(Direct, 1.into(), layout!(4:1));
    let inside = ValueTensor::composed(*bytes.engine(), from_byte_1);
    let panic = catch_unwind(|| inside.recast::<u16>()).unwrap_err();
    assert!(
        panic
            .downcast_ref::<String>()
            .unwrap()
            .contains("the offset 1 in elements that are 2 times as wide")
    );

    let mut writable =
        ValueTensor::new(&mut memory[..], layout!((2, 4):(4, 1))).recast_mut::<u16>();
    writable[(0, 0)] = 0xffff;
    assert_eq!(memory[0] & 0xffff, 0xffff);
}

#[test]
fn swizzled_recasts_read_the_same_bytes() {
    let mut memory: [u16; 512] = std::array::from_fn(|i| i as u16 * 127 + 3);
    let swizzled = ComposedLayout::new(Swizzle::new(3, 3, 3), 0.into(), layout!((8, 64):(64, 1)));
    let halves = ValueTensor::composed(&memory[..], swizzled);
    let (words, bytes) = (halves.recast::<u32>(), halves.recast::<u8>());
    assert_eq!(words.layout().inner(), &Swizzle::new(3, 2, 3));
    for row in 0..8 {
        for column in 0..64 {
            let half = halves[(row, column)].to_ne_bytes();
            let word = words[(row, column / 2)].to_ne_bytes();
            let begin = column as usize % 2 * 2;
            assert_eq!(half, word[begin..begin + 2]);
            assert_eq!(half, [0, 1].map(|b| bytes[(row, 2 * column + b)]));
        }
    }
    let mut writable = ValueTensor::composed(&mut memory[..], swizzled).recast_mut::<u64>();
    writable[(1, 2)] = u64::MAX;
    // Row 1 begins at 64, and its vectors of 8 halves change places with their neighbours.
    assert_eq!(memory.iter().position(|&half| half == u16::MAX), Some(64));
}
