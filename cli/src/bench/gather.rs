//! The gather family: rows of a table by an index, against a copy of as many contiguous bytes.

mod case;
mod indices;

use serde::Deserialize;

use super::cells::Cells;
use super::family::{Family, Row, SetUp, Unit};
use crate::measure::dtype::Dtype;
use crate::measure::error::Result;
use crate::measure::setting::Setting;
pub use indices::Distribution;

/// The family's name in results.
pub const NAME: &str = "gather";

/// The family.
pub struct Gather;

/// `output[r] = table[indices[r]]`, with 32-bit indices.
#[derive(Clone, Debug)]
pub struct Problem {
    row_bytes: usize,
    rows: usize,
    table_rows: usize,
    indices: Distribution,
    label: String,
}

/// An entry of a suite: every row size with every distribution.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    label: String,
    row_bytes: Vec<usize>,
    indices: Vec<Distribution>,
    gathered_bytes: usize,
    table_bytes: usize,
}

impl Family for Gather {
    type Problem = Problem;

    fn problems(&self, entry: toml::Value, _: &[Dtype]) -> Result<Vec<Problem>, String> {
        let entry: Entry = entry.try_into().map_err(|error| format!("{error}"))?;
        if entry.row_bytes.is_empty() || entry.indices.is_empty() {
            return Err(format!(
                "a gather has {} `row_bytes` and {} `indices`; give at least one of each",
                entry.row_bytes.len(),
                entry.indices.len()
            ));
        }
        let mut problems = Vec::new();
        for &indices in &entry.indices {
            for &row_bytes in &entry.row_bytes {
                if row_bytes == 0 || row_bytes % 4 != 0 {
                    return Err(format!(
                        "a gather has rows of {row_bytes} bytes; they must be a multiple of 4"
                    ));
                }
                let problem = Problem {
                    row_bytes,
                    rows: entry.gathered_bytes / row_bytes,
                    table_rows: entry.table_bytes / row_bytes,
                    indices,
                    label: entry.label.clone(),
                };
                if problem.rows == 0 || problem.table_rows < problem.rows {
                    return Err(format!(
                        "a gather has {} rows of {row_bytes} bytes to gather from a table of {}; \
                         there must be at least one, and the table at least as large as the output",
                        problem.rows, problem.table_rows
                    ));
                }
                if i32::try_from(problem.table_rows).is_err() {
                    return Err(format!(
                        "a gather has a table of {} rows; indices have 32 bits",
                        problem.table_rows
                    ));
                }
                problems.push(problem);
            }
        }
        Ok(problems)
    }

    fn row(&self, problem: &Problem) -> Row {
        let Problem {
            row_bytes,
            rows,
            table_rows,
            indices,
            ..
        } = problem;
        Row {
            id: format!("gather {indices} {rows}x{row_bytes}B of {table_rows}"),
            family: NAME,
            label: problem.label.clone(),
            dtype: "bytes".to_string(),
            shape: format!("{row_bytes} B {indices}"),
            columns: vec![
                ("row_bytes", row_bytes.to_string()),
                ("rows", rows.to_string()),
                ("table_rows", table_rows.to_string()),
                ("indices", indices.to_string()),
            ],
            series: indices.to_string(),
            unit: Unit::Gigabytes,
            operations: 0.0,
            // Without the indices, so that the speed compares with a copy's.
            bytes: 2.0 * (row_bytes * rows) as f64,
            apart: false,
        }
    }

    fn problem(&self, cells: &Cells) -> Result<Problem, String> {
        Ok(Problem {
            row_bytes: cells.extent("row_bytes")?,
            rows: cells.extent("rows")?,
            table_rows: cells.extent("table_rows")?,
            indices: cells.named("indices")?,
            label: String::new(),
        })
    }

    fn set_up<'a>(&self, problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>> {
        case::set_up(problem, setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_every_row_size_with_every_distribution() {
        let text = "row_bytes = [64, 128]\nindices = [\"uniform\", \"sorted\"]\n\
                    gathered_bytes = 1024\ntable_bytes = 4096";
        let problems = Gather.problems(toml::from_str(text).unwrap(), &[]).unwrap();
        assert_eq!(problems.len(), 4);
        let row = Gather.row(&problems[0]);
        assert_eq!(row.id, "gather uniform 16x64B of 64");
        assert_eq!(row.bytes, 2048.0);
        for problem in &problems {
            let row = Gather.row(problem);
            let columns = row.columns.iter();
            let cells = Cells::new(columns.map(|(column, text)| (*column, &**text)));
            assert_eq!(Gather.row(&Gather.problem(&cells).unwrap()), row);
        }
    }

    #[test]
    fn entries_without_a_problem_are_refused() {
        for (row_bytes, indices) in [("[]", "[\"uniform\"]"), ("[64]", "[]")] {
            let text = format!(
                "row_bytes = {row_bytes}\nindices = {indices}\n\
                 gathered_bytes = 1024\ntable_bytes = 4096"
            );
            let error = Gather.problems(toml::from_str(&text).unwrap(), &[]);
            assert!(error.unwrap_err().contains("at least one of each"));
        }
    }

    #[test]
    fn tables_smaller_than_the_output_are_refused() {
        let text = "row_bytes = [64]\nindices = [\"uniform\"]\n\
                    gathered_bytes = 4096\ntable_bytes = 1024";
        let error = Gather.problems(toml::from_str(text).unwrap(), &[]);
        assert!(error.unwrap_err().contains("at least as large"));
    }
}
