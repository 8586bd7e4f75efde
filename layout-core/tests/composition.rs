//! Composition: all small layouts against a brute force, and properties of large ones.

use crate::model::{self, Modes, beyond, image, is_compatible_layout, layouts, modes};
use cutlet_layout_core::*;
use proptest::prelude::*;

/// Checks a composition against its definition, and a refusal against the brute force.
fn check(a: &Modes, b: &Modes) -> bool {
    let expected: Vec<i64> = image(b).iter().map(|&c| beyond(a, c)).collect();
    let (left, right) = (model::layout(a), model::layout(b));
    match try_composition(&left, &right) {
        Ok(r) => {
            assert!(right.is_compatible_with(&r), "{left} o {right} gives {r}");
            assert_eq!(image(&modes(&r)), expected, "{left} o {right} gives {r}");
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotRepresentable, "{error}");
            assert!(!is_compatible_layout(&expected, b), "{error}");
            false
        }
    }
}

#[test]
fn every_small_composition_is_found_or_does_not_exist() {
    let compact_or = |rest: &[i64]| -> Vec<Option<i64>> {
        [None]
            .into_iter()
            .chain(rest.iter().map(|&d| Some(d)))
            .collect()
    };
    let mut lefts = layouts(24, 2, &compact_or(&[0, 1, 2, 7]));
    lefts.extend(
        layouts(24, 3, &compact_or(&[0, 50]))
            .into_iter()
            .filter(|m| m.len() == 3),
    );
    // A last mode of extent 1 continues, too.
    for mut list in layouts(12, 2, &compact_or(&[0, 7])) {
        for stride in [0, 1, 4, 7] {
            list.push((1, stride));
            lefts.push(list.clone());
            list.pop();
        }
    }
    let mut rights = layouts(12, 1, &(0..=24).map(Some).collect::<Vec<_>>());
    rights.extend(
        layouts(12, 2, &(0..=9).map(Some).collect::<Vec<_>>())
            .into_iter()
            .filter(|m| m.len() == 2),
    );
    let (mut found, mut refused) = (0u32, 0u32);
    for a in &lefts {
        for b in &rights {
            if check(a, b) {
                found += 1
            } else {
                refused += 1
            }
        }
    }
    assert!(
        found > 1_400_000 && refused > 900_000,
        "{found} found, {refused} refused"
    );
}

#[test]
fn what_others_get_wrong_is_refused() {
    for (a, b, values) in [
        ("(4,6,8):(2,3,5)", "6:3", "0, 6, 7, 8, 9, 15"),
        ("(4,2):(1,10)", "(4,2):(1,2)", "0, 1, 2, 3, 2, 3, 10, 11"),
        ("(3,2):(2,1)", "4:1", "0, 2, 4, 1"),
        ("(4,2):(1,8)", "3:3", "0, 3, 10"),
    ] {
        let error = try_composition(&a.parse().unwrap(), &b.parse().unwrap()).unwrap_err();
        assert_eq!(
            error.message(),
            format!("composition: {a} o {b} takes {values}: no layout does")
        );
    }
}

#[test]
fn dynamic_integers_do_not_lose_elements() {
    // ((6,3),3):((1,6),18) o <9,(3):(1)> with dynamic shapes.
    let a: Layout = "((6,3),3):((1,6),18)".parse().unwrap();
    let r = composition_by_mode(&a, &"<9,(3):(1)>".parse().unwrap());
    assert_eq!(r.size(), 27);
    assert_eq!(
        (0..27).map(|c| r.at(c)).collect::<Vec<_>>(),
        (0..9).chain(18..27).chain(36..45).collect::<Vec<_>>()
    );
}

#[test]
fn the_last_mode_runs_on() {
    assert_eq!(layout!((6, 4):(1, 7)).at(24), 28);
    assert_eq!(layout!((6, 4, 1):(1, 7, 100)).at(24), 100);
    let edge = composition(&layout!((6, 4):(1, 7)), &layout!((6, 8):(1, 6)));
    assert_eq!(edge.to_string(), "(_6,_8):(_1,_7)");
}

