//! Coordinates and indices: every form of every coordinate, and int-tuple arithmetic on them.

use core::cmp::Ordering;
use cutlet_layout_core::*;
use proptest::prelude::*;

#[test]
fn all_forms_agree() {
    for text in [
        "(3,(2,3)):(3,(12,1))",
        "((2,2),(3,2)):((1,9),(2,40))",
        "24:2",
        "(4,1,6):(6,0,1)",
    ] {
        let layout: Layout = text.parse().unwrap();
        let natural: Vec<IntTuple> = coordinates(&layout.shape()).collect();
        assert_eq!(natural.len() as i64, layout.size());
        for (i, natural) in natural.iter().enumerate() {
            let i = i as i64;
            assert_eq!(idx2crd(&i.into(), &layout.shape()), *natural);
            assert_eq!(linear_coordinate(natural, &layout.shape()), i.into());
            assert_eq!(layout.call(natural), layout.at(i).into());
            assert_eq!(layout.call(&i.into()), layout.at(i).into());
        }
        for pair in natural.windows(2) {
            assert_eq!(
                compare_colexicographic(&pair[0], &pair[1]),
                Some(Ordering::Less)
            );
        }
    }
}

#[test]
fn compact_layouts_give_coordinates_back() {
    let a = layout!((4, (2, 3)):(6, (3, 1)));
    for c in 0..24 {
        let index = Int::dynamic(a.at(c));
        assert_eq!(a.get_1d_coord(index).value(), c);
        assert_eq!(a.get_hier_coord(index), idx2crd(&c.into(), &a.shape()));
        assert_eq!(a.call(&a.get_flat_coord(index)), a.at(c).into());
    }
}

#[test]
fn layouts_of_one_integer_give_integers_back() {
    let coord = layout!(8:1).get_flat_coord(Int::fixed(3));
    assert_eq!(coord.to_string(), "_3");
    assert_eq!(layout!(8:1).call(&coord), coord);
    assert_eq!(
        layout!((8):(1)).get_flat_coord(Int::fixed(3)).to_string(),
        "(_3)"
    );
}

#[test]
fn an_index_in_a_direction_is_refused_as_such() {
    let index: IntTuple = "5@1".parse().unwrap();
    let error = try_idx2crd_strided(&index, &shape!((2, 4)), &shape!((4, 1))).unwrap_err();
    assert!(
        error.message().contains("an index is a plain integer"),
        "{error}"
    );
}

#[test]
fn coordinates_that_do_not_fit_are_refused() {
    let a = layout!((3, (2, 3)):(3, (12, 1)));
    for coord in [
        "(1,2,3)",
        "((1,1),0)",
        "(1,_)",
        "-1",
        "(0,-1)",
        "(4611686018427387904, 0)",
    ] {
        assert!(a.try_call(&coord.parse().unwrap()).is_err(), "{coord}");
    }
    // Natural integers may be negative: they are offsets.
    assert_eq!(a.index((-1, (0, 0))), -3);
}

#[test]
fn comparisons() {
    let (a, b) = (shape!((1, (2, 3))), shape!((2, (2, 4))));
    assert_eq!(compare_elementwise(&a, &b), None);
    assert_eq!(
        compare_elementwise(&a, &shape!((2, (3, 4)))),
        Some(Ordering::Less)
    );
    assert_eq!(compare_elementwise(&a, &a), Some(Ordering::Equal));
    assert_eq!(compare_lexicographic(&a, &b), Some(Ordering::Less));
    assert_eq!(compare_lexicographic(&a, &shape!((1, 2, 3))), None);
}

#[test]
fn a_size_beyond_64_bits_is_compatible_with_no_integer() {
    let huge: IntTuple = "(1099511627776,1099511627776)".parse().unwrap();
    assert!(!compatible(&shape!(4), &huge));
    assert!(weakly_congruent(&shape!(4), &huge));
    assert!(compatible(&huge, &huge));
}

