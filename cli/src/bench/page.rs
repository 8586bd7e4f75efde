//! The page of a run: one HTML file with the machine, the summary, plots, tables and the protocol. It refers to no other
//! file and has no scripts.

mod plots;
mod protocol;
mod svg;
mod table;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::machine::Machine;
use super::results::{AtShape, Outcome, Results, Summary};
use crate::units;
use plots::plots;

/// The page's style sheet. It has colours for light and for dark.
const STYLE: &str = include_str!("page/style.css");

/// The page of a run.
pub fn page(results: &Results) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "cutlet benchmark: " (results.machine.name) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(results))
                (summary(results))
                @for kind in results.kinds() { (section(results, &kind)) }
                (without_figures(results))
                (protocol::section(results))
                footer { "Written by " (results.program) ", `cutlet bench`." }
            }
        }
    };
    document.into_string()
}

/// A kind of rows in titles: `GEMM in bf16`, `Gather`.
fn title(kind: &str) -> String {
    let (family, dtype) = match kind.split_once(' ') {
        Some((family, dtype)) => (family, format!(" in {dtype}")),
        None => (kind, String::new()),
    };
    let family = match family {
        "gemm" => "GEMM".to_string(),
        "contract" => "Contractions".to_string(),
        "moe" => "Mixture of experts".to_string(),
        other => other[..1].to_uppercase() + &other[1..],
    };
    family + &dtype
}

/// The place of a kind's section in the page.
fn anchor(kind: &str) -> String {
    kind.replace(' ', "-")
}

fn head(results: &Results) -> Markup {
    let Results { machine, began, .. } = results;
    let day = began.split(' ').next().unwrap_or_default();
    html! {
        header {
            h1 { "cutlet benchmark" }
            p class="subtitle" { (machine.name) ", " (day) }
            @if machine.backend == "cpu" {
                p class="warning" {
                    "The CPU backend ran this. Its figures show that everything works, and say nothing about a GPU."
                }
            }
            @if let Some(rows) = results.cut_short() {
                p class="warning" { "The run was cut short: " (rows) " were measured." }
            }
            dl {
                @for (name, fact) in facts(results) { dt { (name) } dd { (fact) } }
            }
        }
    }
}

/// What a reader must know to repeat the run.
fn facts(results: &Results) -> Vec<(&'static str, Markup)> {
    let Results {
        machine,
        program,
        command,
        began,
        seconds,
        suites,
        ..
    } = results;
    let suites = html! {
        @for (nth, suite) in suites.iter().enumerate() {
            @if nth > 0 { br; }
            code { (suite.name) } ": " (suite.about)
        }
    };
    let mut facts = facts_of_machine(machine).to_vec();
    facts.extend([
        ("date", html! { (began) ", took " (duration(*seconds)) }),
        ("command", html! { code { (command) } }),
        ("version", html! { (program) }),
        ("suites", suites),
    ]);
    facts.retain(|(_, fact)| !fact.0.is_empty());
    facts
}

