//! Tuning: the fastest kernel of the sm_90 family for a problem, by a model, and by a table where kernels were
//! measured.

pub mod decomposition;
pub mod model;
pub mod table;

use std::ptr;

use cutlet_kernels::gemm::sm90::instance::Instance;

use model::{Candidate, CostInput, by_model};
use table::{Measured, Neighbours};

/// Candidates within this factor of the fastest, by the model, are compared by the table.
const REACH: f64 = 1.22;

/// The candidate that is estimated to be the fastest: by the table if it has the problem, otherwise by the model and
/// the table's nearest entries. None if there are no instances.
pub fn fastest<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    input: &CostInput,
    measured: Option<Measured>,
) -> Option<Candidate<T, Epi>> {
    let Some(measured) = measured.filter(|measured| measured.applies_to(input)) else {
        return by_model_and_neighbours(instances, input, &Neighbours::default());
    };
    match measured.fastest(instances, input) {
        Some(instance) => by_model(instance, input, 0.0, f64::INFINITY),
        None => by_model_and_neighbours(instances, input, &measured.near(input)),
    }
}

/// The candidate that is the fastest by the model, corrected by the model's errors at neighbouring problems.
fn by_model_and_neighbours<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    input: &CostInput,
    neighbours: &Neighbours,
) -> Option<Candidate<T, Epi>> {
    let memory = input.bytes() / input.rate();
    // The first instance is likely among the best, so that most others are ruled out early.
    let likely = neighbours.likely(instances);
    let others = instances.iter().copied();
    let others = others.filter(|it| likely.is_none_or(|likely| !ptr::eq(likely, *it)));
    let mut least = f64::INFINITY;
    let mut candidates = Vec::with_capacity(instances.len());
    for instance in likely.into_iter().chain(others) {
        if let Some(candidate) = by_model(instance, input, memory, REACH * least) {
            least = least.min(candidate.clocks);
            candidates.push(candidate);
        }
    }
    let within_reach = candidates
        .into_iter()
        .filter(|it| it.clocks <= REACH * least);
    let clocks = within_reach.map(|it| (it.clocks * neighbours.factor(it.instance), it));
    let fastest = clocks.min_by(|(a, _), (b, _)| a.total_cmp(b));
    fastest.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use cutlet_kernels::gemm::sm90::instances::BF16;

    use super::table::tests::measured;
    use super::table::{H200, any_type, generations};
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
        for (measured, speed, _, line) in measured() {
            let input = CostInput::plain(line.extents, speed);
            let candidate = fastest(&of_k_major, &input, Some(measured)).unwrap();
            let name = any_type(candidate.instance.name());
            let (fastest, _) = line.times[0];
            assert_eq!(name, fastest, "{:?}", line.extents);
        }
    }

    /// What choices lose where the table does not have the problem itself. `cargo xtask measured --check` prints it.
    #[test]
    fn neighbours_predict_problems_that_were_not_measured() {
        // The instances of each generation that were measured on a device.
        let instances = table::tests::times().map(|times| {
            generations(times).map(|names| {
                let mut instances = of_majors([true; 2]);
                instances.retain(|it| names.contains(any_type(it.name())));
                instances
            })
        });
        let mut losses = [("H200", 0.02, Vec::new()), ("H100", 0.035, Vec::new())];
        for (measured, speed, place, line) in measured() {
            let input = line.input(speed);
            let mut neighbours = measured.near(&input);
            neighbours.weights[place] = 0.0;
            let instances = &instances[measured.device][line.generation];
            let candidate = by_model_and_neighbours(instances, &input, &neighbours);
            let name = any_type(candidate.unwrap().instance.name());
            // An instance that is missing in a line is taken to be as slow as the slowest.
            let slowest = line.times.last();
            let chosen = line.times.iter().find(|(of, _)| *of == name).or(slowest);
            losses[measured.device]
                .2
                .push(chosen.unwrap().1 / line.times[0].1 - 1.0);
        }
        for (device, most, mut losses) in losses {
            losses.sort_by(f64::total_cmp);
            let count = losses.len();
            let mean = losses.iter().sum::<f64>() / count as f64;
            let tenth = losses[count * 9 / 10];
            println!(
                "{device}: choices at {count} problems lose {:.1} % on average, a tenth of them {:.1} % or more, and {:.1} % \
                 at most",
                100.0 * mean,
                100.0 * tenth,
                100.0 * losses[count - 1]
            );
            assert!(mean < most, "{device}: {mean}");
        }
    }

    #[test]
    fn in_other_orders_the_model_chooses() {
        let of_orders = of_majors([false, true]);
        for (measured, speed, _, line) in measured() {
            let input = CostInput::plain(line.extents, speed);
            let clocks = |it: &&'static _| Some(by_model(it, &input, 0.0, f64::INFINITY)?.clocks);
            let least = of_orders.iter().filter_map(clocks).reduce(f64::min);
            let chosen =
                fastest(&of_orders, &input, Some(measured)).map(|candidate| candidate.clocks);
            assert_eq!(chosen, least, "{:?}", line.extents);
        }
    }
}
