//! Wrong launches do not compile, and rustc explains why at the caller's line.

#[test]
fn wrong_launches_do_not_compile() {
    // A pattern without matches would pass.
    assert!(std::fs::read_dir("tests/ui").is_ok_and(|mut cases| cases.next().is_some()));
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
