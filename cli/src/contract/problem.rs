//! A contraction in einsum's notation: its modes, their extents, and the layouts of its tensors.

use cutlet_calculator::contraction;
use cutlet_layout_core::contraction::{Notation, TENSORS};
use cutlet_layout_core::{Int, Layout};

/// `C = Σ A·B` of tensors in these layouts.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub notation: String,
    /// The names of each tensor's modes.
    names: [Vec<char>; 3],
    /// Each mode with its extent, in the order of the notation.
    extents: Vec<(char, usize)>,
    pub layouts: [Layout; 3],
}

impl Problem {
    /// The contraction of tensors in these layouts. A tensor without one is packed, with its last mode innermost. Modes
    /// of a tensor with a layout need no extent.
    ///
    /// # Errors
    /// What is wrong with the notation, the extents or the layouts.
    pub fn new(
        notation: &str,
        extents: &[(char, usize)],
        given: [Option<Layout>; 3],
    ) -> Result<Problem, String> {
        let notation = Notation::parse(notation).map_err(|error| error.to_string())?;
        let names = [0, 1, 2].map(|tensor| letters(&notation, tensor));
        if let Some(tensor) = names.iter().position(Vec::is_empty) {
            return Err(format!(
                "{} has 0 modes; give it one of 1 element",
                TENSORS[tensor]
            ));
        }
        let extents: Vec<(char, Int)> = (extents.iter())
            .map(|(name, extent)| (*name, Int::dynamic(*extent as i64)))
            .collect();
        let layouts = contraction::layouts(&notation, &extents, given);
        let layouts = layouts.map_err(|refusal| refusal.message)?;
        let [a, b, c] =
            [0, 1, 2].map(|tensor| given[tensor].unwrap_or(layouts[tensor].to_dynamic()));
        let modes = notation.modes([&a, &b, &c]);
        modes.map_err(|error| error.to_string())?;
        let layouts = [a, b, c];
        let problem = Problem {
            notation: notation.to_string(),
            extents: extents_of(&names, &layouts),
            names,
            layouts,
        };
        match problem.products() {
            products if products > usize::MAX as u128 => Err(format!(
                "`{notation}` has {products} products; use smaller extents"
            )),
            _ => Ok(problem),
        }
    }

    /// Each mode with its extent, in the order of the notation.
    pub fn extents(&self) -> &[(char, usize)] {
        &self.extents
    }

    /// The numbers among [`extents`](Self::extents) of a tensor's modes.
    pub fn modes(&self, tensor: usize) -> Vec<usize> {
        let number = |name: &char| self.extents.iter().position(|(known, _)| known == name);
        self.names[tensor].iter().filter_map(number).collect()
    }

    /// Elements of memory of each tensor.
    pub fn lengths(&self) -> [usize; 3] {
        self.layouts
            .each_ref()
            .map(|layout| layout.cosize() as usize)
    }

    /// Bytes of A and B, whose elements have `of_operands` each, and of C. Elements that a layout repeats count once.
    pub fn bytes(&self, of_operands: usize, of_c: usize) -> f64 {
        let [a, b, c] = self.layouts.each_ref();
        let elements = |layout: &Layout| layout.size().min(layout.cosize()) as f64;
        (elements(a) + elements(b)) * of_operands as f64 + elements(c) * of_c as f64
    }

    /// Products that are added for an entry of C.
    pub fn terms(&self) -> usize {
        let of_c = self.modes(2);
        let summed = (0..self.extents.len()).filter(|mode| !of_c.contains(mode));
        summed.map(|mode| self.extents[mode].1).product()
    }

    /// Rows, columns, terms and number of the products of matrices that have the tensors' elements. `None` if a mode is
    /// in an operand alone, or twice in a tensor.
    pub fn matrices(&self) -> Option<[usize; 4]> {
        let mut matrices = [1; 4];
        for (name, extent) in &self.extents {
            let times = |names: &Vec<char>| names.iter().filter(|it| *it == name).count();
            let role = match self.names.each_ref().map(times) {
                [1, 0, 1] => 0,
                [0, 1, 1] => 1,
                [1, 1, 0] => 2,
                [1, 1, 1] => 3,
                _ => return None,
            };
            matrices[role] *= extent;
        }
        Some(matrices)
    }

