//! PyTorch's times for the same problems, from a Python that has it.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::process::{Command, Stdio};

use serde::Serialize;

use super::family::Row;
use super::results::{Outcome, Results};
use super::{contract, gemm};
use crate::python::{VARIABLE, python};

/// What Python runs. It says how problems and times are written.
const SCRIPT: &str = include_str!("pytorch.py");

/// PyTorch's times, or why there are none.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PyTorch {
    Timed {
        /// PyTorch and its GPU.
        version: String,
        times: Vec<Best>,
    },
    Absent {
        absent: String,
    },
}

/// PyTorch's fastest way to solve a problem.
#[derive(Debug, PartialEq, Serialize)]
pub struct Best {
    /// The problem.
    id: String,
    #[serde(flatten)]
    found: Found,
    /// How many times as fast cutlet is.
    ratio: Option<f64>,
}

/// The fastest way, or why there is none.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Found {
    Time { way: String, microseconds: f64 },
    None { absent: String },
}

/// A problem that PyTorch solves too.
pub struct Compared {
    /// As results name it.
    pub id: String,
    /// As the script reads it.
    pub problem: String,
    /// cutlet's microseconds, if they are compared.
    pub ours: Option<f64>,
}

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

impl PyTorch {
    /// PyTorch's best time for each problem.
    pub fn of(problems: &[Compared]) -> PyTorch {
        let texts: Vec<&str> = problems.iter().map(|it| it.problem.as_str()).collect();
        match times(&python(), &texts) {
            Err(absent) => PyTorch::Absent { absent },
            Ok(Times { version, times }) => {
                let problems = problems.iter().enumerate();
                let best = problems.map(|(nth, problem)| Best::of(&times, nth, problem));
                PyTorch::Timed {
                    version,
                    times: best.collect(),
                }
            }
        }
    }

    /// PyTorch's times for the rows of results that it has an operation for; `None` if there is no such row.
    pub fn beside(results: &Results) -> Option<PyTorch> {
        let rounds = results.protocol.rounds;
        let compared = results.rows.iter().filter_map(|row| {
            let Outcome::Measured(measured) = &row.outcome else {
                return None;
            };
            let ours = measured.contestants.iter().find(|it| it.role.is_ours())?;
            Some(Compared {
                id: row.row.id.clone(),
                problem: problem(&row.row, rounds)?,
                ours: Some(ours.microseconds.median),
            })
        });
        let compared: Vec<Compared> = compared.collect();
        (!compared.is_empty()).then(|| PyTorch::of(&compared))
    }
}

impl fmt::Display for PyTorch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PyTorch::Absent { absent } => write!(f, "{absent}"),
            PyTorch::Timed { version, times } => {
                write!(f, "{version}")?;
                times.iter().try_for_each(|best| write!(f, "\n{best}"))
            }
        }
    }
}

impl Best {
    /// The fastest way to solve problem number `nth`.
    fn of(times: &[Time], nth: usize, Compared { id, ours, .. }: &Compared) -> Best {
        let fastest = fastest(times, nth);
        let found = match fastest {
            Some((way, microseconds)) => Found::Time {
                way: way.to_string(),
                microseconds,
            },
            None => {
                let mut whys = times.iter().filter(|time| time.problem == nth);
                let why = whys.find_map(|time| time.outcome.as_ref().err());
                let absent = why.map_or("the script printed nothing", |why| why);
                Found::None {
                    absent: absent.to_string(),
                }
            }
        };
        Best {
            id: id.clone(),
            found,
            ratio: fastest.and_then(|(_, time)| Some(time / (*ours)?)),
        }
    }
}

impl fmt::Display for Best {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.id;
        match &self.found {
            Found::Time { way, microseconds } => {
                write!(f, "PyTorch {microseconds:>10.1} us  {id}: {way}")?;
            }
            Found::None { absent } => write!(f, "PyTorch has no time  {id}: {absent}")?,
        }
        match self.ratio {
            Some(ratio) => write!(f, ", cutlet is {ratio:.2}x as fast"),
            None => Ok(()),
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
    if row.family == contract::NAME {
        let (notation, extents) = (cell("notation")?, cell("extents")?);
        return Some(format!(
            "einsum {rounds} {} {notation} {extents}",
            row.dtype
        ));
    }
    if row.family == gemm::NAME {
        let (m, n, k) = (cell("m")?, cell("n")?, cell("k")?);
        let is_plain = (cell("batch")?, cell("layout")?, cell("epilogue")?) == ("1", "nt", "");
        let is_timed = is_plain && row.dtype.starts_with("e4m3");
        return is_timed.then(|| format!("scaled_mm {rounds} {} {m} {n} {k}", row.dtype));
    }
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

/// Runs the script.
///
/// # Errors
/// Why there are no times, in a line.
fn times(python: &OsString, problems: &[&str]) -> Result<Times, String> {
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
        let line = |nth, ours| {
            let problem = Compared {
                id: "a layer".to_string(),
                problem: String::new(),
                ours,
            };
            Best::of(&times, nth, &problem).to_string()
        };
        let timed = "PyTorch       10.0 us  a layer: index_add, in a graph";
        assert_eq!(line(0, None), timed);
        assert_eq!(
            line(0, Some(5.0)),
            format!("{timed}, cutlet is 2.00x as fast")
        );
        assert!(line(1, Some(5.0)).ends_with("a layer: AttributeError('no _grouped_mm')"));
        assert!(line(2, None).contains("printed nothing"));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn times_are_numbers_in_json_and_absences_words() {
        let best = |found| Best {
            id: "gather".to_string(),
            found,
            ratio: None,
        };
        let times = vec![
            best(Found::Time {
                way: "index_select".to_string(),
                microseconds: 1.5,
            }),
            best(Found::None {
                absent: "no".to_string(),
            }),
        ];
        let version = "PyTorch 2.9".to_string();
        let json = serde_json::to_value(PyTorch::Timed { version, times }).unwrap();
        assert_eq!(json["version"], "PyTorch 2.9");
        assert_eq!(json["times"][0]["microseconds"], 1.5);
        assert_eq!(json["times"][1]["absent"], "no");
    }

    #[test]
    fn an_absent_python_is_a_line() {
        let why = times(&"no-such-python".into(), &[]).unwrap_err();
        assert!(
            why.contains("no-such-python") && why.contains(VARIABLE),
            "{why}"
        );
        assert_eq!(why.lines().count(), 1);
        let why = times(&"false".into(), &["moe"]).unwrap_err();
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
        let columns = ["m", "n", "k", "batch", "layout", "epilogue"];
        let product = |dtype: &str, epilogue: &str| Row {
            dtype: dtype.to_string(),
            columns: columns
                .into_iter()
                .zip(["16", "32", "128", "1", "nt", epilogue].map(str::to_string))
                .collect(),
            ..row(gemm::NAME)
        };
        let text = problem(&product("e4m3-blocks", ""), 7).unwrap();
        assert_eq!(text, "scaled_mm 7 e4m3-blocks 16 32 128");
        assert_eq!(problem(&product("e4m3", "relu"), 7), None);
        assert_eq!(problem(&product("bf16", ""), 7), None);
        let contraction = Row {
            columns: vec![
                ("notation", "ij,jk->ik".to_string()),
                ("extents", "i=2 j=3 k=4".to_string()),
            ],
            ..row("contract")
        };
        let text = problem(&contraction, 7).unwrap();
        assert_eq!(text, "einsum 7 bf16 ij,jk->ik i=2 j=3 k=4");
    }
}
