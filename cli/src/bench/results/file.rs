//! Results as a CSV file: facts of the run, then a line for each problem and contestant.
//!
//! The file begins with comment lines that hold the run's facts in TOML, after a `#`. A header and lines with these
//! columns follow:
//!
//! | columns | meaning |
//! |---|---|
//! | `family`, `suite`, `label`, `type` | the problem's family, suite, name in the suite, and element type |
//! | `m`, `n`, `k`, `layout`, `epilogue` | a GEMM |
//! | `row_bytes`, `rows`, `table_rows`, `indices` | a gather or another movement |
//! | `group` | rows of a bag, or experts of a token |
//! | `notation`, `extents` | a contraction |
//! | `apart` | `true` where means leave the problem out |
//! | `status` | `measured`, `wrong`, `skipped`, `failed`, or `passed over` for a contestant without figures |
//! | `contestant`, `role`, `default` | the contestant, and `true` for the baseline library's default |
//! | `median_us`, `min_us`, `max_us` | microseconds a run, over the rounds |
//! | `speed`, `unit` | the median's speed |
//! | `ratio`, `ratio_min`, `ratio_max` | cutlet's speed over the baseline's, round by round |
//! | `error`, `max_error` | relative and largest distance from the reference; both 0 where the output is exact |
//! | `sm_mhz`, `watts` | median clock and highest power of the card |
//! | `sustained_us`, `sustained_ratio`, `sustained_ratio_min`, `sustained_ratio_max` | power-settled median and ratio |
//! | `note` | the reason, where there are no figures |

use std::collections::BTreeMap;
use std::path::Path;

use super::ratio;
use super::{FILE, Figures, Measured, Outcome, Results, RowResult, SCHEMA};
use crate::bench::cells::Cells;
use crate::bench::contract::{self, Contract};
use crate::bench::error::{Error, Result};
use crate::bench::family::{Family, Row};
use crate::bench::gather::{self, Gather};
use crate::bench::gemm::{self, Gemm};
use crate::bench::movement::{self, Movement};
use crate::measure::check::Distance;
use crate::measure::statistics::Spread;
use crate::measure::telemetry::Telemetry;
use serde::Deserialize;

/// The columns before those of the problem, which depend on the family.
const FIRST_COLUMNS: [&str; 4] = ["family", "suite", "label", "type"];
/// The columns after those of the problem.
const COLUMNS: [&str; 18] = [
    "apart",
    "status",
    "contestant",
    "role",
    "default",
    "median_us",
    "min_us",
    "max_us",
    "speed",
    "unit",
    "ratio",
    "ratio_min",
    "ratio_max",
    "error",
    "max_error",
    "sm_mhz",
    "watts",
    "note",
];
/// The columns of a run with power-settled figures.
const SUSTAINED_COLUMNS: [&str; 4] = [
    "sustained_us",
    "sustained_ratio",
    "sustained_ratio_min",
    "sustained_ratio_max",
];
/// How far a speed or a ratio may be from that of the times, relatively: all are rounded.
const ROUNDING: f64 = 1e-3;
/// What to do about results that cannot be right.
const FIX: &str = "restore the file, or measure again";

impl Results {
    /// The results as the text of a CSV file.
    ///
    /// # Errors
    /// If they cannot be written as TOML and CSV.
    pub fn to_csv(&self) -> Result<String, String> {
        let facts = toml::to_string(self).map_err(|error| error.to_string())?;
        let mut text = String::new();
        for fact in facts.lines() {
            text += format!("# {fact}").trim_end();
            text.push('\n');
        }

        let problem_columns = self.rows.iter().flat_map(|result| &result.row.columns);
        let mut columns = FIRST_COLUMNS.to_vec();
        for (column, _) in problem_columns {
            if !columns.contains(column) {
                columns.push(column);
            }
        }
        columns.extend(COLUMNS);
        if self.protocol.sustained.is_some() {
            columns.extend(SUSTAINED_COLUMNS);
        }
        let mut writer = csv::WriterBuilder::new()
            .comment(Some(b'#'))
            .from_writer(Vec::new());
        let failed = |error: csv::Error| error.to_string();
        writer.write_record(&columns).map_err(failed)?;
        for line in self.rows.iter().flat_map(lines) {
            let cells = columns.iter().map(|column| line.text(column));
            writer.write_record(cells).map_err(failed)?;
        }
        let lines = writer.into_inner().map_err(|error| error.to_string())?;
        text += &String::from_utf8_lossy(&lines);
        Ok(text)
    }

