//! Suites: the problems to measure, in data files that ship with the program or that users write.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

/// The suites that ship with the program, by name.
const SHIPPED: [(&str, &str); 18] = [
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
    ("batched", include_str!("../../suites/batched.toml")),
    ("epilogue", include_str!("../../suites/epilogue.toml")),
    ("gather", include_str!("../../suites/gather.toml")),
    ("movement", include_str!("../../suites/movement.toml")),
    ("contract", include_str!("../../suites/contract.toml")),
    ("tiny", include_str!("../../suites/tiny.toml")),
];

/// What the option that names a suite says.
pub fn help() -> String {
    let names = SHIPPED.map(|(name, _)| name).join(", ");
    format!(
        "A suite by name ({names}) or file; may be given several times. By default, headline, gather, movement and \
         contract on a GPU, tiny on the CPU"
    )
}

/// A suite: entries for each kernel family, which only the family can read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name, or the path of its file.
    #[serde(skip)]
    pub name: String,
    /// The file's text, for the lines of its entries.
    #[serde(skip)]
    text: String,
    /// Its purpose, in a line.
    pub about: String,
    /// Entries of the GEMM family.
    #[serde(default)]
    pub gemm: Vec<Spanned<toml::Value>>,
    /// Entries of the gather family.
    #[serde(default)]
    pub gather: Vec<Spanned<toml::Value>>,
    /// Entries of the movement family.
    #[serde(default)]
    pub movement: Vec<Spanned<toml::Value>>,
    /// Entries of the family of contractions.
    #[serde(default)]
    pub contract: Vec<Spanned<toml::Value>>,
}

impl Suite {
    /// The shipped suite of this name, or the suite in the file at this path.
    ///
    /// # Errors
    /// [`SuiteError::Unknown`], [`SuiteError::File`].
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
        Suite::read(name, text)
    }

    /// The suite with this text.
    ///
    /// # Errors
    /// [`SuiteError::File`].
    pub fn read(name: &str, text: String) -> Result<Suite, SuiteError> {
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

    /// Reads the problems of one of its entries by a family's function.
    ///
    /// # Errors
    /// [`SuiteError::File`], with the entry's line, if the function returns an error.
    pub fn problems<P>(
        &self,
        entry: &Spanned<toml::Value>,
        read: impl FnOnce(toml::Value) -> Result<Vec<P>, String>,
    ) -> Result<Vec<P>, SuiteError> {
        read(entry.get_ref().clone()).map_err(|found| SuiteError::File {
            name: self.name.clone(),
            found: format!(
                "the entry in line {} is wrong: {}",
                line(&self.text, &entry.span()),
                found.trim_end().replace('\n', " ")
            ),
        })
    }
}

/// The line in which a part of a text begins, counted from 1.
fn line(text: &str, part: &Range<usize>) -> usize {
    let before = text.bytes().take(part.start);
    1 + before.filter(|&byte| byte == b'\n').count()
}

/// Why a suite cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// It is neither shipped nor a file.
    #[error(
        "suite `{name}` was asked for: it is neither a file nor one of {known}; name one of these"
    )]
    Unknown {
        /// The name or path.
        name: String,
        /// The names of the shipped suites.
        known: String,
    },
    /// The file cannot be read, or is wrong.
    #[error(
        "suite `{name}` was asked for, but {found}; the guide on benchmarking shows the format"
    )]
    File {
        /// The name or path.
        name: String,
        /// What is wrong with the file.
        found: String,
    },
    /// It has no problem of the families and types that were asked for.
    #[error(
        "suite `{name}` was asked for, but it has no {of}; name another suite, another family or other types"
    )]
    Nothing {
        /// The name or path.
        name: String,
        /// The families and types.
        of: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contract::Contract;
    use crate::bench::family::Family;
    use crate::bench::gather::Gather;
    use crate::bench::gemm::Gemm;
    use crate::bench::movement::Movement;
    use crate::measure::dtype::Dtype;
    use clap::ValueEnum;

    /// The problems of an entry, in these element types.
    fn problems<F: Family>(
        family: &F,
        suite: &Suite,
        entry: &Spanned<toml::Value>,
        dtypes: &[Dtype],
    ) -> Vec<F::Problem> {
        let read = |entry| family.problems(entry, dtypes);
        suite.problems(entry, read).unwrap()
    }

    #[test]
    fn every_shipped_suite_has_problems() {
        for (name, _) in SHIPPED {
            let suite = Suite::load(name).unwrap();
            let all = Dtype::value_variants();
            let mut count = 0;
            for entry in &suite.gemm {
                count += problems(&Gemm, &suite, entry, all).len();
            }
            for entry in &suite.gather {
                count += problems(&Gather, &suite, entry, all).len();
            }
            for entry in &suite.movement {
                count += problems(&Movement, &suite, entry, all).len();
            }
            for entry in &suite.contract {
                count += problems(&Contract, &suite, entry, all).len();
            }
            assert!(count > 0, "{name}");
        }
    }

    /// With measured shapes in them, these suites would no longer stand for other shapes.
    #[test]
    fn no_instance_was_measured_at_the_unseen() {
        let measured = concat!(env!("CARGO_MANIFEST_DIR"), "/../fitting/tables/h200.txt");
        let measured = std::fs::read_to_string(measured).unwrap();
        for (name, expected) in [("unseen", false), ("random", false), ("square", true)] {
            let suite = Suite::load(name).unwrap();
            let entries = suite.gemm.iter();
            let all = entries.flat_map(|entry| problems(&Gemm, &suite, entry, &[Dtype::Bf16]));
            for problem in all {
                let shape = Gemm.row(&problem).shape + " ";
                let seen = measured.lines().any(|line| line.starts_with(&shape));
                assert_eq!(seen, expected, "{shape}of `{name}`");
            }
        }
    }

    #[test]
    fn the_headline_suite_has_24_shapes_in_bf16() {
        let suite = Suite::load("headline").unwrap();
        let count = |dtype| -> usize {
            let entries = suite.gemm.iter();
            entries
                .map(|entry| problems(&Gemm, &suite, entry, &[dtype]).len())
                .sum()
        };
        assert_eq!(count(Dtype::Bf16), 24);
        assert_eq!(count(Dtype::F32), 20);
    }

    #[test]
    fn the_suite_of_contractions_has_24_in_two_types() {
        let suite = Suite::load("contract").unwrap();
        for (dtype, expected) in [(Dtype::Bf16, 24), (Dtype::F32, 24), (Dtype::F16, 0)] {
            let entries = suite.contract.iter();
            let all = entries.map(|entry| problems(&Contract, &suite, entry, &[dtype]).len());
            assert_eq!(all.sum::<usize>(), expected, "{dtype}");
        }
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
