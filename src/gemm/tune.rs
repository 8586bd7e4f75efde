//! Tuning: which kernel a problem gets.

pub mod model;
pub mod table;
