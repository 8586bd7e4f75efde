//! Examples from tutorials on CuTe: integers, int tuples, layouts and their basic operations.

use cutlet_layout_core::*;

fn l(text: &str) -> Layout {
    text.parse().unwrap()
}

#[test]
fn integer_traits() {
    let (fixed, dynamic) = (Int::fixed(3), Int::dynamic(3));
    assert!(fixed.is_integral() && dynamic.is_integral());
    assert!(!fixed.is_std_integral() && dynamic.is_std_integral());
    assert!(fixed.is_static() && !dynamic.is_static());
    assert!(fixed.is_constant(3) && !fixed.is_constant(2) && !dynamic.is_constant(3));
}

#[test]
fn int_tuples() {
    let mixed = IntTuple::tuple(&[Int::dynamic(2).into(), Int::fixed(3).into()]);
    assert_eq!(mixed.to_string(), "(2,_3)");
    let t = shape!((3, (6, 2), 8));
    assert_eq!((t.rank(), t.depth(), t.size()), (3, 2, 288));
    assert_eq!(t.get(&[1]).to_string(), "(_6,_2)");
    assert_eq!(
        (IntTuple::int(Int::fixed(3)).depth(), t.get(&[1]).depth()),
        (0, 1)
    );
    assert_eq!(
        (
            t.get(&[1]).rank(),
            t.get(&[1, 0]).depth(),
            t.get(&[1]).size()
        ),
        (2, 0, 12)
    );
}

#[test]
fn construction_and_printing() {
    let (four, two) = (4, 2);
    let s2xh4 = layout!((dyn two, (dyn two, dyn two)):(dyn four, (dyn two, {1}))).to_dynamic();
    let printed = [
        (Layout::col_major(&shape!(8)), "_8:_1"),
        (Layout::col_major(&IntTuple::from(8)), "8:_1"),
        (Layout::col_major(&shape!((2, 4))), "(_2,_4):(_1,_2)"),
        (Layout::col_major(&shape!((2, dyn four))), "(_2,4):(_1,_2)"),
        (layout!((2, dyn four):(12, 1)), "(_2,4):(_12,_1)"),
        (Layout::row_major(&shape!((2, dyn four))), "(_2,4):(4,_1)"),
        (s2xh4, "(2,(2,2)):(4,(2,1))"),
        (Layout::col_major(&s2xh4.shape()), "(2,(2,2)):(_1,(2,4))"),
    ];
    for (layout, text) in printed {
        assert_eq!(layout.to_string(), text);
    }
    assert!(congruent(&s2xh4.shape(), &s2xh4.stride()));
}

#[test]
fn cosize_is_the_last_index_plus_one() {
    let a = l("(3,(2,3)):(3,(12,1))");
    assert_eq!(a.cosize(), a.at(a.size() - 1) + 1);
}

#[test]
fn a_cosize_covers_every_index() {
    for (text, cosize) in [
        ("8:-1", 8),
        ("(4,2):(-1,4)", 8),
        ("(4,3):(1,0)", 4),
        ("1:-5", 1),
        ("(2,2):(-3,-3)", 7),
    ] {
        let a = l(text);
        let indices: Vec<i64> = (0..a.size()).map(|c| a.at(c)).collect();
        let (least, greatest) = (indices.iter().min().unwrap(), indices.iter().max().unwrap());
        assert_eq!(a.cosize(), greatest - least + 1, "{a}");
        assert_eq!(a.cosize(), cosize, "{a}");
        assert_eq!(a.maps_below_zero(), *least < 0, "{a}");
    }
}

#[test]
fn vector_and_matrix() {
    let vector = l("((4,2)):((2,1))");
    assert_eq!(vector.rank(), 1);
    assert_eq!(
        (0..8).map(|c| vector.at(c)).collect::<Vec<_>>(),
        [0, 2, 4, 6, 1, 3, 5, 7]
    );
    let matrix = l("(4,2):(1,4)");
    let rows: Vec<_> = (0..4)
        .map(|m| [matrix.index((m, 0)), matrix.index((m, 1))])
        .collect();
    assert_eq!(rows, [[0, 4], [1, 5], [2, 6], [3, 7]]);
}

#[test]
fn compatibility_is_a_weak_partial_order() {
    assert!(compatible(&shape!((4, 6)), &shape!(((2, 2), 6))));
    assert!(!compatible(&shape!(((2, 3), 4)), &shape!(((2, 2), (3, 2)))));
    assert!(!compatible(&shape!((24)), &shape!(24)));
    assert!(compatible(&shape!(24), &shape!((24))));
    assert!(compatible(&shape!((24)), &shape!((24))));
}

