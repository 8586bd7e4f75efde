//! Tiles and partitions: what CuTe's functions on tensors return, with the offset as a value.

use crate::check::{check, check_static};
use cutlet_calculator::{Value, evaluate};

#[test]
fn tiles_have_an_offset() {
    check(&[
        ("local_tile((8,8):(8,1), (4,4), (0,1))", "((4,4):(8,1), 4)"),
        ("local_tile((8,8):(8,1), <4,4>, 3)", "((4,4):(8,1), 36)"),
        // Coordinates of tiles that are not given are kept: here the columns of tiles.
        (
            "local_tile((8,8):(8,1), (4,4), (1,_))",
            "((4,4,2):(8,1,4), 32)",
        ),
        (
            "local_tile((8,8,3):(8,1,64), (4,4), (1,0))",
            "((4,4,3):(8,1,64), 32)",
        ),
        // "dice(proj, tiler), dice(proj, coord)": a projection drops the mode that has `_`.
        (
            "local_tile((8,8):(8,1), (4,2,4), (0,_,1), Step<_1,X,_1>{})",
            "((4,4):(8,1), 4)",
        ),
        (
            "cute.local_tile((8,8):(8,1), tiler=(4,2,4), coord=(0,1,1), proj=(1,None,1))",
            "((4,4):(8,1), 4)",
        ),
        (
            "local_tile((8,8):(8,1), (4,2,4), (0,_,1), make_step(_1, X, _1))",
            "((4,4):(8,1), 4)",
        ),
        (
            "local_tile(Sw<3,0,3> o 0 o (8,8):(8,1), (4,4), (0,1))",
            "Sw<3,0,3> o 4 o (4,4):(8,1)",
        ),
        (
            "inner_partition((8,8):(8,1), <4,4>, (1,1))",
            "((4,4):(8,1), 36)",
        ),
        (
            "local_tile((8,8):(8,1), (4,4), (0,1), Step<_1,X,_1>{})",
            "error: column 39: the projection (_1,_,_1) has 3 modes, but 2 are projected: give `_` or an integer for each",
        ),
    ]);
}

#[test]
fn threads_have_a_part_of_each_tile() {
    check(&[
        // Thread 5 of (2,4):(4,1) is at (1,1).
        (
            "local_partition((8,8):(8,1), (2,4):(4,1), 5)",
            "((4,2):(16,4), 9)",
        ),
        (
            "local_partition(local_tile((8,8):(8,1), (4,4), (1,1)), (2,2):(2,1), 3)",
            "((2,2):(16,2), 45)",
        ),
        (
            "local_partition((8,8):(8,1), (2,1,4):(4,8,1), 5, Step<_1,X,_1>{})",
            "((4,2):(16,4), 9)",
        ),
        (
            "outer_partition((8,8):(8,1), <2,4>, (1,1))",
            "((4,2):(16,4), 9)",
        ),
    ]);
}

/// The tiles, and the parts of all threads, are the whole layout.
#[test]
fn tiles_and_parts_cover_the_layout() {
    let indices = |text: &str| -> Vec<i64> {
        let part = evaluate(text).unwrap();
        assert!(matches!(part, Value::Sliced(_)), "{part}");
        let at = |c| part.at(c).unwrap().as_int().unwrap().value();
        (0..part.size().unwrap()).map(at).collect()
    };
    let a = "(6,8):(1,6)";
    let tiles = (0..8).map(|tile| format!("local_tile({a}, (3,2), {tile})"));
    let threads = (0..6).map(|thread| format!("local_partition({a}, (2,3):(3,1), {thread})"));
    let [tiles, threads] = [tiles.collect::<Vec<_>>(), threads.collect()].map(|all| {
        let mut all: Vec<i64> = all.iter().flat_map(|text| indices(text)).collect();
        all.sort_unstable();
        all.dedup();
        all
    });
    assert_eq!(tiles, (0..48).collect::<Vec<_>>());
    // Three columns do not divide eight: the last tile reaches beyond.
    assert!((0..48).all(|index| threads.contains(&index)));
}

#[test]
fn parts_are_layouts_too() {
    check(&[
        ("local_tile((8,8):(8,1), (4,4), (0,1))(1,0)", "12"),
        (
            "local_tile((8,8):(8,1), (4,4), (0,1))(1,_)",
            "((4):(1), 12)",
        ),
        ("local_tile((8,8):(8,1), (4,4), (0,1))[0]", "(4,4):(8,1)"),
        ("local_tile((8,8):(8,1), (4,4), (0,1))[1]", "4"),
        ("size(local_tile((8,8):(8,1), (4,4), (0,1)))", "16"),
        ("get<1>(slice_and_offset((7,_), (8,8):(6,59)))", "42"),
        (
            "tile, offset = slice_and_offset((7,_), (8,8):(6,59)); offset",
            "42",
        ),
        (
            "auto [tile, offset] = slice_and_offset((7,_), (8,8):(6,59)); tile",
            "(8):(59)",
        ),
        (
            "a, b, c = slice_and_offset((7,_), (8,8):(6,59))",
            "error: column 11: 3 variables need as many values, but `((8):(59), 42)` is a layout with an offset",
        ),
    ]);
}

/// The example of CuTe's Python: "*Tiler MN*: `(4,6)`, *TV Layout*: `((3,2),(2,2)):((8,2),(4,1))`".
#[test]
fn thread_value_layouts_are_made() {
    check_static(&[
        (
            "thr_layout = cute.make_layout((2, 3), stride=(3, 1))
val_layout = cute.make_layout((2, 2), stride=(2, 1))
tiler_mn, layout_tv = cute.make_layout_tv(thr_layout, val_layout)",
            "((_4,_6), ((_3,_2),(_2,_2)):((_8,_2),(_4,_1)))",
        ),
        (
            "tiler, tv = make_layout_tv((2,3):(3,1), (2,2):(2,1)); tiler",
            "(_4,_6)",
        ),
    ]);
    check(&[(
        "make_layout_tv((2,3):(4,1), (2,2):(2,1))",
        "error: column 29: make_layout_tv: threads (2,3):(4,1) and values (2,2):(2,1) leave gaps: give compact layouts",
    )]);
}
