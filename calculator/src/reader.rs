//! A place in a text, and what comes next there.

use crate::refusal::{Refusal, cut};

/// Reads a text from the left. Spaces and comments between words do not count.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    /// The place of the next character, in bytes.
    at: usize,
    /// Whether a line ends between the last word and the place.
    line_ends: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        Reader {
            text,
            at: 0,
            line_ends: false,
        }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The place of the next word.
    pub(crate) fn place(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// The text from the place on.
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.line_ends = false;
    }

    /// Goes back to an earlier place.
    pub(crate) fn back_to(&mut self, place: usize) {
        self.at = place;
        self.line_ends = false;
    }

    /// The next character that is neither a space nor in a comment.
    pub(crate) fn peek(&mut self) -> Option<char> {
        loop {
            let rest = self.rest();
            let spaces = &rest[..rest.len() - rest.trim_start().len()];
            self.line_ends |= spaces.contains('\n');
            self.at += spaces.len();
            let rest = self.rest();
            let comment = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                return rest.chars().next();
            };
            self.at += comment;
        }
    }

    /// Whether the next word is on a later line.
    pub(crate) fn at_new_line(&mut self) -> bool {
        self.peek();
        self.line_ends
    }

    /// Whether this text comes next.
    pub(crate) fn at_text(&mut self, text: &str) -> bool {
        self.peek();
        self.rest().starts_with(text)
    }

    /// Whether this word comes next, and not as the beginning of a longer one.
    pub(crate) fn at_word(&mut self, word: &str) -> bool {
        self.peek();
        let rest = self.rest().strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    }

    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let there = self.at_text(text);
        if there {
            self.advance(text.len());
        }
        there
    }

    /// The name that comes next, if there is one. The place stays before it.
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        if !first.is_alphabetic() && first != '_' {
            return None;
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        Some(&rest[..end.unwrap_or(rest.len())])
    }

    /// Whether a colon follows: behind the last word, or behind the parentheses that it is in. So it does if the word
    /// is a part of a shape.
    pub(crate) fn is_before_colon(&self) -> bool {
        let rest = self.rest();
        let mut depth = 0;
        let mut is_behind_comma = false;
        for (at, c) in rest.char_indices() {
            match c {
                '(' | '[' | '<' if is_behind_comma => depth += 1,
                ')' | ']' | '>' if depth > 0 => depth -= 1,
                ')' => is_behind_comma = false,
                ',' => is_behind_comma = true,
                _ if is_behind_comma || c.is_whitespace() => {}
                ':' => return !rest[at..].starts_with("::"),
                '*' | '_' | '0'..='9' => {}
                _ => return false,
            }
        }
        false
    }

    /// A refusal that points at a place in the text.
    pub(crate) fn refusal(&self, place: usize, message: impl Into<String>) -> Refusal {
        let before = &self.text[..place.min(self.text.len())];
        Refusal {
            column: Some(before.chars().count() + 1),
            message: message.into(),
        }
    }

    /// A refusal of the next character.
    pub(crate) fn expected(&mut self, what: &str) -> Refusal {
        let found = match self.peek() {
            Some(_) if self.name().is_some_and(|name| name.len() > 1) => {
                format!("found `{}`", cut(self.name().unwrap_or_default()))
            }
            Some(c) => format!("found `{c}`"),
            None => "but the expression ends".into(),
        };
        self.refusal(self.at, format!("expected {what}, {found}"))
    }

    pub(crate) fn expect(&mut self, text: &str, what: &str) -> Result<(), Refusal> {
        if self.eat(text) {
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }
}
