//! Functions of swizzled layouts.

use crate::check::{answer, check};
use cutlet_calculator::{Options, evaluate};

const TILE: &str = "Sw<3,0,3> o 0 o (8,8):(8,1)";

fn at(text: &str, c: i64) -> i64 {
    let index = evaluate(text).unwrap().at(c).unwrap();
    index.as_int().unwrap().value()
}

#[test]
fn swizzled_layouts_are_sliced() {
    check(&[
        (
            "slice((_,1), Sw<3,0,3> o 0 o (8,8):(8,1))",
            "Sw<3,0,3> o 1 o (8):(8)",
        ),
        (
            "dice((_,1), Sw<3,0,3> o 0 o (8,8):(8,1))",
            "Sw<3,0,3> o 0 o (8):(1)",
        ),
        (
            "slice_and_offset((_,1), Sw<3,0,3> o 0 o (8,8):(8,1))",
            "(Sw<3,0,3> o 1 o (8):(8), _0)",
        ),
        // Python has the coordinate last.
        (
            "cute.slice_(Sw<3,0,3> o 0 o (8,8):(8,1), (None, 1))",
            "Sw<3,0,3> o 1 o (8):(8)",
        ),
    ]);
    for c in 0..8 {
        assert_eq!(at(&format!("slice((_,1), {TILE})"), c), at(TILE, 8 + c));
    }
}

#[test]
fn swizzled_layouts_have_left_inverses() {
    check(&[
        (
            "left_inverse(Sw<3,0,3> o 0 o (_8,_8):(_8,_1))",
            "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)",
        ),
        ("left_inverse(Sw<3,0,3>)", "Sw<3,0,3>"),
        ("left_inverse(4:1 o 0 o 2:1)", "2:1"),
    ]);
    let inverse = format!("left_inverse({TILE})");
    for c in 0..64 {
        assert_eq!(at(&inverse, at(TILE, c)), c);
    }
}

#[test]
fn swizzled_layouts_have_vectors_in_common() {
    check(&[
        (
            "max_common_vector(Sw<3,0,3> o 0 o (8,8):(8,1), (8,8):(8,1))",
            "_1",
        ),
        (
            "max_common_vector(Sw<3,3,3> o 0 o (_8,_64):(_64,_1), (_8,_64):(_64,_1))",
            "_8",
        ),
        (
            "max_common_vector((_8,_64):(_64,_1), Sw<3,3,3> o 0 o (_8,_64):(_64,_1))",
            "_8",
        ),
        (
            "max_common_vector(Sw<3,3,3> o 0 o (_8,_64):(_64,_1), Sw<2,2,3> o 0 o (_8,_64):(_64,_1))",
            "_4",
        ),
        (
            "max_common_vector(Sw<3,3,3> o 0 o (_8,_64):(_64,_1), Sw<3,3,3> o 0 o (_8,_64):(_64,_1))",
            "_512",
        ),
        (
            "max_common_layout(Sw<3,3,3> o 0 o (_8,_64):(_64,_1), (_8,_64):(_64,_1))",
            "_8:_8",
        ),
        (
            "max_common_vector(4:1 o 0 o 2:1, 4:1)",
            "error: column 19: max_common_vector: the inner of `4:1 o 0 o 2:1` is a layout, but only a swizzle can be \
             changed with its layout",
        ),
    ]);
}

/// As in CuTe, a swizzle that is applied before a layout moves behind it.
#[test]
fn a_swizzle_is_applied_before_a_layout() {
    check(&[
        (
            "(_8,_8):(_8,_1) o Sw<3,0,3>",
            "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)",
        ),
        (
            "composition((_8,_8):(_8,_1), Sw<3,0,3>)",
            "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)",
        ),
        (
            "(_8,_8):(_8,_1) o (Sw<3,0,3> o 0 o (_4,_2):(_1,_8))",
            "Sw<3,0,-3> o _0 o (_4,_2):(_8,_1)",
        ),
        (
            "(Sw<3,0,3> o (_8,_8):(_1,_8)) o Sw<3,0,3>",
            "Sw<0,0,0> o _0 o (_8,_8):(_1,_8)",
        ),
        (
            "(_8,_6):(_6,_1) o Sw<3,0,3>",
            "error: column 19: composition: (8,6):(6,1) o Sw<3,0,3>: the layout does not permute bits: give extents and \
             strides that are powers of 2",
        ),
        (
            "(_8,_8):(_8,_1) o (Sw<3,0,3> o 1 o 8:1)",
            "error: column 19: `Sw<3,0,3> o 1 o 8:1` has an offset, so its swizzle does not compose with a layout: give \
             the offset 0",
        ),
    ]);
    let both = "(_8,_8):(_8,_1) o Sw<3,0,3>";
    for c in 0..64 {
        let swizzled = answer(&format!("Sw<3,0,3>({c})"), Options::default());
        assert_eq!(at(both, c), at("(8,8):(8,1)", swizzled.parse().unwrap()));
    }
}

#[test]
fn a_cosize_covers_every_index() {
    check(&[
        ("cosize(8:-1)", "8"),
        ("cosize(Sw<3,0,3> o 0 o 8:8)", "64"),
        ("cosize(Sw<3,0,3> o _0 o _8:_8)", "_64"),
        ("cosize(Sw<3,0,3> o 0 o 4:1)", "4"),
        ("cosize(Sw<3,0,3> o 5 o 4:1)", "10"),
        ("cosize<1>(Sw<3,0,3> o 0 o (8,4):(8,1))", "4"),
        ("cosize(gather([7,250,0,13]) o 0 o (2,2):(1,2))", "251"),
        (
            "cosize(Sw<3,0,3> o 0 o (4096,4096):(4096,1))",
            "error: column 8: the cosize of a composed layout looks at all coordinates: 16777216 are more than 1048576",
        ),
    ]);
    for text in [TILE, "Sw<2,1,3> o 3 o (4,3):(7,2)", "Sw<1,0,-2> o 0 o 3:3"] {
        let cosize: i64 = answer(&format!("cosize({text})"), Options::default())
            .parse()
            .unwrap();
        let size = evaluate(text).unwrap().size().unwrap();
        assert_eq!(
            cosize,
            (0..size).map(|c| at(text, c)).max().unwrap() + 1,
            "{text}"
        );
    }
}

#[test]
fn a_torn_swizzle_is_told_in_the_words_of_the_input() {
    check(&[
        (
            "upcast(Sw<2,0,3> o 0 o 8:1,2)",
            "error: column 28: recast: Sw<2,0,3> in elements that are 2 times as wide: the swizzle moves 1 of the old \
             elements at a time, so it would tear a new one: choose narrower elements",
        ),
        (
            "upcast(Sw<2,1,3> o 1 o 8:1,2)",
            "error: column 28: recast: the offset 1 in elements that are 2 times as wide: it would be inside an element: \
             begin where an element does",
        ),
    ]);
}

#[test]
fn complements_and_fragments_are_those_of_the_outer_layout() {
    check(&[
        ("complement(Sw<3,0,3> o 0 o (_8,_8):(_8,_1), 128)", "2:_64"),
        (
            "make_fragment_like(Sw<3,0,3> o 0 o (_8,_8):(_8,_1))",
            "(_8,_8):(_1,_8)",
        ),
    ]);
}
