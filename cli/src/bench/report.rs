//! A run's report in Markdown: machine, summary, plots, tables, protocol.

use std::fmt::Write;

use super::plots::Plot;
use super::results::{Figures, Measured, Outcome, Results, RowResult, Summary, kind};
use super::table::{figure, spread};
use crate::measure::case::Role;
use crate::measure::check::Distance;
use crate::measure::protocol::{Choice, Protocol};
use crate::measure::statistics::Verdict;
use crate::measure::telemetry::Telemetry;

/// The report of a run, with links to plots in the same folder.
pub fn report(results: &Results, plots: &[Plot]) -> String {
    let parts = [
        head(results),
        summary(results),
        plots_part(plots),
        tables(results),
        left_out(results),
        protocol(results),
    ];
    parts.concat()
}

fn head(results: &Results) -> String {
    let Results {
        machine,
        program,
        command,
        began,
        seconds,
        suites,
        ..
    } = results;
    let mut text = "# Benchmark\n\n".to_string();
    if machine.backend == "cpu" {
        text += "**The CPU backend ran this. Its figures show that everything works; they say \
                 nothing about a GPU.**\n\n";
    }
    let suites: Vec<String> = suites
        .iter()
        .map(|suite| format!("`{}` ({})", suite.name, suite.about))
        .collect();
    let mut facts = vec![
        ("machine", machine.line()),
        ("suites", suites.join("; ")),
        ("program", program.clone()),
        ("command", format!("`{command}`")),
        ("began", format!("{began}, took {seconds:.0} s")),
    ];
    if let Some(rows) = results.cut_short() {
        facts.push(("cut short", format!("{rows} were measured")));
    }
    if let Some(card) = &machine.card {
        let limits = [
            card.power_limit_watts.map(|watts| format!("{watts:.0} W")),
            card.max_sm_mhz.map(|mhz| format!("{mhz} MHz")),
            card.max_memory_mhz
                .map(|mhz| format!("memory at {mhz} MHz")),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        facts.push(("card's limits", limits.join(", ")));
    }
    if let Some(copy) = machine.copy_gigabytes {
        facts.push(("device copy", format!("{copy:.0} GB/s read and written")));
    }
    for (name, fact) in facts {
        let _ = writeln!(text, "- {name}: {fact}");
    }
    text
}

fn summary(results: &Results) -> String {
    let summaries = results.summaries();
    if summaries.is_empty() {
        return String::new();
    }
    let mut text = "\n## Summary\n\nSpeed over the baseline's; above 1 is faster.\n\n\
                    | | geometric mean | rows | faster | tied | slower | worst | shown apart |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_string();
    for Summary {
        kind,
        rows,
        mean,
        worst: (worst, shape),
        counts: [faster, tied, slower],
        apart,
    } in summaries
    {
        let apart: Vec<String> = apart
            .iter()
            .map(|(shape, ratio)| format!("{ratio:.3} at {shape}"))
            .collect();
        let _ = writeln!(
            text,
            "| {kind} | **{mean:.3}** | {rows} | {faster} | {tied} | {slower} | {worst:.3} at {shape} | {} |",
            apart.join(", ")
        );
    }
    text
}

fn plots_part(plots: &[Plot]) -> String {
    let images = plots
        .iter()
        .map(|Plot { stem, title }| format!("\n![{title}]({stem}.svg)\n"));
    images.collect()
}

fn tables(results: &Results) -> String {
    let kinds = results.kinds().into_iter();
    kinds.map(|kind| table(results, &kind)).collect()
}

fn table(results: &Results, of: &str) -> String {
    let rows = results.rows.iter().filter(|result| kind(&result.row) == of);
    let rows: Vec<_> = rows
        .filter_map(|result| Some((result, result.measured()?)))
        .collect();
    let Some((first, _)) = rows.first() else {
        return String::new();
    };
    let unit = first.row.unit.name();
    let mut text = format!(
        "\n## {of}\n\n\
         | shape | | cutlet {unit} | µs | baseline {unit} | µs | default {unit} | ratio (lowest to highest round) | verdict | error | baseline's error | MHz | W |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for (result, measured) in rows {
        text += &row(result, measured);
        text += &sustained(result, measured);
        text += &alternatives(measured);
    }
    text
}

fn row(result: &RowResult, measured: &Measured) -> String {
    let pair = |figures: Option<&Figures>| match figures {
        Some(figures) => [
            figure(figures.speed),
            format!(
                "{} ±{:.1} %",
                figure(figures.microseconds.median),
                figures.microseconds.relative() * 100.0
            ),
        ],
        None => ["–".to_string(), "–".to_string()],
    };
    let [ours, our_time] = pair(measured.cutlet());
    let [theirs, their_time] = pair(measured.baseline());
    let error = |figures: Option<&Figures>| match figures.and_then(|figures| figures.error) {
        Some(Distance::NONE) => "exact".to_string(),
        Some(Distance { relative, max }) => format!("{relative:.1e} (at most {max:.1e})"),
        None => "–".to_string(),
    };
    let (clock, power) = match measured.telemetry {
        Some(Telemetry { sm_mhz, watts }) => (format!("{sm_mhz:.0}"), format!("{watts:.0}")),
        None => (String::new(), String::new()),
    };
    format!(
        "| {} | {} | {ours} | {our_time} | {theirs} | {their_time} | {} | {} | {} | {} | {} | {clock} | {power} |\n",
        result.row.shape,
        result.row.label,
        measured
            .library_default()
            .map_or("–".to_string(), |figures| figure(figures.speed)),
        measured.ratio.as_ref().map_or("–".to_string(), spread),
        measured.verdict().map_or("", Verdict::word),
        error(measured.cutlet()),
        error(measured.baseline()),
    )
}

/// A second line for power-settled figures.
fn sustained(result: &RowResult, measured: &Measured) -> String {
    let Some(ratio) = &measured.sustained_ratio else {
        return String::new();
    };
    let speed = |figures: Option<&Figures>| {
        let microseconds = figures.and_then(|figures| figures.sustained_microseconds);
        microseconds.map_or("–".to_string(), |time| figure(result.row.speed(time)))
    };
    format!(
        "| | power-settled | {} | | {} | | {} | {} | {} | | | | |\n",
        speed(measured.cutlet()),
        speed(measured.baseline()),
        speed(measured.library_default()),
        spread(ratio),
        Verdict::of(ratio).word()
    )
}

/// Lines of other computations and of kernel instances.
fn alternatives(measured: &Measured) -> String {
    let alternatives = measured
        .contestants
        .iter()
        .filter(|figures| matches!(figures.role, Role::Alternative | Role::Instance));
    let line = |figures: &Figures| {
        let (speed, time) = (figure(figures.speed), figure(figures.microseconds.median));
        format!(
            "| | {} | | | {speed} | {time} | | | | | | | |\n",
            figures.name
        )
    };
    alternatives.map(line).collect()
}

fn left_out(results: &Results) -> String {
    let mut text = String::new();
    for result in &results.rows {
        let what = match &result.outcome {
            Outcome::Measured(measured) => {
                for who in &measured.passed_over {
                    let _ = writeln!(text, "- {}: passed over: {who}", result.row.id);
                }
                continue;
            }
            Outcome::Wrong { found } => format!("**wrong**: {found}"),
            Outcome::Failed { error } => format!("**failed**: {error}"),
            Outcome::Skipped { reason } => format!("skipped: {reason}"),
        };
        let _ = writeln!(text, "- {}: {what}", result.row.id);
    }
    match text.is_empty() {
        true => text,
        false => format!("\n## Without figures\n\n{text}"),
    }
}

fn protocol(results: &Results) -> String {
    let protocol = &results.protocol;
    let mut text = format!(
        "\n## How it was measured\n\n\
         The figures are medians of {} rounds. In each round, every contestant is sampled in an order and then in its \
         reverse. ± is half the distance between the extreme rounds. A row is a tie if 1 lies between the lowest and \
         the highest ratio of a round. Inputs are random: N(0, 1) for GEMM",
        protocol.rounds
    );
    if protocol.scaled_for_activations {
        text += ", with A scaled by about 1/√k where an activation is fused";
    }
    text += ".\n";
    if results.machine.backend != "cpu" {
        text += &samples(protocol);
        text += &choice(protocol.choice);
        text += " \"default\" is cuBLASLt's first algorithm. The baseline of a gather or another movement is a \
                 copy of as many contiguous bytes.\n";
    }
    if let Some(sustained) = protocol.sustained {
        let _ = writeln!(
            text,
            "Power-settled figures follow {} ms of work without a pause, in samples of {} times as many runs.",
            sustained.settle_milliseconds,
            sustained.batches(protocol)
        );
    }
    text += "Before a row was timed, its output was filled with NaN, computed, and compared with the baseline's as a \
             whole and with f64 in at least 4096 entries (or all). After it was timed, outputs of a middle and the \
             last set were compared with the baseline's again. A gather's output is compared word for word with the \
             rows that its indices ask for, and 64 rows of another movement's with sums in f64.\n";
    text
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
         between two uses of a buffer. {short} are replayed from CUDA graphs. ",
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
    fn a_report_says_of_the_baseline_what_its_results_say() {
        let new = choice(Some(Choice {
            algorithms: 8,
            ..CHOICE
        }));
        assert!(new.contains("8 first algorithms with 64 MiB"), "{new}");
        let old = choice(None);
        assert!(old.contains("do not say"), "{old}");
    }
}
