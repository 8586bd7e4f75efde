//! The compiler's messages for layouts that do not exist.

#[test]
fn impossible_layouts_are_compile_errors_in_plain_words() {
    // A pattern without a match would pass.
    assert!(std::fs::read_dir("tests/compile_fail").is_ok_and(|mut cases| cases.next().is_some()));
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