#[test]
fn compact_orders() {
    let order =
        |s: &str, o: &str| compact_order(&s.parse().unwrap(), &o.parse().unwrap()).to_string();
    assert_eq!(order("(_2,_2,_2,_2)", "(_0,_2,_3,_1)"), "(_1,_4,_8,_2)");
    assert_eq!(order("(2,3,4,5)", "(_2,67,42,_50)"), "(_1,10,30,2)");
    assert_eq!(order("((2,3),(4,5))", "(_1,_0)"), "((20,40),(_1,4))");
    assert_eq!(
        order("((_2,_3),(_4,_5))", "((_3,_0),_1)"),
        "((_60,_1),(_3,_12))"
    );
    assert_eq!(order("6", "_0"), "_1");
    // Without a static number, the values decide.
    assert_eq!(order("(8,64)", "(1,0)"), "(64,_1)");
    assert_eq!(order("(_2,_3,_4)", "(2,0,0)"), "(_12,_1,_3)");
    assert_eq!(
        ordered_layout(&shape!((8, 64)), &(1, 0).into()).to_string(),
        "(_8,_64):(_64,_1)"
    );
    assert_eq!(
        layout_like(&"(8,64):(64,1)".parse().unwrap()).to_string(),
        "(8,64):(64,_1)"
    );
    // Fragments are the exception: dynamic strides order nothing.
    assert_eq!(
        fragment_like(&"(_4,_8,_2):(1,64,8)".parse().unwrap()).to_string(),
        "(_4,_8,_2):(_1,_4,_32)"
    );
    assert!(try_compact_order(&shape!((2, 3)), &shape!((0, 1, 2))).is_err());
    assert_eq!(
        layout_like(&"(2,3,4,5):(_0,42,_1,_0)".parse().unwrap()).to_string(),
        "(2,3,4,5):(_0,4,_1,_0)"
    );
}

#[test]
fn rounding_and_dividing() {
    assert_eq!(
        ceil_div(&shape!((8, (3, 10))), &shape!((3, 4))).to_string(),
        "(_3,(_1,_5))"
    );
    assert_eq!(ceil_div(&shape!(100), &shape!((4, 8))).to_string(), "_4");
    assert_eq!(
        round_up(&shape!((100, 7, 3)), &shape!((64, 4))).to_string(),
        "(_128,_8,_3)"
    );
    assert_eq!(
        shape_div(&shape!((8, 6)), &shape!((4, 3))).to_string(),
        "(_2,_2)"
    );
    assert!(try_shape_div(&shape!((8, 6)), &shape!((4, 3, 1))).is_err());
    assert!(try_safe_div(Int::fixed(7), Int::fixed(2)).is_err());
    assert!(try_ceil_div(&shape!(7), &shape!(0)).is_err());
    assert_eq!(gcd(Int::fixed(0), Int::dynamic(6)).to_string(), "6");
    assert!(try_layout_div(&layout!((6, 4):(1, 6)), Int::fixed(4)).is_err());
    assert!(try_product(&shape!((4611686018427387904, 2))).is_err());
}

