//! `report.md`: a run for people to read: machine, summary, plots, tables, protocol.

use std::fmt::Write;

use super::family::Role;
use super::plots::Plot;
use super::protocol::Choice;
use super::results::{Figures, Measured, Outcome, Results, RowResult, Summary, kind};
use super::statistics::Verdict;
use super::table::{figure, spread};

/// The file's name in a run's folder.
pub const FILE: &str = "report.md";

/// The report of a run, whose plots lie beside it.
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
        facts.push(("cut short", format!("{rows} are there")));
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
        .map(|Plot { stem, title }| format!("\n![{title}]({stem}.png)\n"));
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
        text += &sustained(measured);
        text += &asides(measured);
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
    let error = |deviation: &Option<crate::deviation::Deviation>| match deviation {
        Some(deviation) => format!("{:.1e} (at most {:.1e})", deviation.relative, deviation.max),
        None if measured.check.tolerance == 0.0 => "exact".to_string(),
        None => "–".to_string(),
    };
    let (clock, power) = match &measured.telemetry {
        Some(telemetry) => (
            format!("{:.0}", telemetry.sm_mhz.median),
            format!("{:.0}", telemetry.watts.max),
        ),
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
        measured.verdict.map_or("", Verdict::word),
        error(&measured.check.to_f64),
        error(&measured.check.baseline_to_f64),
    )
}

/// A second line for power-settled figures.
fn sustained(measured: &Measured) -> String {
    let Some(ratio) = &measured.sustained_ratio else {
        return String::new();
    };
    let speed = |figures: Option<&Figures>| {
        let speed = figures.and_then(|figures| figures.sustained_speed);
        speed.map_or("–".to_string(), figure)
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

/// Lines for what is not the same computation.
fn asides(measured: &Measured) -> String {
    let asides = measured
        .contestants
        .iter()
        .filter(|figures| matches!(figures.role, Role::Aside | Role::Instance));
    let line = |figures: &Figures| {
        let (speed, time) = (figure(figures.speed), figure(figures.microseconds.median));
        format!(
            "| | {} | | | {speed} | {time} | | | | | | | |\n",
            figures.name
        )
    };
    asides.map(line).collect()
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
            Outcome::Wrong { check } => {
                format!("**wrong**: {}", check.wrong.as_deref().unwrap_or_default())
            }
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
         Medians of {} rounds; in each, every contestant is sampled in an order and then in its \
         reverse, and ± is half the distance of the extreme rounds. A tie is a row where 1 lies \
         between the lowest and the highest ratio of a round. Inputs are random, N(0, 1) for GEMM",
        protocol.rounds
    );
    if protocol.scaled_for_activations {
        text += ", with A times about 1/√k where an activation is fused";
    }
    match results.machine.backend.as_str() {
        "cpu" => text += ".\n",
        _ => {
            // Older runs rested for one length before all samples.
            let of_last = match protocol.rest_samples {
                0.0 => String::new(),
                times => format!(", and for {times} times the length of the sample before"),
            };
            let short = match protocol.graph_below_microseconds {
                Some(below) => format!("runs shorter than {below} µs"),
                None => "short runs".to_string(),
            };
            let _ = writeln!(
                text,
                ". A sample has as many runs as take the slowest contestant {} ms, by a look at it, and {} at least, if \
                 they are not too long; those of a graph are no more than it holds, and a faster contestant's sample \
                 is shorter. Before it, the device rests for {} ms{of_last}. Runs go through sets of buffers so that 256 MiB \
                 of other data lie between two uses of one; {short} are replayed \
                 from CUDA graphs, one after the other. {} \"default\" is its first. A gather's is a copy of as many \
                 contiguous bytes.",
                protocol.sample_milliseconds,
                protocol.sample_runs,
                protocol.rest_milliseconds,
                choice(protocol.choice)
            );
        }
    }
    if let Some(sustained) = protocol.sustained {
        let _ = writeln!(
            text,
            "Power-settled figures follow {} ms of work without a pause, in samples of {} times as many runs.",
            sustained.settle_milliseconds,
            sustained.batches(protocol)
        );
    }
    text += "Before a row was timed, the output was filled with NaN, computed, compared as a \
             whole with the baseline's and in at least 4096 entries (or all) with f64; after it was \
             timed, the last set's output was compared again. A gather's output is compared word \
             for word with what its indices ask for.\n";
    text
}

/// How the baseline of a GEMM was chosen.
fn choice(choice: Option<Choice>) -> String {
    let Some(choice) = choice else {
        return "The baseline of a GEMM is the fastest of cuBLASLt's first algorithms; of how many, with which \
                workspace, these results do not say;"
            .to_string();
    };
    let Choice {
        algorithms,
        workspace_bytes,
        finalists,
        hopeless,
    } = choice;
    format!(
        "The baseline of a GEMM is the fastest of cuBLASLt's {algorithms} first algorithms with {} MiB of \
         workspace: the {finalists} best of a first look, without those from the third on that take more than \
         {hopeless} times as long there as the fastest, and the default, are timed in every round;",
        workspace_bytes >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::protocol::CHOICE;

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
