//! The tests of the calculator, as one program.

mod check;

mod analysis;
mod cells;
mod contraction;
mod coordinates;
mod explanations;
mod limits;
mod notation;
mod partitions;
mod printed;
mod quoted;
mod reference;
mod swizzled;
mod tiled;
