//! The modes of a contraction, as the library computes with them: extents and strides of memory.

use std::fmt;

use cutlet_layout_core::contraction::{self, Modes, Names, Notation};
use cutlet_layout_core::{Int, Layout, LayoutError};

pub use cutlet_layout_core::contraction::Role;

use crate::{Error, Result};

/// A mode, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// Its names, of which the first one is the innermost.
    pub names: String,
    pub role: Role,
    pub extent: usize,
    /// Elements from one coordinate to the next in A, B and C. 0 in an operand that does not have the mode.
    pub strides: [usize; 3],
}

impl Mode {
    /// The modes of operands that lie as these layouts say, in einsum's notation.
    ///
    /// # Errors
    /// If the notation is none of two operands, or does not fit the layouts.
    pub fn of_notation(notation: &str, layouts: [&Layout; 3]) -> Result<Vec<Mode>> {
        let notation = Notation::parse(notation).map_err(refused)?;
        let modes = notation.modes(layouts).map_err(refused)?;
        Ok(in_memory(&modes))
    }

    fn as_of_layouts(&self) -> contraction::Mode {
        let int = |value: usize| Int::dynamic(value as i64);
        contraction::Mode {
            names: Names::new(&self.names),
            role: self.role,
            extent: int(self.extent),
            strides: self.strides.map(int),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.names, self.extent)
    }
}

/// The modes of layouts of memory, in which no stride is negative.
fn in_memory(modes: &Modes) -> Vec<Mode> {
    let modes = modes.as_slice().iter().map(|mode| Mode {
        names: mode.names.to_string(),
        role: mode.role,
        extent: mode.extent.value() as usize,
        strides: mode.strides.map(|stride| stride.value() as usize),
    });
    modes.collect()
}

fn refused(error: LayoutError) -> Error {
    Error::Extents {
        operation: "contract",
        found: error.message().to_string(),
    }
}

/// The modes with neighbours merged: those of the same role of which one continues the other in all operands. Modes of
/// one element are left out.
pub fn merged(modes: Vec<Mode>) -> Vec<Mode> {
    let mut list = Modes::EMPTY;
    for mode in &modes {
        let pushed = list.try_push(mode.as_of_layouts());
        pushed.expect("the modes are those of a notation");
    }
    in_memory(&list.merged())
}
