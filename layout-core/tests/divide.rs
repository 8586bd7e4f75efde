//! Division: every element is kept and the tile is the composition, for all small layouts.

use crate::model::{self, image, layouts, modes};
use cutlet_layout_core::*;
use proptest::prelude::*;

fn check(a: &Layout, b: &Layout) -> bool {
    let result = match try_logical_divide(a, &Tiler::layout(b)) {
        Ok(result) => result,
        Err(_) => return false,
    };
    assert_eq!(result.rank(), 2);
    assert!(
        b.is_compatible_with(&result.mode(0)),
        "{a} / {b} gives {result}"
    );
    for c in 0..b.size() {
        assert_eq!(
            result.index((c, 0)),
            a.at(b.at(c)),
            "{a} / {b} gives {result}"
        );
    }
    let mut kept = image(&modes(&result));
    kept.sort();
    let mut tile = model::coalesced(&modes(b));
    tile.retain(|m| m.1 != 0);
    tile.sort_by_key(|m| m.1);
    let ends = [1].into_iter().chain(tile.iter().map(|m| m.0 * m.1));
    let fills_its_holes = tile.iter().zip(ends).all(|(mode, end)| mode.1 % end == 0);
    if !fills_its_holes {
        return false;
    }
    for value in image(&modes(a)) {
        assert!(
            kept.binary_search(&value).is_ok(),
            "{a} / {b} gives {result}, without {value}"
        );
    }
    true
}

#[test]
fn every_element_is_kept() {
    let lefts = layouts(24, 2, &[None, Some(1), Some(7), Some(50)]);
    let mut rights = layouts(12, 1, &[Some(1), Some(2), Some(3), Some(4), Some(6)]);
    rights.extend(layouts(12, 2, &[None, Some(1), Some(4), Some(6), Some(12)]));
    let mut divided = 0u32;
    for a in &lefts {
        for b in &rights {
            divided += u32::from(check(&model::layout(a), &model::layout(b)));
        }
    }
    assert!(divided > 20_000, "{divided}");
}

#[test]
fn tiles_that_do_not_divide() {
    let result = logical_divide(&layout!((5, 8):(1, 5)), &tile!(2:4));
    assert_eq!(result.to_string(), "(_2,(_4,_5)):(_4,(_1,_8))");
    assert_eq!(result.size(), 40);
    assert_eq!(
        logical_divide(&layout!(127:1), &tile!(128)).to_string(),
        "(_128,_1):(_1,_0)"
    );
    // Element 2 is in a hole that no repetition of the tile fills.
    let holes = logical_divide(&layout!(5:1), &tile!((2, 2):(1, 3)));
    assert_eq!(image(&modes(&holes)), [0, 1, 3, 4]);
}

#[test]
fn tilers_of_all_kinds() {
    let a = layout!((8, (4, 3), 5):(1, (8, 32), 96));
    let zipped =
        |text: &str| zipped_divide(&a, &text.parse::<Tiler>().unwrap().to_static()).to_string();
    assert_eq!(
        zipped("<4,_>"),
        "((_4,(_4,_3)),(_2,_1,_5)):((_1,(_8,_32)),(_4,_0,_96))"
    );
    assert_eq!(
        zipped("<4,<2,3>>"),
        "((_4,(_2,_3)),(_2,(_2,_1),_5)):((_1,(_8,_32)),(_4,(_16,_0),_96))"
    );
    assert_eq!(
        zipped("<_,2:6>"),
        "((_8,_2),(_1,_6,_5)):((_1,_48),(_0,_8,_96))"
    );
    assert_eq!(zipped("32"), "(_32,_15):(_1,_32)");
    assert_eq!(zipped("(4,2)"), zipped("<4:1,2:1>"));
    assert_eq!(composition_by_mode(&a, &Tiler::UNDERSCORE), a);
    assert!(try_zipped_divide(&a, &tile!(<1, 1, 1, 1>)).is_err());
    assert!(try_zipped_divide(&layout!(8:1), &tile!(<4, 2>)).is_err());
}

