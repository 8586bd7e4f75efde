//! Batches: a matrix, and the modes along which others like it follow.

use cutlet_device::DeviceData;

use crate::gemm::OuterMode;
use crate::matrix::{Extents, addresses_of};
use crate::{Matrix, MatrixMut};

/// The most modes of a batch that do not continue one another.
const MOST: usize = 4;

/// A mode of a batch in one operand: how many matrices, and elements from one to the next.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    count: usize,
    stride: usize,
}

/// The modes of a batch in one operand, the innermost first. Modes of one matrix are left out.
#[derive(Clone, Copy, Debug)]
pub struct Repeats {
    modes: [Repeat; MOST],
    len: usize,
}

impl Repeats {
    /// One matrix.
    pub const ONE: Repeats = Repeats {
        modes: [Repeat {
            count: 1,
            stride: 0,
        }; MOST],
        len: 0,
    };

    /// So many matrices, this far apart.
    pub fn of(count: usize, stride: usize) -> Repeats {
        let mut repeats = Repeats::ONE;
        // One mode always has a place.
        let _ = repeats.push(count, stride);
        repeats
    }

    /// Adds a mode outside of the others. It becomes one with the outermost if it continues that. `None` if there is no
    /// place for it.
    pub fn push(&mut self, count: usize, stride: usize) -> Option<()> {
        if count == 1 {
            return Some(());
        }
        let [.., outermost] = &mut self.modes[..self.len] else {
            (self.modes[0], self.len) = (Repeat { count, stride }, 1);
            return Some(());
        };
        if outermost.stride * outermost.count == stride {
            outermost.count *= count;
            return Some(());
        }
        *self.modes.get_mut(self.len)? = Repeat { count, stride };
        self.len += 1;
        Some(())
    }

    /// The modes.
    fn modes(&self) -> &[Repeat] {
        &self.modes[..self.len]
    }

    /// How many matrices there are.
    pub fn count(&self) -> usize {
        self.modes().iter().map(|it| it.count).product()
    }

    /// How many matrices there are in memory: one if all are the same.
    pub fn distinct(&self) -> usize {
        match self.modes().iter().all(|it| it.stride == 0) {
            true => 1,
            false => self.count(),
        }
    }

    /// Elements from the first of all matrices to the one with this number, or to the first one if it is alone.
    fn offset(&self, nth: usize) -> usize {
        let mut left = nth;
        let mut offset = 0;
        for mode in self.modes() {
            offset += left % mode.count.max(1) * mode.stride;
            left /= mode.count.max(1);
        }
        offset
    }

    /// Elements from the first of all matrices to the last. The modes were compared with the memory.
    fn span(&self, matrix: &Extents) -> usize {
        match matrix.span() {
            None | Some(0) => 0,
            Some(span) => {
                let steps = self.modes().iter().map(|it| (it.count - 1) * it.stride);
                span + steps.sum::<usize>()
            }
        }
    }
}

macro_rules! batch {
    ($(#[$doc:meta])* $name:ident of $matrix:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<'a, T: DeviceData> {
            /// The first matrix. Its view has the elements of all.
            pub first: $matrix<'a, T>,
            pub repeats: Repeats,
        }

        /// A batch of one.
        impl<'a, T: DeviceData> From<$matrix<'a, T>> for $name<'a, T> {
            fn from(first: $matrix<'a, T>) -> Self {
                Self { first, repeats: Repeats::ONE }
            }
        }

        impl<'a, T: DeviceData> $name<'a, T> {
            /// The device addresses from the first element of all matrices to the last.
            pub fn addresses(&self) -> core::ops::Range<u64> {
                let span = self.repeats.span(&self.first.extents);
                addresses_of::<T>(self.first.view.address(), span)
            }
        }
    };
}

batch! {
    /// Matrices of the same extents on a device, for reading.
    Batch of Matrix
}
batch! {
    /// Matrices of the same extents on a device, for writing. No two of them have an element in common.
    BatchMut of MatrixMut
}

impl<T: DeviceData> Clone for Batch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: DeviceData> Copy for Batch<'_, T> {}

