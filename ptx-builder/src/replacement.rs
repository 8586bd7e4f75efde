//! A word that stands for another: what makes the PTX of one family out of another's.

use std::fmt;

/// A word for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    new: String,
    old: String,
}

impl Replacement {
    /// Reads `new:old`.
    pub fn parse(words: &str) -> Option<Replacement> {
        let (new, old) = words.split_once(':')?;
        Some(Replacement {
            new: new.to_owned(),
            old: old.to_owned(),
        })
    }

    /// The text with each old word replaced; nothing if there is none.
    pub fn apply(&self, text: &str) -> Option<String> {
        let Replacement { new, old } = self;
        text.contains(old).then(|| text.replace(old, new))
    }

    /// The word that is replaced.
    pub fn old(&self) -> &str {
        &self.old
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.new, self.old)
    }
}
