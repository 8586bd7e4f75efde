//! Modes of the same name in several tensors, cut into parts that are as large in all of them.

use super::TENSORS;
use super::modes::{Mode, Modes, Role};
use super::names::Names;
use super::notation::Notation;
use crate::error::{ErrorKind, LayoutError, tri};
use crate::flat_modes;
use crate::text::Text;
use crate::{CAPACITY, Int, Layout};

impl Notation {
    /// The modes of tensors that lie as these layouts say. Where an operand has a mode twice, they are its diagonal.
    ///
    /// A mode is cut where a leaf of a tensor's mode ends. A mode of all three tensors that A or B repeats, by a stride
    /// of 0, is one of N or M.
    ///
    /// # Errors
    /// If the layouts have other ranks than the notation, or a mode has different extents, or shapes that do not divide
    /// each other.
    pub const fn modes(&self, layouts: [&Layout; 3]) -> Result<Modes, LayoutError> {
        let mut tensor = 0;
        while tensor < 3 {
            tri!(self.check_rank(tensor, layouts[tensor]));
            tensor += 1;
        }
        let mut tensors = Tensors {
            notation: self,
            layouts,
            rest: [layouts[0].modes(), layouts[1].modes(), layouts[2].modes()],
        };
        let mut modes = Modes::EMPTY;
        // A bit for each letter.
        let mut seen = 0u64;
        let mut tensor = 0;
        while tensor < 3 {
            let names = self.names(tensor);
            let mut nth = 0;
            while nth < names.len() {
                let name = names.letter(nth);
                let bit = 1 << (name - b'A');
                if seen & bit == 0 {
                    tri!(tensors.cut(name, &mut modes));
                }
                seen |= bit;
                nth += 1;
            }
            tensor += 1;
        }
        Ok(modes)
    }

    /// Refuses a layout of another rank than tensor A (0), B (1) or C (2) has names. One without names has one element.
    ///
    /// # Errors
    /// If the rank is another one.
    ///
    /// # Panics
    /// If there is no such tensor.
    pub const fn check_rank(&self, tensor: usize, layout: &Layout) -> Result<(), LayoutError> {
        let names = self.names(tensor);
        // A sum over everything has one element, and no mode.
        let is_scalar = names.is_empty() && layout.size() == 1;
        if names.len() == layout.rank() || is_scalar {
            return Ok(());
        }
        let mut text = Text::new();
        text.str(TENSORS[tensor]).str(" has ");
        text.number(layout.rank() as i64).str(" modes, ");
        text.layout(layout).str(", and ").number(names.len() as i64);
        text.str(" names; name each mode");
        Err(LayoutError::new(ErrorKind::Mismatch, &text))
    }
}

/// Tensors, and what is left of their leaves when parts are cut off.
struct Tensors<'a> {
    notation: &'a Notation,
    layouts: [&'a Layout; 3],
    rest: [flat_modes::Modes; 3],
}

/// A mode of a tensor, and its leaves `leaf..end`, of which the first is not cut up yet.
#[derive(Clone, Copy)]
struct Place {
    tensor: u8,
    mode: u8,
    leaf: u8,
    end: u8,
}

/// Where a name is.
struct Places {
    list: [Place; 3 * CAPACITY],
    len: usize,
}

impl Places {
    /// What a mode is for the product, by the tensors that have it.
    const fn role(&self) -> Role {
        let mut has = [false; 3];
        let mut i = 0;
        while i < self.len {
            has[self.list[i].tensor as usize] = true;
            i += 1;
        }
        match has {
            [true, true, true] => Role::L,
            [true, false, true] => Role::M,
            [false, true, true] => Role::N,
            _ => Role::K,
        }
    }
}

