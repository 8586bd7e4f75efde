//! CuTe's text: reading, printing and reading again, the macros, and the columns of errors.

use cutlet_layout_core::*;
use proptest::prelude::*;

#[test]
fn texts_are_read_and_printed() {
    for text in [
        "_8:_1",
        "8:1",
        "(_2,4):(_12,_1)",
        "((_3,_2),(_4,_5)):((_10,_5),(_30,_1))",
        "(3):(1)",
        "((3)):((1))",
        "(3,(3),3):(1,(1),1)",
        "(_8,(_2,_2)):(_1@0,(_1@0@1,_1@1@1))",
        "4:-1",
        "_4:_-1",
        "(4,4):(0,_0)",
    ] {
        assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
    }
    for text in ["()", "_", "7", "_7", "(1,_,(_2,_))", "-3", "1@1@0"] {
        assert_eq!(text.parse::<IntTuple>().unwrap().to_string(), text);
    }
    for text in [
        "<_3:_4,(_2,_4):(_1,_8),_>",
        "_",
        "4:1",
        "<<1:1,_>,<(2,2):(1,2)>>",
    ] {
        assert_eq!(text.parse::<Tiler>().unwrap().to_string(), text);
    }
    assert_eq!(
        "Sw<1,3,-4>".parse::<Swizzle>().unwrap().to_string(),
        "Sw<1,3,-4>"
    );
    assert_eq!(
        " ( 2 , 4 ) : ( 4 , 1 ) "
            .parse::<Layout>()
            .unwrap()
            .to_string(),
        "(2,4):(4,1)"
    );
    assert_eq!(
        "(_2,4)".parse::<Layout>().unwrap().to_string(),
        "(_2,4):(_1,_2)"
    );
    assert_eq!(
        "<4,(8,2)>".parse::<Tiler>().unwrap().to_string(),
        "<4:_1,<8:_1,2:_1>>"
    );
}

#[test]
fn errors_point_at_the_column() {
    for (text, column, message) in [
        ("(2,4:(1,2)", 5, "column 5: expected `,` or `)`, found `:`"),
        (
            "(2,x):(1,2)",
            4,
            "column 4: expected an integer, `_` or `(`, found `x`",
        ),
        (
            "(2,4):(1,2",
            11,
            "column 11: expected `,` or `)`, but the text ends",
        ),
        (
            "(2,4):(1,2) o",
            13,
            "column 13: expected the end, found `o`",
        ),
        (
            "",
            1,
            "column 1: expected an integer, `_` or `(`, but the text ends",
        ),
        (
            "8:99999999999999999999",
            3,
            "column 3: expected an integer that fits 64 bits, found `9`",
        ),
        (
            "8:é",
            3,
            "column 3: expected an integer, `_` or `(`, found a character that the notation does not have",
        ),
        (
            "8:1@0@1@2@32",
            11,
            "column 11: expected a direction within CAPACITY modes and MAX_DEPTH levels, found `3`",
        ),
        (
            "(2,4):(1,(2,3))",
            1,
            "column 1: layout: (2,4):(1,(2,3)): shape and stride need the same parentheses (congruent)",
        ),
        (
            "(2,0)",
            1,
            "column 1: layout: (2,0):(1,2) has the extent 0: extents are plain integers of at least 1",
        ),
    ] {
        let error = text.parse::<Layout>().unwrap_err();
        assert_eq!(
            (error.column(), error.message()),
            (Some(column), message),
            "{text}"
        );
    }
    let error = "<3:4,8:>".parse::<Tiler>().unwrap_err();
    assert_eq!(error.column(), Some(8), "{error}");
    let error = "Sw<3,4>".parse::<Swizzle>().unwrap_err();
    assert_eq!(error.message(), "column 7: expected `,`, found `>`");
}