    /// Operations: twice the products.
    pub fn operations(&self) -> f64 {
        2.0 * self.products() as f64
    }

    fn products(&self) -> u128 {
        let extents = self.extents.iter().map(|(_, extent)| *extent as u128);
        extents.fold(1, u128::saturating_mul)
    }
}

/// The names of a tensor's modes.
fn letters(notation: &Notation, tensor: usize) -> Vec<char> {
    notation.names(tensor).as_str().chars().collect()
}

/// Each mode with its extent, in the order of the notation.
fn extents_of(names: &[Vec<char>; 3], layouts: &[Layout; 3]) -> Vec<(char, usize)> {
    let mut extents: Vec<(char, usize)> = Vec::new();
    for (names, layout) in names.iter().zip(layouts) {
        for (mode, name) in names.iter().enumerate() {
            if !extents.iter().any(|(known, _)| known == name) {
                extents.push((*name, layout.mode(mode).size() as usize));
            }
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [(char, usize); 5] = [('b', 2), ('s', 3), ('h', 4), ('d', 5), ('t', 6)];

    #[test]
    fn tensors_are_packed_in_the_order_of_their_names() {
        let problem = Problem::new("bshd, bthd -> bhst", &SCORES, [None; 3]).unwrap();
        assert_eq!(problem.notation, "bshd,bthd->bhst");
        let layouts = problem.layouts.each_ref().map(Layout::to_string);
        assert_eq!(layouts[0], "(2,3,4,5):(60,20,5,1)");
        assert_eq!(layouts[2], "(2,4,3,6):(72,18,6,1)");
        assert_eq!(problem.lengths(), [120, 240, 144]);
        assert_eq!((problem.terms(), problem.operations()), (5, 2.0 * 720.0));
        assert_eq!(problem.matrices(), Some([3, 6, 5, 2 * 4]));
        for (notation, extents) in [
            ("ii,ij->j", &[('i', 2), ('j', 2)]),
            ("ij,i->i", &[('i', 2), ('j', 2)]),
        ] {
            assert_eq!(
                Problem::new(notation, extents, [None; 3])
                    .unwrap()
                    .matrices(),
                None
            );
        }
    }

    #[test]
    fn layouts_have_extents() {
        let a: Layout = "((2,3),4):((12,4),1)".parse().unwrap();
        let problem = Problem::new("ik,jk->ij", &[('j', 5)], [Some(a), None, None]).unwrap();
        assert_eq!(problem.extents(), [('i', 6), ('k', 4), ('j', 5)]);
        let repeated: Layout = "(6,4):(0,1)".parse().unwrap();
        let problem = Problem::new("ik,jk->ij", &[('j', 5)], [Some(repeated), None, None]).unwrap();
        assert_eq!(problem.bytes(2, 4), 2.0 * (4.0 + 20.0) + 4.0 * 30.0);
    }

    #[test]
    fn what_is_no_contraction_is_refused() {
        let a: Option<Layout> = Some("(2,3):(3,1)".parse().unwrap());
        let all = [('i', 2), ('j', 3), ('k', 4)];
        for (notation, extents, a, why) in [
            ("ij", &all[..], None, "has no `->` and no output"),
            ("ij,jk,kl->il", &all, None, "has 3 operands"),
            ("i1,1k->ik", &all, None, "`1`, which is no letter"),
            (",jk->jk", &all, None, "A has 0 modes"),
            (
                "ij,jk->ik",
                &all[..2],
                None,
                "the mode k has no extent; give one, as `k=64`",
            ),
            ("ij,j->i", &all, None, "no mode k"),
            (
                "ij,jk->ik",
                &[('i', 2), ('i', 5)],
                a,
                "2 elements by its extent and 5 by its extent",
            ),
            (
                "ij,jk->ik",
                &[('j', 5)],
                a,
                "the mode j has 5 elements by its extent and 3 by the layout of A",
            ),
            (
                "ijk,jk->i",
                &all,
                a,
                "A has 2 modes, (2,3):(3,1), and 3 names; name each mode",
            ),
            (
                "ij,jk->ik",
                &[('i', 1 << 40), ('j', 1 << 40), ('k', 1)],
                None,
                "64 bits",
            ),
        ] {
            let found = Problem::new(notation, extents, [a, None, None]).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }
}
