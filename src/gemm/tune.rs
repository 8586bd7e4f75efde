//! Tuning: which kernel a problem gets.

pub mod model;
mod table;
