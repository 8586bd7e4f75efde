//! Set-up, tests and everything that CI runs.
fn main() {}