#[test]
fn an_extent_of_1_runs_on_like_any_other() {
    for (a, b, expected) in [
        ("_1:_8", "_4:_1", "_4:_8"),
        ("(_2,_1):(_8,_3)", "_4:_1", "(_2,_2):(_8,_3)"),
        ("(_2,_1):(_1,_2)", "_8:_1", "_8:_1"),
        ("(_1,_1):(_5,_3)", "_4:_2", "_4:_6"),
        ("_1:_1@1", "_4:_1", "_4:_1@1"),
        ("1:8", "4:1", "4:8"),
        ("(2,1):(8,3)", "4:1", "(2,2):(8,3)"),
        ("(4,1):(1,7)", "_8:_1", "(4,2):(1,7)"),
    ] {
        let (left, right): (Layout, Layout) = (a.parse().unwrap(), b.parse().unwrap());
        assert_eq!(
            composition(&left, &right).to_string(),
            expected,
            "{a} o {b}"
        );
    }
    for a in ["(4,1):(1,7)", "(_4,_1):(_1,_7)"] {
        let a: Layout = a.parse().unwrap();
        assert_eq!((a.at(8), a.index(8), a.try_at(8)), (14, 14, Some(14)));
        assert_eq!(a.first_indices::<9>(9, 0), [0, 1, 2, 3, 7, 8, 9, 10, 14]);
        assert_eq!(idx2crd(&shape!(8), &a.shape()), (0, 2).into());
    }
    // In a direction, there is no index beyond the extent.
    let row: Layout = "_1:_1@1".parse().unwrap();
    assert_eq!((row.try_at(0), row.try_at(1)), (Some(0), None));
    assert_eq!(row.call(&shape!(3)).to_string(), "(_0,_3)");
}

#[test]
fn the_form_of_tiles_does_not_depend_on_a_dynamic_extent() {
    for m in [1, 2, 1000] {
        let a = Layout::from_shape_stride(
            &IntTuple::dynamic(&[m, 300]),
            &IntTuple::dynamic(&[1024, 1]),
        );
        let tiles = zipped_divide(&a, &tile!(<128, 64>));
        assert_eq!(tiles.mode(0).to_string(), "(_128,_64):(1024,1)");
    }
}

#[test]
fn coordinates_compose() {
    let id = identity(&shape!((8, 4)));
    // A tile of coordinates, by mode: each mode continues on its own.
    assert_eq!(
        composition_by_mode(&id, &tile!(<16, 2>)).to_string(),
        "(_16,_2):(_1@0,_1@1)"
    );
    // As one function, the last mode continues, and no step goes in two directions at once.
    assert_eq!(
        composition(&id, &layout!((8, 6):(1, 8))).to_string(),
        "(_8,_6):(_1@0,_1@1)"
    );
    let error = try_composition(&id, &layout!(2:9)).unwrap_err();
    assert!(error.message().contains("two directions"), "{error}");
    // Coordinates on the right step through the modes that they name.
    let a = layout!((8, (2, 2)):(4, (1, 32)));
    assert_eq!(
        composition(&a, &id).to_string(),
        "(_8,(_2,_2)):(_4,(_1,_32))"
    );
    let transposed = layout!((4, 8):(1@1, 1@0));
    assert_eq!(
        composition(&a, &transposed).to_string(),
        "((_2,_2),_8):((_1,_32),_4)"
    );
}

#[test]
fn overflow_and_capacity_are_errors() {
    let wide = layout!((2, 2):(1, 4611686018427387904));
    let error = try_composition(&wide, &layout!(2:4611686018427387903)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overflow, "{error}");
    let a = Layout::col_major(&IntTuple::fixed(&[2; 20])).unflatten(&IntTuple::fixed(&[2; 20]));
    let gaps = Layout::from_shape_stride(
        &a.shape(),
        &IntTuple::fixed(&std::array::from_fn::<i64, 20, _>(|i| 3 << (2 * i))),
    );
    let all = composition(&gaps, &Layout::static_mode(1 << 20, 1));
    assert_eq!(all.num_leaves(), 20);
    let twice = Layout::concat(&[layout!(1048576:1), layout!(1048576:1)]);
    assert!(try_composition(&gaps, &twice).is_err());
}

#[test]
fn indices_beyond_32_bits() {
    let a = layout!((100000, 100000):(1, 100000));
    let r = composition(&a, &layout!(100000:100000));
    assert_eq!(r.to_string(), "_100000:_100000");
    assert_eq!(r.at(99999), 9999900000);
}

