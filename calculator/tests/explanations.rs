//! Explanations: the steps of every operation, each with its result.

use cutlet_calculator::{Calculator, Options, SIGNATURES, meaning};

/// The explanations of an expression, as one text.
fn explained(text: &str) -> String {
    let mut calculator = Calculator::new(text, Options::default()).explaining();
    // A refused operation is explained too.
    let _ = calculator.evaluate();
    let explanations = calculator.explanations().iter();
    explanations.map(ToString::to_string).collect()
}

#[test]
fn compositions_show_div_mod_and_their_values() {
    assert_eq!(
        explained("_20:_2 o (_5,_4):(_4,_1)"),
        "\
composition: A = _20:_2 o B = (_5,_4):(_4,_1)
  R(c) = A(B(c)): B picks coordinates of A
  A o _5:_4 = _5:_8
    div out _4: _5:_8, the elements of A at multiples of 4
    mod out _5: _5:_8, the first 5 of them
  A o _4:_1 = _4:_2
    mod out _4: _4:_2, the first 4 of them
  R(0) = A(B(0)) = A(0) = 0
  R(1) = A(B(1)) = A(4) = 8
  R(2) = A(B(2)) = A(8) = 16
  R(3) = A(B(3)) = A(12) = 24
  R(4) = A(B(4)) = A(16) = 32
  R(5) = A(B(5)) = A(1) = 2
  R(6) = A(B(6)) = A(5) = 10
  R(7) = A(B(7)) = A(9) = 18
  R(8) = A(B(8)) = A(13) = 26
  R(9) = A(B(9)) = A(17) = 34
  R(10) = A(B(10)) = A(2) = 4
  R(11) = A(B(11)) = A(6) = 12
  … and 8 more
= (_5,_4):(_8,_2)
"
    );
}

#[test]
fn compositions_by_mode_have_results_by_mode() {
    let words = explained("composition((_12,(_4,_8)):(_59,(_13,_1)), <_3:_4,_8:_2>)");
    for line in [
        "  mode 0: A = _12:_59, B = _3:_4",
        "    = _3:_236",
        "    = (_2,_4):(_26,_1)",
    ] {
        assert!(words.contains(&format!("\n{line}\n")), "{words}");
    }
}

#[test]
fn coalescing_goes_mode_by_mode() {
    assert_eq!(
        explained("coalesce((_2,(_1,_6),_5):(_1,(_6,_2),_20))"),
        "\
coalesce: A = (_2,(_1,_6),_5):(_1,(_6,_2),_20)
  the simplest layout that is the same function of 1-D coordinates
  _1:_6 has one element: dropped
  _6:_2 continues _2:_1, since _2*_1 = _2: both are _12:_1
  _5:_20 does not continue _12:_1: a mode of its own
= (_12,_5):(_1,_20)
"
    );
}

#[test]
fn complements_name_their_gaps() {
    assert_eq!(
        explained("complement((_2,_2):(_1,_6), _24)"),
        "\
complement: A = (_2,_2):(_1,_6), B = _24
  the layout of the places at which repetitions of A begin, up to the cotarget
  the modes in the order of strides: 2:1, 2:6
  before stride 1 there is no gap
  before stride 6, 3 repetitions fit that are 2 apart: 3:2
  up to 24, 2 repetitions fit that are 12 apart: 2:12
  coalesced: (_3,_2):(_2,_12)
= (_3,_2):(_2,_12)
"
    );
}

#[test]
fn operations_on_integers_show_their_digits() {
    assert_eq!(
        explained("(3,6,2,8):(w,x,y,z) / 72").lines().nth(2),
        Some("  extent 3 by 72: 1 stay, and the stride _1@31 times 72; 24 is left to divide by")
    );
    assert!(
        explained("(3,6,2,8) % 6")
            .contains("  6 elements from extent 3: 3 of it, and 2 of what follows\n")
    );
    assert!(explained("idx2crd(16, (3,(2,3)))").contains("  16 mod 3 = 1, and 16 div 3 = 5\n"));
    let index = explained("((3,(2,3)):(3,(12,1)))(1,5)");
    assert!(index.contains("\n  as a 1-D coordinate: 16\n  as a natural coordinate: (1,(1,2))\n  1*3 + 1*12 + 2*1\n= 17\n"), "{index}");
    assert!(
        explained("upcast((_8,_4):(_1,_8), 2)")
            .contains("  _4:_8: 2 divides the stride, which becomes 4\n")
    );
}

#[test]
fn inverses_show_that_they_undo() {
    let right = explained("right_inverse((_4,_8):(_8,_1))");
    assert!(right.contains("  A(R(1)) = A(4) = 1\n"), "{right}");
    let left = explained("left_inverse((_6,_2):(_1,_7))");
    assert!(left.contains("  R(A(6)) = R(7) = 6\n"), "{left}");
}

#[test]
fn composed_layouts_change_outside() {
    let words = explained("zipped_divide(Sw<2,0,2> o 0 o (4,4):(4,1), <2,2>)");
    assert!(
        words.contains("  inner Sw<2,0,2> and offset 0 stay; the outer layout changes\n"),
        "{words}"
    );
    assert!(
        words.contains("      mode 0: A = 4:4, B = 2:_1\n"),
        "{words}"
    );
    assert!(
        words.ends_with("\n= Sw<2,0,2> o 0 o ((2,2),(2,2)):((4,1),(8,2))\n"),
        "{words}"
    );
}

/// An inverse, a slice and a vector are no steps on the outer layout alone.
#[test]
fn other_operations_on_composed_layouts_do_not_claim_to() {
    for text in [
        "left_inverse(Sw<3,0,3> o 0 o (8,8):(8,1))",
        "cute.slice_(Sw<3,0,3> o 0 o (8,8):(8,1), (None, 1))",
        "max_common_vector(Sw<3,0,3> o 0 o (8,8):(8,1), (8,8):(8,1))",
        "cosize(Sw<3,0,3> o 0 o 8:8)",
        "upcast(Sw<2,1,3> o 0 o 8:1, 2)",
    ] {
        let words = explained(text);
        assert!(!words.contains("the outer layout changes"), "{words}");
        assert!(words.lines().count() >= 3, "{words}");
    }
}

/// Steps on symbolic extents are expressions of the symbols.
#[test]
fn symbolic_extents_are_explained() {
    let words = explained("zipped_divide((M,K):(K,_1), <_128,_64>)");
    assert!(
        words.contains("\n    A o ceil_div(M,128):_128 = ceil_div(M,128):128*K\n"),
        "{words}"
    );
    let words = explained("((M,N):(N,1))(2,3)");
    assert!(words.ends_with("\n= 2*N + 3\n"), "{words}");
}

#[test]
fn refusals_are_explained_too() {
    let words = explained("left_inverse((2,2):(1,1))");
    assert!(words.contains("\nrefused: left_inverse"), "{words}");
}

/// Every function that is listed has a meaning, and says it when it is explained.
#[test]
fn every_function_has_a_meaning() {
    for signature in SIGNATURES.iter().flat_map(|(_, signatures)| *signatures) {
        let name = signature.split('(').next().unwrap();
        assert!(!meaning(name).is_empty(), "{name}");
    }
    let words = explained("get_flat_coord((3,(2,3)):(3,(12,1)), 17)");
    assert!(words.contains("an integer for each mode"), "{words}");
}
