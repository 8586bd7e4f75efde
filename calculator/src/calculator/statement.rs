//! Statements: an expression, or variables and their values.

use super::Calculator;
use crate::pasted;
use crate::refusal::{Refusal, cut};
use crate::value::Value;

/// Variables before a `=`.
struct Assigned<'a> {
    /// Their names and places.
    names: Vec<(&'a str, usize)>,
    /// Whether words of a declaration stand before them.
    is_declared: bool,
}

impl<'a> Calculator<'a> {
    /// An expression, or variables and their values: `a = (4,2):(1,4)`, `int M = 8, N = 4`, `auto [a, b] = …`.
    pub(super) fn statement(&mut self) -> Result<Value, Refusal> {
        self.printed = None;
        let Some(mut assigned) = self.assigned() else {
            let value = self.comparison()?;
            // Only a call that is the whole statement prints.
            let end = self.reader.place();
            self.printed = self.printed.filter(|&(_, behind)| behind == end);
            return Ok(value);
        };
        let mut value = self.value_of(&assigned)?;
        while assigned.is_declared && self.reader.eat(",") {
            let Some(next) = self.assigned() else {
                return Err(self.reader.expected("a variable and `=`"));
            };
            assigned.names = next.names;
            value = self.value_of(&assigned)?;
        }
        self.printed = None;
        Ok(value)
    }

    /// Reads the value of variables.
    fn value_of(&mut self, assigned: &Assigned<'a>) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let value = self.comparison()?;
        if let Some((_, place)) = assigned.names.iter().find(|(name, _)| *name == "o") {
            let message = "`o` is the sign of composition, so it cannot be a variable";
            return Err(self.reader.refusal(*place, message));
        }
        if let [(name, _)] = assigned.names.as_slice() {
            self.variables.insert((*name).to_owned(), value.clone());
            return Ok(value);
        }
        let parts = value.parts().unwrap_or_default();
        if parts.len() != assigned.names.len() {
            let message = format!(
                "{} variables need as many values, but `{}` is {}",
                assigned.names.len(),
                cut(&value.to_string()),
                value.kind()
            );
            return Err(self.reader.refusal(begin, message));
        }
        for ((name, _), part) in assigned.names.iter().zip(parts) {
            self.variables.insert((*name).to_owned(), part);
        }
        Ok(value)
    }

    /// The variables before a `=`, if there are any. The words of a declaration may stand before them.
    fn assigned(&mut self) -> Option<Assigned<'a>> {
        let begin = self.reader.place();
        let found = self.names_before_assignment();
        if found.is_none() {
            self.reader.back_to(begin);
        }
        found
    }

    fn names_before_assignment(&mut self) -> Option<Assigned<'a>> {
        let mut names = vec![self.next_name()?];
        let mut is_declared = false;
        while pasted::DECLARES.contains(&names[0].0) {
            while self.reader.eat("&") {}
            let Some(name) = self.next_name() else { break };
            names = vec![name];
            is_declared = true;
        }
        let is_bracketed = pasted::DECLARES.contains(&names[0].0) && self.reader.eat("[");
        if is_bracketed {
            names = vec![self.next_name()?];
            is_declared = false;
        }
        // `int M = 8, N = 4` has a comma behind the value, and `a, b = …` before the sign.
        while self.reader.eat(",") {
            names.push(self.next_name()?);
        }
        if is_bracketed && !self.reader.eat("]") {
            return None;
        }
        let assigns = self.reader.at_text("=") && !self.reader.at_text("==");
        assigns.then(|| {
            self.reader.eat("=");
            Assigned { names, is_declared }
        })
    }

    /// Reads a name, and tells its place.
    fn next_name(&mut self) -> Option<(&'a str, usize)> {
        let place = self.reader.place();
        let name = self.reader.name()?;
        self.reader.advance(name.len());
        Some((name, place))
    }
}
