#![doc = include_str!("../README.md")]

pub mod assembly;
pub mod cargo;
mod command;
mod error;
pub mod listing;
mod lookup;
mod nvdisasm;
pub mod ptx;
mod ptxas;
mod wheel;

pub use error::Error;
pub use lookup::Lookup;
pub use nvdisasm::Nvdisasm;
pub use ptxas::{Ptxas, Report, Usage};
pub use wheel::Wheel;
