//! The tests of layouts and tensors, as one program.

mod model;

mod access;
mod atoms;
mod coalesce;
mod compile_fail;
mod complement;
mod composed_layout;
mod composed_notebook;
mod composition;
mod contraction;
mod coordinate;
mod divide;
mod explain;
mod fragment;
mod fuzz;
mod gathered_tensor;
mod inverse;
mod layout_algebra;
mod layout_basics;
mod layout_functions;
mod long_vector;
mod notation;
mod pictures;
mod product;
mod quoted;
mod round_trip;
#[cfg(feature = "serde")]
mod serde;
mod shapes;
mod slice;
mod static_dynamic;
mod swizzle;
mod tensor;
mod tensor_map;
mod value_tensor;
mod vectors;
