//! What is printed besides values: tables, hints, and ways out of refusals.

use crate::check::answer;
use cutlet_calculator::{Calculator, Options, compare_functions, evaluate, static_hint};

/// A chain of compositions, each of which keeps modes of dynamic extent 1.
const CHAIN: &str = "((2,8):(8,1)) o ((((64,64):(1,64)) o (((2,2,2,2):(1,2,4,8)) o (((16,4):(1,16)) o \
    (((2,8):(8,1)) o (((2,32):(1,2)) o (((2,8):(8,1)) o (((2,2),(4,4)):((1,2),(4,16))))))))) o (64:1))";

#[test]
fn a_hint_is_the_same_function() {
    for text in [
        "tile_to_shape((2,4):(4,1),(6,12),(1,0))",
        "(10,2):(16,4) o (5,4):(1,5)",
        // A static order comes before dynamic numbers, so this is another layout if all are static.
        "tile_to_shape((2,4):(4,1),(6,12),(_1,0))",
    ] {
        let value = evaluate(text).unwrap();
        let Some(hint) = static_hint(text, &value) else {
            assert!(text.contains("_1"), "{text} has no hint");
            continue;
        };
        let hint = hint.strip_prefix("with static integers (--static) it is ");
        let hinted = evaluate(hint.unwrap()).unwrap();
        let compared = compare_functions(&value, &hinted).unwrap();
        assert!(compared.is_same_function(), "{text}: {compared}");
    }
}

/// "print_layout(make_layout(tensor_shape, tensor_stride));" prints a table.
#[test]
fn print_layout_prints_a_table() {
    let printed = |text: &str| {
        let mut calculator = Calculator::new(text, Options::default());
        let value = calculator.evaluate().unwrap();
        calculator.printed(&value).unwrap()
    };
    let table = "(2,3):(1,2)\n      0   1   2 \n    +---+---+---+\n 0  | 0 | 2 | 4 |\n    +---+---+---+\n 1  | 1 | 3 | 5 \
                 |\n    +---+---+---+\n";
    for text in [
        "  auto tensor_shape = make_shape(2, 3);
  auto tensor_stride = make_stride(1, 2);
  print_layout(make_layout(tensor_shape, tensor_stride));",
        "cute.print_layout((2,3):(1,2))",
        "print_layout((2,3):(1,2)) // a comment",
    ] {
        assert_eq!(printed(text), table, "{text}");
    }
    assert!(printed("print_latex((2,3):(1,2))").contains("\\documentclass"));
    let tile = printed("print_layout(local_tile((8,8):(8,1),(2,2),(0,1)))");
    assert!(tile.starts_with("((2,2):(8,1), 2)\n"), "{tile}");
    assert!(tile.contains(" 1  | 10 | 11 |\n"), "{tile}");
    // Only the call itself prints.
    assert_eq!(printed("print((2,3):(1,2))"), "(2,3):(1,2)\n");
    assert_eq!(
        printed("print_layout((2,3):(1,2)); (4,2):(1,4)"),
        "(4,2):(1,4)\n"
    );
    assert_eq!(printed("print_layout((2,3):(1,2)) o 2:1"), "(2,1):(1,2)\n");
    assert_eq!(printed("a = print_layout((2,3):(1,2))"), "(2,3):(1,2)\n");
}

/// A chain of dynamic compositions gathers modes of extent 1, for which there may be no room.
#[test]
fn a_refusal_for_want_of_room_says_what_helps() {
    let refused = answer(CHAIN, Options::default());
    let fixed = answer(CHAIN, Options { is_static: true });
    assert!(!fixed.starts_with("error"), "{fixed}");
    assert!(refused.starts_with("error: "), "{refused}");
    assert!(
        refused
            .contains("the result needs more than 32 leaves (CAPACITY), so give static integers"),
        "{refused}"
    );
    let way_out = format!("; with static integers (--static) it is {fixed}");
    assert!(refused.ends_with(&way_out), "{refused}");
}
