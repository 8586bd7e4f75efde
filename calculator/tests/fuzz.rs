//! Random programs: each has a value or a refusal, what is printed reads back, and explaining changes nothing.
//!
//! `CUTLET_FUZZ_SECONDS=600` goes on for so long, from a seed that is new each time.

use std::panic;
use std::time::{Duration, Instant};

use cutlet_calculator::picture::holders;
use cutlet_calculator::{Calculator, Options, SIGNATURES, Value, caught, evaluate};

const PIECES: [&str; 60] = [
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
    "(M,N)",
    "M",
    "//",
    "9223372036854775807",
    "[0]",
    "int n = 8, ",
    "auto [a, b] = ",
    "a, b = ",
    "append<3>(",
    "print_layout(",
    "contract(\"mk,nk->mn\", ",
    "contract(\"ij,kj->\", i=2, j=",
    "k=",
    "\"",
];

/// Expressions that have a value more often than pieces do.
const WHOLE: [&str; 14] = [
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
    "(M,_4):(_1,M)",
    "(_2,N):(ldm,_1)",
    "(4,4):(1,4) o (1,0) o (2,2):(1@0,1@1)",
    "Layout<Shape<_2,_3>>{}",
];

const OPERATIONS: [&str; 19] = [
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
    "idx2crd",
    "get_flat_coord",
    "slice_",
    "append<3>",
    "max_common_vector",
    "make_layout_tv",
    "crd2crd",
];

/// How many random programs are tried, or for how long.
struct Tries {
    left: usize,
    until: Option<Instant>,
}

impl Tries {
    fn new(count: usize) -> Tries {
        let seconds = std::env::var("CUTLET_FUZZ_SECONDS").ok();
        let seconds = seconds.and_then(|text| text.parse().ok());
        Tries {
            left: count,
            until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        }
    }

    /// A source of random numbers: the same for each run, unless the time is given.
    fn random(&self, seed: u64) -> fastrand::Rng {
        match self.until {
            Some(_) => fastrand::Rng::new(),
            None => fastrand::Rng::with_seed(seed),
        }
    }

    fn go_on(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        match self.until {
            Some(until) => Instant::now() < until,
            None => self.left > 0,
        }
    }
}

/// Silences the panics by which operations refuse. A failed assertion of a test is printed.
fn only_tests_panic_loudly() {
    panic::set_hook(Box::new(|panic| {
        if panic
            .location()
            .is_some_and(|place| place.file().contains("tests"))
        {
            eprintln!("{panic}");
        }
    }));
}

#[test]
fn every_text_has_a_value_or_a_refusal() {
    only_tests_panic_loudly();
    let mut tries = Tries::new(30_000);
    let mut rng = tries.random(7);
    let mut count = 0;
    while tries.go_on() {
        count += 1;
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
    println!("{count} programs");
}

#[test]
fn what_is_printed_reads_back_and_explaining_changes_nothing() {
    only_tests_panic_loudly();
    let mut tries = Tries::new(20_000);
    let mut rng = tries.random(8);
    let mut values = 0;
    while tries.go_on() {
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
        let Ok(
            value @ (Value::Layout(_) | Value::Composed(_) | Value::Tuple(_) | Value::Symbolic(_)),
        ) = value
        else {
            continue;
        };
        // Sums of symbols are no notation, and neither are several values.
        if matches!(&value, Value::Symbolic(text) if !text.contains(':') || text.contains(", ")) {
            continue;
        }
        let printed = plain.shown(&value);
        // A symbol's name is a stride only.
        let mut again = Calculator::new(&printed, Options::default());
        match again.evaluate() {
            Ok(read) => assert_eq!(again.shown(&read), printed, "{text}"),
            Err(refusal) => panic!("{text} is {printed}, which is refused: {refusal}"),
        }
        values += 1;
    }
    println!("{values} values");
    assert!(values > 3000, "{values}");
}

/// What may be an argument of a tiled operation, of a box of TMA or of a search for a swizzle.
const ARGUMENTS: [&str; 20] = [
    "Mma16816<bf16>",
    "SM80_8x8x4_F64F64F64F64_TN",
    "Wgmma<8, bf16>",
    "CpAsync<8>",
    "CopyAtom::ldmatrix(4, 16)",
    "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>",
    "L!((4, 8):(8, 1))",
    "(2,2)",
    "(1,8):(0,1)",
    "(32,4):(4,1)",
    "(64,32):(32,1)",
    "32:32",
    "(3,M):(M,1)",
    "<_,2>",
    "Sw<3,3,3>",
    "Sw<3,3,3> o 0 o (8,64):(64,1)",
    "0",
    "16",
    "-3",
    "(2,2):(1@0,1@1)",
];

#[test]
fn tiled_operations_and_boxes_have_a_value_or_a_refusal() {
    only_tests_panic_loudly();
    let signatures: Vec<&str> = SIGNATURES
        .iter()
        .filter(|(topic, _)| ["Tiled operations", "Memory"].contains(topic))
        .flat_map(|(_, signatures)| signatures.iter().copied())
        .collect();
    let mut tries = Tries::new(4000);
    let mut rng = tries.random(9);
    let (mut values, mut count) = (0, 0);
    while tries.go_on() {
        let signature = signatures[rng.usize(..signatures.len())];
        let (name, parameters) = signature.split_once('(').unwrap();
        let arguments = parameters
            .split(',')
            .map(|_| ARGUMENTS[rng.usize(..ARGUMENTS.len())]);
        let text = format!("{name}({})", arguments.collect::<Vec<_>>().join(", "));
        match evaluate(&text) {
            Ok(value) => {
                assert!(!value.to_string().is_empty(), "{text}");
                // What is drawn of a tiled operation is drawn or refused, too.
                let _ = caught(|| holders(&value, ""));
                values += 1;
            }
            Err(refusal) => assert!(!refusal.marked(&text).is_empty(), "{text}"),
        }
        count += 1;
    }
    println!("{values} values of {count} programs");
    assert!(values > 150, "{values}");
}
