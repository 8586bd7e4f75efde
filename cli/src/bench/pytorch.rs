//! PyTorch's times for the same problems, from a Python that has it: `CUTLET_PYTHON`, else `python3`.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

use super::family::Row;
use super::results::{Outcome, Results};

/// What Python runs. It says how problems and times are written.
const SCRIPT: &str = include_str!("pytorch.py");

/// The variable that names a Python.
const VARIABLE: &str = "CUTLET_PYTHON";

/// A time of one way to solve a problem.
#[derive(Debug, PartialEq)]
struct Time {
    /// The number of the problem.
    problem: usize,
    way: String,
    /// Microseconds, or why there are none.
    outcome: Result<f64, String>,
}

/// What a run of the script printed.
#[derive(Debug, PartialEq)]
struct Times {
    /// PyTorch and its GPU.
    version: String,
    times: Vec<Time>,
}

/// PyTorch's best time for each problem, a line each; one line if there is no PyTorch.
pub fn lines(problems: &[String]) -> Vec<String> {
    match times(&python(), problems) {
        Err(why) => vec![why],
        Ok(found) => {
            let of_problem = |nth: usize| best(&found.times, nth, &problems[nth]);
            let lines = (0..problems.len()).map(of_problem);
            [found.version.clone()].into_iter().chain(lines).collect()
        }
    }
}

/// PyTorch's times for the rows of results that it has an operation for, and how many times faster cutlet is.
pub fn beside(results: &Results) -> Vec<String> {
    let compared: Vec<(&Row, f64)> = results
        .rows
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Measured(measured) => {
                let ours = measured.contestants.iter().find(|it| it.role.is_ours())?;
                Some((&row.row, ours.microseconds.median))
            }
            _ => None,
        })
        .filter(|(row, _)| operation(row.family).is_some())
        .collect();
    if compared.is_empty() {
        return Vec::new();
    }
    let rounds = results.protocol.rounds;
    let problems: Vec<String> = compared
        .iter()
        .filter_map(|(row, _)| problem(row, rounds))
        .collect();
    match times(&python(), &problems) {
        Err(why) => vec![why],
        Ok(found) => {
            let line = |(nth, (row, ours)): (usize, &(&Row, f64))| {
                let best = fastest(&found.times, nth);
                let ratio =
                    best.map(|(_, time)| format!(", cutlet is {:.2}x as fast", time / ours));
                let line = crate::bench::pytorch::best(&found.times, nth, &row.id);
                format!("{line}{}", ratio.unwrap_or_default())
            };
            let lines = compared.iter().enumerate().map(line);
            [found.version.clone()].into_iter().chain(lines).collect()
        }
    }
}

/// PyTorch's operation for a family of movements.
fn operation(family: &str) -> Option<&'static str> {
    Some(match family {
        "gather" => "index_select",
        "scatter" => "index_copy",
        "scatter-add" => "index_add",
        "embedding-bag" => "embedding_bag",
        _ => return None,
    })
}

/// A row's problem as the script reads it.
fn problem(row: &Row, rounds: usize) -> Option<String> {
    let cell = |name: &str| {
        let mut columns = row.columns.iter();
        columns
            .find(|(column, _)| *column == name)
            .map(|(_, text)| text.as_str())
    };
    Some(format!(
        "{} {rounds} {} {} {} {} {} {}",
        operation(row.family)?,
        // A gather moves words of any type.
        if row.family == "gather" {
            "f32"
        } else {
            &row.dtype
        },
        cell("indices")?,
        cell("row_bytes")?,
        cell("rows")?,
        cell("table_rows")?,
        cell("group").unwrap_or("1"),
    ))
}

