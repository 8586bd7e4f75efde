//! The family of contractions in einsum's notation: cutlet against cuBLASLt's product of packed matrices with as many
//! rows, columns, terms and products, or against plain loops where there is no GPU.

mod baseline;
mod case;

use std::collections::BTreeMap;

use cutlet::MAX_EXTENT;
use serde::Deserialize;

use super::cells::Cells;
use super::family::{Family, Row, SetUp, Unit};
use super::gemm::types::{self, element_bytes};
use crate::contract::problem::Problem as Contraction;
use crate::measure::dtype::Dtype;
use crate::measure::error::Result;
use crate::measure::setting::Setting;

/// The family's name in results.
pub const NAME: &str = "contract";

/// The family.
pub struct Contract;

/// A contraction of packed tensors.
#[derive(Clone, Debug)]
pub struct Problem {
    contraction: Contraction,
    dtype: Dtype,
    label: String,
}

/// An entry of a suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    label: String,
    /// The modes of A, B and C.
    notation: String,
    /// Their extents.
    extents: BTreeMap<char, usize>,
    /// The element types that it is for; all if it names none.
    dtypes: Option<Vec<Dtype>>,
}

/// The contraction of packed tensors with these modes.
fn contraction(notation: &str, extents: &[(char, usize)]) -> Result<Contraction, String> {
    match extents.iter().find(|it| !(1..=MAX_EXTENT).contains(&it.1)) {
        None => Contraction::new(notation, extents, [None; 3]),
        Some((mode, extent)) => Err(format!(
            "the mode {mode} has {extent} elements; extents are from 1 to {MAX_EXTENT}"
        )),
    }
}

impl Family for Contract {
    type Problem = Problem;

    fn problems(&self, entry: toml::Value, dtypes: &[Dtype]) -> Result<Vec<Problem>, String> {
        let entry: Entry = entry.try_into().map_err(|error| format!("{error}"))?;
        if entry.dtypes.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                "a contraction has no `dtypes`; name one, or leave it out for all".to_string(),
            );
        }
        let extents: Vec<(char, usize)> = entry.extents.into_iter().collect();
        let contraction = contraction(&entry.notation, &extents)?;
        let of_entry = |dtype: &&Dtype| entry.dtypes.as_ref().is_none_or(|all| all.contains(dtype));
        let wanted = dtypes.iter().filter(of_entry);
        Ok(wanted
            .map(|&dtype| Problem {
                contraction: contraction.clone(),
                dtype,
                label: entry.label.clone(),
            })
            .collect())
    }

    fn row(&self, problem: &Problem) -> Row {
        let Problem {
            contraction, dtype, ..
        } = problem;
        let notation = &contraction.notation;
        let numbers: Vec<String> = (contraction.extents().iter())
            .map(|(_, extent)| extent.to_string())
            .collect();
        let named: Vec<String> = (contraction.extents().iter())
            .map(|(mode, extent)| format!("{mode}={extent}"))
            .collect();
        let (of_operands, of_c) = element_bytes(*dtype);
        Row {
            id: format!("{NAME} {dtype} {notation} {}", named.join(" ")),
            family: NAME,
            label: problem.label.clone(),
            dtype: dtype.to_string(),
            shape: format!("{notation} {}", numbers.join(" ")),
            columns: vec![("notation", notation.clone()), ("extents", named.join(" "))],
            series: String::new(),
            unit: Unit::Teraflops,
            operations: contraction.operations(),
            bytes: contraction.bytes(of_operands, of_c),
            apart: false,
        }
    }

    fn problem(&self, cells: &Cells) -> Result<Problem, String> {
        let extents = cells.text("extents").split_whitespace().map(|text| {
            let mode = text.chars().next().unwrap_or_default();
            let number = text[mode.len_utf8()..].strip_prefix('=');
            let extent = number.and_then(|number| number.parse().ok());
            let extent =
                extent.ok_or_else(|| format!("extents has `{text}`, not a mode and its extent"))?;
            Ok((mode, extent))
        });
        let extents: Vec<(char, usize)> = extents.collect::<Result<_, String>>()?;
        Ok(Problem {
            contraction: contraction(cells.text("notation"), &extents)?,
            dtype: cells.named("type")?,
            label: String::new(),
        })
    }

    fn set_up<'a>(&self, problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>> {
        match problem.dtype {
            Dtype::F32 => case::set_up::<types::F32>(problem, setting),
            Dtype::Tf32 => case::set_up::<types::Tf32>(problem, setting),
            Dtype::Tf32x3 => case::set_up::<types::Tf32x3>(problem, setting),
            Dtype::F16 => case::set_up::<types::F16>(problem, setting),
            Dtype::Bf16 => case::set_up::<types::Bf16>(problem, setting),
            Dtype::F64 => case::set_up::<types::F64>(problem, setting),
            Dtype::I8 => case::set_up::<types::I8>(problem, setting),
            Dtype::E4m3 | Dtype::E4m3Fast | Dtype::E4m3Outer | Dtype::E4m3Blocks => {
                Ok(SetUp::Skipped("cutlet does not contract e4m3".to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "notation = \"bij,bkj->ik\"\nextents = { b = 3, i = 20, j = 12, k = 24 }\n";

    fn problems(text: &str) -> Result<Vec<Problem>, String> {
        Contract.problems(toml::from_str(text).unwrap(), &[Dtype::F32, Dtype::Bf16])
    }

    #[test]
    fn a_problem_is_read_from_the_columns_that_it_is_written_in() {
        let problems = problems(ENTRY).unwrap();
        let row = Contract.row(&problems[1]);
        assert_eq!(row.id, "contract bf16 bij,bkj->ik b=3 i=20 j=12 k=24");
        assert_eq!(row.shape, "bij,bkj->ik 3 20 12 24");
        assert_eq!(row.operations, 2.0 * (3 * 20 * 12 * 24) as f64);
        assert_eq!(
            row.bytes,
            2.0 * (3 * 20 * 12 + 3 * 24 * 12 + 20 * 24) as f64
        );
        for problem in &problems {
            let row = Contract.row(problem);
            let columns = row.columns.iter();
            let mut cells = Cells::new(columns.map(|(column, text)| (*column, &**text)));
            cells.set("type", &row.dtype);
            assert_eq!(Contract.row(&Contract.problem(&cells).unwrap()), row);
        }
        let wrong = Cells::new([
            ("type", "f32"),
            ("notation", "i,j->ij"),
            ("extents", "i=2 j"),
        ]);
        assert!(
            Contract
                .problem(&wrong)
                .unwrap_err()
                .contains("`j`, not a mode")
        );
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        for (old, new, why) in [
            ("bij,bkj->ik", "bij->ik", "has 1 operands"),
            ("k = 24", "", "the mode k has no extent"),
            ("k = 24", "k = 0", "extents are from 1 to"),
            ("k = 24", "kk = 24", "character"),
            ("k = 24 }", "k = 24 }\ndtypes = []", "no `dtypes`"),
        ] {
            let error = problems(&ENTRY.replace(old, new)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(
            problems(&format!("{ENTRY}dtypes = [\"bf16\", \"f64\"]"))
                .unwrap()
                .len(),
            1
        );
    }
}
