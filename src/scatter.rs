//! Scatter: rows to the rows of a table that indices name, stored or added.

mod add;
mod ordered;
mod stored;

pub use add::{AddElement, ScatterAdd, scatter_add, scatter_add_checked};
pub use stored::{Scatter, scatter, scatter_checked};