#[test]
fn coordinates_of_3_2_2() {
    // The tutorial's table runs to (2,(1,2)): its shape is (3,(2,3)).
    let s = shape!((3, (2, 3)));
    let table = [
        (0, (0, 0), (0, (0, 0))),
        (1, (1, 0), (1, (0, 0))),
        (2, (2, 0), (2, (0, 0))),
        (3, (0, 1), (0, (1, 0))),
        (4, (1, 1), (1, (1, 0))),
        (5, (2, 1), (2, (1, 0))),
        (6, (0, 2), (0, (0, 1))),
        (7, (1, 2), (1, (0, 1))),
        (8, (2, 2), (2, (0, 1))),
        (9, (0, 3), (0, (1, 1))),
        (10, (1, 3), (1, (1, 1))),
        (11, (2, 3), (2, (1, 1))),
        (12, (0, 4), (0, (0, 2))),
        (13, (1, 4), (1, (0, 2))),
        (14, (2, 4), (2, (0, 2))),
        (15, (0, 5), (0, (1, 2))),
        (16, (1, 5), (1, (1, 2))),
        (17, (2, 5), (2, (1, 2))),
    ];
    for (one, two, natural) in table {
        assert_eq!(idx2crd(&one.into(), &s), natural.into());
        assert_eq!(idx2crd(&two.into(), &s), natural.into());
        assert_eq!(linear_coordinate(&natural.into(), &s), one.into());
        assert_eq!(linear_coordinate(&two.into(), &s), one.into());
    }
}

#[test]
fn sublayouts() {
    let a = Layout::col_major(&shape!((4, (3, 6))));
    assert_eq!(a, l("(4,(3,6)):(1,(4,12))"));
    assert_eq!(a.mode(0), l("4:1"));
    assert_eq!(a.mode(1), l("(3,6):(4,12)"));
    assert_eq!(a.get(&[1, 0]), l("3:4"));
    assert_eq!(a.get(&[1, 1]), l("6:12"));
    let a = Layout::col_major(&shape!((2, 3, 5, 7)));
    assert_eq!(a, l("(2,3,5,7):(1,2,6,30)"));
    assert_eq!(a.select(&[1, 3]), l("(3,7):(2,30)"));
    assert_eq!(a.select(&[0, 1, 3]), l("(2,3,7):(1,2,30)"));
    assert_eq!(a.select(&[2]), l("(5):(6)"));
    assert_eq!(a.take(1, 3), l("(3,5):(2,6)"));
    assert_eq!(a.take(1, 4), l("(3,5,7):(2,6,30)"));
    assert!(a.try_take(1, 1).is_err());
}

#[test]
fn concatenation() {
    let (a, b) = (layout!(3:1), layout!(4:3));
    let (row, col) = (Layout::concat2(&a, &b), Layout::concat2(&b, &a));
    assert_eq!(row, l("(3,4):(1,3)"));
    assert_eq!(col, l("(4,3):(3,1)"));
    assert_eq!(
        Layout::concat2(&row, &col),
        l("((3,4),(4,3)):((1,3),(3,1))")
    );
    let aa = Layout::concat(&[a]);
    assert_eq!(aa, l("(3):(1)"));
    assert_eq!(Layout::concat(&[aa]), l("((3)):((1))"));
    assert_eq!(Layout::concat(&[a, aa, a]), l("(3,(3),3):(1,(1),1)"));
    let ab = a.append(&b);
    assert_eq!(ab, l("(3,4):(1,3)"));
    assert_eq!(a.prepend(&b), l("(4,3):(3,1)"));
    let c = ab.append(&ab);
    assert_eq!(c, l("(3,4,(3,4)):(1,3,(1,3))"));
    assert_eq!(c.replace(2, &b), l("(3,4,4):(1,3,3)"));
}

#[test]
fn grouping_and_flattening() {
    let a = Layout::col_major(&shape!((2, 3, 5, 7)));
    assert_eq!(a.to_string(), "(_2,_3,_5,_7):(_1,_2,_6,_30)");
    let b = a.group(0, 2);
    assert_eq!(b.to_string(), "((_2,_3),_5,_7):((_1,_2),_6,_30)");
    let c = b.group(1, 3);
    assert_eq!(c.to_string(), "((_2,_3),(_5,_7)):((_1,_2),(_6,_30))");
    assert_eq!(b.flatten().to_string(), "(_2,_3,_5,_7):(_1,_2,_6,_30)");
    assert_eq!(c.flatten().to_string(), "(_2,_3,_5,_7):(_1,_2,_6,_30)");
    assert_eq!(a.unflatten(&c.shape()), c);
}
