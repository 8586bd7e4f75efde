//! A calculator for CuTe's layouts: it reads expressions, and answers with values and pictures.
//!
//! The command `cutlet layout` and the playground are this calculator. It depends on the layouts alone, so it compiles
//! to WebAssembly too.

pub mod analysis;
mod atoms;
mod calculator;
pub mod cells;
pub mod code;
mod compose;
mod composed;
pub mod contraction;
mod equality;
mod explain;
mod extents;
pub mod figures;
mod functions;
pub mod gallery;
mod hint;
pub mod json;
mod meanings;
mod pasted;
pub mod picture;
mod reader;
mod refusal;
mod signatures;
mod symbols;
mod table;
mod tiled;
mod tma;
mod value;

pub use calculator::{Calculator, Options, evaluate};
pub use composed::{Composed, Inner};
pub use equality::{Comparison, compare_functions};
pub use explain::Explanation;
pub use hint::static_hint;
pub use meanings::meaning;
pub use refusal::{Refusal, caught};
pub use signatures::SIGNATURES;
pub use symbols::Symbols;
pub use tiled::{Operand, Tiled};
pub use tma::{Reason, TmaBox};
pub use value::Value;