fn any_layout(max_rank: usize) -> impl Strategy<Value = Modes> {
    prop::collection::vec((1..=12i64, prop_oneof![0..64i64, 0..5000i64]), 1..=max_rank)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn larger_compositions(a in any_layout(5), b in any_layout(3)) {
        check(&a, &b);
    }

    #[test]
    fn composing_what_divides(a in any_layout(4), picks in prop::collection::vec(0..8usize, 1..4)) {
        // A right side of A's own prefix sizes composes more often than a random one.
        let mut prefixes = vec![1];
        for (extent, _) in &a {
            prefixes.push(prefixes.last().unwrap() * extent);
        }
        let b: Modes = picks
            .iter()
            .map(|&p| (prefixes[p % prefixes.len()].min(60), prefixes[(p / 2) % prefixes.len()]))
            .collect();
        check(&a, &b);
    }

    #[test]
    fn dynamic_integers_give_the_same_function(a in any_layout(4), b in any_layout(2), fixed in any::<[bool; 12]>()) {
        let mix = |layout: &Layout, flags: &[bool]| {
            let int = |value: i64, fixed: bool| if fixed { Int::fixed(value) } else { Int::dynamic(value) };
            let modes: Vec<Layout> = (0..layout.num_leaves())
                .map(|i| {
                    let (s, d) = (layout.leaf_shape(i).value(), layout.leaf_stride(i).value());
                    Layout::leaf(int(s, flags[2 * i]), int(d, flags[2 * i + 1]))
                })
                .collect();
            Layout::concat(&modes)
        };
        let (a, b) = (model::layout(&a), model::layout(&b));
        let mixed = try_composition(&mix(&a, &fixed), &mix(&b, &fixed[8..]));
        match try_composition(&a, &b) {
            Ok(r) => {
                let mixed = mixed.unwrap();
                prop_assert_eq!(image(&modes(&mixed)), image(&modes(&r)));
                prop_assert!(mix(&b, &fixed[8..]).is_compatible_with(&mixed));
            }
            Err(_) => prop_assert!(mixed.is_err()),
        }
    }
}

/// A chain of dynamic compositions gathers leaves of extent 1, because CuTe's form of each keeps them.
#[test]
fn leaves_inside_a_mode_are_merged_where_there_is_no_room() {
    let l = |text: &str| text.parse::<Layout>().unwrap();
    let chain = [
        "(4,(2,2)):(2,(1,8))",
        "((2,2),(4,4)):((1,2),(4,16))",
        "(2,8):(8,1)",
        "64:1",
        "(8,8):(8,1)",
    ];
    let through = |c: i64| {
        let tail = l("(8,8):(8,1)").at(l("(8,8):(8,1)").at(c));
        chain[..4].iter().rev().fold(tail, |i, text| l(text).at(i))
    };
    let right = composition(&l(chain[4]), &l(chain[4]));
    let right = chain[1..4]
        .iter()
        .rev()
        .fold(right, |right, text| composition(&l(text), &right));
    assert!(right.num_leaves() > CAPACITY - 8, "{right}");
    let all = composition(&l(chain[0]), &right);
    assert_eq!(all.rank(), right.rank());
    for c in 0..all.size() {
        assert_eq!(all.at(c), through(c), "{all} at {c}");
    }
    for mode in 0..all.rank() {
        assert_eq!(all.mode(mode).size(), right.mode(mode).size());
    }
}

#[test]
fn a_result_without_room_says_what_helps() {
    let ones = vec!["1"; 29].join(",");
    let b = format!("(2,2,{ones},64):(64,128,{ones},1)");
    let a = "(8,4):(4,1)";
    let dynamic = try_composition(&a.parse().unwrap(), &b.parse().unwrap()).unwrap_err();
    assert!(
        dynamic.message().starts_with(
            "composition: the result needs more than 32 leaves (CAPACITY), so give static integers, of which extents \
             of 1 are dropped: (8,4):(4,1) o (2,2,"
        ),
        "{dynamic}"
    );
    let ones = ",_1".repeat(31);
    let b: Layout = format!("(_8{ones}):(_1{ones})").parse().unwrap();
    let fixed = try_composition(&layout!((4, 2):(3, 1)), &b).unwrap_err();
    assert!(
        fixed
            .message()
            .contains("so compose layouts of fewer modes: "),
        "{fixed}"
    );
}
