//! The movement family: operations that move rows and elements by indices or layouts, each against a copy of as many
//! contiguous bytes.

mod case;
mod expected;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use super::cells::Cells;
use super::family::{Family, Row, SetUp, Unit};
use super::gather::Distribution;
use crate::measure::dtype::Dtype;
use crate::measure::error::Result;
use crate::measure::setting::Setting;

/// The family.
pub struct Movement;

/// An operation. Results name the family of a row after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Rows are stored to the rows of a table that indices name.
    Scatter,
    /// Rows are added to them by the L2 cache.
    ScatterAdd,
    /// Rows are added to them in an order that depends on the indices alone.
    ScatterAddInOrder,
    /// Rows of a table are summed, as many at a time as a group has.
    EmbeddingBag,
    /// Elements of a table by an index for each, along its rows' dimension.
    TakeAlongDim,
    /// A matrix is transposed.
    Permute,
    /// Tokens are routed to experts, as many as a group has: rows are sorted, copied, and summed by token.
    Moe,
}

impl Operation {
    /// The name in suites and results.
    fn name(self) -> &'static str {
        match self {
            Operation::Scatter => "scatter",
            Operation::ScatterAdd => "scatter-add",
            Operation::ScatterAddInOrder => "scatter-add-in-order",
            Operation::EmbeddingBag => "embedding-bag",
            Operation::TakeAlongDim => "take-along-dim",
            Operation::Permute => "permute",
            Operation::Moe => "moe",
        }
    }

    /// Whether rows belong to groups.
    fn has_groups(self) -> bool {
        matches!(self, Operation::EmbeddingBag | Operation::Moe)
    }
}

/// Whether an operation has this name.
pub fn is_operation(name: &str) -> bool {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    Operation::deserialize(name).is_ok()
}

/// A problem.
#[derive(Clone, Debug)]
pub struct Problem {
    operation: Operation,
    dtype: Dtype,
    row_bytes: usize,
    /// Rows that are moved: of an embedding bag, those that are read; of a mixture of experts, one for each choice.
    rows: usize,
    /// Rows of the table; of a mixture of experts, its experts.
    table_rows: usize,
    /// Rows of a bag, or experts of a token.
    group: usize,
    indices: Distribution,
    label: String,
}

/// An entry of a suite: every operation with every type, row size and distribution.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    label: String,
    operation: Vec<Operation>,
    dtypes: Vec<Dtype>,
    row_bytes: Vec<usize>,
    indices: Vec<Distribution>,
    moved_bytes: usize,
    /// Bytes of the table, unless `experts` says how many rows it has.
    #[serde(default)]
    table_bytes: usize,
    #[serde(default)]
    experts: usize,
    #[serde(default = "one")]
    group: usize,
}

fn one() -> usize {
    1
}

/// Bytes of an element.
fn element(dtype: Dtype) -> Result<usize, String> {
    match dtype {
        Dtype::F32 => Ok(4),
        Dtype::F16 | Dtype::Bf16 => Ok(2),
        other => Err(format!(
            "a movement has the type {}; use f32, f16 or bf16",
            other.name()
        )),
    }
}

impl Problem {
    /// Elements of a row.
    fn columns(&self) -> usize {
        self.row_bytes / if self.dtype == Dtype::F32 { 4 } else { 2 }
    }

    /// Bags, or tokens.
    fn groups(&self) -> usize {
        self.rows / self.group
    }

    /// Bytes that must move, without indices of rows, so that the speed compares with a copy's.
    fn bytes(&self) -> usize {
        let (rows, groups) = (self.rows, self.groups());
        match self.operation {
            Operation::Scatter | Operation::Permute => 2 * rows * self.row_bytes,
            // Each row is read, and the sums are read and written.
            Operation::ScatterAdd | Operation::ScatterAddInOrder => 3 * rows * self.row_bytes,
            Operation::EmbeddingBag => (rows + groups) * self.row_bytes,
            // Each element has an index of four bytes.
            Operation::TakeAlongDim => 2 * rows * self.row_bytes + 4 * rows * self.columns(),
            Operation::Moe => 2 * (rows + groups) * self.row_bytes,
        }
    }

    /// The problem, if it is one.
    fn checked(self) -> Result<Problem, String> {
        let element = element(self.dtype)?;
        let Problem {
            operation,
            row_bytes,
            rows,
            table_rows,
            group,
            ..
        } = self;
        if row_bytes == 0 || row_bytes % element != 0 {
            return Err(format!(
                "a movement has rows of {row_bytes} bytes; they must be a multiple of an element's {element}"
            ));
        }
        if rows == 0 || table_rows == 0 || group == 0 || rows % group != 0 {
            return Err(format!(
                "`{}` has {rows} rows in groups of {group}, and a table or experts of {table_rows}; each must be at \
                 least 1, and groups must be whole",
                operation.name()
            ));
        }
        if i32::try_from(table_rows.max(rows)).is_err() {
            return Err(format!(
                "a movement has {rows} rows and a table of {table_rows}; indices have 32 bits"
            ));
        }
        Ok(self)
    }
}

