//! Reading and evaluating expressions in CuTe's notation.
//!
//! ```text
//! expression  = quotient { "o" quotient }
//! quotient    = application { ("/" | "%") application }
//! application = primary { ":" primary | "(" arguments ")" }
//! primary     = integer | "_" | "(" arguments ")" | "<" arguments ">"
//!             | "Sw<" B "," M "," S ">" | name [ "<" integers ">" ] "(" arguments ")"
//! ```

use cutlet_layout_core::{
    ComposedLayout, Explanation, Int, IntTuple, Layout, LayoutError, Operation, Swizzle, Tiler,
    explain, try_layout_div, try_shape_div, try_shape_mod,
};

use super::functions;
use super::refusal::{Refusal, caught};
use super::value::Value;

/// The deepest nesting of an expression.
const DEPTH: usize = 32;

/// Evaluates an expression.
pub fn evaluate(text: &str) -> Result<Value, Refusal> {
    Calculator::new(text).evaluate()
}

/// Evaluates an expression while it reads it from the left.
pub struct Calculator<'a> {
    text: &'a str,
    /// The position of the next character in bytes.
    at: usize,
    depth: usize,
    explanations: Vec<Explanation>,
}

impl<'a> Calculator<'a> {
    pub fn new(text: &'a str) -> Calculator<'a> {
        Calculator {
            text,
            at: 0,
            depth: 0,
            explanations: Vec::new(),
        }
    }

    /// Evaluates the expression. If an operation panics to refuse, the refusal has the panic's message.
    pub fn evaluate(&mut self) -> Result<Value, Refusal> {
        caught(|| {
            let value = self.expression()?;
            self.end()?;
            Ok(value)
        })
    }

    /// Explanations of the compositions, divisions and products so far, in the order of evaluation.
    pub fn explanations(&self) -> &[Explanation] {
        &self.explanations
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        if there {
            self.at += c.len_utf8();
        }
        there
    }

    /// A refusal that points at a place in the text.
    fn at(&self, place: usize, message: impl Into<String>) -> Refusal {
        let column = self.text[..place].chars().count() + 1;
        Refusal {
            column: Some(column),
            message: message.into(),
        }
    }

    fn expected(&mut self, what: &str) -> Refusal {
        let found = match self.peek() {
            Some(c) => format!("found `{c}`"),
            None => "but the expression ends".into(),
        };
        self.at(self.at, format!("expected {what}, {found}"))
    }

    fn expect(&mut self, c: char, what: &str) -> Result<(), Refusal> {
        if self.eat(c) {
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }

    fn end(&mut self) -> Result<(), Refusal> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("`o`, `(`, `:` or the end")),
        }
    }

    /// Whether a word comes next.
    fn at_word(&mut self, word: &str) -> bool {
        self.peek();
        self.rest()
            .strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    }

    /// Reads a nested expression.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth == DEPTH {
            return Err(self.at(
                self.at,
                format!("the expression is nested more than {DEPTH} deep"),
            ));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn expression(&mut self) -> Result<Value, Refusal> {
        let mut parts = vec![self.quotient()?];
        while self.at_word("o") {
            self.at += 1;
            parts.push(self.quotient()?);
        }
        self.compose(parts)
    }

    /// `a o b o …`. A swizzle at the left, or an offset in the middle, makes a composed layout.
    fn compose(&mut self, parts: Vec<Value>) -> Result<Value, Refusal> {
        let mut parts = parts.into_iter().peekable();
        let Some(mut value) = parts.next() else {
            return Err(self.expected("an expression"));
        };
        while let Some(next) = parts.next() {
            let offset = match (&value, &next) {
                (Value::Swizzle(_) | Value::Layout(_), Value::Tuple(offset))
                    if parts.peek().is_some()
                        && (offset.is_int() || !matches!(value, Value::Layout(_))) =>
                {
                    Some(*offset)
                }
                _ => None,
            };
            value = match (offset, value) {
                (Some(offset), Value::Swizzle(swizzle)) => {
                    let outer = parts.next().map(|outer| outer.layout()).transpose()?;
                    swizzled(swizzle, offset, outer)?
                }
                (Some(offset), Value::Layout(inner)) => match parts.next() {
                    Some(outer) => Value::Composed(Box::new(ComposedLayout::new(
                        inner,
                        offset,
                        outer.layout()?,
                    ))),
                    None => Value::Layout(inner),
                },
                (_, Value::Swizzle(swizzle)) => {
                    swizzled(swizzle, IntTuple::int(Int::ZERO), Some(next.layout()?))?
                }
                (_, Value::Swizzled(layout)) => {
                    Value::Swizzled(layout.try_composition_by_mode(&next.tiler()?)?)
                }
                (_, Value::Composed(layout)) => {
                    Value::Composed(Box::new(layout.try_composition_by_mode(&next.tiler()?)?))
                }
                (_, value) => match &next {
                    Value::Swizzled(_) | Value::Composed(_) | Value::Swizzle(_) => {
                        return Err(Refusal::new(format!(
                            "`{value} o {next}`: a composed layout has its layout on the right"
                        )));
                    }
                    _ => {
                        self.operation(Operation::Composition, &value.layout()?, &next.tiler()?)?
                    }
                },
            };
        }
        Ok(value)
    }

    /// Applies an operation and records its explanation.
    pub fn operation(
        &mut self,
        operation: Operation,
        a: &Layout,
        tiler: &Tiler,
    ) -> Result<Value, Refusal> {
        self.explanations.push(explain(operation, a, tiler));
        Ok(Value::Layout(operation.apply(a, tiler)?))
    }

    fn quotient(&mut self) -> Result<Value, Refusal> {
        let mut value = self.application()?;
        loop {
            if self.eat('/') {
                let divisor = self.application()?;
                value = match &value {
                    Value::Layout(layout) => Value::Layout(try_layout_div(layout, divisor.int()?)?),
                    _ => Value::Tuple(try_shape_div(&value.tuple()?, &divisor.tuple()?)?),
                };
            } else if self.eat('%') {
                let divisor = self.application()?;
                value = Value::Tuple(try_shape_mod(&value.tuple()?, &divisor.tuple()?)?);
            } else {
                return Ok(value);
            }
        }
    }

    fn application(&mut self) -> Result<Value, Refusal> {
        self.peek();
        let begin = self.at;
        let mut value = self.nested(Self::primary)?;
        loop {
            if matches!(value, Value::Tuple(_)) && self.eat(':') {
                self.peek();
                let place = self.at;
                let stride = self.nested(Self::primary)?;
                let (Value::Tuple(shape), Value::Tuple(stride)) = (&value, &stride) else {
                    return Err(self.at(
                        place,
                        format!(
                            "a stride is made of integers, but `{stride}` is {}",
                            stride.kind()
                        ),
                    ));
                };
                let layout = Layout::try_from_shape_stride(shape, stride);
                value = Value::Layout(layout.map_err(|error| self.at(begin, error.message()))?);
            } else if self.eat('(') {
                let arguments = self.arguments(')')?;
                value = value.apply(&arguments)?;
            } else {
                return Ok(value);
            }
        }
    }

    /// Expressions between commas, up to a closing bracket.
    fn arguments(&mut self, close: char) -> Result<Vec<Value>, Refusal> {
        let mut arguments = Vec::new();
        if self.eat(close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.eat(close) {
                return Ok(arguments);
            }
            self.expect(',', &format!("`,` or `{close}`"))?;
        }
    }

    fn primary(&mut self) -> Result<Value, Refusal> {
        let begin = self.at;
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let parts = self.arguments(')')?;
                parenthesised(parts).map_err(|refusal| self.at(begin, refusal.message))
            }
            Some('<') => {
                self.at += 1;
                let parts = self.arguments('>')?;
                let tilers: Vec<Tiler> =
                    parts.iter().map(Value::tiler).collect::<Result<_, _>>()?;
                let tiler = Tiler::try_tuple(&tilers);
                Ok(Value::Tiler(
                    tiler.map_err(|error| self.at(begin, error.message()))?,
                ))
            }
            Some(c) if c == '_' || c == '-' || c.is_ascii_digit() => self.integer(),
            Some(c) if c.is_alphabetic() => self.named(),
            _ => Err(self.expected("an integer, `_`, a tuple, a tiler or a name")),
        }
    }

    fn integer(&mut self) -> Result<Value, Refusal> {
        let begin = self.at;
        match IntTuple::parse_prefix(self.rest()) {
            Ok((int, len)) => {
                self.at += len;
                Ok(Value::Tuple(int))
            }
            Err(error) => Err(self.moved(begin, &error)),
        }
    }

    /// The error of a part of the text, with its column in the whole text.
    fn moved(&self, begin: usize, error: &LayoutError) -> Refusal {
        let place = error.column().map_or(begin, |column| begin + column - 1);
        let message = error.message();
        let prefix = error
            .column()
            .map(|column| format!("column {column}: "))
            .unwrap_or_default();
        let message = message.strip_prefix(&prefix).unwrap_or(message);
        let message = message.replace("but the text ends", "but the expression ends");
        self.at(place.min(self.text.len()), message)
    }

    /// `Sw<3,4,3>`, `LayoutLeft`, or a call by name.
    fn named(&mut self) -> Result<Value, Refusal> {
        let begin = self.at;
        let rest = self.rest();
        let len = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let name = &rest[..len];
        if name == "Sw" {
            return match Swizzle::parse_prefix(rest) {
                Ok((swizzle, len)) => {
                    self.at += len;
                    Ok(Value::Swizzle(swizzle))
                }
                Err(error) => Err(self.moved(begin, &error)),
            };
        }
        self.at += len;
        match name {
            "LayoutLeft" | "GenColMajor" => return Ok(Value::Order { left: true }),
            "LayoutRight" | "GenRowMajor" => return Ok(Value::Order { left: false }),
            _ if !functions::is_known(name) => {
                return Err(self.at(
                    begin,
                    format!("there is no function `{name}`; --functions lists them"),
                ));
            }
            _ => {}
        }
        let template = if self.eat('<') {
            self.arguments('>')?
        } else {
            Vec::new()
        };
        self.expect('(', "`(` and arguments")?;
        let mut arguments = self.arguments(')')?;
        // C++ writes `take<1,3>(a)` where the calculator has `take(a, 1, 3)`.
        let after_first = arguments.len().min(1);
        arguments.splice(after_first..after_first, template);
        if let (Some(operation), [a, tiler]) = (functions::operation(name), &arguments[..])
            && !matches!(a, Value::Swizzled(_) | Value::Composed(_))
        {
            let (a, tiler) = (a.layout()?, functions::tiler_of(operation, tiler)?);
            return self.operation(operation, &a, &tiler);
        }
        functions::call(name, &arguments).map_err(|refusal| match refusal.column {
            // The call has the wrong number of arguments.
            Some(_) => self.at(begin, refusal.message),
            None => refusal,
        })
    }
}

