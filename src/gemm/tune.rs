//! Tuning: the choice of a kernel for a problem.

pub mod model;
pub mod table;
