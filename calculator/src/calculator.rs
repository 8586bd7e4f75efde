//! Reading and evaluating expressions in CuTe's notation.
//!
//! ```text
//! program     = statement { (";" | line break) statement }
//! statement   = [ names "=" ] composition [ "==" composition ]
//! names       = name { "," name }
//! composition = quotient { ("o" | "∘") quotient }
//! quotient    = application { ("/" | "%" | "*") application }
//! application = primary { ":" primary | "(" arguments ")" | "[" arguments "]" | method | "{}" }
//! method      = "." name [ "<" arguments ">" ] [ "(" arguments ")" ]
//! primary     = integer | "_" | "(" arguments ")" | "<" arguments ">" | "[" integers "]" | name
//!             | name [ "<" arguments ">" ] "(" arguments ")" | type "<" arguments ">"
//!             | "contract" "(" text { "," [ letter "=" ] comparison } ")"
//! ```

mod contraction;
mod operands;
mod primary;
mod statement;
mod trials;

use operands::Operands;

use std::collections::HashMap;

use cutlet_layout_core::{IntTuple, Layout, try_layout_div, try_shape_div, try_shape_mod};

use crate::compose::compose;
use crate::composed::Inner;
use crate::equality::compare;
use crate::explain::{Explanation, Explanations};
use crate::extents::Extents;
use crate::hint::static_way_out;
use crate::pasted::{self, Prints};
use crate::picture::Picture;
use crate::reader::Reader;
use crate::refusal::{Refusal, caught, cut};
use crate::signatures::{is_known, with_template};
use crate::symbols::Symbols;
use crate::value::{Value, coordinate};

/// The deepest nesting of an expression.
const DEPTH: usize = 32;

/// The most statements of a program.
const STATEMENTS: usize = 1024;

/// How expressions are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether `4` is the static integer `_4`.
    pub is_static: bool,
}

/// Evaluates an expression.
///
/// # Errors
/// If the text is no expression, or an operation refuses.
pub fn evaluate(text: &str) -> Result<Value, Refusal> {
    Calculator::new(text, Options::default()).evaluate()
}

/// What is read, which decides what an unknown name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Values: an unknown name is a mistake, unless it is an extent of a shape before a colon.
    Values,
    /// Arguments that may be shapes: an unknown name in parentheses is a symbolic extent.
    Shapes,
    /// Extents: an unknown name is a symbolic extent.
    Extents,
    /// Strides: an unknown name is a symbolic stride.
    Strides,
}

/// Evaluates an expression while it reads it from the left.
pub struct Calculator<'a> {
    reader: Reader<'a>,
    options: Options,
    depth: usize,
    reads: Reads,
    variables: HashMap<String, Value>,
    symbols: Symbols,
    extents: Extents,
    explanations: Explanations,
    /// The place of the last operand of the operation that is being applied.
    operand: Option<usize>,
    /// Whether an operation does more with symbolic strides than to multiply them.
    needs_numbers: bool,
    /// How the last call that prints does so, and the place behind it.
    printed: Option<(Prints, usize)>,
}

impl<'a> Calculator<'a> {
    /// A calculator at the beginning of a text.
    pub fn new(text: &'a str, options: Options) -> Calculator<'a> {
        Calculator {
            reader: Reader::new(text),
            options,
            depth: 0,
            reads: Reads::Values,
            variables: HashMap::new(),
            symbols: Symbols::default(),
            extents: Extents::default(),
            explanations: Explanations::default(),
            operand: None,
            needs_numbers: false,
            printed: None,
        }
    }

    /// The same calculator, which explains operations too.
    pub fn explaining(mut self) -> Calculator<'a> {
        self.explanations.record();
        self
    }

    /// Evaluates the expression. If an operation panics to refuse, the refusal has the panic's message.
    ///
    /// # Errors
    /// As [`evaluate`].
    pub fn evaluate(&mut self) -> Result<Value, Refusal> {
        let result = self.evaluate_once();
        if self.needs_numbers {
            self.extents = Extents::of(self.symbols.names())?;
        }
        if self.extents.is_empty() {
            result.map_err(|refusal| self.with_way_out(refusal))
        } else {
            self.evaluate_symbolically()
        }
    }

