//! The tests of the `cutlet` command, as one program.

mod bench;
mod contract;
mod gemm;
mod json;
mod layout;
mod manual;
mod new;
mod output;
mod progress;
mod ptx;
mod tune;
