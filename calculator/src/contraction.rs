//! The tensors of a contraction: layouts as given, or packed for given extents.

use cutlet_layout_core::contraction::{Notation, TENSORS};
use cutlet_layout_core::{Int, IntTuple, Layout};

use crate::refusal::Refusal;

/// The layouts of A, B and C. A tensor without one is packed, in the order of its letters, the last one innermost. The
/// extent of a mode is the given one, or that of a given layout.
///
/// ```
/// use cutlet_calculator::contraction::layouts;
/// use cutlet_layout_core::contraction::Notation;
/// use cutlet_layout_core::{Int, layout};
///
/// let notation = Notation::parse("ij,jk->ik").unwrap();
/// let [_, b, c] = layouts(&notation, &[('k', Int::fixed(6))], [Some(layout!((4, 8):(1, 4))), None, None]).unwrap();
/// assert_eq!(b.to_string(), "(_8,_6):(_6,_1)");
/// assert_eq!(c.to_string(), "(_4,_6):(_6,_1)");
/// ```
///
/// # Errors
/// If a mode has no extent or several, an extent is of no mode, or a layout has another rank than its tensor has
/// letters.
pub fn layouts(
    notation: &Notation,
    extents: &[(char, Int)],
    given: [Option<Layout>; 3],
) -> Result<[Layout; 3], Refusal> {
    let letters = |tensor: usize| notation.names(tensor).as_str().chars();
    let mut all = (0..3).flat_map(letters);
    if let Some((other, _)) = extents
        .iter()
        .find(|it| !all.clone().any(|letter| letter == it.0))
    {
        return Err(Refusal::new(format!(
            "`{notation}` has no mode {other}, and there is an extent of it; leave it out"
        )));
    }
    let mut known = Extents::default();
    for (letter, extent) in extents {
        known.add(*letter, *extent, None)?;
    }
    for (tensor, layout) in given.iter().enumerate() {
        let Some(layout) = layout else { continue };
        notation.check_rank(tensor, layout)?;
        for (mode, letter) in letters(tensor).enumerate() {
            known.add(letter, layout.mode(mode).size_int(), Some(tensor))?;
        }
    }
    if let Some(letter) = all.find(|letter| known.of(*letter).is_none()) {
        return Err(Refusal::new(format!(
            "the mode {letter} has no extent; give one, as `{letter}=64`"
        )));
    }
    let layout = |tensor: usize| match given[tensor] {
        Some(layout) => Ok(layout),
        None => packed(letters(tensor).filter_map(|letter| known.of(letter))),
    };
    Ok([layout(0)?, layout(1)?, layout(2)?])
}

/// The extents of modes, each with the tensor whose layout has it, unless it is a given one.
#[derive(Default)]
struct Extents(Vec<(char, Int, Option<usize>)>);

impl Extents {
    /// Adds what is known of a mode. A given extent must agree with it. Layouts are compared with each other later, when
    /// their modes are cut into parts.
    fn add(&mut self, letter: char, extent: Int, by: Option<usize>) -> Result<(), Refusal> {
        let found = self.0.iter().find(|it| it.0 == letter);
        let Some(&(_, other, by_other)) = found else {
            self.0.push((letter, extent, by));
            return Ok(());
        };
        if other == extent || (by.is_some() && by_other.is_some()) {
            return Ok(());
        }
        let words = |by: Option<usize>| match by {
            Some(tensor) => format!("the layout of {}", TENSORS[tensor]),
            None => "its extent".to_owned(),
        };
        Err(Refusal::new(format!(
            "the mode {letter} has {} elements by {} and {} by {}; make them agree",
            other.value(),
            words(by_other),
            extent.value(),
            words(by)
        )))
    }

    fn of(&self, letter: char) -> Option<Int> {
        let found = self.0.iter().find(|it| it.0 == letter);
        found.map(|(_, extent, _)| *extent)
    }
}

/// The layout of a packed tensor, whose last mode is innermost.
fn packed(extents: impl Iterator<Item = Int>) -> Result<Layout, Refusal> {
    let mut shape = IntTuple::EMPTY;
    for extent in extents {
        shape = shape.try_append(&IntTuple::int(extent))?;
    }
    match shape.num_leaves() {
        0 => Ok(Layout::UNIT),
        _ => Ok(Layout::try_row_major(&shape)?),
    }
}
