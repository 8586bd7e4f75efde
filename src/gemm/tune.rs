//! Tuning: the fastest kernel of the sm_90 family for a problem, by a model and its correction, and by a table where
//! kernels were measured.

pub mod decomposition;
#[cfg(test)]
mod fit;
pub mod model;
pub mod table;
#[cfg(test)]
mod times;
mod trees;

use std::ptr;

use cutlet_kernels::gemm::sm90::instance::Instance;

use model::{Candidate, CostInput, by_model};
use table::Measured;
use trees::Trees;

/// Candidates within this factor of the fastest, by the model, are compared by its correction.
const REACH: f64 = 1.3;

/// The candidate that is estimated to be the fastest: by the table if it has the problem, otherwise by the model, which
/// is corrected for devices and operands that were measured. Its clocks are the model's least estimate: estimates of other
/// families are not corrected either. None if there are no instances.
pub fn fastest<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    input: &CostInput,
    measured: Option<Measured>,
) -> Option<Candidate<T, Epi>> {
    // Only instances for K-major operands were measured.
    let is_known =
        |it: &Measured| it.applies_to(input) && instances.iter().all(|it| it.k_major == [true; 2]);
    let measured = measured.filter(is_known);
    let timed = measured.and_then(|it| it.fastest(instances, input));
    let likely = timed.or_else(|| measured?.likely(instances, input));
    let candidates = within_reach(instances, input, likely);
    let by_clocks = |a: &&Candidate<T, Epi>, b: &&Candidate<T, Epi>| a.clocks.total_cmp(&b.clocks);
    let least = candidates.iter().min_by(by_clocks)?;
    if measured.is_none() {
        return Some(*least);
    }
    let fastest = match timed {
        Some(instance) => by_model(instance, input, 0.0, f64::INFINITY)?,
        None => {
            let known = candidates.iter().map(|it| (it.features(input), it.clocks));
            let fastest = Trees::fitted().fastest(&known.collect::<Vec<_>>())?;
            *candidates.get(fastest)?
        }
    };
    Some(Candidate {
        clocks: least.clocks,
        ..fastest
    })
}

/// The candidates that the model takes for fast enough. If one is `likely` the fastest, it comes first, so that most others
/// are ruled out early.
fn within_reach<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    input: &CostInput,
    likely: Option<&'static Instance<T, Epi>>,
) -> Vec<Candidate<T, Epi>> {
    let memory = input.bytes() / input.rate();
    let others = instances.iter().copied();
    let others = others.filter(|it| likely.is_none_or(|likely| !ptr::eq(likely, *it)));
    let mut least = f64::INFINITY;
    let mut candidates = Vec::new();
    for instance in likely.into_iter().chain(others) {
        if let Some(candidate) = by_model(instance, input, memory, REACH * least) {
            least = least.min(candidate.clocks);
            candidates.push(candidate);
        }
    }
    candidates.retain(|it| it.clocks <= REACH * least);
    candidates
}

#[cfg(test)]
mod tests {
    use cutlet_kernels::gemm::sm90::instances::BF16;

    use super::table::{H200, any_type};
    use super::times::measured;
    use super::*;

    /// The instances for an A and a B that are K-major or not.
    fn of_majors(k_major: [bool; 2]) -> Vec<&'static Instance<half::bf16>> {
        let of_majors = BF16.iter().filter(|it| it.k_major == it.oriented(k_major));
        of_majors.collect()
    }

    #[test]
    fn the_fastest_candidate_is_chosen() {
        for extents in [
            [1, 8192, 8192],
            [64, 64, 65_536],
            [257, 8192, 8192],
            [512, 512, 512],
            [4095, 4095, 4096],
        ] {
            // Without a table, the model alone chooses.
            let input = CostInput::plain(extents, H200);
            let clocks = |instances: &[_]| fastest(instances, &input, None).unwrap().clocks;
            let one_by_one = BF16.iter().map(|instance| clocks(&[instance]));
            let least = one_by_one.reduce(f64::min).unwrap();
            let all: Vec<_> = BF16.iter().collect();
            assert_eq!(clocks(&all), least);
        }
    }

    #[test]
    fn the_fastest_is_chosen_where_it_was_measured() {
        let of_k_major = of_majors([true; 2]);
        for (measured, speed, line) in measured() {
            let input = CostInput::plain(line.extents, speed);
            let candidate = fastest(&of_k_major, &input, Some(measured)).unwrap();
            let name = any_type(candidate.instance.name());
            let fastest = line.times().next().map(|(fastest, _)| fastest);
            assert_eq!(Some(name), fastest, "{:?}", line.extents);
        }
    }

    #[test]
    fn in_other_orders_the_model_chooses() {
        let of_orders = of_majors([false, true]);
        for (measured, speed, line) in measured() {
            let input = CostInput::plain(line.extents, speed);
            let clocks = |it: &&'static _| Some(by_model(it, &input, 0.0, f64::INFINITY)?.clocks);
            let least = of_orders.iter().filter_map(clocks).reduce(f64::min);
            let chosen =
                fastest(&of_orders, &input, Some(measured)).map(|candidate| candidate.clocks);
            assert_eq!(chosen, least, "{:?}", line.extents);
        }
    }
}