impl<'a, T: DeviceData> Batch<'a, T> {
    /// The matrix with this number, or the one that stands for all.
    pub fn nth(&self, nth: usize) -> crate::Result<Self> {
        let Matrix { view, extents } = self.first;
        Ok(Batch::from(Matrix {
            view: view.slice(self.repeats.offset(nth)..)?,
            extents,
        }))
    }

    /// The same bytes as matrices of another type of the same size.
    pub fn reinterpret<U: DeviceData>(self) -> Batch<'a, U> {
        let Matrix { view, extents } = self.first;
        Batch {
            first: Matrix {
                view: view.reinterpret(),
                extents,
            },
            repeats: self.repeats,
        }
    }
}

/// The modes of a batch in A, B and C together, as few as possible.
#[derive(Clone, Copy, Debug)]
pub struct BatchModes {
    modes: [OuterMode; 3 * MOST],
    len: usize,
}

impl BatchModes {
    /// The modes of three operands with as many matrices. One matrix stands for as many as the others have. Modes are
    /// split where another operand's begin, and those that continue each other in all operands become one: any of them,
    /// but neighbours alone if the products are told apart by their numbers.
    ///
    /// # Errors
    /// Why there are none.
    pub fn of(operands: [&Repeats; 3], are_numbered: bool) -> Result<BatchModes, String> {
        let counts = operands.map(Repeats::count);
        let count = counts.into_iter().max().unwrap_or(1);
        if counts.iter().any(|it| *it != 1 && *it != count) || counts[2] != count {
            let [a, b, c] = counts;
            return Err(format!(
                "there are {a} matrices A, {b} matrices B and {c} matrices C; make them agree"
            ));
        }
        let mut batch = BatchModes::split(operands)?;
        while batch.merge(are_numbered) {}
        Ok(batch)
    }

    /// As many modes as kernels take, the innermost first. Those that there are not are of one product.
    ///
    /// # Errors
    /// If there are more modes.
    pub fn at_most<const N: usize>(&self) -> Result<[OuterMode; N], String> {
        let found = self.modes();
        if found.len() > N {
            let modes = found
                .iter()
                .map(|OuterMode { count, strides }| format!("{count} at strides of {strides:?}"));
            return Err(format!(
                "the batch has modes of {} in A, B and C, and a launch takes {N}; copy an operand with `permute`, or \
                 use `contract`, which launches as often as it takes",
                modes.collect::<Vec<_>>().join(" and ")
            ));
        }
        let mut modes = [OuterMode::ONE; N];
        modes[..found.len()].copy_from_slice(found);
        Ok(modes)
    }

    fn modes(&self) -> &[OuterMode] {
        &self.modes[..self.len]
    }

    /// Modes of which each has a stride in each operand.
    fn split(operands: [&Repeats; 3]) -> Result<BatchModes, String> {
        let mut batch = BatchModes {
            modes: [OuterMode::ONE; 3 * MOST],
            len: 0,
        };
        let mut rest = operands.map(|it| *it);
        let mut nth = [0; 3];
        loop {
            let left = [0, 1, 2].map(|it: usize| rest[it].modes().get(nth[it]).copied());
            let Some(count) = left.iter().flatten().map(|it| it.count).min() else {
                return Ok(batch);
            };
            let mut strides = [0; 3];
            for operand in 0..3 {
                let Some(mode) = left[operand] else { continue };
                if !mode.count.is_multiple_of(count) {
                    let shapes = operands.map(Repeats::shape);
                    return Err(format!(
                        "the batches of A, B and C have the shapes {}, which do not divide each other; give them the \
                         same shape",
                        shapes.join(", ")
                    ));
                }
                strides[operand] = mode.stride;
                match mode.count / count {
                    1 => nth[operand] += 1,
                    more => {
                        rest[operand].modes[nth[operand]] = Repeat {
                            count: more,
                            stride: mode.stride * count,
                        }
                    }
                }
            }
            // Each mode ends one of an operand's.
            batch.modes[batch.len] = OuterMode { count, strides };
            batch.len += 1;
        }
    }

