//! `#[kernel]`: one Rust function, two backends.