/// The fastest way to solve a problem, and its microseconds.
fn fastest(times: &[Time], problem: usize) -> Option<(&str, f64)> {
    let own = times.iter().filter(|time| time.problem == problem);
    own.filter_map(|time| Some((time.way.as_str(), *time.outcome.as_ref().ok()?)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// A line with the fastest time for a problem of this name, or why there is none.
fn best(times: &[Time], problem: usize, name: &str) -> String {
    if let Some((way, time)) = fastest(times, problem) {
        return format!("PyTorch {time:>10.1} us  {name}: {way}");
    }
    let mut whys = times.iter().filter(|time| time.problem == problem);
    let why = whys.find_map(|time| time.outcome.as_ref().err());
    let why = why.map_or("the script printed nothing", |why| why);
    format!("PyTorch has no time  {name}: {why}")
}

fn python() -> OsString {
    std::env::var_os(VARIABLE).unwrap_or_else(|| "python3".into())
}

/// Runs the script.
///
/// # Errors
/// Why there are no times, in a line.
fn times(python: &OsString, problems: &[String]) -> Result<Times, String> {
    let absent = |why: String| {
        let python = python.to_string_lossy();
        format!(
            "PyTorch is not compared: {python}: {why}; set {VARIABLE} to a Python that has torch and CUDA"
        )
    };
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| absent(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A Python without PyTorch ends before it reads. Its last line says why.
        let _ = input.write_all(problems.join("\n").as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| absent(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        let why = errors.lines().last().unwrap_or("it printed nothing");
        absent(why.to_string())
    })
}

/// The times that the script printed; nothing without its first line.
fn parse(text: &str) -> Option<Times> {
    let mut lines = text.lines();
    let version = lines.next()?.to_string();
    let time = |line: &str| {
        let mut cells = line.splitn(3, '\t');
        let (problem, way, outcome) = (cells.next()?, cells.next()?, cells.next()?);
        Some(Time {
            problem: problem.parse().ok()?,
            way: way.to_string(),
            outcome: outcome.parse().map_err(|_| outcome.to_string()),
        })
    };
    Some(Times {
        version,
        times: lines.filter_map(time).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::family::Unit;

    const PRINTED: &str = "PyTorch 2.9, a GPU\n0\tindex_add\t12.50\n0\tindex_add, in a graph\t10.00\n\
                           1\tmoe\tAttributeError('no _grouped_mm')\n";

    #[test]
    fn the_fastest_way_counts() {
        let Times { version, times } = parse(PRINTED).unwrap();
        assert_eq!(version, "PyTorch 2.9, a GPU");
        let fast = fastest(&times, 0);
        assert_eq!(fast, Some(("index_add, in a graph", 10.0)));
        assert_eq!(fastest(&times, 1), None);
        assert!(best(&times, 1, "a layer").contains("no _grouped_mm"));
        assert!(best(&times, 2, "a layer").contains("printed nothing"));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn an_absent_python_is_a_line() {
        let why = times(&"no-such-python".into(), &[]).unwrap_err();
        assert!(
            why.contains("no-such-python") && why.contains(VARIABLE),
            "{why}"
        );
        assert_eq!(why.lines().count(), 1);
        let why = times(&"false".into(), &["moe".to_string()]).unwrap_err();
        assert!(why.contains("printed nothing"), "{why}");
    }

    #[test]
    fn a_row_is_a_problem_of_the_script() {
        let columns = ["row_bytes", "rows", "table_rows", "group", "indices"];
        let texts = ["64", "8", "16", "2", "zipf"].map(str::to_string);
        let row = |family| Row {
            id: String::new(),
            family,
            label: String::new(),
            dtype: "bf16".to_string(),
            shape: String::new(),
            columns: columns.into_iter().zip(texts.clone()).collect(),
            series: String::new(),
            unit: Unit::Gigabytes,
            operations: 0.0,
            bytes: 1.0,
            apart: false,
        };
        let text = problem(&row("embedding-bag"), 7).unwrap();
        assert_eq!(text, "embedding_bag 7 bf16 zipf 64 8 16 2");
        assert_eq!(problem(&row("permute"), 7), None);
    }
}