#[test]
fn limits_are_named() {
    let leaves = |n: usize| format!("({})", vec!["2"; n].join(","));
    assert_eq!(leaves(32).parse::<IntTuple>().unwrap().num_leaves(), 32);
    let error = leaves(33).parse::<IntTuple>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert!(
        error
            .message()
            .contains("33 leaves are needed, but a layout holds at most 32"),
        "{error}"
    );
    let nested = |n: usize| format!("{}2{}", "(".repeat(n), ")".repeat(n));
    assert_eq!(nested(15).parse::<IntTuple>().unwrap().depth(), 15);
    let error = nested(16).parse::<IntTuple>().unwrap_err();
    assert!(
        error.message().contains("no more than 15 levels"),
        "{error}"
    );
    assert!(nested(100_000).parse::<Layout>().is_err());
    assert!("<".repeat(100_000).parse::<Tiler>().is_err());
    let mut layout = layout!((2, 2):(1, 2));
    let error = loop {
        match layout.try_group(0, layout.rank()) {
            Ok(deeper) => layout = deeper,
            Err(error) => break error,
        }
    };
    assert!(
        error
            .message()
            .contains("16 levels of parentheses are needed"),
        "{error}"
    );
}

#[test]
fn sizes_beyond_64_bits_are_refused() {
    for text in [
        "(4611686018427387904,2):(0,0)",
        "(2,2):(4611686018427387904,4611686018427387904)",
        "9223372036854775807:2",
        "(2,3):(-9223372036854775808,-1)",
    ] {
        let error = text.parse::<Layout>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overflow, "{text}: {error}");
    }
    assert_eq!(
        "(2147483648,4):(4,1)".parse::<Layout>().unwrap().cosize(),
        8589934592
    );
}

#[test]
fn macros_and_texts_agree() {
    const A: Layout = layout!((4, (_2, {1 + 2})):(8, (1, -4)));
    assert_eq!(A.to_string(), "(_4,(_2,_3)):(_8,(_1,_-4))");
    let n = 5;
    assert_eq!(
        layout!((4, dyn n):(1, dyn (n - 1))).to_string(),
        "(_4,5):(_1,4)"
    );
    assert_eq!(layout!(8:1@0).to_string(), "_8:_1@0");
    assert_eq!(
        layout!((2, 2):(1@0@1, 2@1@1)).to_string(),
        "(_2,_2):(_1@0@1,_2@1@1)"
    );
    assert_eq!(shape!(()).to_string(), "()");
    assert_eq!(shape!((1, (2,), 3,)).to_string(), "(_1,(_2),_3)");
    const T: Tiler = tile!(<3:4, <_, (2, 4):(1, 8)>>);
    assert_eq!(T.to_string(), "<_3:_4,<_,(_2,_4):(_1,_8)>>");
}

fn any_tuple() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0..100i64, any::<bool>()).prop_map(|(n, fixed)| if fixed {
            format!("_{n}")
        } else {
            n.to_string()
        }),
        Just("_".to_string()),
        (1..9i64, 0..4u8, 0..4u8).prop_map(|(n, a, b)| format!("_{n}@{a}@{b}")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec(inner, 1..4).prop_map(|modes| format!("({})", modes.join(",")))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn int_tuples_round_trip(text in any_tuple()) {
        if let Ok(tuple) = text.parse::<IntTuple>() {
            prop_assert_eq!(tuple.to_string(), text.clone());
            prop_assert_eq!(text.matches('(').count(), text.matches(')').count());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-_(),:<>@0-9 Swo]{0,40}") {
        let _ = text.parse::<IntTuple>();
        let _ = text.parse::<Swizzle>();
        let _ = text.parse::<ComposedLayout<Swizzle>>();
        if let Ok(layout) = text.parse::<Layout>() {
            let printed = layout.to_string();
            prop_assert_eq!(printed.parse::<Layout>().unwrap().to_string(), printed);
        }
        if let Ok(tiler) = text.parse::<Tiler>() {
            let printed = tiler.to_string();
            prop_assert_eq!(printed.parse::<Tiler>().unwrap().to_string(), printed);
        }
    }
}