    /// Reads the results in a file, or in a run's folder.
    ///
    /// # Errors
    /// If there is no such file, or it has no results, or a number in it is absurd.
    pub fn read(path: &Path) -> Result<Results> {
        let file = match path.is_dir() {
            true => path.join(FILE),
            false => path.to_path_buf(),
        };
        let text = std::fs::read_to_string(&file);
        text.map_err(|error| format!("{error}; name a run's folder, or its {FILE}"))
            .and_then(|text| Results::from_csv(&text))
            .map_err(|found| Error::file(format!("reading results from {}", file.display()), found))
    }

    /// The results in the text of a CSV file.
    fn from_csv(text: &str) -> Result<Results, String> {
        let mut results = facts(text)?;
        let ratio_lines = results.read_rows(text)?;
        for (result, line) in results.rows.iter().zip(ratio_lines) {
            if let Some(found) = result.measured().and_then(ratio::contradiction) {
                return Err(format!("line {line}: {found}; {FIX}"));
            }
        }
        results.expect_whole()?;
        Ok(results)
    }

    /// Reads the lines after the header. Returns the line of each problem's ratios.
    fn read_rows(&mut self, text: &str) -> Result<Vec<u64>, String> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let unreadable = |error: csv::Error| format!("{error}; {FIX}");
        let header = reader.headers().map_err(unreadable)?.clone();
        // Lines of a problem need not follow each other: a spreadsheet may have sorted them.
        let mut numbers = BTreeMap::new();
        let mut ratio_lines = Vec::new();
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            let line = record.position().map_or(0, csv::Position::line);
            let cells = Cells::new(header.iter().zip(&record));
            let wrong = |found: String| format!("line {line}: {found}; {FIX}");
            let row = row(&cells).map_err(wrong)?;
            let next = self.rows.len();
            let number = *numbers.entry(row.id.clone()).or_insert(next);
            if number == next {
                ratio_lines.push(line);
                self.rows
                    .push(without_contestants(row, cells.text("suite")));
            }
            add(&mut self.rows[number], &cells).map_err(wrong)?;
            if !cells.text("ratio").is_empty() {
                ratio_lines[number] = line;
            }
        }
        Ok(ratio_lines)
    }

    /// Refuses more rows than planned, and rows without a contestant.
    fn expect_whole(&self) -> Result<(), String> {
        let (rows, planned) = (self.rows.len(), self.planned_rows);
        if planned < rows {
            return Err(format!(
                "planned_rows is {planned}, but there are {rows} rows; {FIX}"
            ));
        }
        let without_figures = self.rows.iter().find(|result| {
            let measured = result.measured();
            measured.is_some_and(|measured| measured.contestants.is_empty())
        });
        match without_figures {
            Some(result) => Err(format!(
                "{} has no contestant that was measured; {FIX}",
                result.row.id
            )),
            None => Ok(()),
        }
    }
}

/// A row before its first contestant was read.
fn without_contestants(row: Row, suite: &str) -> RowResult {
    RowResult {
        suite: suite.to_string(),
        row,
        outcome: Outcome::Measured(Box::new(Measured {
            contestants: Vec::new(),
            ratio: None,
            sustained_ratio: None,
            passed_over: Vec::new(),
            telemetry: None,
        })),
    }
}