/// The device and its libraries. What is not known is empty.
fn facts_of_machine(machine: &Machine) -> [(&'static str, Markup); 5] {
    let is_gpu = machine.backend != "cpu";
    let (device, parts) = match is_gpu {
        true => ("GPU", "multiprocessors"),
        false => ("processor", "cores"),
    };
    let capability = machine.compute_capability.as_ref();
    let memory = machine.memory_bytes.filter(|_| is_gpu);
    let described = [
        Some(machine.name.clone()),
        capability.map(|capability| format!("compute capability {capability}")),
        Some(format!("{} {parts}", machine.multiprocessors)),
        memory.map(|bytes| format!("{:.0} GiB", bytes as f64 / f64::from(1 << 30))),
    ];
    let card = machine.card.as_ref();
    let driver = [
        card.map(|card| card.driver.clone()),
        machine.cuda.as_ref().map(|cuda| format!("CUDA {cuda}")),
    ];
    let limits = card.map(|card| {
        [
            card.power_limit_watts.map(|watts| format!("{watts:.0} W")),
            card.max_sm_mhz.map(|mhz| format!("{mhz} MHz")),
            card.max_memory_mhz
                .map(|mhz| format!("memory at {mhz} MHz")),
        ]
    });
    let copy = machine.copy_gigabytes;
    let copy = copy.map(|copy| format!("{copy:.0} GB/s read and written"));
    [
        (device, words(described)),
        ("driver", words(driver)),
        ("card's limits", words(limits.into_iter().flatten())),
        ("cuBLASLt", words([machine.cublas.clone()])),
        ("device copy", words([copy])),
    ]
}

/// Those of some parts that there are, in a line.
fn words(parts: impl IntoIterator<Item = Option<String>>) -> Markup {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    html! { (parts.join(", ")) }
}

/// A duration in words.
fn duration(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

fn summary(results: &Results) -> Markup {
    let summaries = results.summaries();
    if summaries.is_empty() {
        return html! {};
    }
    let has_apart = summaries.iter().any(|summary| !summary.apart.is_empty());
    html! {
        h2 { "Summary" }
        p { "Speed over the baseline's. Above 1, cutlet is faster. A tie is a row whose rounds lie on both sides of 1." }
        div class="wide" {
            table class="summary" {
                thead {
                    tr {
                        th {} th { "geometric mean" } th { "rows" } th { "worst" }
                        @if has_apart { th { "shown apart" } }
                    }
                }
                tbody { @for summary in &summaries { (summary_row(summary, has_apart)) } }
            }
        }
    }
}

fn summary_row(summary: &Summary, has_apart: bool) -> Markup {
    let Summary {
        kind,
        rows,
        mean,
        worst,
        faster,
        tied,
        slower,
        apart,
    } = summary;
    let shares = [("faster", *faster), ("tie", *tied), ("slower", *slower)];
    html! {
        tr {
            td class="strong" { a href=(format!("#{}", anchor(kind))) { (title(kind)) } }
            td class="mean" { (units::ratio(*mean)) "×" }
            td {
                div class="shares" {
                    @for (class, rows) in shares.iter().filter(|(_, rows)| *rows > 0) {
                        span class=(class) style=(format!("flex: {rows}")) {}
                    }
                }
                (rows) ": " (faster) " faster, " (tied) " tied, " (slower) " slower"
            }
            td { (at_shape(worst)) }
            @if has_apart {
                td { @for (nth, ratio) in apart.iter().enumerate() { @if nth > 0 { br; } (at_shape(ratio)) } }
            }
        }
    }
}

fn at_shape(AtShape { shape, ratio }: &AtShape) -> Markup {
    html! { (units::ratio(*ratio)) "× at " (plots::shape(shape)) }
}

/// The plots and the table of a kind.
fn section(results: &Results, kind: &str) -> Markup {
    let table = table::table(results, kind);
    if table.0.is_empty() {
        return table;
    }
    html! {
        section id=(anchor(kind)) {
            h2 { (title(kind)) }
            @for plot in plots(results, kind) { (plot.figure()) }
            (table)
        }
    }
}

/// Rows and contestants without figures, each with the reason.
fn without_figures(results: &Results) -> Markup {
    let mut lines = Vec::new();
    for result in &results.rows {
        let id = &result.row.id;
        match &result.outcome {
            Outcome::Measured(measured) => {
                let passed_over = measured.passed_over.iter();
                lines.extend(passed_over.map(|who| (id, "passed over", who)));
            }
            Outcome::Wrong { found } => lines.push((id, "wrong", found)),
            Outcome::Failed { error } => lines.push((id, "failed", error)),
            Outcome::Skipped { reason } => lines.push((id, "skipped", reason)),
        }
    }
    if lines.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Without figures" }
        div class="wide" {
            table class="loose" {
                @for (id, status, why) in lines {
                    @let class = if matches!(status, "wrong" | "failed") { "strong slower" } else { "" };
                    tr { td { (id) } td class=(class) { (status) } td { (why) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_titles_and_anchors() {
        assert_eq!(title("gemm bf16"), "GEMM in bf16");
        assert_eq!(title("gather"), "Gather");
        assert_eq!(title("scatter-add f32"), "Scatter-add in f32");
        assert_eq!(anchor("scatter-add f32"), "scatter-add-f32");
    }

    #[test]
    fn a_long_duration_is_in_minutes() {
        assert_eq!(duration(119.0), "119 s");
        assert_eq!(duration(600.0), "10 min");
    }
}
