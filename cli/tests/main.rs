//! The tests of the `cutlet` command, as one program.

mod bench;
mod gemm;
mod layout;
mod output;
mod tune;
