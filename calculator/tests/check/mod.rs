//! Checks the answers to expressions.

use cutlet_calculator::{Calculator, Options};

/// The answer to an expression: its value, or `error: …`.
pub fn answer(text: &str, options: Options) -> String {
    let mut calculator = Calculator::new(text, options);
    match calculator.evaluate() {
        Ok(value) => calculator.shown(&value),
        Err(refusal) => format!("error: {refusal}"),
    }
}

/// Checks that expressions have these answers.
pub fn check(cases: &[(&str, &str)]) {
    check_with(cases, Options::default());
}

/// Checks that expressions have these answers if integers are static.
pub fn check_static(cases: &[(&str, &str)]) {
    check_with(cases, Options { is_static: true });
}

fn check_with(cases: &[(&str, &str)], options: Options) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(text, expected)| (text, expected, answer(text, options)))
        .filter(|(_, expected, found)| found != *expected)
        .map(|(text, expected, found)| format!("{text}\n  is {found}\n  not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