/// The facts in the comment lines at the beginning of a text, without rows.
fn facts(text: &str) -> Result<Results, String> {
    /// The part of the facts that every version of the format has.
    #[derive(Deserialize)]
    struct Version {
        schema: Option<u32>,
    }

    let facts: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix('#'))
        .collect();
    let facts = facts.join("\n");
    // The facts are the file's first lines: their lines have the same numbers.
    let wrong = |error: toml::de::Error| {
        let message = error.message().trim_end().replace('\n', " ");
        match error.span() {
            Some(span) => {
                let before = facts[..span.start].matches('\n').count();
                let fact = facts.lines().nth(before).unwrap_or_default();
                let key = match fact.split_once('=') {
                    Some((key, _)) => format!("{}: ", key.trim()),
                    None => String::new(),
                };
                format!("line {}: {key}{message}; {FIX}", before + 1)
            }
            None => format!("{message}; {FIX}"),
        }
    };
    let Version { schema } = toml::from_str(&facts).map_err(wrong)?;
    let schema = schema.ok_or_else(|| {
        format!(
            "it has no line `# schema = {SCHEMA}`, so `cutlet bench` did not write it; name a run's folder, or its \
             {FILE}"
        )
    })?;
    if schema != SCHEMA {
        return Err(format!(
            "its schema is {schema}, this program knows {SCHEMA}; use the program that wrote it"
        ));
    }
    toml::from_str(&facts).map_err(wrong)
}

/// The lines of a problem.
fn lines(result: &RowResult) -> Vec<Cells> {
    let RowResult {
        suite,
        row,
        outcome,
    } = result;
    let mut problem = Cells::new([("family", row.family), ("suite", &**suite)]);
    problem.set("label", &row.label);
    problem.set("type", &row.dtype);
    for (column, text) in &row.columns {
        problem.set(column, text);
    }
    problem.set("apart", row.apart);
    let without_figures = |status: &str, note: &str| {
        let mut line = problem.clone();
        line.set("status", status);
        line.set("note", note);
        line
    };
    let measured = match outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Wrong { found } => return vec![without_figures("wrong", found)],
        Outcome::Skipped { reason } => return vec![without_figures("skipped", reason)],
        Outcome::Failed { error } => return vec![without_figures("failed", error)],
    };
    let figures = measured.contestants.iter().map(|figures| {
        let mut line = without_figures("measured", "");
        contestant(&mut line, row, figures, measured);
        line
    });
    let passed_over = measured.passed_over.iter();
    figures
        .chain(passed_over.map(|why| without_figures("passed over", why)))
        .collect()
}

/// Sets the cells of a contestant.
fn contestant(line: &mut Cells, row: &Row, figures: &Figures, measured: &Measured) {
    line.set("contestant", &figures.name);
    line.set("role", figures.role.name());
    line.set("default", figures.default);
    let Spread { median, min, max } = figures.microseconds;
    line.set_number("median_us", median);
    line.set_number("min_us", min);
    line.set_number("max_us", max);
    line.set_number("speed", figures.speed);
    line.set("unit", row.unit.name());
    if let Some(Distance { relative, max }) = figures.error {
        line.set_number("error", relative);
        line.set_number("max_error", max);
    }
    if let Some(Telemetry { sm_mhz, watts }) = measured.telemetry {
        line.set_number("sm_mhz", sm_mhz);
        line.set_number("watts", watts);
    }
    if let Some(microseconds) = figures.sustained_microseconds {
        line.set_number("sustained_us", microseconds);
    }
    let is_cutlet = measured
        .cutlet()
        .is_some_and(|cutlet| std::ptr::eq(cutlet, figures));
    let ratios = [
        ("ratio", measured.ratio),
        ("sustained_ratio", measured.sustained_ratio),
    ];
    for (column, ratio) in ratios {
        if let Some(Spread { median, min, max }) = ratio.filter(|_| is_cutlet) {
            line.set_number(column, median);
            line.set_number(&format!("{column}_min"), min);
            line.set_number(&format!("{column}_max"), max);
        }
    }
}

