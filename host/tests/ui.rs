//! Wrong launches do not compile, and rustc says why at the user's line.

#[test]
fn wrong_launches_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