impl Family for Movement {
    type Problem = Problem;

    fn problems(&self, entry: toml::Value, _: &[Dtype]) -> Result<Vec<Problem>, String> {
        let entry: Entry = entry.try_into().map_err(|error| format!("{error}"))?;
        let mut problems = Vec::new();
        for &operation in &entry.operation {
            for &dtype in &entry.dtypes {
                for &indices in &entry.indices {
                    for &row_bytes in &entry.row_bytes {
                        let group = if operation.has_groups() {
                            entry.group
                        } else {
                            1
                        };
                        let rows = entry.moved_bytes / row_bytes.max(1);
                        let problem = Problem {
                            operation,
                            dtype,
                            row_bytes,
                            rows: rows / group.max(1) * group,
                            table_rows: match operation {
                                Operation::Moe => entry.experts,
                                Operation::Permute => rows,
                                _ => entry.table_bytes / row_bytes.max(1),
                            },
                            group,
                            indices,
                            label: entry.label.clone(),
                        };
                        problems.push(problem.checked()?);
                    }
                }
            }
        }
        if problems.is_empty() {
            return Err(
                "a movement needs at least one of each of `operation`, `dtypes`, `row_bytes` and `indices`"
                    .to_string(),
            );
        }
        Ok(problems)
    }

    fn row(&self, problem: &Problem) -> Row {
        let Problem {
            operation,
            dtype,
            row_bytes,
            rows,
            table_rows,
            group,
            indices,
            ..
        } = problem;
        let (name, dtype) = (operation.name(), dtype.name());
        Row {
            id: format!("{name} {dtype} {indices} {rows}x{row_bytes}B of {table_rows} by {group}"),
            family: name,
            label: problem.label.clone(),
            dtype: dtype.to_string(),
            shape: format!("{row_bytes} B {indices}"),
            columns: vec![
                ("row_bytes", row_bytes.to_string()),
                ("rows", rows.to_string()),
                ("table_rows", table_rows.to_string()),
                ("group", group.to_string()),
                ("indices", indices.to_string()),
            ],
            series: indices.to_string(),
            unit: Unit::Gigabytes,
            operations: 0.0,
            bytes: problem.bytes() as f64,
            apart: false,
        }
    }

    fn problem(&self, cells: &Cells) -> Result<Problem, String> {
        Problem {
            operation: cells.named("family")?,
            dtype: cells.named("type")?,
            row_bytes: cells.extent("row_bytes")?,
            rows: cells.extent("rows")?,
            table_rows: cells.extent("table_rows")?,
            group: cells.extent("group")?,
            indices: cells.named("indices")?,
            label: String::new(),
        }
        .checked()
    }

    fn set_up<'a>(&self, problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>> {
        case::set_up(problem, setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "operation = [\"scatter\", \"moe\"]\ndtypes = [\"bf16\"]\nrow_bytes = [64, 128]\n\
                         indices = [\"uniform\"]\nmoved_bytes = 8192\ntable_bytes = 65536\nexperts = 4\ngroup = 2";

    #[test]
    fn an_entry_is_every_operation_with_every_row_size() {
        let problems = Movement
            .problems(toml::from_str(ENTRY).unwrap(), &[])
            .unwrap();
        assert_eq!(problems.len(), 4);
        let row = Movement.row(&problems[0]);
        assert_eq!(row.id, "scatter bf16 uniform 128x64B of 1024 by 1");
        assert_eq!(row.bytes, 16384.0);
        let row = Movement.row(&problems[2]);
        assert_eq!(row.id, "moe bf16 uniform 128x64B of 4 by 2");
        assert_eq!(row.bytes, 2.0 * (128.0 + 64.0) * 64.0);
        for problem in &problems {
            let row = Movement.row(problem);
            let family = [("family", row.family), ("type", &*row.dtype)];
            let columns = row.columns.iter().map(|(column, text)| (*column, &**text));
            let cells = Cells::new(columns.chain(family));
            assert_eq!(Movement.row(&Movement.problem(&cells).unwrap()), row);
        }
    }

    #[test]
    fn entries_without_a_problem_are_refused() {
        for (old, new, why) in [
            ("[64, 128]", "[]", "at least one of each"),
            ("[64, 128]", "[3]", "multiple of an element's 2"),
            ("\"bf16\"", "\"f64\"", "use f32, f16 or bf16"),
            ("experts = 4", "experts = 0", "each must be at least 1"),
        ] {
            let text = ENTRY.replace(old, new);
            let error = Movement.problems(toml::from_str(&text).unwrap(), &[]);
            let error = error.unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