/// The problem of a line.
fn row(cells: &Cells) -> Result<Row, String> {
    let mut row = match cells.text("family") {
        gemm::NAME => Gemm.row(&Gemm.problem(cells)?),
        gather::NAME => Gather.row(&Gather.problem(cells)?),
        contract::NAME => Contract.row(&Contract.problem(cells)?),
        name if movement::is_operation(name) => Movement.row(&Movement.problem(cells)?),
        other => {
            return Err(format!(
                "family is `{other}`, not `gemm`, `gather`, `contract` or an operation of the suite `movement`"
            ));
        }
    };
    row.label = cells.text("label").to_string();
    row.apart = flag(cells, "apart")?;
    Ok(row)
}

fn flag(cells: &Cells, column: &str) -> Result<bool, String> {
    match cells.text(column).to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("{column} is `{other}`, not `true` or `false`")),
    }
}

/// Adds a line to the result of its problem.
fn add(result: &mut RowResult, cells: &Cells) -> Result<(), String> {
    let note = cells.text("note").to_string();
    let id = &result.row.id;
    let Outcome::Measured(measured) = &mut result.outcome else {
        return Err(format!("{id} has another line, which has no figures"));
    };
    let is_first = measured.contestants.is_empty() && measured.passed_over.is_empty();
    let outcome = match cells.text("status") {
        "measured" => {
            let figures = figures(&result.row, cells)?;
            if measured
                .contestants
                .iter()
                .any(|other| other.name == figures.name)
            {
                return Err(format!("{id} has `{}` twice", figures.name));
            }
            for (column, ratio) in [
                ("ratio", &mut measured.ratio),
                ("sustained_ratio", &mut measured.sustained_ratio),
            ] {
                if !cells.text(column).is_empty() {
                    *ratio = Some(spread(
                        cells,
                        [column, &format!("{column}_min"), &format!("{column}_max")],
                    )?);
                }
            }
            if let (Some(sm_mhz), Some(watts)) = (
                cells.positive_or_absent("sm_mhz")?,
                cells.zero_or_more("watts")?,
            ) {
                measured.telemetry = Some(Telemetry { sm_mhz, watts });
            }
            measured.contestants.push(figures);
            return Ok(());
        }
        "passed over" => {
            measured.passed_over.push(note);
            return Ok(());
        }
        "wrong" => Outcome::Wrong { found: note },
        "skipped" => Outcome::Skipped { reason: note },
        "failed" => Outcome::Failed { error: note },
        other => return Err(format!("status is `{other}`, which is none")),
    };
    if !is_first {
        return Err(format!("{id} has another line, which has figures"));
    }
    result.outcome = outcome;
    Ok(())
}

/// The figures of a line.
fn figures(row: &Row, cells: &Cells) -> Result<Figures, String> {
    let microseconds = spread(cells, ["median_us", "min_us", "max_us"])?;
    let (speed, expected) = (cells.positive("speed")?, row.speed(microseconds.median));
    if (speed / expected - 1.0).abs() > ROUNDING {
        return Err(format!(
            "speed is {speed}, but the median time makes {expected:.6} {}",
            row.unit.name()
        ));
    }
    let error = (
        cells.zero_or_more("error")?,
        cells.zero_or_more("max_error")?,
    );
    Ok(Figures {
        name: cells.text("contestant").to_string(),
        role: cells.named("role")?,
        default: flag(cells, "default")?,
        microseconds,
        speed: expected,
        sustained_microseconds: cells.positive_or_absent("sustained_us")?,
        error: match error {
            (Some(relative), Some(max)) => Some(Distance { relative, max }),
            _ => None,
        },
    })
}

