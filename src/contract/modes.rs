//! The modes of a contraction: which operands have each, how large it is, and how far its elements lie apart.

use std::fmt;

use cutlet_layout_core::Layout;

use crate::{Error, Result};

/// What a mode is for the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Rows of A and C.
    M,
    /// Columns of B and C.
    N,
    /// What is summed: of A and B, or of one of them.
    K,
    /// Products of their own: of C and both operands.
    L,
}

impl Role {
    /// Whether an operand has modes of the role: A (0), B (1) or C (2).
    pub fn is_of(self, operand: usize) -> bool {
        match self {
            Role::M => operand != 1,
            Role::N => operand != 0,
            Role::K => operand != 2,
            Role::L => true,
        }
    }
}

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

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.names, self.extent)
    }
}

/// A contraction as text: the names of the modes of A, B and C.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notation {
    operands: [Vec<char>; 3],
}

/// Returns an error about a contraction.
pub fn refuse<T>(found: String) -> Result<T> {
    Err(Error::Extents {
        operation: "contract",
        found,
    })
}

const OPERANDS: [&str; 3] = ["A", "B", "C"];

impl Notation {
    /// Reads einsum's notation of two operands, such as `bhqd,bhkd->bhqk`. Spaces mean nothing.
    ///
    /// # Errors
    /// What is wrong in it.
    pub fn parse(text: &str) -> Result<Notation> {
        let asks = "write `ab,bc->ac`: a letter for each mode of A, B and C";
        let Some((inputs, c)) = text.split_once("->") else {
            return refuse(format!("`{text}` has no `->` and no output; {asks}"));
        };
        let inputs: Vec<&str> = inputs.split(',').collect();
        let [a, b] = inputs[..] else {
            let found = inputs.len();
            return refuse(format!(
                "`{text}` has {found} operands, and a contraction has two; contract them one after the other"
            ));
        };
        let mut operands = [const { Vec::new() }; 3];
        for (names, modes) in operands.iter_mut().zip([a, b, c]) {
            *names = modes.chars().filter(|it| !it.is_whitespace()).collect();
            if let Some(other) = names.iter().find(|it| !it.is_alphabetic()) {
                return refuse(format!(
                    "`{text}` has `{other}`, which is no letter; {asks}"
                ));
            }
        }
        let [a, b, c] = &operands;
        for (nth, name) in c.iter().enumerate() {
            if c[..nth].contains(name) {
                return refuse(format!(
                    "the output of `{text}` has the mode {name} twice; write a diagonal by a tensor that has it alone"
                ));
            }
            if !a.contains(name) && !b.contains(name) {
                return refuse(format!(
                    "the output of `{text}` has the mode {name}, and no operand has; give an operand a mode of stride 0"
                ));
            }
        }
        Ok(Notation { operands })
    }

    /// The modes of operands that lie as these layouts say. Where an operand has a mode twice, they are its diagonal.
    ///
    /// # Errors
    /// If the layouts have other ranks than the notation, or a mode has different extents.
    pub fn modes(&self, layouts: [&Layout; 3]) -> Result<Vec<Mode>> {
        for ((operand, names), layout) in OPERANDS.iter().zip(&self.operands).zip(layouts) {
            // A sum over everything has one element, and no mode.
            let is_scalar = names.is_empty() && layout.size() == 1;
            if names.len() != layout.rank() && !is_scalar {
                let (named, rank) = (names.len(), layout.rank());
                return refuse(format!(
                    "{operand} has {rank} modes, {layout}, and {named} names; name each mode"
                ));
            }
        }
        let mut names: Vec<char> = Vec::new();
        for name in self.operands.iter().flatten() {
            if !names.contains(name) {
                names.push(*name);
            }
        }
        let mut modes = Vec::new();
        for name in names {
            let places = [0, 1, 2].map(|operand| self.places(operand, name, layouts[operand]));
            modes.extend(common_parts(name, places)?);
        }
        Ok(modes)
    }

