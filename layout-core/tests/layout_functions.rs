//! Examples from tutorials on CuTe: layouts as functions, and all forms of coordinates.

use cutlet_layout_core::*;

fn rows(layout: &Layout) -> Vec<Vec<i64>> {
    let (m, n) = (layout.mode(0).size(), layout.mode(1).size());
    (0..m)
        .map(|i| (0..n).map(|j| layout.index((i, j))).collect())
        .collect()
}

fn l(text: &str) -> Layout {
    text.parse().unwrap()
}

#[test]
fn four_matrices() {
    assert_eq!(rows(&l("(2,3):(1,2)")), [[0, 2, 4], [1, 3, 5]]);
    assert_eq!(rows(&l("(2,3):(3,1)")), [[0, 1, 2], [3, 4, 5]]);
    assert_eq!(
        rows(&l("((2,2),2):((4,2),1)")),
        [[0, 1], [4, 5], [2, 3], [6, 7]]
    );
    assert_eq!(
        rows(&l("(8,(2,2)):(2,(1,16))")),
        [
            [0, 1, 16, 17],
            [2, 3, 18, 19],
            [4, 5, 20, 21],
            [6, 7, 22, 23],
            [8, 9, 24, 25],
            [10, 11, 26, 27],
            [12, 13, 28, 29],
            [14, 15, 30, 31],
        ]
    );
}

#[test]
fn vectors() {
    let indices = |text: &str| (0..8).map(|c| l(text).at(c)).collect::<Vec<_>>();
    assert_eq!(indices("8:1"), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(indices("8:2"), [0, 2, 4, 6, 8, 10, 12, 14]);
    assert_eq!(indices("((4,2)):((2,1))"), [0, 2, 4, 6, 1, 3, 5, 7]);
    assert_eq!(indices("((4,2)):((1,4))"), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn all_coordinates_of_an_index() {
    let a = l("(3,(2,3)):(3,(12,1))");
    assert_eq!(
        rows(&a),
        [
            [0, 12, 1, 13, 2, 14],
            [3, 15, 4, 16, 5, 17],
            [6, 18, 7, 19, 8, 20]
        ]
    );
    assert_eq!(
        (a.index(16), a.index((1, 5)), a.index((1, (1, 2)))),
        (17, 17, 17)
    );
    // The element at 13 is 5; the element at 4 is 15.
    assert_eq!((a.index(4), a.index((1, 1)), a.index(13)), (15, 15, 5));
}

#[test]
fn idx2crd_to_the_letter() {
    let s = shape!((3, (2, 3)));
    let (one, two, five, sixteen) = (1, 2, 5, 16);
    let printed = [
        (shape!(dyn sixteen), "(1,(1,2))"),
        (shape!(16), "(_1,(_1,_2))"),
        (shape!((dyn one, dyn five)), "(1,(1,2))"),
        (shape!((1, dyn five)), "(_1,(1,2))"),
        (shape!((dyn one, (dyn one, dyn two))), "(1,(1,2))"),
        (shape!((1, (dyn one, 2))), "(_1,(1,_2))"),
    ];
    for (coord, text) in printed {
        assert_eq!(idx2crd(&coord, &s).to_string(), text);
    }
}

#[test]
fn crd2idx_to_the_letter() {
    let (s, d) = (shape!((3, (2, 3))), shape!((3, (12, 1))));
    let (one, two, five, sixteen) = (1, 2, 5, 16);
    let printed = [
        (shape!(dyn sixteen), "17"),
        (shape!(16), "_17"),
        (shape!((dyn one, dyn five)), "17"),
        (shape!((1, dyn five)), "17"),
        (shape!((1, 5)), "_17"),
        (shape!((dyn one, (dyn one, dyn two))), "17"),
        (shape!((1, (1, 2))), "_17"),
    ];
    for (coord, text) in printed {
        assert_eq!(crd2idx(&coord, &s, &d).to_string(), text);
    }
}
