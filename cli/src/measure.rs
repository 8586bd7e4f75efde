//! Measuring a problem: how it is set up, checked and timed. `bench`, `tune` and the commands that time one problem
//! share it.

pub mod case;
pub mod check;
pub mod dtype;
pub mod epilogue;
pub mod error;
pub mod nvml;
pub mod positive;
pub mod protocol;
pub mod random;
pub mod samples;
pub mod scales;
pub mod setting;
pub mod statistics;
pub mod telemetry;
pub mod timer;
