//! Explanations: every step shows a value that the operation computes.

use cutlet_layout_core::{Operation, Tiler, explain, layout, tile};

#[test]
fn composition_mode_by_mode() {
    let words = explain(
        Operation::Composition,
        &layout!((10, 2):(16, 4)),
        &tile!((5, 4):(1, 5)),
    );
    assert_eq!(
        words.to_string(),
        "\
composition: A = (_10,_2):(_16,_4) o B = (_5,_4):(_1,_5)
  R(c) = A(B(c)): B picks coordinates of A
  A o _5:_1 = _5:_16
    mod out _5: (_5,_1):(_16,_4), the first 5 of them
    coalesced: _5:_16
  A o _4:_5 = (_2,_2):(_80,_4)
    div out _5: (_2,_2):(_80,_4), the elements of A at multiples of 5
    mod out _4: (_2,_2):(_80,_4), the first 4 of them
= (_5,(_2,_2)):(_16,(_80,_4))
"
    );
}

#[test]
fn product_in_three_steps() {
    let words = explain(
        Operation::LogicalProduct,
        &layout!((2, 2):(4, 1)),
        &tile!(6:1),
    );
    assert_eq!(
        words.to_string(),
        "\
logical_product: A = (_2,_2):(_4,_1) times B = _6:_1
  (A, A* o B): the block, and its repetitions in the order of B
  the size of A times the cosize of B is 24
  A* = complement(A, 24) = (_2,_3):(_2,_8), where A can be repeated
  A* o B = (_2,_3):(_2,_8)
= ((_2,_2),(_2,_3)):((_4,_1),(_2,_8))
"
    );
}

/// Operations keep every element, so they round the complement up.
#[test]
fn complements_are_those_that_operations_take() {
    let words = explain(
        Operation::LogicalDivide,
        &layout!((2, 4):(1, 2)),
        &tile!(2:3),
    );
    assert_eq!(
        words.to_string(),
        "\
logical_divide: A = (_2,_4):(_1,_2) by B = _2:_3
  A o (B, B*): the elements that B points to, and the layout of such tiles
  the size of A is 8
  B* = complement(B, 8) = (_3,_2):(_1,_6), where the other tiles begin
  (B, B*) = (_2,(_3,_2)):(_3,(_1,_6))
  A o _2:_3 = _2:_3
  A o (_3,_2):(_1,_6) = (_3,_2):(_1,_6)
= (_2,(_3,_2)):(_3,(_1,_6))
"
    );
    let words = explain(
        Operation::LogicalProduct,
        &layout!((2):(3)),
        &Tiler::layout(&layout!((2):(3))),
    );
    let words = words.to_string();
    assert!(
        words.contains("A* = complement(A, 8) = (_3,_2):(_1,_6)"),
        "{words}"
    );
}

#[test]
fn tuples_are_explained_mode_by_mode() {
    let a = layout!((9, (4, 8), 5):(59, (13, 1), 1000));
    let words = explain(Operation::ZippedDivide, &a, &tile!(<3:3, (2, 4):(1, 8)>)).to_string();
    for line in [
        "  mode 0: A = _9:_59, B = _3:_3",
        "    B* = complement(B, 9) = _3:_1, where the other tiles begin",
        "    A o _3:_3 = _3:_177",
        "    = (_3,_3):(_177,_59)",
        "  mode 1: A = (_4,_8):(_13,_1), B = (_2,_4):(_1,_8)",
        "  mode 2, _5:_1000, is past B and kept",
        "  tiles and rests are gathered: ((TileM,TileN,…), (RestM,RestN,…))",
    ] {
        assert!(words.contains(&format!("\n{line}\n")), "{line} in\n{words}");
    }
    let kept = explain(
        Operation::LogicalDivide,
        &layout!((4, 4):(1, 4)),
        &tile!(<_, 2>),
    )
    .to_string();
    assert!(kept.contains("    `_` keeps the mode as it is\n"), "{kept}");
}

#[test]
fn blocked_products_show_their_padding() {
    let words = explain(
        Operation::BlockedProduct,
        &layout!((2, 5):(5, 1)),
        &tile!(3:1),
    )
    .to_string();
    assert!(
        words.contains("both get rank 2: A = (_2,_5):(_5,_1), B = (_3,_1):(_1,_0)"),
        "{words}"
    );
    let raked = explain(
        Operation::RakedProduct,
        &layout!((2, 5):(5, 1)),
        &tile!((3, 4):(1, 3)),
    );
    assert!(
        raked
            .to_string()
            .ends_with("= ((_3,_2),(_4,_5)):((_10,_5),(_30,_1))\n"),
        "{raked}"
    );
}

#[test]
fn what_is_refused_says_at_which_step_and_why() {
    let words = explain(
        Operation::Composition,
        &layout!((4, 6, 8):(2, 3, 5)),
        &tile!((6, 1):(3, 0)),
    );
    let words = words.to_string();
    assert!(words.contains("  A o _6:_3 has no result\n"), "{words}");
    assert!(words.contains("\nrefused: composition: "), "{words}");
    let tuple = explain(
        Operation::BlockedProduct,
        &layout!((2, 2):(1, 2)),
        &tile!(<2, 2>),
    )
    .to_string();
    assert!(
        tuple.contains("refused: blocked and raked products"),
        "{tuple}"
    );
    let overlap = explain(
        Operation::LogicalProduct,
        &layout!((2, 2):(1, 1)),
        &tile!(2:1),
    )
    .to_string();
    assert!(overlap.contains("refused: complement"), "{overlap}");
}

/// The last line is the operation's result, for every operation.
#[test]
fn explanations_end_with_the_result() {
    let a = layout!((8, 6):(1, 8));
    let operations = [
        Operation::Composition,
        Operation::LogicalDivide,
        Operation::ZippedDivide,
        Operation::TiledDivide,
        Operation::FlatDivide,
        Operation::LogicalProduct,
        Operation::ZippedProduct,
        Operation::TiledProduct,
        Operation::FlatProduct,
        Operation::BlockedProduct,
        Operation::RakedProduct,
    ];
    for operation in operations {
        for tiler in [Tiler::layout(&layout!((2, 3):(1, 8))), tile!(<2, 3>)] {
            let words = explain(operation, &a, &tiler).to_string();
            assert!(words.starts_with(operation.name()), "{words}");
            let last = words.lines().last().unwrap();
            match operation.apply(&a, &tiler) {
                Ok(result) => assert_eq!(last, format!("= {result}")),
                Err(error) => assert_eq!(last, format!("refused: {error}")),
            }
        }
    }
}

#[test]
fn modes_past_the_tiler_are_kept_or_dropped() {
    let (a, tiler) = (layout!((8, 6):(1, 8)), tile!(<4>));
    let words = |operation| explain(operation, &a, &tiler).to_string();
    assert!(words(Operation::Composition).contains("mode 1, _6:_8, is past B and dropped"));
    assert!(words(Operation::LogicalDivide).contains("mode 1, _6:_8, is past B and kept"));
}
