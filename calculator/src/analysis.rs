//! What an access costs, and what a layout is as a function.

mod access;
mod bijection;

pub use access::{Banks, Sectors, banks, sectors};
pub use bijection::{Bijection, bijection};