    /// A refusal for want of room, with the value that static integers give.
    fn with_way_out(&self, refusal: Refusal) -> Refusal {
        if self.options.is_static || !refusal.message.contains("(CAPACITY)") {
            return refusal;
        }
        match static_way_out(self.reader.text()) {
            Some(way_out) => Refusal {
                message: format!("{}; {way_out}", refusal.message),
                ..refusal
            },
            None => refusal,
        }
    }

    /// Evaluates the expression with one value for each symbolic extent.
    fn evaluate_once(&mut self) -> Result<Value, Refusal> {
        let result = caught(|| self.program());
        result.map_err(|refusal| {
            let refusal = match (refusal.column, self.operand) {
                (None, Some(place)) => self.reader.refusal(place, refusal.message),
                _ => refusal,
            };
            Refusal {
                message: self.symbols.in_words(&refusal.message),
                ..refusal
            }
        })
    }

    /// Explanations of the operations so far, in the order of evaluation.
    pub fn explanations(&self) -> &[Explanation] {
        self.explanations.list()
    }

    /// Whether the last operation gathered tiles: each column of its result is a tile. Only an
    /// [`explaining`](Self::explaining) calculator knows.
    pub fn has_zipped(&self) -> bool {
        let last = self.explanations().last();
        let title = last.and_then(|explanation| explanation.lines().first());
        title.is_some_and(|title| title.starts_with("zipped_"))
    }

    /// A value's text, in which symbols have their names.
    pub fn shown(&self, value: &Value) -> String {
        self.symbols.named(&value.to_string())
    }

    /// What the expression prints: the value's text, or the picture that `print_layout` or `print_latex` draws if the
    /// last statement is a call of it.
    ///
    /// # Errors
    /// If there is no such picture of the value.
    pub fn printed(&self, value: &Value) -> Result<String, Refusal> {
        let picture = match self.printed {
            Some((Prints::Table, _)) => Picture::Table,
            Some((Prints::Latex, _)) => Picture::Latex,
            _ => return Ok(format!("{}\n", self.shown(value))),
        };
        Ok(self.symbols.named(&picture.draw(value)?))
    }

