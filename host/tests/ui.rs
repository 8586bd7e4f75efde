//! Wrong launches do not compile, and rustc says why at the user's line.

#[test]
fn wrong_launches_do_not_compile() {
    // A pattern that nothing matches would pass.
    assert!(std::fs::read_dir("tests/ui").is_ok_and(|mut cases| cases.next().is_some()));
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
