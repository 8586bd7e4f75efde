//! Words that stand for others: what makes the PTX of one family out of another's.

use std::fmt;

/// Words for others, each as in `f16 for bf16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    words: Vec<Word>,
}

/// A word for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word in the other's place.
    pub new: String,
    /// The word that is replaced.
    pub old: String,
}

impl Replacement {
    /// Reads `new:old`, or several such words with a `+` between them.
    pub fn parse(words: &str) -> Option<Replacement> {
        let words = words.split('+').map(Word::parse).collect::<Option<_>>()?;
        Some(Replacement { words })
    }

    /// The words, as they are read.
    pub fn written(&self) -> String {
        let words = self.words.iter();
        let words: Vec<_> = words
            .map(|Word { new, old }| format!("{new}:{old}"))
            .collect();
        words.join("+")
    }

    /// The words, in the order in which they are replaced.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The text with each old word replaced, one word after the other; nothing if there is none.
    pub fn apply(&self, text: &str) -> Option<String> {
        let mut replaced = None;
        for Word { new, old } in &self.words {
            let text = replaced.as_deref().unwrap_or(text);
            if text.contains(old) {
                replaced = Some(text.replace(old, new));
            }
        }
        replaced
    }

    /// The words that are replaced.
    pub fn old(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|it| it.old.as_str()).collect();
        words.join("` or `")
    }
}

impl Word {
    fn parse(words: &str) -> Option<Word> {
        let (new, old) = words.split_once(':')?;
        Some(Word {
            new: new.to_owned(),
            old: old.to_owned(),
        })
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, Word { new, old }) in self.words.iter().enumerate() {
            let between = if nth == 0 { "" } else { ", " };
            write!(f, "{between}{new} for {old}")?;
        }
        Ok(())
    }
}