    /// Makes one mode of two, if any continues another.
    fn merge(&mut self, neighbours_alone: bool) -> bool {
        for inner in 0..self.len {
            for outer in 0..self.len {
                let next = self.modes[inner]
                    .strides
                    .map(|it| it * self.modes[inner].count);
                let continues = outer != inner && self.modes[outer].strides == next;
                if continues && (outer == inner + 1 || !neighbours_alone) {
                    self.modes[inner].count *= self.modes[outer].count;
                    self.modes.copy_within(outer + 1..self.len, outer);
                    self.len -= 1;
                    return true;
                }
            }
        }
        false
    }
}

impl Repeats {
    /// The counts of the modes.
    fn shape(&self) -> String {
        let counts: Vec<String> = self.modes().iter().map(|it| it.count.to_string()).collect();
        format!("({})", counts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(modes: &[(usize, usize)]) -> Repeats {
        let mut repeats = Repeats::ONE;
        for (count, stride) in modes {
            repeats.push(*count, *stride).unwrap();
        }
        repeats
    }

    fn modes(operands: [&[(usize, usize)]; 3], are_numbered: bool) -> Vec<(usize, [usize; 3])> {
        let operands = operands.map(repeats);
        let batch = BatchModes::of(operands.each_ref(), are_numbered).unwrap();
        batch
            .modes()
            .iter()
            .map(|it| (it.count, it.strides))
            .collect()
    }

    #[test]
    fn modes_that_continue_each_other_are_one() {
        assert_eq!(repeats(&[(2, 6), (3, 12), (1, 5), (4, 36)]).count(), 24);
        assert_eq!(repeats(&[(2, 6), (3, 12), (1, 5), (4, 36)]).len, 1);
        assert_eq!(repeats(&[(2, 6), (3, 13)]).len, 2);
        assert_eq!(repeats(&[(2, 0), (3, 0)]).len, 1);
        let mut full = repeats(&[(2, 9), (2, 7), (2, 5), (2, 3)]);
        assert!(full.push(2, 1).is_none());
    }

    #[test]
    fn each_matrix_has_its_place() {
        let two = repeats(&[(2, 7), (3, 100)]);
        assert_eq!([0, 1, 2, 5].map(|nth| two.offset(nth)), [0, 7, 100, 207]);
        assert_eq!(Repeats::ONE.offset(4), 0);
        assert_eq!((two.distinct(), repeats(&[(3, 0)]).distinct()), (6, 1));
    }

    #[test]
    fn modes_are_those_of_all_operands() {
        let packed: &[_] = &[(6, 10)];
        let apart: &[_] = &[(2, 1), (3, 100)];
        assert_eq!(modes([packed, packed, packed], false), [(6, [10; 3])]);
        // B's modes split those of A and C.
        let split = [(2, [10, 1, 10]), (3, [20, 100, 20])];
        assert_eq!(modes([packed, apart, packed], false), split);
        assert_eq!(
            modes([&[], apart, packed], true),
            [(2, [0, 1, 10]), (3, [0, 100, 20])]
        );
        // By rows: the second mode is inside of the first.
        let by_rows: &[_] = &[(2, 30), (3, 10)];
        assert_eq!(modes([by_rows, &[], by_rows], false), [(6, [10, 0, 10])]);
        assert_eq!(modes([by_rows, &[], by_rows], true).len(), 2);
    }

    #[test]
    fn batches_that_do_not_fit_each_other_are_refused() {
        let said = |operands: [&[(usize, usize)]; 3]| {
            let operands = operands.map(repeats);
            BatchModes::of(operands.each_ref(), false).unwrap_err()
        };
        let found = said([&[(2, 1)], &[(3, 1)], &[(2, 1)]]);
        assert_eq!(
            found,
            "there are 2 matrices A, 3 matrices B and 2 matrices C; make them agree"
        );
        assert!(said([&[(2, 1)], &[(2, 1)], &[]]).contains("and 1 matrices C"));
        let found = said([&[(2, 1), (3, 5)], &[], &[(3, 1), (2, 5)]]);
        assert!(
            found.contains("the shapes (2,3), (), (3,2), which do not divide"),
            "{found}"
        );
    }
}