impl Tensors<'_> {
    /// Adds the parts of the modes of a name.
    const fn cut(&mut self, name: u8, modes: &mut Modes) -> Result<(), LayoutError> {
        let mut places = self.places(name);
        tri!(self.check_extents(name, &places));
        let role = places.role();
        let mut names = Names::EMPTY;
        names.push(name);
        while let Some(extent) = self.next_extent(&mut places) {
            let mut strides = [Int::ZERO; 3];
            let mut i = 0;
            while i < places.len {
                let place = places.list[i];
                let Some(stride) = self.take(place, extent) else {
                    return Err(self.no_common_parts(name, &places));
                };
                let sum = &mut strides[place.tensor as usize];
                *sum = match sum.checked_add(stride) {
                    Some(sum) => sum,
                    None => return Err(no_diagonal(name, *sum, stride)),
                };
                i += 1;
            }
            let role = role_of_strides(role, &strides);
            tri!(modes.try_push(Mode {
                names,
                role,
                extent,
                strides,
            }));
        }
        Ok(())
    }

    const fn places(&self, name: u8) -> Places {
        let nowhere = Place {
            tensor: 0,
            mode: 0,
            leaf: 0,
            end: 0,
        };
        let mut places = Places {
            list: [nowhere; 3 * CAPACITY],
            len: 0,
        };
        let mut tensor = 0;
        while tensor < 3 {
            let names = self.notation.names(tensor);
            let mut mode = 0;
            while mode < names.len() {
                if names.letter(mode) == name
                    && let Some((leaf, end)) = self.layouts[tensor].profile().mode(mode)
                {
                    places.list[places.len] = Place {
                        tensor: tensor as u8,
                        mode: mode as u8,
                        leaf: leaf as u8,
                        end: end as u8,
                    };
                    places.len += 1;
                }
                mode += 1;
            }
            tensor += 1;
        }
        places
    }

    /// Refuses modes of a name that have different extents.
    const fn check_extents(&self, name: u8, places: &Places) -> Result<(), LayoutError> {
        let first = places.list[0];
        let mut i = 1;
        while i < places.len {
            let other = places.list[i];
            if self.size(first) != self.size(other) {
                let mut text = Text::new();
                text.str("the mode ").letter(name).str(" has ");
                text.number(self.size(first)).str(" elements in ");
                text.str(TENSORS[first.tensor as usize]).str(" and ");
                text.number(self.size(other)).str(" in ");
                text.str(TENSORS[other.tensor as usize]);
                text.str("; make them agree, or repeat one by a stride of 0");
                return Err(LayoutError::new(ErrorKind::Mismatch, &text));
            }
            i += 1;
        }
        Ok(())
    }

    /// The product of a place's extents, which is a part of a size that fits.
    const fn size(&self, place: Place) -> i64 {
        let mut size = 1;
        let mut leaf = place.leaf as usize;
        while leaf < place.end as usize {
            size *= self.rest[place.tensor as usize].shape[leaf].value();
            leaf += 1;
        }
        size
    }

    /// The least extent of the innermost leaves that are left; none if all are cut up.
    const fn next_extent(&self, places: &mut Places) -> Option<Int> {
        let mut least: Option<Int> = None;
        let mut i = 0;
        while i < places.len {
            let place = &mut places.list[i];
            let shape = &self.rest[place.tensor as usize].shape;
            while place.leaf < place.end && shape[place.leaf as usize].value() == 1 {
                place.leaf += 1;
            }
            if place.leaf == place.end {
                return None;
            }
            let extent = shape[place.leaf as usize];
            least = Some(match least {
                Some(least) => least.min(extent),
                None => extent,
            });
            i += 1;
        }
        least
    }

    /// Cuts `extent` elements off the innermost leaf, and returns their stride; `None` if they do not divide it.
    const fn take(&mut self, place: Place, extent: Int) -> Option<Int> {
        let leaf = place.leaf as usize;
        let rest = &mut self.rest[place.tensor as usize];
        let (shape, stride) = (rest.shape[leaf], rest.stride[leaf]);
        if shape.value() % extent.value() != 0 {
            return None;
        }
        rest.shape[leaf] = match shape.checked_div(extent) {
            Some(rest) => rest,
            None => return None,
        };
        if rest.shape[leaf].value() > 1 {
            rest.stride[leaf] = match stride.checked_mul(extent) {
                Some(next) => next,
                None => return None,
            };
        }
        Some(stride)
    }

    const fn no_common_parts(&self, name: u8, places: &Places) -> LayoutError {
        let mut text = Text::new();
        text.str("the mode ").letter(name).str(" has the shapes ");
        let mut i = 0;
        while i < places.len {
            let place = places.list[i];
            let mode = self.layouts[place.tensor as usize].mode(place.mode as usize);
            text.str(if i > 0 { " and " } else { "" });
            text.tuple(&mode.shape());
            i += 1;
        }
        text.str(", which do not divide each other; give it the same shape");
        LayoutError::new(ErrorKind::Mismatch, &text)
    }
}

/// The role of a mode that A or B repeats: it is no mode of that operand.
const fn role_of_strides(role: Role, strides: &[Int; 3]) -> Role {
    match role {
        Role::L if strides[0].value() == 0 => Role::N,
        Role::L if strides[1].value() == 0 => Role::M,
        role => role,
    }
}

const fn no_diagonal(name: u8, one: Int, other: Int) -> LayoutError {
    let mut text = Text::new();
    text.str("the mode ").letter(name).str(" has the strides ");
    text.int(one).str(" and ").int(other);
    text.str(", which have no sum; name them differently");
    LayoutError::new(ErrorKind::Mismatch, &text)
}
