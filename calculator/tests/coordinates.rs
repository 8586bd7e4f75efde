//! Coordinates of indices, and indices of coordinates: each is the other backwards.

use crate::check::{answer, check};
use cutlet_calculator::Options;

const LAYOUTS: [&str; 9] = [
    "(4,2):(2,1)",
    "(4,2):(1,4)",
    "(3,(2,3)):(3,(12,1))",
    "((2,2),3):((3,12),1)",
    "(3,2):(2,3)",
    "8:-1",
    "(2,2):(-3,5)",
    "Sw<2,0,2> o 0 o (4,4):(4,1)",
    "Sw<1,0,1> o 5 o (2,3):(1,4)",
];

/// `crd2idx(idx2crd(i, A), A) == i`, for each index of each layout, in all forms of coordinates.
#[test]
fn the_coordinate_of_an_index_has_this_index() {
    let ours = |text: &str| answer(text, Options::default());
    for layout in LAYOUTS {
        let size: i64 = ours(&format!("size({layout})")).parse().unwrap();
        for c in 0..size {
            let index = ours(&format!("({layout})({c})"));
            for form in [
                "idx2crd(I, A)",
                "get_hier_coord(A, I)",
                "get_flat_coord(A, I)",
                "get_1d_coord(A, I)",
            ] {
                let form = form.replace('A', layout).replace('I', &index);
                let coord = ours(&form);
                assert_eq!(
                    ours(&format!("crd2idx({coord}, {layout})")),
                    index,
                    "{form} is {coord}"
                );
            }
        }
    }
}

#[test]
fn coordinates_of_layouts_and_of_shapes() {
    check(&[
        ("idx2crd(1, (4,2):(2,1))", "(0,1)"),
        ("idx2crd(1, (4,2))", "(1,0)"),
        ("idx2crd(1, (4,2), (2,1))", "(0,1)"),
        ("idx2crd(_17, (_3,(_2,_3)):(_3,(_12,_1)))", "(_1,(_1,_2))"),
        ("idx2crd((6,1), (4,2):(2,1))", "(3,1)"),
        ("idx2crd(17, (M,N):(N,1))", "(0,17)"),
        // No coordinate has the index.
        (
            "idx2crd(100, (4,2):(2,1))",
            "error: column 14: `(4,2):(2,1)` gives no coordinate the index 100: give one of its indices",
        ),
        (
            "idx2crd(3, (2,2), (1,4))",
            "error: column 9: `(2,2):(1,4)` gives no coordinate the index 3: give one of its indices",
        ),
        (
            "get_flat_coord(Sw<1,0,1> o 5 o (2,3):(1,4), 3)",
            "error: column 16: `Sw<1,0,1> o 5 o (2,3):(1,4)` gives no coordinate the index 3: give one of its indices",
        ),
        (
            "idx2crd((6,1,1), (4,2):(2,1))",
            "error: column 9: `(6,1,1)` does not fit the shape (4,2): give an index, or one for each mode",
        ),
        ("crd2idx((1,0), Sw<3,0,3> o 0 o (8,8):(8,1))", "9"),
    ]);
}

#[test]
fn a_list_without_coordinates_is_none() {
    check(&[
        ("coordinates_of((4,2):(2,1), 100)", "none"),
        ("coordinates_of(Sw<1,0,1> o 5 o (2,3):(1,4), 3)", "none"),
        ("coordinates_of((4,2):(2,1), 7)", "7 (3,1)"),
    ]);
}

#[test]
fn coordinates_of_other_shapes_are_inside() {
    check(&[
        (
            "crd2crd((5,6), (6,9), (27,2))",
            "error: column 9: crd2crd: 6 to 2: the shape has fewer coordinates: give one of as many in each mode, or a 1-D \
             coordinate",
        ),
        ("crd2crd(41, (6,9), (27,2))", "(14,1)"),
        ("nullspace((2,12):(14,0))", "12:2"),
    ]);
}