    /// Each mode of this name that an operand has, as extents and strides.
    fn places(&self, operand: usize, name: char, layout: &Layout) -> Vec<Place> {
        let modes = self.operands[operand].iter().enumerate();
        let of_name = modes.filter(|(_, it)| **it == name);
        of_name
            .map(|(i, _)| Place::of(operand, &layout.mode(i)))
            .collect()
    }
}

/// A mode of an operand: the rest of it that is not yet taken.
#[derive(Clone)]
struct Place {
    operand: usize,
    /// Extents and strides, the innermost first.
    leaves: Vec<(usize, usize)>,
    extent: usize,
    shape: String,
}

impl Place {
    fn of(operand: usize, mode: &Layout) -> Place {
        let leaves = (0..mode.num_leaves()).map(|n| {
            let (extent, stride) = (mode.leaf_shape(n).value(), mode.leaf_stride(n).value());
            (extent as usize, stride as usize)
        });
        Place {
            operand,
            leaves: leaves.filter(|(extent, _)| *extent != 1).collect(),
            extent: mode.size() as usize,
            shape: mode.shape().to_string(),
        }
    }

    /// Takes `extent` elements of the innermost leaf, and returns their stride; `None` if they do not divide it.
    fn take(&mut self, extent: usize) -> Option<usize> {
        let (first, stride) = self.leaves[0];
        if !first.is_multiple_of(extent) {
            return None;
        }
        match first / extent {
            1 => drop(self.leaves.remove(0)),
            rest => self.leaves[0] = (rest, stride * extent),
        }
        Some(stride)
    }
}

/// The parts of the modes of one name: each operand's are as large as the others'.
fn common_parts(name: char, places: [Vec<Place>; 3]) -> Result<Vec<Mode>> {
    let role = match [0, 1, 2].map(|operand| !places[operand].is_empty()) {
        [true, true, true] => Role::L,
        [true, false, true] => Role::M,
        [false, true, true] => Role::N,
        _ => Role::K,
    };
    let mut places: Vec<Place> = places.into_iter().flatten().collect();
    let first = places[0].clone();
    if let Some(other) = places.iter().find(|it| it.extent != first.extent) {
        let (one, two) = (OPERANDS[first.operand], OPERANDS[other.operand]);
        return refuse(format!(
            "the mode {name} has {} elements in {one} and {} in {two}; make them agree, or repeat one by a stride of 0",
            first.extent, other.extent
        ));
    }
    let mut modes = Vec::new();
    while !places[0].leaves.is_empty() {
        let shapes: Vec<String> = places.iter().map(|it| it.shape.clone()).collect();
        let extent = places.iter().map(|it| it.leaves[0].0).min().unwrap_or(1);
        let mut strides = [0; 3];
        for place in &mut places {
            let Some(stride) = place.take(extent) else {
                return refuse(format!(
                    "the mode {name} has the shapes {}, which do not divide each other; give it the same shape",
                    shapes.join(" and ")
                ));
            };
            strides[place.operand] += stride;
        }
        let names = name.to_string();
        modes.push(Mode {
            names,
            role,
            extent,
            strides,
        });
    }
    Ok(modes)
}

/// The modes with neighbours merged: those of the same role of which one continues the other in all operands. Modes of
/// one element are left out.
pub fn merged(mut modes: Vec<Mode>) -> Vec<Mode> {
    modes.retain(|it| it.extent != 1);
    let mut found = true;
    while found {
        found = false;
        'pairs: for inner in 0..modes.len() {
            for outer in 0..modes.len() {
                if inner != outer && modes[outer].continues(&modes[inner]) {
                    let outer_mode = modes[outer].clone();
                    modes[inner].extent *= outer_mode.extent;
                    modes[inner].names.push_str(&outer_mode.names);
                    modes.remove(outer);
                    found = true;
                    break 'pairs;
                }
            }
        }
    }
    modes
}

impl Mode {
    /// Whether this mode begins where `inner` ends, in all operands.
    fn continues(&self, inner: &Mode) -> bool {
        let next = inner.strides.map(|stride| stride * inner.extent);
        self.role == inner.role && self.strides == next
    }
}
