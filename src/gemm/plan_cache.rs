//! The plans that a stream keeps. A problem of the shape of an earlier one is launched without another choice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cutlet_device::DeviceData;
use cutlet_host::Stream;

use super::operand::Operand;
use super::problem::{Problem, ProblemShape};
use super::registry::{Choice, LaunchPlan};
use super::tuning_file::installed;
use crate::Result;

/// The most plans that a stream keeps for each pair of element types. When there are more, all are dropped: a program
/// that has so many shapes rarely meets one again.
const MOST_PLANS: usize = 1024;

/// What a plan depends on, besides its device.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    shape: ProblemShape,
    /// Whether tunings chose.
    is_tuned: bool,
    /// The tunings that there were.
    tunings: usize,
}

/// A stream's plans for these element types.
struct PlanCache<T: Operand, D: DeviceData>(Mutex<HashMap<Key, Arc<LaunchPlan<T, D>>>>);

impl<T: Operand, D: DeviceData> Default for PlanCache<T, D> {
    fn default() -> Self {
        PlanCache(Mutex::default())
    }
}

/// The plan that the stream keeps for problems of this shape. If it has none, `plan` makes one. Plans with a kernel that
/// the caller named are not kept.
pub fn cached_or<T: Operand, D: DeviceData>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    choice: Choice<'_>,
    plan: impl FnOnce() -> Result<Option<LaunchPlan<T, D>>>,
) -> Result<Option<Arc<LaunchPlan<T, D>>>> {
    let is_tuned = match choice {
        Choice::Named(_) => return Ok(plan()?.map(Arc::new)),
        Choice::Tuned => true,
        Choice::Estimated => false,
    };
    let key = Key {
        shape: problem.shape(),
        is_tuned,
        tunings: installed::count(),
    };
    let cache = stream.state::<PlanCache<T, D>>();
    let plans = || cache.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = plans().get(&key) {
        return Ok(Some(plan.clone()));
    }
    // The lock is not held meanwhile: loading a kernel may compile its PTX.
    let Some(made) = plan()?.map(Arc::new) else {
        return Ok(None);
    };
    let mut plans = plans();
    if plans.len() >= MOST_PLANS {
        plans.clear();
    }
    plans.insert(key, made.clone());
    Ok(Some(made))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use cutlet_host::Device;

    use super::*;
    use crate::{Element, Gemm, Matrix, MatrixMut};

    /// Multiplies square matrices of these extents, one after the other, with plans that the stream keeps. How many
    /// plans are made.
    fn plans_made(extents: &[usize], choice: Choice<'_>) -> usize {
        fn plan<T: Element>(
            stream: &Stream,
            problem: &Problem<'_, T>,
            choice: Choice<'_>,
        ) -> Result<LaunchPlan<T, T>> {
            T::plan(stream, problem, choice)
        }
        let stream = Device::cpu().stream().unwrap();
        let made = Cell::new(0);
        for &extent in extents {
            let ones = stream.upload(&vec![1.0f32; extent * extent]).unwrap();
            let mut c = stream.zeroed::<f32>(extent * extent).unwrap();
            let ab = Matrix::row_major(&ones, extent, extent).unwrap();
            let to_c = MatrixMut::row_major(&mut c, extent, extent).unwrap();
            let mut gemm = Gemm::new(ab, ab, to_c);
            let problem = Problem::new(&stream, &mut gemm).unwrap();
            let chosen = cached_or(&stream, &problem, choice, || {
                made.set(made.get() + 1);
                plan(&stream, &problem, choice).map(Some)
            });
            let plan = chosen.unwrap().unwrap();
            plan.launch(&stream, problem).unwrap();
            let expected = vec![extent as f32; extent * extent];
            assert_eq!(stream.download(&c).unwrap(), expected);
        }
        made.get()
    }

    #[test]
    fn problems_of_one_shape_have_one_plan() {
        for choice in [Choice::Tuned, Choice::Estimated] {
            assert_eq!(plans_made(&[7, 8, 7, 8, 8], choice), 2);
        }
    }

    #[test]
    fn a_named_kernel_is_not_kept() {
        let names = Gemm::<f32>::instances(
            cutlet_host::Backend::Cpu,
            crate::Order::RowMajor,
            crate::Order::RowMajor,
            crate::Precision::Exact,
        );
        let solves = |name: &&&str| name.starts_with("f32");
        let name = names.iter().find(solves).unwrap();
        assert_eq!(plans_made(&[8, 8], Choice::Named(name)), 2);
    }
}
