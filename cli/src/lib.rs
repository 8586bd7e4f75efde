//! The baseline that the `cutlet` command and the benchmarks compare with.

pub mod cublas;
pub mod nvidia_folders;