    /// The expression's symbols.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn program(&mut self) -> Result<Value, Refusal> {
        let mut value = self.statement()?;
        for _ in 1..STATEMENTS {
            let new_line = self.reader.at_new_line();
            let separated = self.reader.eat(";") || new_line;
            while self.reader.eat(";") {}
            if self.reader.peek().is_none() {
                return Ok(value);
            }
            if !separated {
                return Err(self.reader.expected("`o`, `(`, `:` or the end"));
            }
            value = self.statement()?;
        }
        let message = format!("the program has more than {STATEMENTS} statements");
        let place = self.reader.place();
        Err(self.reader.refusal(place, message))
    }

    fn comparison(&mut self) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let left = self.composition()?;
        if self.reader.eat("==") {
            let place = self.reader.place();
            let operands = Operands::from([(left, begin), (self.composition()?, place)]);
            return self.operate_quietly(&operands, |both| compare(&both[0], &both[1]));
        }
        Ok(left)
    }

    /// `a o b o …`. An int tuple between two signs is the offset of a composed layout.
    fn composition(&mut self) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let mut value = self.quotient()?;
        while self.eat_circle() {
            if self.reader.at_text("smem_ptr[") {
                value = self.in_shared_memory(&value)?;
                continue;
            }
            let place = self.reader.place();
            let next = self.quotient()?;
            let has_offset = matches!(next, Value::Tuple(_)) && value.inner().is_some();
            let mut operands = Operands::from([(value, begin), (next, place)]);
            value = if has_offset && self.eat_circle() {
                let place = self.reader.place();
                operands.push(self.quotient()?, place);
                self.operate_quietly(&operands, |parts| {
                    pasted::composed(&parts[0], &parts[1], &parts[2])
                })?
            } else {
                self.operate("composition", &operands, |both| compose(&both[0], &both[1]))?
            };
        }
        Ok(value)
    }

    /// The swizzled layout that CuTe prints as `Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)`. There the swizzle
    /// permutes bytes; here, as everywhere else, it permutes elements.
    fn in_shared_memory(&mut self, swizzle: &Value) -> Result<Value, Refusal> {
        let place = self.reader.place();
        self.reader.eat("smem_ptr[");
        let bits = self.integer()?.int()?.value();
        self.reader.expect("b](unset)", "`b](unset)`")?;
        let Value::Inner(Inner::Swizzle(swizzle)) = swizzle else {
            return Err(self
                .reader
                .refusal(place, "only a swizzle stands before `smem_ptr`"));
        };
        if !self.eat_circle() {
            return Err(self.reader.expected("`o` and a layout"));
        }
        let place = self.reader.place();
        let operands = Operands::one(self.quotient()?, place);
        let swizzle = *swizzle;
        self.operate_quietly(&operands, |outer| {
            let outer = outer[0].layout()?;
            Ok(swizzle.try_recast(8, bits)?.composition(&outer).into())
        })
    }

    /// Reads `o` or `∘`.
    fn eat_circle(&mut self) -> bool {
        if self.reader.at_word("o") {
            self.reader.advance(1);
            return true;
        }
        self.reader.eat("∘")
    }

    fn quotient(&mut self) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let mut value = self.application(true)?;
        while let Some(sign) = ["/", "%", "*"]
            .into_iter()
            .find(|sign| self.reader.eat(sign))
        {
            let place = self.reader.place();
            let name = match (sign, &value) {
                ("/", Value::Layout(_)) => "layout_div",
                ("/", _) => "shape_div",
                ("%", _) => "shape_mod",
                _ => "product",
            };
            // A product may be the shape of a vector: `4*M:1`.
            let is_product = sign == "*";
            let right = self.application(!is_product)?;
            let operands = Operands::from([(value, begin), (right, place)]);
            value = self.operate(name, &operands, |both| arithmetic(sign, &both[0], &both[1]))?;
            if is_product && self.at_colon() {
                value = self.with_stride(&value, begin)?;
            }
        }
        Ok(value)
    }

    /// Reads with another meaning of unknown names.
    fn reading<T>(&mut self, reads: Reads, read: impl FnOnce(&mut Self) -> T) -> T {
        let outside = std::mem::replace(&mut self.reads, reads);
        let value = read(self);
        self.reads = outside;
        value
    }

    /// Reads a nested expression.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth == DEPTH {
            let place = self.reader.place();
            let message = format!("the expression is nested more than {DEPTH} deep");
            return Err(self.reader.refusal(place, message));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// A value, and what is applied to it: coordinates, methods, and a stride if it takes one.
    fn application(&mut self, takes_stride: bool) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let mut value = self.nested(Self::primary)?;
        loop {
            // A parenthesis on the next line begins a statement.
            let calls = self.reader.at_text("(") && !self.reader.at_new_line();
            if takes_stride && matches!(value, Value::Tuple(_)) && self.at_colon() {
                value = self.with_stride(&value, begin)?;
            } else if calls {
                self.reader.eat("(");
                let arguments = self.arguments(")")?;
                value = self.applied(Operands::one(value, begin), arguments)?;
            } else if self.reader.at_text("[") && !self.reader.at_new_line() {
                // Python's `layout[0]` is a mode.
                self.reader.eat("[");
                let mut operands = Operands::one(value, begin);
                operands.extend(self.arguments("]")?);
                value = self.called("get", &operands, begin)?;
            } else if self.reader.at_text("{") {
                self.reader.eat("{");
                self.reader.expect("}", "`}`")?;
            } else if self.at_method() {
                value = self.method(Operands::one(value, begin))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn at_colon(&mut self) -> bool {
        self.reader.at_text(":") && !self.reader.at_text("::")
    }

    /// The layout of a shape and the stride that comes next.
    fn with_stride(&mut self, shape: &Value, begin: usize) -> Result<Value, Refusal> {
        self.reader.eat(":");
        let place = self.reader.place();
        let stride = self.reading(Reads::Strides, Self::stride)?;
        let (Value::Tuple(shape), Value::Tuple(stride)) = (shape, &stride) else {
            let message = format!(
                "a stride is made of integers, but `{}` is {}",
                cut(&stride.to_string()),
                stride.kind()
            );
            return Err(self.reader.refusal(place, message));
        };
        let layout = Layout::try_from_shape_stride(shape, stride);
        layout
            .map(Value::Layout)
            .map_err(|error| self.reader.refusal(begin, error.message()))
    }

    /// A stride, which may be a multiple of a symbol: `72*w`.
    fn stride(&mut self) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let mut stride = self.nested(Self::primary)?;
        while self.reader.eat("*") {
            let place = self.reader.place();
            let factor = self.nested(Self::primary)?;
            let operands = Operands::from([(stride, begin), (factor, place)]);
            stride = self.operate_quietly(&operands, |both| arithmetic("*", &both[0], &both[1]))?;
        }
        Ok(stride)
    }

    /// A value with a coordinate in parentheses behind it.
    fn applied(&mut self, mut operands: Operands, coord: Operands) -> Result<Value, Refusal> {
        operands.extend(coord);
        let symbols = self.symbols.clone();
        self.operate("apply", &operands, |operands| {
            let (value, coord) = (&operands[0], &operands[1..]);
            if let Value::Layout(layout) = value
                && let Some(sum) = symbols.sum(layout, &coordinate(coord)?)
            {
                return Ok(sum);
            }
            value.apply(coord)
        })
    }

    /// Whether `.name` comes next.
    fn at_method(&mut self) -> bool {
        let mut ahead = self.reader.clone();
        ahead.eat(".") && ahead.name().is_some_and(is_known)
    }

    /// `a.size()`, `a.layout<1>()`, `a.shape`: a call with `a` as its first argument.
    fn method(&mut self, mut operands: Operands) -> Result<Value, Refusal> {
        self.reader.eat(".");
        let begin = self.reader.place();
        let name = self.reader.name().unwrap_or_default();
        self.reader.advance(name.len());
        let name = if self.reader.eat("<") {
            operands.extend(self.arguments(">")?);
            with_template(name)
        } else {
            name
        };
        if self.reader.eat("(") {
            operands.extend(self.arguments(")")?);
        }
        self.called(name, &operands, begin)
    }
}

