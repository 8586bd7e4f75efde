//! The tests of devices, memory and launches, as one program.

mod autotune;
mod bound_memory;
mod capture;
#[cfg(feature = "dlpack")]
mod dlpack;
mod freed_in_order;
mod launch;
mod long_vector;
mod memory;
mod memory_checks;
mod owned_graph;
mod races;
mod report;
mod tensor_map;
mod threads;
