//! What is printed reads back as what it was, for every value that has a notation.

use core::fmt::{Debug, Display};
use core::str::FromStr;

use cutlet_layout_core::*;
use proptest::prelude::*;

/// The text tells staticness, parentheses, directions and values, so it is all of a value.
fn check<T: Display + FromStr<Err: Debug>>(value: &T) -> Result<(), TestCaseError> {
    let text = value.to_string();
    let read: T = match text.parse() {
        Ok(read) => read,
        Err(error) => return Err(TestCaseError::fail(format!("{text}: {error:?}"))),
    };
    prop_assert_eq!(read.to_string(), text);
    Ok(())
}

fn int(plain: bool) -> impl Strategy<Value = Int> {
    let value = prop_oneof![8 => -20..60i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    let directions = prop::collection::vec(0..4usize, 0..3);
    (value, any::<bool>(), directions).prop_map(move |(value, fixed, directions)| {
        let basis = directions
            .iter()
            .fold(Basis::NONE, |basis, &b| basis.then(b));
        let int = if fixed {
            Int::fixed(value)
        } else {
            Int::dynamic(value)
        };
        int.along(if plain { Basis::NONE } else { basis })
    })
}

fn tuple() -> impl Strategy<Value = IntTuple> {
    let leaf = prop_oneof![
        8 => int(false).prop_map(IntTuple::int),
        1 => Just(IntTuple::UNDERSCORE),
    ];
    let nested = leaf.prop_recursive(3, 8, 3, |inner| {
        prop::collection::vec(inner, 1..4).prop_map(|modes| IntTuple::tuple(&modes))
    });
    prop_oneof![30 => nested, 1 => Just(IntTuple::EMPTY)]
}

fn layout() -> impl Strategy<Value = Layout> {
    let leaf =
        (1..9i64, any::<bool>(), int(false)).prop_filter_map("too large", |(s, fixed, d)| {
            let s = if fixed {
                Int::fixed(s)
            } else {
                Int::dynamic(s)
            };
            Layout::try_from_shape_stride(&s.into(), &d.into()).ok()
        });
    leaf.prop_recursive(3, 6, 3, |inner| {
        prop::collection::vec(inner, 1..3)
            .prop_filter_map("too large", |modes| Layout::try_concat(&modes).ok())
    })
}

fn tiler() -> impl Strategy<Value = Tiler> {
    let leaf = prop_oneof![
        4 => layout().prop_map(|layout| Tiler::layout(&layout)),
        2 => (1..9i64).prop_map(|s| Tiler::shape(&s.into())),
        1 => Just(Tiler::UNDERSCORE),
    ];
    leaf.prop_recursive(2, 4, 3, |inner| {
        prop::collection::vec(inner, 1..3)
            .prop_filter_map("too large", |items| Tiler::try_tuple(&items).ok())
    })
}

fn swizzle() -> impl Strategy<Value = Swizzle> {
    (0..5i64, 0..6i64, -9..10i64)
        .prop_filter_map("none", |(b, m, s)| Swizzle::try_new(b, m, s).ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tuples_layouts_tilers_and_swizzles(a in tuple(), b in layout(), c in tiler(), d in swizzle()) {
        check(&a)?;
        check(&b)?;
        check(&c)?;
        check(&d)?;
    }

    #[test]
    fn composed_layouts(
        sw in swizzle(), inner in layout(), offsets in [tuple(), tuple()], outers in [layout(), layout()],
    ) {
        let swizzled = ComposedLayout::new(sw, offsets[0], outers[0]);
        let composed = ComposedLayout::new(inner, offsets[0], outers[0]);
        check(&swizzled)?;
        check(&composed)?;
        check(&ComposedLayout::new(swizzled, offsets[1], outers[1]))?;
        check(&ComposedLayout::new(composed, offsets[1], outers[1]))?;
    }
}

#[test]
fn composed_layouts_of_coordinates() {
    for text in [
        "Sw<3,0,3> o (0,0) o (8,8):(1@0,1@1)",
        "(_8,_8):(_8,_1) o (_1,_0) o (_4,_4):(_1@0,_1@1)",
        "Sw<3,0,3> o _0 o (_8,_8):(_8,_1) o (2,_0) o (_4,_4):(_1@0,_1@1)",
    ] {
        let found = match text.parse::<ComposedLayout<Swizzle>>() {
            Ok(read) => read.to_string(),
            Err(_) => match text.parse::<ComposedLayout<Layout>>() {
                Ok(read) => read.to_string(),
                Err(_) => text
                    .parse::<ComposedLayout<ComposedLayout<Swizzle>>>()
                    .unwrap()
                    .to_string(),
            },
        };
        assert_eq!(found, text);
    }
}

#[test]
fn errors_have_the_column_in_the_whole_text() {
    let column = |text: &str| text.parse::<ComposedLayout<Layout>>().unwrap_err().column();
    assert_eq!(column("(8,8):(8,1) o (0,0) x (4):(1)"), Some(21));
    assert_eq!(column("(8,8):(8,1) o 0 o (4,4):(1)"), Some(19));
    assert_eq!(column("(8,8):(8,1) o 0 o 4:1 o"), Some(23));
}
