//! The tests of the `cutlet` command, as one program.

mod bench;
mod gemm;
mod json;
mod layout;
mod manual;
mod output;
mod progress;
mod tune;
