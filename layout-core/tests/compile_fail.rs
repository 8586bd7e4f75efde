//! What the compiler says of layouts that do not exist.

#[test]
fn impossible_layouts_are_compile_errors_in_plain_words() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
