//! Slicing and dicing: the modes that are kept, and their offset.

use cutlet_layout_core::*;

#[test]
fn what_underscores_keep() {
    let a = layout!(((2, 3), (4, (5, 6))):((1, 2), (6, (24, 120))));
    let kept = |coord: IntTuple| slice(&coord, &a).to_string();
    assert_eq!(kept(shape!(_)), a.to_string());
    assert_eq!(kept(shape!((_, _))), a.to_string());
    assert_eq!(kept(shape!((_, 3))), "((_2,_3)):((_1,_2))");
    assert_eq!(
        kept(shape!(((_, 1), _))),
        "(_2,(_4,(_5,_6))):(_1,(_6,(_24,_120)))"
    );
    assert_eq!(
        kept(shape!(((1, _), (_, (2, _))))),
        "(_3,_4,_6):(_2,_6,_120)"
    );
    let diced = |coord: IntTuple| dice(&coord, &a).to_string();
    assert_eq!(diced(shape!((_, 3))), "((_4,(_5,_6))):((_6,(_24,_120)))");
    assert_eq!(diced(shape!(((1, _), (_, (2, _))))), "(_2,_5):(_1,_24)");
    assert_eq!(diced(shape!(7)), a.to_string());
}

#[test]
fn a_slice_and_its_offset_are_the_layout() {
    let a = layout!(((2, 3), (4, (5, 6))):((1, 2), (6, (24, 120))));
    let (kept, offset) = slice_and_offset(&shape!(((1, _), (_, (2, _)))), &a);
    let offset = offset.as_int().unwrap();
    assert_eq!(offset.to_string(), "_49");
    for coord in coordinates(&kept.shape()) {
        let (i, j, k) = (coord.leaf(0), coord.leaf(1), coord.leaf(2));
        let whole = IntTuple::from(((1, i), (j, (2, k))));
        assert_eq!(
            offset.value() + kept.call(&coord).leaf(0).value(),
            a.call(&whole).leaf(0).value()
        );
    }
}

#[test]
fn offsets_of_coordinates() {
    let id = identity(&shape!((8, 4)));
    let (row, offset) = slice_and_offset(&shape!((3, _)), &id);
    assert_eq!(
        (row.to_string(), offset.to_string()),
        ("(_4):(_1@1)".into(), "(_3,_0)".into())
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let a = layout!((4, (2, 3)):(1, (4, 8)));
    assert!(try_slice(&shape!((_, _, _)), &a).is_err());
    assert!(try_slice(&shape!(((1, _), _)), &a).is_err());
    let error = try_slice(&shape!((1, 2)), &a).unwrap_err();
    assert!(error.message().contains("no mode is left"), "{error}");
    assert!(try_dice(&shape!((_, _)), &a).is_err());
}
