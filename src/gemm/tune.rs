//! Tuning: the fastest kernel of the sm_90 family for a problem, by a model, and by a table where kernels were measured.

pub mod model;
pub mod table;

use std::ptr;

use cutlet_kernels::gemm::sm90::instance::Instance;

use model::{Candidate, CostInput, by_model};
use table::{Neighbours, Table};

/// Candidates within this factor of the fastest, by the model, are compared by the table.
const REACH: f64 = 1.15;

/// The candidate that is estimated to be the fastest: by the table if it has the problem, otherwise by the model and
/// the table's nearest entries. None if there are no instances.
pub fn fastest<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    input: &CostInput,
    table: Option<&'static Table>,
) -> Option<Candidate<T, Epi>> {
    let Some(table) = table.filter(|table| table.applies_to(input)) else {
        return by_model_and_neighbours(instances, input, &Neighbours::default());
    };
    match table.fastest(instances, input) {
        Some(instance) => by_model(instance, input, 0.0, f64::INFINITY),
        None => by_model_and_neighbours(instances, input, &Neighbours::new(table, input)),
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

    use super::table::{H200, H200_MULTIPROCESSORS, Line, any_type, lines};
    use super::*;

    fn times() -> impl Iterator<Item = Line> {
        lines(include_str!("tune/tables/h200.txt"))
    }

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
            let input = CostInput::plain(extents, H200_MULTIPROCESSORS);
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
        for line in times() {
            let input = CostInput::plain(line.extents, H200_MULTIPROCESSORS);
            assert!(
                H200.fastest(&of_k_major, &input).is_some(),
                "{:?}",
                line.extents
            );
            let candidate = fastest(&of_k_major, &input, Some(&H200)).unwrap();
            let name = any_type(candidate.instance.kernel.name());
            let (fastest, _) = line.times[0];
            assert_eq!(name, fastest, "{:?}", line.extents);
        }
    }

    #[test]
    fn neighbours_predict_problems_that_were_not_measured() {
        let of_k_major = of_majors([true; 2]);
        let mut losses = [Vec::new(), Vec::new()];
        for (place, line) in times().enumerate() {
            let input = CostInput::plain(line.extents, H200_MULTIPROCESSORS);
            let mut others = Neighbours::new(&H200, &input).near;
            others.retain(|(at, _)| *at != place);
            let neighbours = Neighbours::of(&H200, others);
            let candidate = by_model_and_neighbours(&of_k_major, &input, &neighbours).unwrap();
            let name = any_type(candidate.instance.kernel.name());
            // An instance that is missing in a line is slower than all others.
            let slowest = line.times.last();
            let chosen = line.times.iter().find(|(of, _)| *of == name).or(slowest);
            losses[input.lines[0] - 1].push(chosen.unwrap().1 / line.times[0].1 - 1.0);
        }
        let [of_lines, of_any_rows] =
            losses.map(|losses| losses.iter().sum::<f64>() / losses.len() as f64);
        assert!(of_lines < 0.015, "{of_lines}");
        assert!(of_any_rows < 0.05, "{of_any_rows}");
    }

    #[test]
    fn in_other_orders_the_model_chooses() {
        let of_orders = of_majors([false, true]);
        for line in times() {
            let input = CostInput::plain(line.extents, H200_MULTIPROCESSORS);
            let clocks = |it: &&'static _| Some(by_model(it, &input, 0.0, f64::INFINITY)?.clocks);
            let least = of_orders.iter().filter_map(clocks).reduce(f64::min);
            let chosen = fastest(&of_orders, &input, Some(&H200)).map(|candidate| candidate.clocks);
            assert_eq!(chosen, least, "{:?}", line.extents);
        }
    }
}
