//! The sums of a contraction in f64, entry by entry, and the entries that a check looks at.

use cutlet_layout_core::Layout;
use fastrand::Rng;

use super::problem::Problem;
use crate::gemm::QUICK;
use crate::gemm::reference::Sum;
use crate::measure::check::Number;

/// Entries that are looked at where all would take too long, or too much memory.
pub const SAMPLES: usize = 8192;
/// The fewest samples, however long each takes.
const FEWEST: usize = 256;
/// The most entries that are all looked at.
const MOST: usize = 1 << 22;

/// Where the terms of each entry of C are in A and B.
pub struct Sums {
    /// The extents of C's modes.
    shape: Vec<usize>,
    /// The offsets in A, B and C of each of C's modes, by coordinate.
    offsets: Vec<Vec<[usize; 3]>>,
    /// The offsets in A and B of each term.
    terms: Vec<[usize; 2]>,
}

impl Sums {
    /// Those of a problem.
    pub fn new(problem: &Problem) -> Sums {
        let of_c = problem.modes(2);
        let all = problem.extents();
        let mut terms = vec![[0, 0]];
        for mode in (0..all.len()).filter(|mode| !of_c.contains(mode)) {
            let offsets = offsets(problem, mode);
            let inner = |[a, b]: [usize; 2]| offsets.iter().map(move |at| [a + at[0], b + at[1]]);
            terms = terms.into_iter().flat_map(inner).collect();
        }
        Sums {
            shape: of_c.iter().map(|mode| all[*mode].1).collect(),
            offsets: of_c.iter().map(|mode| offsets(problem, *mode)).collect(),
            terms,
        }
    }

    /// Entries of C.
    pub fn entries(&self) -> usize {
        self.shape.iter().product()
    }

    /// The number in memory of an entry.
    pub fn place(&self, entry: usize) -> usize {
        self.begin(entry)[2]
    }

    /// The sum of an entry. Entries are numbered with C's last mode innermost.
    pub fn at<T: Number>(&self, entry: usize, a: &[T], b: &[T]) -> Sum {
        let [in_a, in_b, _] = self.begin(entry);
        let terms = self.terms.iter();
        Sum::of(terms.map(|at| a[in_a + at[0]].to_f64() * b[in_b + at[1]].to_f64()))
    }

    /// The entries that a check looks at: all if that is quick, else at most `samples`.
    pub fn looked_at(&self, seed: u64, samples: usize) -> Vec<usize> {
        let (entries, terms) = (self.entries(), self.terms.len());
        if entries <= MOST && entries.saturating_mul(terms) <= QUICK {
            return (0..entries).collect();
        }
        let samples = samples.min((QUICK / terms).max(FEWEST));
        let mut random = crate::normal::generator(seed);
        (0..samples)
            .map(|sample| self.random(&mut random, sample % 2 == 0))
            .collect()
    }

    /// A random entry. Mistakes at edges show where a mode is at its last coordinate, if that is asked for.
    fn random(&self, random: &mut Rng, at_edge: bool) -> usize {
        let edge = at_edge.then(|| random.usize(..self.shape.len()));
        let modes = self.shape.iter().enumerate();
        modes.fold(0, |entry, (mode, extent)| {
            let at = match edge {
                Some(edge) if edge == mode => extent - 1,
                _ => random.usize(..*extent),
            };
            entry * extent + at
        })
    }

    /// The offsets in A, B and C at which an entry's terms and the entry begin.
    fn begin(&self, mut entry: usize) -> [usize; 3] {
        let mut sum = [0; 3];
        for (extent, offsets) in self.shape.iter().zip(&self.offsets).rev() {
            let at = offsets[entry % extent];
            entry /= extent;
            for (sum, at) in sum.iter_mut().zip(at) {
                *sum += at;
            }
        }
        sum
    }
}

/// The offsets in A, B and C of a mode's coordinates: 0 in a tensor that does not have the mode.
fn offsets(problem: &Problem, mode: usize) -> Vec<[usize; 3]> {
    let places: Vec<(usize, Layout)> = (0..3)
        .flat_map(|tensor| {
            let layout = problem.layouts[tensor];
            let places = problem.modes(tensor).into_iter().enumerate();
            let of_mode = places.filter(move |(_, it)| *it == mode);
            of_mode.map(move |(place, _)| (tensor, layout.mode(place)))
        })
        .collect();
    let at = |coordinate: usize| {
        let mut offsets = [0; 3];
        for (tensor, layout) in &places {
            offsets[*tensor] += layout.at(coordinate as i64) as usize;
        }
        offsets
    };
    let (_, extent) = problem.extents()[mode];
    (0..extent).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(notation: &str, extents: &[(char, usize)], a: Option<&str>) -> Sums {
        let a = a.map(|layout| layout.parse().unwrap());
        Sums::new(&Problem::new(notation, extents, [a, None, None]).unwrap())
    }

    #[test]
    fn an_entry_is_the_sum_over_the_modes_that_c_lacks() {
        let of = sums(
            "aij,akj->ki",
            &[('a', 2), ('i', 2), ('j', 2), ('k', 1)],
            None,
        );
        let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let b = [1.0f32, 10.0, 100.0, 1000.0];
        assert_eq!((of.entries(), of.place(1)), (2, 1));
        assert_eq!(
            of.at(0, &a, &b),
            Sum::of([1.0, 20.0, 500.0, 6000.0].into_iter())
        );
        assert_eq!(
            of.at(1, &a, &b),
            Sum::of([3.0, 40.0, 700.0, 8000.0].into_iter())
        );
    }

    #[test]
    fn layouts_and_diagonals_say_where_elements_are() {
        let columns = sums("ij,j->i", &[], Some("(2,3):(1,2)"));
        let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0f32, 10.0, 100.0];
        assert_eq!(
            columns.at(1, &a, &b),
            Sum::of([2.0, 40.0, 600.0].into_iter())
        );
        let diagonal = sums("ii,ij->j", &[('i', 2), ('j', 2)], None);
        assert_eq!(
            diagonal.at(1, &a[..4], &a[..4]),
            Sum::of([2.0, 16.0].into_iter())
        );
    }

    #[test]
    fn many_entries_are_sampled_at_edges_too() {
        let few = sums("ik,jk->ij", &[('i', 3), ('j', 4), ('k', 2)], None);
        assert_eq!(few.looked_at(1, 5), (0..12).collect::<Vec<_>>());
        let many = sums("i,j->ij", &[('i', 3000), ('j', 3000)], None);
        let looked_at = many.looked_at(1, 100);
        assert_eq!(looked_at.len(), 100);
        let edges = looked_at
            .iter()
            .filter(|it| *it / 3000 == 2999 || *it % 3000 == 2999);
        assert!((50..60).contains(&edges.count()));
        let long = sums(
            "ik,jk->ij",
            &[('i', 2048), ('j', 2048), ('k', 1 << 18)],
            None,
        );
        assert_eq!(long.looked_at(1, SAMPLES).len(), 4096);
    }
}
