//! A part that was looked for: what was found, or how to get it.

use std::fmt;

use serde::Serialize;

/// A part that was looked for.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub topic: &'static str,
    pub found: bool,
    /// Whether nothing is wrong without the part.
    pub optional: bool,
    pub what: String,
    /// How to get a part that is not there.
    pub fix: Option<String>,
    /// Whether the command fails for it.
    #[serde(skip)]
    pub fails: bool,
}

impl Finding {
    /// A part that is there.
    pub fn found(topic: &'static str, what: impl fmt::Display) -> Finding {
        Finding {
            topic,
            found: true,
            optional: false,
            what: what.to_string(),
            fix: None,
            fails: false,
        }
    }

    /// A part that kernels on a GPU need and that is not there.
    pub fn missing(
        topic: &'static str,
        what: impl fmt::Display,
        fix: impl fmt::Display,
    ) -> Finding {
        Finding {
            found: false,
            fix: Some(fix.to_string()),
            ..Finding::found(topic, what)
        }
    }

    /// A part that only some work needs and that is not there.
    pub fn none(topic: &'static str, what: impl fmt::Display, fix: impl fmt::Display) -> Finding {
        Finding {
            optional: true,
            ..Finding::missing(topic, what, fix)
        }
    }

    /// Whether the part is there, in a word.
    pub fn mark(&self) -> &'static str {
        match (self.found, self.optional) {
            (true, _) => "found",
            (false, true) => "none",
            (false, false) => "missing",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<17} {:<8} {}", self.topic, self.mark(), self.what)?;
        match (&self.fix, self.optional) {
            (Some(fix), false) => write!(f, "\n{:26} fix: {fix}", ""),
            (Some(fix), true) => write!(f, "\n{:26} to have it: {fix}", ""),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_has_no_fix_but_a_way() {
        let missing = Finding::missing("driver", "there is none", "install it").to_string();
        assert!(
            missing.contains("missing") && missing.contains(" fix: install it"),
            "{missing}"
        );
        let none = Finding::none("NCCL", "there is none", "install it").to_string();
        assert!(
            none.contains("none ") && none.contains(" to have it: install it"),
            "{none}"
        );
    }
}
