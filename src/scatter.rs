//! Scatter: rows to the rows of a table that indices name, stored or added.

mod add;
mod ordered;
mod stored;

pub use add::{AddElement, ScatterAdd, scatter_add};
pub use stored::{Scatter, scatter};