#[test]
fn dynamic_extents_stay_dynamic() {
    let (m, k, ld) = (1000, 300, 1024);
    let a = layout!((dyn m, dyn k):(1, dyn ld));
    let tiles = zipped_divide(&a, &tile!(<128, 64>));
    assert_eq!(
        tiles.to_string(),
        "((_128,_64),(8,5)):((_1,1024),(_128,65536))"
    );
    assert!(!evenly_divides(&a.shape(), &tile!(<128, 64>)));
    assert!(evenly_divides(&a.shape(), &tile!(<8, 60>)));
}

/// A tiler of a layout: nested as it, of at most as many modes.
fn any_tiler(depth: u32) -> BoxedStrategy<Tiler> {
    let layout = prop::collection::vec((1..9i64, 0..9i64), 1..3).prop_map(|modes| {
        let leaf = |&(s, d): &(i64, i64)| Layout::leaf(Int::fixed(s), Int::fixed(d));
        match &modes[..] {
            [mode] => Tiler::layout(&leaf(mode)),
            modes => Tiler::layout(&Layout::concat(&modes.iter().map(leaf).collect::<Vec<_>>())),
        }
    });
    let extent = (1..9i64).prop_map(|s| Tiler::shape(&IntTuple::int(Int::fixed(s))));
    let leaf = prop_oneof![extent, layout];
    if depth == 0 {
        return leaf.boxed();
    }
    let tuple = prop::collection::vec(any_tiler(depth - 1), 1..3);
    prop_oneof![leaf, tuple.prop_map(|items| Tiler::tuple(&items))].boxed()
}

/// A layout of two or three modes with two modes each.
fn nested_layout() -> impl Strategy<Value = Layout> {
    let leaf = (1..9i64, 0..40i64, any::<[bool; 2]>()).prop_map(|(s, d, fixed)| {
        let int = |value, fixed| match fixed {
            true => Int::fixed(value),
            false => Int::dynamic(value),
        };
        Layout::leaf(int(s, fixed[0]), int(d, fixed[1]))
    });
    let mode = prop::collection::vec(leaf, 2).prop_map(|modes| Layout::concat(&modes));
    prop::collection::vec(mode, 2..4).prop_map(|modes| Layout::concat(&modes))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn larger_divisions(
        extents in prop::collection::vec(1..16i64, 1..4),
        tile in (1..40i64, 1..40i64),
        row_major in any::<bool>(),
    ) {
        let shape = IntTuple::fixed(&extents);
        let a = if row_major { Layout::row_major(&shape) } else { Layout::col_major(&shape) };
        check(&a, &Layout::static_mode(tile.0, tile.1));
    }

    // "composition(layout, make_layout(tiler, complement(tiler, size(layout))))"
    #[test]
    fn a_divide_is_a_composition_with_the_tiler_and_its_complement(
        a in nested_layout(),
        b in prop::collection::vec((1..9i64, 0..30i64), 1..4),
    ) {
        for a in [a, a.to_static()] {
            let b = model::layout(&b);
            let divided = try_logical_divide(&a, &Tiler::layout(&b));
            let by_definition = try_complement(&b, &a.size_int().into())
                .and_then(|rest| Layout::try_concat(&[b, rest]))
                .and_then(|both| try_composition(&a, &both));
            match (divided, by_definition) {
                (Ok(divided), Ok(defined)) if a.is_static() => prop_assert_eq!(divided, defined),
                (Ok(divided), Ok(defined)) => {
                    prop_assert_eq!(image(&modes(&divided)), image(&modes(&defined)))
                }
                (divided, defined) => {
                    prop_assert_eq!(divided.map_err(|e| e.kind()), defined.map_err(|e| e.kind()))
                }
            }
        }
    }

    // "Indeed, it is always the case that layout<0>(zipped_divide(a, b)) == composition(a, b)."
    #[test]
    fn the_tile_is_the_composition(a in nested_layout(), b in any_tiler(2)) {
        if let Ok(tiles) = try_zipped_divide(&a, &b) {
            let tile = try_composition_by_mode(&a, &b);
            prop_assert_eq!(tile.map(|t| t.to_string()), Ok(tiles.mode(0).to_string()), "{} {}", a, b);
        }
    }

    #[test]
    fn divisions_by_mode(
        m in 1..200i64, n in 1..200i64, tm in 1..70i64, tn in 1..70i64,
    ) {
        let a = Layout::row_major(&IntTuple::dynamic(&[m, n]));
        let tiler = Tiler::shape(&IntTuple::fixed(&[tm, tn]));
        let tiles = zipped_divide(&a, &tiler);
        let tile_of = |i: i64, j: i64| ((i % tm, j % tn), (i / tm, j / tn));
        for (i, j) in [(0, 0), (m - 1, n - 1), (m / 2, n / 3), (m - 1, 0)] {
            prop_assert_eq!(tiles.index(tile_of(i, j)), i * n + j);
        }
        let counts = product_each(&tiles.mode(1).shape());
        prop_assert_eq!(counts, IntTuple::fixed(&[(m + tm - 1) / tm, (n + tn - 1) / tn]));
        let flat = flat_divide(&a, &tiler);
        let tiled = tiled_divide(&a, &tiler);
        prop_assert_eq!(flat.size(), tiles.size());
        prop_assert_eq!(tiled.mode(0), tiles.mode(0));
    }
}