/// A tuple of integers, a concatenation of layouts, or one value in parentheses.
fn parenthesised(parts: Vec<Value>) -> Result<Value, Refusal> {
    if parts.iter().all(|part| matches!(part, Value::Tuple(_))) {
        let mut tuple = IntTuple::EMPTY;
        for part in &parts {
            let mode = part.tuple()?;
            if mode.num_leaves() == 0 {
                return Err(Refusal::new("an empty tuple `()` stands on its own only"));
            }
            tuple = tuple.try_append(&mode)?;
        }
        return Ok(Value::Tuple(tuple));
    }
    if let [_] = parts[..] {
        return Ok(parts
            .into_iter()
            .next()
            .unwrap_or(Value::Tuple(IntTuple::EMPTY)));
    }
    let layouts: Vec<Layout> = parts
        .iter()
        .map(|part| match part {
            Value::Layout(layout) => Ok(*layout),
            other => Err(Refusal::new(format!(
                "a tuple is made of integers, or of layouts to be concatenated, but `{other}` is {}",
                other.kind()
            ))),
        })
        .collect::<Result<_, _>>()?;
    Ok(Value::Layout(Layout::try_concat(&layouts)?))
}

fn swizzled(swizzle: Swizzle, offset: IntTuple, outer: Option<Layout>) -> Result<Value, Refusal> {
    match outer {
        Some(outer) => Ok(Value::Swizzled(ComposedLayout::new(swizzle, offset, outer))),
        None => Ok(Value::Swizzle(swizzle)),
    }
}