/// `left / right`, `left % right` and `left * right`.
fn arithmetic(sign: &str, left: &Value, right: &Value) -> Result<Value, Refusal> {
    Ok(match (sign, left) {
        ("/", Value::Layout(layout)) => Value::Layout(try_layout_div(layout, right.int()?)?),
        ("/", _) => Value::Tuple(try_shape_div(&left.tuple()?, &right.tuple()?)?),
        ("%", _) => Value::Tuple(try_shape_mod(&left.tuple()?, &right.tuple()?)?),
        _ => {
            let product = left.int()?.checked_mul(right.int()?);
            let Some(product) = product else {
                return Err(Refusal::new(format!(
                    "{left} * {right} does not fit 64 bits, or is a product of two symbols"
                )));
            };
            Value::Tuple(IntTuple::int(product))
        }
    })
}

/// A tuple of integers, a concatenation of layouts, or one value in parentheses.
pub(crate) fn parenthesised(parts: Vec<Value>) -> Result<Value, Refusal> {
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
    if let [one] = parts.as_slice() {
        return Ok(one.clone());
    }
    let layouts: Vec<Layout> = parts
        .iter()
        .map(|part| match part {
            Value::Layout(layout) => Ok(*layout),
            other => Err(Refusal::new(format!(
                "a tuple is made of integers, or of layouts to be concatenated, but `{}` is {}",
                cut(&other.to_string()),
                other.kind()
            ))),
        })
        .collect::<Result<_, _>>()?;
    Ok(Value::Layout(Layout::try_concat(&layouts)?))
}