/// `_` keeps its mode. If tiles and rests are gathered, the mode is its own tile, because "it is
/// always the case that `layout<0>(zipped_divide(a, b)) == composition(a, b)`", and a composition
/// keeps the mode too. Pycute breaks this: there the mode is a rest whose tiles have one element.
/// The C++ templates accept `_` only for modes of rank 2, and make the first half the tile.
#[test]
fn underscores_keep_modes() {
    let a = layout!((8, (4, 6)):(24, (6, 1)));
    let tiler = tile!(<_, 4>);
    for (found, expected) in [
        (logical_divide(&a, &tiler), "(_8,(_4,_6)):(_24,(_6,_1))"),
        (
            zipped_divide(&a, &tiler),
            "((_8,_4),(_1,_6)):((_24,_6),(_0,_1))",
        ),
        (tiled_divide(&a, &tiler), "((_8,_4),_1,_6):((_24,_6),_0,_1)"),
        (flat_divide(&a, &tiler), "(_8,_4,_1,_6):(_24,_6,_0,_1)"),
        (composition_by_mode(&a, &tiler), "(_8,_4):(_24,_6)"),
        (
            zipped_divide(&a, &tile!(_)),
            "((_8,(_4,_6)),_1):((_24,(_6,_1)),_0)",
        ),
    ] {
        assert_eq!(found.to_string(), expected);
    }
}

/// "layout<0>(zipped_divide(a, b)) == composition(a, b)", for tilers of all kinds.
#[test]
fn the_tile_of_a_zipped_divide_is_the_composition() {
    let dynamic: Layout = "(8,(4,6),5):(24,(6,1),192)".parse().unwrap();
    for a in [layout!((8, (4, 6), 5):(24, (6, 1), 192)), dynamic] {
        for text in [
            "_",
            "<_>",
            "<_,4>",
            "<4,_>",
            "<_,_,_>",
            "<_,<_,3>>",
            "<2:4,<_,3>,_>",
            "<_,(2,3):(1,4)>",
            "<<2>,_,5>",
            "(4,_)",
            "(_,8,_)",
            "16:2",
        ] {
            let tiler: Tiler = text.parse().unwrap();
            let tile = zipped_divide(&a, &tiler).mode(0);
            let composed = composition_by_mode(&a, &tiler);
            assert_eq!(tile.to_string(), composed.to_string(), "{a} by {text}");
            assert_eq!(tiled_divide(&a, &tiler).mode(0), composed, "{a} by {text}");
        }
    }
}

#[test]
fn a_composition_drops_the_modes_that_its_tiler_does_not_reach() {
    let a = layout!((8, (4, 6), 5):(1, (8, 32), 192));
    for (tiler, expected) in [
        (tile!(<4>), "(_4):(_1)"),
        (tile!(<4, <2>>), "(_4,(_2)):(_1,(_8))"),
        (tile!(<4, 8>), "(_4,_8):(_1,_8)"),
    ] {
        assert_eq!(composition_by_mode(&a, &tiler).to_string(), expected);
        assert_eq!(zipped_divide(&a, &tiler).mode(0).to_string(), expected);
        let in_place = logical_divide(&a, &tiler);
        assert_eq!(in_place.size(), a.size(), "a divide keeps the modes");
        assert_eq!(in_place.rank(), 3);
    }
}