/// The spread in three columns: median, minimum and maximum.
fn spread(cells: &Cells, columns: [&str; 3]) -> Result<Spread, String> {
    let [median, min, max] = columns;
    let spread = Spread {
        median: cells.positive(median)?,
        min: cells.positive(min)?,
        max: cells.positive(max)?,
    };
    match spread.contains(spread.median) {
        true => Ok(spread),
        false => Err(format!(
            "{median} is {}, which is not from {min} to {max}",
            spread.median
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::machine::Machine;
    use crate::bench::results::SuiteName;
    use crate::measure::case::Role;
    use crate::measure::dtype::Dtype;
    use crate::measure::protocol::Protocol;
    use crate::measure::setting::Setting;

    fn row_of(entry: &str) -> Row {
        let entry = toml::from_str(entry).unwrap();
        Gemm.row(&Gemm.problems(entry, &[Dtype::Bf16]).unwrap()[0])
    }

    fn result(entry: &str, outcome: Outcome) -> RowResult {
        RowResult {
            suite: "own, with a comma".to_string(),
            row: row_of(entry),
            outcome,
        }
    }

    fn figures_of(row: &Row, name: &str, role: Role, default: bool, median: f64) -> Figures {
        Figures {
            name: name.to_string(),
            role,
            default,
            microseconds: Spread {
                median,
                min: median - 0.25,
                max: median + 0.5,
            },
            speed: row.speed(median),
            sustained_microseconds: None,
            error: Some(Distance {
                relative: 1.25e-3,
                max: 0.5,
            }),
        }
    }

    fn results() -> Results {
        let setting = Setting::new(&cutlet::Device::cpu(), 1).unwrap();
        let mnk = "mnk = [[64, 32, 16]]\nlabel = \"small\"";
        let row = row_of(mnk);
        let measured = Measured {
            contestants: vec![
                figures_of(&row, "cutlet", Role::Cutlet, false, 2.0),
                figures_of(&row, "cuBLASLt algorithm 3", Role::Baseline, false, 3.0),
                figures_of(&row, "cuBLASLt algorithm 0", Role::Baseline, true, 4.0),
            ],
            ratio: Some(Spread {
                median: 1.5,
                min: 1.25,
                max: 1.75,
            }),
            sustained_ratio: None,
            passed_over: vec!["cuBLASLt algorithm 7 did not run: \"why\",\nit said".to_string()],
            telemetry: Some(Telemetry {
                sm_mhz: 1980.0,
                watts: 157.5,
            }),
        };
        let skipped = Outcome::Skipped {
            reason: "no kernel yet".to_string(),
        };
        Results {
            schema: SCHEMA,
            program: "cutlet".to_string(),
            command: "cutlet bench gemm".to_string(),
            began: "2026-11-21 04:26:55 UTC".to_string(),
            seconds: 12.5,
            planned_rows: 3,
            suites: vec![SuiteName {
                name: "own, with a comma".to_string(),
                about: "mine".to_string(),
            }],
            machine: Machine::new(&setting, None),
            protocol: Protocol {
                rounds: 5,
                ..Protocol::default()
            },
            rows: vec![
                result(mnk, Outcome::Measured(Box::new(measured))),
                result(
                    "mnk = [[1, 2, 3]]\nlayout = \"tn\"\nepilogue = \"bias\"",
                    skipped,
                ),
            ],
        }
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let results = results();
        let text = results.to_csv().unwrap();
        let read = Results::from_csv(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{results:?}"));
        assert_eq!(read.to_csv().unwrap(), text);
        assert_eq!(read.cut_short().as_deref(), Some("2 of 3 rows"));
    }

    #[test]
    fn lines_in_another_order_are_the_same_results() {
        let text = results().to_csv().unwrap();
        let (facts, lines) = text.split_at(text.find("family,").unwrap());
        let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
        // The cuBLASLt default comes before the baseline.
        lines.swap(2, 3);
        let read = Results::from_csv(&(facts.to_string() + &lines.concat())).unwrap();
        let measured = read.rows[0].measured().unwrap();
        assert_eq!(measured.baseline().unwrap().name, "cuBLASLt algorithm 3");
        assert_eq!(
            measured.library_default().unwrap().name,
            "cuBLASLt algorithm 0"
        );
    }

    #[test]
    fn absurd_numbers_are_refused_with_their_line() {
        let text = results().to_csv().unwrap();
        let first = 2 + text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .count();
        for (from, to, found) in [
            (",2,1.75,2.5,", ",0,1.75,2.5,", "median_us is `0`"),
            (",2,1.75,2.5,", ",-2,1.75,2.5,", "median_us is `-2`"),
            (",2,1.75,2.5,", ",2,NaN,2.5,", "min_us is `NaN`"),
            (",2,1.75,2.5,", ",2,1.75,inf,", "max_us is `inf`"),
            (
                ",2,1.75,2.5,",
                ",2,2.25,2.5,",
                "median_us is 2, which is not",
            ),
            (",1.5,1.25,1.75,", ",-1.5,1.25,1.75,", "ratio is `-1.5`"),
            (",1.5,1.25,1.75,", ",1.5,1.25,,", "ratio_max is ``"),
            (",0.032768,", ",0.5,", "speed is 0.5, but"),
            (
                ",1.5,1.25,1.75,",
                ",2.5,1.25,2.75,",
                "ratio_max is 2.75, but",
            ),
            (
                ",1.5,1.25,1.75,",
                ",1.7,1.6,1.75,",
                "the ratio of the median times is 1.5, which",
            ),
            (",0.00125,", ",-0.00125,", "error is `-0.00125`"),
            ("gemm,", "gem,", "family is `gem`"),
            (",64,32,16,", ",64,0,16,", "n is `0`"),
            (",nt,", ",xy,", "layout: unknown variant `xy`"),
            (",measured,cutlet,", ",timed,cutlet,", "status is `timed`"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let error = Results::from_csv(&text.replacen(from, to, 1)).unwrap_err();
            let expected = format!("line {first}: {found}");
            assert!(error.starts_with(&expected), "{expected}: {error}");
            assert!(error.ends_with(FIX), "{error}");
        }
    }

    #[test]
    fn wrong_facts_are_refused_with_their_line() {
        let text = results().to_csv().unwrap();
        let line = 1 + text
            .lines()
            .position(|line| line.starts_with("# seconds"))
            .unwrap();
        for seconds in ["-1.0", "nan", "inf", "\"long\""] {
            let wrong = text.replacen("seconds = 12.5", &format!("seconds = {seconds}"), 1);
            let error = Results::from_csv(&wrong).unwrap_err();
            assert!(
                error.starts_with(&format!("line {line}: seconds: ")),
                "{error}"
            );
            assert!(error.ends_with(FIX), "{error}");
        }
        for (from, to, found) in [
            (
                "rounds = 5",
                "rounds = 0",
                "rounds: there must be at least one",
            ),
            (
                "planned_rows = 3",
                "planned_rows = 1",
                "planned_rows is 1, but there are 2 rows",
            ),
            (
                "rest_milliseconds = 0.0",
                "rest_milliseconds = nan",
                "rest_milliseconds: NaN is neither",
            ),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let error = Results::from_csv(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(found), "{error}");
        }
        let multiprocessors = text
            .lines()
            .find(|line| line.starts_with("# multiprocessors"))
            .unwrap();
        let error = Results::from_csv(&text.replacen(multiprocessors, "# multiprocessors = 0", 1))
            .unwrap_err();
        assert!(
            error.contains("multiprocessors: there must be at least one; "),
            "{error}"
        );
        let other = Results::from_csv("# schema = 99\n").unwrap_err();
        assert!(other.starts_with("its schema is 99"), "{other}");
        let none = Results::from_csv("family,type\n").unwrap_err();
        assert!(none.starts_with("it has no line `# schema = 2`"), "{none}");
    }

    #[test]
    fn contradictory_lines_are_refused() {
        let text = results().to_csv().unwrap();
        for (from, to, found) in [
            ("cuBLASLt algorithm 3", "cutlet", "has `cutlet` twice"),
            (
                ",measured,cuBLASLt algorithm 3",
                ",wrong,cuBLASLt algorithm 3",
                "has figures",
            ),
        ] {
            let error = Results::from_csv(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(found), "{error}");
        }
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains(",measured,"))
            .collect();
        let error = Results::from_csv(&lines.join("\n")).unwrap_err();
        assert!(error.contains("no contestant that was measured"), "{error}");
    }
}
