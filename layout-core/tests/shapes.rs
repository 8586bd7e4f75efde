//! Examples from tutorials on CuTe: nested shapes, their coordinates, and their quotients and
//! remainders.

use cutlet_layout_core::*;

#[test]
fn natural_coordinates() {
    let s = shape!(((2, 2), (4, 2), (2, 3)));
    assert_eq!(idx2crd(&191.into(), &s).to_string(), "((1,1),(3,1),(1,2))");
    assert_eq!(product_each(&s).to_string(), "(_4,_8,_6)");
    // The steps on the way: 191 -> (31,5) -> (31,(1,2)) -> (3,7,(1,2)), where the tutorial's
    // "32/4" should read 31/4.
    assert_eq!((191 % 32, 191 / 32, 31 % 4, 31 / 4), (31, 5, 3, 7));
    assert_eq!(
        idx2crd(&(3, 7, (1, 2)).into(), &s),
        idx2crd(&191.into(), &s)
    );
    assert_eq!(
        linear_coordinate(&((1, 1), (3, 1), (1, 2)).into(), &s),
        191.into()
    );
}

#[test]
fn the_list_of_all_coordinates() {
    let s = shape!(((2, 2), (4, 2), (2, 3)));
    let listed: Vec<String> = (0..s.size())
        .map(|i| format!("{i:03} |{}", idx2crd(&i.into(), &s)))
        .collect();
    assert_eq!(listed.len(), 192);
    assert_eq!(listed[0], "000 |((0,0),(0,0),(0,0))");
    assert_eq!(listed[191], "191 |((1,1),(3,1),(1,2))");
    for (line, coord) in listed.iter().zip(coordinates(&s)) {
        assert_eq!(line[5..], coord.to_string());
    }
}

#[test]
fn a_layout_divided_by_an_integer() {
    let (w, x, y, z) = (1000, 2000, 3000, 5000);
    let a = layout!((3, 6, 2, 8):(dyn w, dyn x, dyn y, dyn z));
    assert_eq!(
        layout_div(&a, Int::fixed(72)).to_string(),
        "(_1,_1,_1,_4):(72000,48000,12000,10000)"
    );
    assert_eq!(
        shape_div(&shape!((3, 6, 2, 8)), &shape!(72)).to_string(),
        "(_1,_1,_1,_4)"
    );
}

#[test]
fn the_first_elements_of_a_shape() {
    let kept = |s: IntTuple, n: i64| shape_mod(&s, &n.into());
    assert_eq!(kept(shape!((6, 2)), 2), shape!((2, 1)));
    assert_eq!(kept(shape!((6, 2)), 12), shape!((6, 2)));
    assert_eq!(kept(shape!((3, 6, 2, 8)), 6), shape!((3, 2, 1, 1)));
    assert_eq!(kept(shape!((3, 6, 2, 8)), 9), shape!((3, 3, 1, 1)));
}
