//! The plans that a stream keeps. A problem of the shape of an earlier one is launched without another choice.

use std::sync::{Arc, Mutex, PoisonError};

use cutlet_device::DeviceData;
use cutlet_host::Stream;

use super::operand::Operand;
use super::problem::{Problem, ProblemShape};
use super::registry::{Choice, LaunchPlan};
use super::tuning_file::installed;
use crate::Result;
use crate::recently_used::RecentlyUsed;

/// The most plans that a stream keeps for each pair of element types. When there are more, the plan goes whose last use
/// is the longest ago.
const MOST_PLANS: usize = 1024;

/// What a plan depends on, besides its device.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    shape: ProblemShape,
    /// Whether tunings chose.
    is_tuned: bool,
    /// The tunings that there were.
    tunings: usize,
}

/// A stream's plans for these element types.
struct PlanCache<T: Operand, D: DeviceData>(Mutex<Plans<T, D>>);

type Plans<T, D> = RecentlyUsed<Key, Arc<LaunchPlan<T, D>>, MOST_PLANS>;

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
        return Ok(Some(plan));
    }
    // The lock is not held meanwhile: loading a kernel may compile its PTX.
    let Some(made) = plan()?.map(Arc::new) else {
        return Ok(None);
    };
    plans().insert(key, made.clone());
    Ok(Some(made))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use cutlet_host::Device;

    use super::*;
    use crate::{Element, Gemm, Matrix, MatrixMut};

    fn plan<T: Element>(
        stream: &Stream,
        problem: &Problem<'_, T>,
        choice: Choice<'_>,
    ) -> Result<LaunchPlan<T, T>> {
        T::plan(stream, problem, choice)
    }

    /// Multiplies square matrices of these extents, one after the other, with plans that the stream keeps. How many
    /// plans are made.
    fn plans_made(extents: &[usize], choice: Choice<'_>) -> usize {
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

    /// A server meets new shapes all the time, and its own shapes between them.
    #[test]
    fn a_plan_that_is_used_stays_among_new_ones() {
        let stream = Device::cpu().stream().unwrap();
        let plans = stream.state::<PlanCache<f32, f32>>();
        let made = Cell::new(0);
        let meet = |rows: usize| {
            let a = stream.zeroed::<f32>(rows).unwrap();
            let mut c = stream.zeroed::<f32>(rows).unwrap();
            let a = Matrix::row_major(&a, rows, 1).unwrap();
            let b = Matrix::row_major(a.view.slice(..1).unwrap(), 1, 1).unwrap();
            let to = MatrixMut::row_major(&mut c, rows, 1).unwrap();
            let mut gemm = Gemm::new(a, b, to);
            let problem = Problem::new(&stream, &mut gemm).unwrap();
            cached_or(&stream, &problem, Choice::Estimated, || {
                made.set(made.get() + 1);
                plan(&stream, &problem, Choice::Estimated).map(Some)
            })
            .unwrap();
        };
        for rows in 1..=2 * MOST_PLANS {
            meet(1);
            meet(rows);
        }
        assert_eq!(made.get(), 2 * MOST_PLANS);
        assert_eq!(plans.0.lock().unwrap().len(), MOST_PLANS);
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
