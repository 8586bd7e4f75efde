//! Random programs: each has a value or a refusal, what is printed reads back, and explaining changes nothing.

use std::panic;

use cutlet_calculator::{Calculator, Options, Value, evaluate};

const PIECES: [&str; 48] = [
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    "{",
    "}",
    "{}",
    ":",
    ";",
    ",",
    ".",
    "=",
    "==",
    "_",
    "o",
    "∘",
    "4",
    "_8",
    "-1",
    "1@0",
    "w",
    "a",
    "a=",
    "\n",
    "/",
    "%",
    "*",
    "Sw<3,4,3>",
    "S<1,0,1>",
    "Layout<",
    "Shape<",
    "Stride<",
    "Int<4>",
    "cute::",
    "cute.",
    "gather([1,0])",
    "get<0>",
    "size",
    "zipped_divide(",
    "coalesce(",
    "(4,2):(1,4)",
    "0",
    "mode=",
    "make_layout(",
    "//",
    "9223372036854775807",
];

/// Expressions that have a value more often than pieces do.
const WHOLE: [&str; 12] = [
    "(4,2):(1,4)",
    "(_8,(_2,_2)):(_4,(_1,_2))",
    "8:2",
    "<2:1,2:1>",
    "Sw<1,0,1> o 0 o (2,2):(1,2)",
    "(4,8)",
    "gather([3,1,2,0]) o 0 o 4:1",
    "(2,2):(1@0,1@1)",
    "5",
    "(4,2):(1,ldm)",
    "(4,4):(1,4) o (1,0) o (2,2):(1@0,1@1)",
    "Layout<Shape<_2,_3>>{}",
];

const OPERATIONS: [&str; 12] = [
    "zipped_divide",
    "logical_divide",
    "composition",
    "complement",
    "logical_product",
    "blocked_product",
    "append",
    "tile_to_shape",
    "slice",
    "max_common_layout",
    "upcast",
    "crd2idx",
];

#[test]
fn every_text_has_a_value_or_a_refusal() {
    panic::set_hook(Box::new(|_| {}));
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..30_000 {
        let text: String = (0..rng.usize(1..14))
            .map(|_| PIECES[rng.usize(..PIECES.len())])
            .collect();
        if let Err(refusal) = evaluate(&text) {
            let column = refusal.column.unwrap_or(1);
            assert!(
                column >= 1 && column <= text.chars().count() + 1,
                "{text}: {refusal}"
            );
            assert!(!refusal.marked(&text).is_empty());
        }
    }
}

#[test]
fn what_is_printed_reads_back_and_explaining_changes_nothing() {
    panic::set_hook(Box::new(|_| {}));
    let mut rng = fastrand::Rng::with_seed(8);
    let mut values = 0;
    for _ in 0..20_000 {
        let [a, b] = [0; 2].map(|_| WHOLE[rng.usize(..WHOLE.len())]);
        let text = match rng.usize(..3) {
            0 => format!("({a}) o ({b})"),
            _ => format!("{}({a}, {b})", OPERATIONS[rng.usize(..OPERATIONS.len())]),
        };
        let mut calculator = Calculator::new(&text, Options::default()).explaining();
        let explained = calculator.evaluate();
        let mut plain = Calculator::new(&text, Options::default());
        let value = plain.evaluate();
        assert_eq!(value.is_ok(), explained.is_ok(), "{text}");
        let Ok(value @ (Value::Layout(_) | Value::Composed(_) | Value::Tuple(_))) = value else {
            continue;
        };
        let printed = plain.shown(&value);
        // A symbol's name is a stride only.
        let mut again = Calculator::new(&printed, Options::default());
        match again.evaluate() {
            Ok(read) => assert_eq!(again.shown(&read), printed, "{text}"),
            Err(refusal) => panic!("{text} is {printed}, which is refused: {refusal}"),
        }
        values += 1;
    }
    assert!(values > 3000, "{values}");
}
