//! How a run was measured, in words.

use maud::{Markup, html};

use crate::bench::results::Results;
use crate::measure::protocol::{Choice, Protocol};

/// The section of the page.
pub fn section(results: &Results) -> Markup {
    let protocol = &results.protocol;
    let on_gpu = results.machine.backend != "cpu";
    html! {
        h2 { "How it was measured" }
        p { (rounds(protocol)) }
        @if on_gpu {
            p { (samples(protocol)) }
            p { (choice(protocol.choice)) " " (OTHER_BASELINES) }
        }
        @if let Some(sustained) = protocol.sustained {
            p {
                "Power-settled figures follow " (sustained.settle_milliseconds) " ms of work without a pause, in samples \
                 of " (sustained.batches(protocol)) " times as many runs."
            }
        }
        p { (CHECKS) }
    }
}

const OTHER_BASELINES: &str = "“default” is cuBLASLt's first algorithm. The baseline of a gather or another movement is a \
                               copy of as many contiguous bytes.";

const CHECKS: &str = "Before a row was timed, its output was filled with NaN, computed, and compared with the baseline's \
                      as a whole and with f64 in at least 4096 entries (or all). After it was timed, outputs of a middle \
                      and the last set were compared with the baseline's again. A gather's output is compared word for \
                      word with the rows that its indices ask for, and 64 rows of another movement's with sums in f64.";

fn rounds(protocol: &Protocol) -> String {
    let scaled = match protocol.scaled_for_activations {
        true => ", with A scaled by about 1/√k where an activation is fused",
        false => "",
    };
    format!(
        "The figures are medians of {} rounds. In each round, every contestant is sampled in an order and then in its \
         reverse. ± is half the distance between the extreme rounds. A row is a tie if 1 lies between the lowest and the \
         highest ratio of a round. Inputs are random: N(0, 1) for GEMM{scaled}.",
        protocol.rounds
    )
}

/// How samples were taken on a GPU.
fn samples(protocol: &Protocol) -> String {
    // Older runs rested equally long before all samples.
    let of_last = match protocol.rest_samples {
        0.0 => String::new(),
        times => format!(", and at least {times} times as long as the sample before"),
    };
    let short = match protocol.graph_below_microseconds {
        Some(below) => format!("Runs shorter than {below} µs"),
        None => "Short runs".to_string(),
    };
    format!(
        "A sample has as many runs as the slowest contestant does in {} ms, by a first screening, and at least {} unless \
         they take too long. Graphs may hold fewer, and a faster contestant's sample is shorter. Before each sample, \
         the device rests for {} ms{of_last}. Runs go through sets of buffers, so that 256 MiB of other data lie \
         between two uses of a buffer. {short} are replayed from CUDA graphs.",
        protocol.sample_milliseconds, protocol.sample_runs, protocol.rest_milliseconds,
    )
}

/// How the baseline of a GEMM was chosen.
fn choice(choice: Option<Choice>) -> String {
    let Some(choice) = choice else {
        return "The baseline of a GEMM is the fastest of cuBLASLt's first algorithms. These results do not say how \
                many were tried, and with which workspace."
            .to_string();
    };
    let Choice {
        algorithms,
        workspace_bytes,
        finalists,
        cutoff,
    } = choice;
    format!(
        "The baseline of a GEMM is the fastest of cuBLASLt's {algorithms} first algorithms with {} MiB of workspace. \
         The {finalists} best by a screening of each and the default are timed in every round, but from the third on only \
         those that take at most {cutoff} times as long as the fastest.",
        workspace_bytes >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::protocol::CHOICE;

    #[test]
    fn a_page_says_of_the_baseline_what_its_results_say() {
        let new = choice(Some(Choice {
            algorithms: 8,
            ..CHOICE
        }));
        assert!(new.contains("8 first algorithms with 64 MiB"), "{new}");
        let old = choice(None);
        assert!(old.contains("do not say"), "{old}");
    }
}
