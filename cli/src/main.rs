//! The `cutlet` command.
fn main() {}
