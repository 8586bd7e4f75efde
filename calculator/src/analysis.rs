//! What an access costs, the swizzle that makes it cheaper, and what a layout is as a function.

mod access;
mod bijection;
mod swizzle;

pub use access::{Banks, Sectors, banks, sectors};
pub use bijection::{Bijection, bijection};
pub use swizzle::{find_swizzle, swizzled};
