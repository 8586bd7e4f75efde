//! Suites: which problems are measured, as data files that ship with the program or that users write.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::dtype::Dtype;
use super::family::Family;

/// The suites that ship with the program, by name.
const SHIPPED: [(&str, &str); 15] = [
    ("headline", include_str!("../../suites/headline.toml")),
    ("square", include_str!("../../suites/square.toml")),
    ("llm", include_str!("../../suites/llm.toml")),
    ("deepgemm", include_str!("../../suites/deepgemm.toml")),
    ("ragged", include_str!("../../suites/ragged.toml")),
    ("rows", include_str!("../../suites/rows.toml")),
    ("middle", include_str!("../../suites/middle.toml")),
    ("unseen", include_str!("../../suites/unseen.toml")),
    ("random", include_str!("../../suites/random.toml")),
    ("majors", include_str!("../../suites/majors.toml")),
    ("skinny-k", include_str!("../../suites/skinny-k.toml")),
    ("long-k", include_str!("../../suites/long-k.toml")),
    ("epilogue", include_str!("../../suites/epilogue.toml")),
    ("gather", include_str!("../../suites/gather.toml")),
    ("tiny", include_str!("../../suites/tiny.toml")),
];

/// A suite: for each kernel family, entries that only the family understands.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name, or the path of its file.
    #[serde(skip)]
    pub name: String,
    /// The file's text, in which entries have their lines.
    #[serde(skip)]
    text: String,
    /// What it is for, in a line.
    pub about: String,
    /// Entries of the GEMM family.
    #[serde(default)]
    pub gemm: Vec<Spanned<toml::Value>>,
    /// Entries of the gather family.
    #[serde(default)]
    pub gather: Vec<Spanned<toml::Value>>,
}

impl Suite {
    /// The suite of this name, or in the file of this path.
    pub fn load(name: &str) -> Result<Suite, SuiteError> {
        let shipped = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
        let text = match shipped {
            Some((_, text)) => text.to_string(),
            None if !Path::new(name).is_file() => {
                return Err(SuiteError::Unknown {
                    name: name.to_string(),
                    known: SHIPPED.map(|(name, _)| name).join(", "),
                });
            }
            None => std::fs::read_to_string(name).map_err(|error| SuiteError::File {
                name: name.to_string(),
                found: error.to_string(),
            })?,
        };
        match toml::from_str::<Suite>(&text) {
            Ok(suite) => Ok(Suite {
                name: name.to_string(),
                text,
                ..suite
            }),
            Err(error) => Err(SuiteError::File {
                name: name.to_string(),
                found: match error.span() {
                    Some(span) => {
                        format!("line {} is wrong: {}", line(&text, &span), error.message())
                    }
                    None => error.message().to_string(),
                }
                .replace('\n', " "),
            }),
        }
    }

    /// The problems of one of its entries, in these element types only.
    ///
    /// # Errors
    /// [`SuiteError::File`], with the entry's line.
    pub fn problems<F: Family>(
        &self,
        family: &F,
        entry: &Spanned<toml::Value>,
        dtypes: &[Dtype],
    ) -> Result<Vec<F::Problem>, SuiteError> {
        let problems = family.problems(entry.get_ref().clone(), dtypes);
        problems.map_err(|found| SuiteError::File {
            name: self.name.clone(),
            found: format!(
                "the entry in line {} is wrong: {}",
                line(&self.text, &entry.span()),
                found.trim_end().replace('\n', " ")
            ),
        })
    }
}

/// The line, counted from 1, in which a part of a text begins.
fn line(text: &str, part: &Range<usize>) -> usize {
    let before = text.bytes().take(part.start);
    1 + before.filter(|&byte| byte == b'\n').count()
}

/// Why there is no such suite.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// Neither a name nor a file.
    #[error("suite `{name}` was asked for: it is no file and none of {known}; name one of those")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The file says nothing that can be measured.
    #[error(
        "suite `{name}` was asked for, but {found}; the guide on benchmarking shows the format"
    )]
    File {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        found: String,
    },
    /// It has problems, but none of those that were asked for.
    #[error(
        "suite `{name}` was asked for, but it has no {of}; name another suite, another family or other types"
    )]
    Nothing {
        /// What was asked for.
        name: String,
        /// Of which families and types.
        of: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{gather, gemm};
    use clap::ValueEnum;

    #[test]
    fn every_shipped_suite_has_problems() {
        for (name, _) in SHIPPED {
            let suite = Suite::load(name).unwrap();
            let mut problems = 0;
            for entry in &suite.gemm {
                let found = suite.problems(&gemm::Gemm, entry, Dtype::value_variants());
                problems += found.unwrap().len();
            }
            for entry in &suite.gather {
                let found = suite.problems(&gather::Gather, entry, Dtype::value_variants());
                problems += found.unwrap().len();
            }
            assert!(problems > 0, "{name}");
        }
    }

    /// Where they were, the suite would say nothing of other shapes any more.
    #[test]
    fn no_instance_was_measured_at_the_unseen() {
        let measured = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../src/gemm/choose/measured.txt"
        );
        let measured = std::fs::read_to_string(measured).unwrap();
        for (name, expected) in [("unseen", false), ("random", false), ("square", true)] {
            let suite = Suite::load(name).unwrap();
            let entries = suite.gemm.iter();
            let problems =
                entries.map(|entry| suite.problems(&gemm::Gemm, entry, &[Dtype::Bf16]).unwrap());
            for problem in problems.flatten() {
                let shape = gemm::Gemm.row(&problem).shape + " ";
                let seen = measured.lines().any(|line| line.starts_with(&shape));
                assert_eq!(seen, expected, "{shape}of `{name}`");
            }
        }
    }

    #[test]
    fn the_headline_suite_has_24_shapes_in_bf16() {
        let suite = Suite::load("headline").unwrap();
        let problems = |dtype| -> usize {
            let entries = suite.gemm.iter();
            entries
                .map(|entry| suite.problems(&gemm::Gemm, entry, &[dtype]).unwrap().len())
                .sum()
        };
        assert_eq!(problems(Dtype::Bf16), 24);
        assert_eq!(problems(Dtype::F32), 20);
    }

    #[test]
    fn an_unknown_suite_is_answered_with_the_known_ones() {
        let error = Suite::load("nonsense").unwrap_err().to_string();
        assert!(
            error.contains("headline") && error.contains("nonsense"),
            "{error}"
        );
    }
}
