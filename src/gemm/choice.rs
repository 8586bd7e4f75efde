//! The choice of a Hopper kernel and of its launch: by a cost model and its correction, and by a table where kernels were
//! measured. [Choosing a kernel](https://github.com/cutlet-rs/cutlet/blob/main/docs/choice.md) says how both came about.

pub mod correction;
pub mod cost;
pub mod decomposition;
pub mod device_speed;
pub mod measured;

use std::ptr;

use cutlet_kernels::gemm::sm90::kernel_traits::KernelTraits;

use correction::Trees;
use cost::{Candidate, CostInput, by_model};
use measured::Measured;

/// Candidates within this factor of the fastest, by the model, are compared by its correction.
pub const REACH: f64 = 1.3;

/// The candidate that is estimated to be the fastest: by the table if it has the problem, otherwise by the model, which
/// is corrected for problems like those that were measured. Its clocks are the model's least estimate: estimates of other
/// families are not corrected either. None if there are no instances.
pub fn fastest(instances: &[&'static KernelTraits], input: &CostInput) -> Option<Candidate> {
    // Only instances for K-major 16-bit operands were measured, with a C of the operands' type and nothing fused.
    let is_like_measured = input.allows_fixup
        && input.bytes_ab == 2
        && input.bytes_c == input.bytes_ab
        && instances.iter().all(|it| it.k_major == [true; 2]);
    let measured = is_like_measured.then(|| Measured::on(input.device));
    let timed = measured.and_then(|it| it.fastest(instances, input));
    let likely = timed.or_else(|| measured?.likely(instances, input));
    let candidates = within_reach(instances, input, likely);
    let by_clocks = |a: &&Candidate, b: &&Candidate| a.clocks.total_cmp(&b.clocks);
    let least = candidates.iter().min_by(by_clocks)?;
    let fastest = match timed {
        Some(instance) => by_model(instance, input, 0.0, f64::INFINITY)?,
        None if is_like_measured => {
            let known = candidates.iter().map(|it| (it.features(input), it.clocks));
            let fastest = Trees::fitted().fastest(&known.collect::<Vec<_>>())?;
            *candidates.get(fastest)?
        }
        None => *least,
    };
    Some(Candidate {
        clocks: least.clocks,
        ..fastest
    })
}

/// The candidates that the model takes for fast enough. If one is `likely` the fastest, it comes first, so that most others
/// are ruled out early.
fn within_reach(
    instances: &[&'static KernelTraits],
    input: &CostInput,
    likely: Option<&'static KernelTraits>,
) -> Vec<Candidate> {
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
