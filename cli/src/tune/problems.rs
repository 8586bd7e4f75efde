//! The problems to tune: shapes of the command line, of a suite, or recorded from a program.

use std::path::Path;

use cutlet::{MAX_EXTENT, ProblemKey, recorded_problems};

use crate::bench::family::Family;
use crate::bench::gemm::Gemm;
use crate::bench::suite::{Suite, SuiteError};
use crate::measure::dtype::Dtype;

/// Problems, each once.
#[derive(Debug, Default)]
pub struct Problems {
    pub keys: Vec<ProblemKey>,
}

impl Problems {
    /// Those of a suite in these types.
    pub fn of_suite(suite: &Suite, dtypes: &[Dtype]) -> Result<Self, SuiteError> {
        let mut problems = Problems::default();
        for entry in &suite.gemm {
            for problem in suite.problems(entry, |entry| Gemm.problems(entry, dtypes))? {
                problems.add(problem.key());
            }
        }
        Ok(problems)
    }

    /// Those of a file that a process with CUTLET_RECORD wrote.
    pub fn recorded(path: &Path) -> cutlet::Result<Self> {
        let mut problems = Problems::default();
        recorded_problems(path)?
            .into_iter()
            .for_each(|key| problems.add(key));
        Ok(problems)
    }

    fn add(&mut self, key: ProblemKey) {
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }
}

/// The suite of these shapes, with a row-major A and a column-major B.
pub fn suite_of(shapes: &[[usize; 3]]) -> Result<Suite, SuiteError> {
    let text = format!("about = \"shapes of the command line\"\n\n[[gemm]]\nmnk = {shapes:?}\n");
    Suite::read("--shapes", text)
}

/// Parses a shape: `4096x4096x1024` is m, n and k.
pub fn shape(text: &str) -> Result<[usize; 3], String> {
    let extents = text.split('x').map(|extent| match extent.parse() {
        Ok(extent) if (1..=MAX_EXTENT).contains(&extent) => Some(extent),
        _ => None,
    });
    let extents: Option<Vec<usize>> = extents.collect();
    let shape = extents.and_then(|extents| extents.try_into().ok());
    shape
        .ok_or_else(|| format!("a shape is m, n and k from 1 to {MAX_EXTENT}, as `4096x4096x1024`"))
}

#[cfg(test)]
mod tests {
    use cutlet::Precision;

    use super::*;

    #[test]
    fn a_shape_has_three_extents() {
        assert_eq!(shape("1x20x300"), Ok([1, 20, 300]));
        for wrong in ["", "1x2", "1x2x3x4", "1x2x0", "1x2x-3", "1,2,3"] {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn problems_of_a_suite_are_there_once() {
        let text = "about = \"\"\n[[gemm]]\nmnk = [[1, 2, 3], [1, 2, 3]]\n[[gemm]]\nmnk = [[1, 2, 3]]\nbatch = 2\n";
        let suite = Suite::read("mine", text.to_string()).unwrap();
        let problems = Problems::of_suite(&suite, &[Dtype::F32]).unwrap();
        let batches: Vec<usize> = problems.keys.iter().map(|key| key.batch).collect();
        assert_eq!(batches, [1, 2]);
    }

    #[test]
    fn types_that_have_the_same_kernels_are_one_problem() {
        let precisions = |k: usize| {
            let suite = suite_of(&[[16, 32, k]]).unwrap();
            let dtypes = [Dtype::F32, Dtype::Tf32, Dtype::Tf32x3];
            let problems = Problems::of_suite(&suite, &dtypes).unwrap();
            let keys = problems.keys.iter();
            keys.map(|key| key.precision).collect::<Vec<_>>()
        };
        assert_eq!(precisions(127), [Precision::Exact, Precision::Tf32]);
        let all = [Precision::Exact, Precision::Tf32, Precision::Tf32x3];
        assert_eq!(precisions(128), all);
    }
}
