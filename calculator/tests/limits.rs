//! Limits: an expression of any length is answered with little memory, and messages stay short.

use crate::check::check;
use cutlet_calculator::evaluate;

#[test]
fn tuples_end_at_the_33rd_integer() {
    let integers = vec!["1"; 33].join(",");
    let refusal = evaluate(&format!("({integers})")).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "column 66: a tuple has up to 32 integers, and a call up to 32 arguments: here is one more"
    );
    let nested = format!("(({0}),({0}))", vec!["1"; 20].join(","));
    let refusal = evaluate(&nested).unwrap_err().to_string();
    assert!(
        refusal.starts_with("column 1: ") && refusal.contains("32"),
        "{refusal}"
    );
    assert!(evaluate(&format!("({})", vec!["1"; 32].join(","))).is_ok());
}

#[test]
fn large_integers_are_named_whole() {
    check(&[
        (
            "(4,99999999999999999999):(1,4)",
            "error: column 4: the integer 99999999999999999999 does not fit 64 bits",
        ),
        ("-9223372036854775808", "-9223372036854775808"),
        (
            "9223372036854775808",
            "error: column 1: the integer 9223372036854775808 does not fit 64 bits",
        ),
        (
            "gather([18446744073709551616])",
            "error: column 9: the integer 18446744073709551616 does not fit 64 bits",
        ),
    ]);
}

#[test]
fn long_names_and_values_are_cut() {
    let long = "x".repeat(100_000);
    let unknown = evaluate(&long).unwrap_err().to_string();
    assert!(
        unknown.contains(&format!("`{}…`", "x".repeat(60))) && unknown.len() < 200,
        "{unknown}"
    );
    let unexpected = evaluate(&format!("(4 {long})")).unwrap_err().to_string();
    assert!(unexpected.len() < 200, "{unexpected}");
    let table = format!("gather([{}])", vec!["7"; 5000].join(","));
    let kind = evaluate(&format!("size({table})")).unwrap_err().to_string();
    assert!(
        kind.len() < 200 && kind.contains("an index table"),
        "{kind}"
    );
    let marked = evaluate(&format!("{}@", "(4,2) o ".repeat(10_000))).unwrap_err();
    let marked = marked.marked(&"(4,2) o ".repeat(10_000));
    assert!(marked.len() < 400, "{marked}");
}

/// The mark stands under its column, whatever is cut of the line, and in the line of the mistake.
#[test]
fn the_mark_is_under_the_mistake() {
    let expression = format!("{}x", "_4:_1 o ".repeat(100));
    let marked = evaluate(&expression).unwrap_err().marked(&expression);
    let lines: Vec<Vec<char>> = marked.lines().map(|line| line.chars().collect()).collect();
    let place = lines[2].iter().position(|&c| c == '^').unwrap();
    assert_eq!(lines[1][place], 'x', "{marked}");
    let program = "a = 4:2\nb = 4:x(1)\na o b";
    let marked = evaluate(program).unwrap_err().marked(program);
    assert!(marked.ends_with("\n  b = 4:x(1)\n        ^"), "{marked}");
}

/// A refusal of an operation marks the operand that caused it.
#[test]
fn the_mark_is_under_the_operand() {
    let cases = [
        ("(4,6,8):(2,3,5) o 6:3", "6:3"),
        ("4:1 o (4,6,8):(2,3,5) o 6:3", "6:3"),
        ("composition((4,2):(1,8), 3:3)", "3:3"),
        ("logical_divide(Sw<3,4,3>, 4:1)", "Sw<3,4,3>"),
        ("complement((2,2):(1,1), 24)", "(2,2):(1,1), 24)"),
        ("slice((_,1,1), (4,2):(1,4))", "(_,1,1)"),
        ("take<1,1>((4,2):(1,4))", "1>"),
        ("((4,2):(1,4))(1,2,3)", "3)"),
        ("(4,2):(1,4) == Sw<3,4,3>", "Sw<3,4,3>"),
        ("(4,2):(1,4).get<2>()", "2>"),
        ("<4:1,Sw<3,4,3>>", "Sw<3,4,3>>"),
        ("(4,2) / 3", "3"),
        ("a = 6:3; (4,6,8):(2,3,5) o a", "a"),
        ("(gather([7,250]) o 0 o 4:1)(2)", "2)"),
    ];
    for (text, operand) in cases {
        let refusal = evaluate(text).unwrap_err();
        let column = refusal.column.unwrap_or_default();
        assert!(
            column > 0 && text[column - 1..].starts_with(operand),
            "{text}: {refusal}"
        );
    }
}

/// A line of 4 MB takes no more memory than a few times its length.
#[test]
fn a_long_line_takes_little_memory() {
    for (begin, repeated) in [
        ("(", "1,"),
        ("", "1 o "),
        ("<", "4:1,"),
        ("gather([", "1,"),
        ("", "a=1;"),
    ] {
        let line = format!("{begin}{}", repeated.repeat(4_000_000 / repeated.len()));
        let before = peak_kilobytes();
        assert!(evaluate(&line).is_err());
        let grown = peak_kilobytes() - before;
        assert!(grown < 64_000, "{begin}{repeated}… takes {grown} kB");
    }
}

/// The most memory that this process ever had, in kilobytes.
fn peak_kilobytes() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}