#[test]
fn crd2crd_gives_coordinates_inside() {
    let convert = |coord: &str, from: &str, to: &str| {
        let t = |text: &str| text.parse::<IntTuple>().unwrap();
        try_crd2crd(&t(coord), &t(from), &t(to)).map(|coord| coord.to_string())
    };
    for (coord, from, to, expected) in [
        ("41", "(6,9)", "(27,2)", "(14,1)"),
        ("(5,6)", "(6,9)", "54", "41"),
        ("(5,6)", "(6,9)", "((2,3),9)", "((1,2),6)"),
        ("(5,6)", "(6,9)", "(7,10)", "(5,6)"),
    ] {
        assert_eq!(convert(coord, from, to).unwrap(), expected);
    }
    for (coord, from, to, what) in [
        // The coordinate (5,6) has no column 6 of two.
        ("(5,6)", "(6,9)", "(27,2)", "crd2crd: 6 to 2"),
        ("54", "(6,9)", "(27,2)", "crd2crd: 54 of (6,9)"),
        ("(7,0)", "(6,9)", "54", "crd2crd: (7,0) of (6,9)"),
        ("(-1,2)", "(6,9)", "54", "crd2crd: (-1,2) of (6,9)"),
        ("(5,8)", "(6,9)", "40", "crd2crd: (5,8) to 40"),
    ] {
        let refused = convert(coord, from, to).unwrap_err();
        assert!(refused.message().starts_with(what), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn idx2crd_and_back(extents in prop::collection::vec(1..50i64, 1..6), index in 0..100_000i64) {
        let shape = IntTuple::fixed(&extents);
        let coord = idx2crd(&index.into(), &shape);
        let size: i64 = extents.iter().product();
        if extents.iter().any(|&e| e > 1) {
            prop_assert_eq!(linear_coordinate(&coord, &shape), index.into());
        }
        if index < size {
            prop_assert_eq!(compare_elementwise(&coord, &shape), Some(Ordering::Less));
        }
    }

    #[test]
    fn crd2crd_keeps_the_linear_coordinate(a in 1..9i64, b in 1..9i64, c in 1..9i64, at in 0.0..1.0f64) {
        let (from, to) = (IntTuple::from((a * b, c)), IntTuple::from((a, (b, c))));
        let i = (at * (a * b * c) as f64) as i64;
        let coord = idx2crd(&i.into(), &from);
        prop_assert_eq!(linear_coordinate(&coord, &from), i.into());
        let size = IntTuple::from(from.size());
        let there = crd2crd(&linear_coordinate(&coord, &from), &size, &to);
        prop_assert_eq!(linear_coordinate(&there, &to), i.into());
    }
}

/// Like single coordinates, tables continue in the last mode and support directions.
#[test]
fn first_indices_are_those_of_single_coordinates() {
    for text in [
        "(6,4):(1,7)",
        "(4,1,6):(6,0,1)",
        "((2,2),(3,_1)):((1,9),(2,40))",
        "1:5",
        "_1:5",
    ] {
        let layout: Layout = text.parse().unwrap();
        let table: [i64; 40] = layout.first_indices(40, 0);
        for (i, index) in table.into_iter().enumerate() {
            assert_eq!(index, layout.at(i as i64), "entry {i} of {text}");
        }
    }
    let layout: Layout = "((2,3),4):((1@0,2@1),1@0)".parse().unwrap();
    for b in 0..3 {
        let table: [i64; 24] = layout.first_indices(24, b);
        for (i, index) in table.into_iter().enumerate() {
            assert_eq!(
                index,
                layout.at_basis(i as i64, b),
                "entry {i}, direction {b}"
            );
        }
    }
}

/// A component is an integer. A direction within another has a coordinate instead.
#[test]
fn directions_within_directions_have_no_components() {
    let nested: Layout = "(2,2):(1@0@0,1@1@0)".parse().unwrap();
    assert_eq!(nested.call(&shape!(3)).to_string(), "((1,1))");
    assert!(std::panic::catch_unwind(|| nested.at_basis(3, 0)).is_err());
    assert!(std::panic::catch_unwind(|| nested.first_indices::<4>(4, 0)).is_err());

    let inner = layout!(((2, 2), 4):((1, 8), 2));
    let outer: Layout = "2:1@1@0".parse().unwrap();
    assert_eq!(composition(&inner, &outer).to_string(), "2:8");
    assert!(std::panic::catch_unwind(|| compose_coordinates(&inner, &outer)).is_err());
}

/// Splitting an index needs no direction per level, so any depth works.
#[test]
fn idx2crd_of_deep_shapes() {
    let deep = shape!(((((2, 2), 2), 2), 2));
    assert_eq!(
        idx2crd(&shape!(21), &deep).to_string(),
        "((((_1,_0),_1),_0),_1)"
    );
    let error = try_idx2crd(&shape!((1, 2, 3)), &shape!((3, (2, 3)))).unwrap_err();
    assert!(error.message().contains("does not fit the shape"));
}

/// Every mode that a layout can have is a direction.
#[test]
fn identities_of_deep_and_of_wide_shapes() {
    let nested = |open: usize, inner: &str| "(".repeat(open) + inner + &")".repeat(open);
    let wide = format!("({}2)", "2,".repeat(CAPACITY - 1));
    let deep_and_wide = "(2,".repeat(MAX_DEPTH) + &"2,".repeat(15) + "2" + &")".repeat(MAX_DEPTH);
    for text in [
        "(8,(2,(3,(4,5))))".to_string(),
        nested(MAX_DEPTH, "3,5"),
        wide,
        deep_and_wide,
    ] {
        let shape: IntTuple = text.parse().unwrap();
        let identity = identity(&shape);
        assert_eq!(identity.shape(), shape);
        assert_eq!(identity.to_string().parse::<Layout>(), Ok(identity));
        for c in [0, 1, 2, shape.size() / 2 + 1, shape.size() - 1] {
            let coordinate = idx2crd(&Int::from(c).into(), &shape);
            assert_eq!(identity.call(&coordinate), coordinate, "{identity}");
            assert_eq!(identity.call(&Int::from(c).into()), coordinate);
        }
    }
    assert!(std::panic::catch_unwind(|| Basis::new(CAPACITY)).is_err());
    assert!("4:1@16@16".parse::<Layout>().is_err() && "4:1@15@16".parse::<Layout>().is_ok());
}
