//! The innermost parts of expressions: integers, parentheses, names and calls.

use cutlet_layout_core::{CAPACITY, Int, IntTuple, LayoutError, Tiler};

use super::{Calculator, Operands, Reads, arithmetic, parenthesised};
use crate::atoms;
use crate::functions;
use crate::pasted::{self, NAMESPACES};
use crate::refusal::{Refusal, cut};
use crate::signatures::{canonical, is_known, with_template};
use crate::table;
use crate::value::Value;

/// The most characters of a symbol's name.
const LONGEST_SYMBOL: usize = 32;

/// What is read between the parentheses of a call.
fn read_in(name: &str) -> Reads {
    match name {
        "Stride" | "make_stride" => Reads::Strides,
        "Shape" | "make_shape" => Reads::Extents,
        "Layout"
        | "make_layout"
        | "make_identity_layout"
        | "make_ordered_layout"
        | "size"
        | "product"
        | "compact_col_major"
        | "compact_row_major"
        | "tile_to_shape"
        | "with_shape"
        | "idx2crd"
        | "crd2idx"
        | "shape_div"
        | "shape_mod"
        | "compatible" => Reads::Shapes,
        _ => Reads::Values,
    }
}

impl<'a> Calculator<'a> {
    /// Expressions between commas, up to a closing bracket. Python's names of arguments are skipped.
    pub(super) fn arguments(&mut self, close: &str) -> Result<Operands, Refusal> {
        let mut arguments = Operands::default();
        while !self.reader.eat(close) {
            if arguments.values.len() == CAPACITY {
                let place = self.reader.place();
                let message = format!(
                    "a tuple has up to {CAPACITY} integers, and a call up to {CAPACITY} arguments: here is one more"
                );
                return Err(self.reader.refusal(place, message));
            }
            let keyword = self.keyword();
            let place = self.reader.place();
            let argument = self.comparison()?;
            match (keyword, &argument) {
                // `mode=[1,0]` is a path.
                (Some("mode"), Value::Tuple(path)) if path.is_tuple() => {
                    for i in 0..path.rank() {
                        arguments.push(Value::Tuple(path.mode(i)), place);
                    }
                }
                _ => arguments.push(argument, place),
            }
            if !self.reader.eat(",") {
                self.reader.expect(close, &format!("`,` or `{close}`"))?;
                break;
            }
        }
        Ok(arguments)
    }

    /// Reads `stride=` before an argument.
    pub(super) fn keyword(&mut self) -> Option<&'a str> {
        let mut ahead = self.reader.clone();
        let name = ahead.name()?;
        ahead.advance(name.len());
        if ahead.at_text("==") || !ahead.eat("=") {
            return None;
        }
        self.reader = ahead;
        Some(name)
    }

    pub(super) fn primary(&mut self) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        match self.reader.peek() {
            Some('(') => {
                self.reader.eat("(");
                let inside = match self.reads {
                    Reads::Shapes => Reads::Extents,
                    reads => reads,
                };
                let parts = self.reading(inside, |own| own.arguments(")"))?.values;
                parenthesised(parts).map_err(|refusal| self.reader.refusal(begin, refusal.message))
            }
            Some('<') => {
                self.reader.eat("<");
                let parts = self.arguments(">")?;
                let tilers = parts
                    .values
                    .iter()
                    .zip(&parts.places)
                    .map(|(part, &place)| {
                        let tiler = part.tiler();
                        tiler.map_err(|refusal| self.reader.refusal(place, refusal.message))
                    });
                let tilers: Vec<Tiler> = tilers.collect::<Result<_, _>>()?;
                let tiler = Tiler::try_tuple(&tilers);
                Ok(Value::Tiler(tiler.map_err(|error| {
                    self.reader.refusal(begin, error.message())
                })?))
            }
            Some('[') => {
                self.reader.eat("[");
                let parts = self.arguments("]")?.values;
                parenthesised(parts).map_err(|refusal| self.reader.refusal(begin, refusal.message))
            }
            Some('_') if self.at_name_after_underscore() => self.named(),
            Some('-') if self.reader.rest()[1..].starts_with(char::is_alphabetic) => {
                self.reader.eat("-");
                let value = self.nested(Self::named)?;
                arithmetic("*", &Value::Tuple(IntTuple::fixed(&[-1]).mode(0)), &value)
            }
            Some(c) if c == '_' || c == '-' || c.is_ascii_digit() => self.integer(),
            Some(c) if c.is_alphabetic() => self.named(),
            _ => Err(self
                .reader
                .expected("an integer, `_`, a tuple, a tiler or a name")),
        }
    }

    /// Whether a name such as `_a` comes next, instead of `_` or `_4`.
    fn at_name_after_underscore(&mut self) -> bool {
        let name = self.reader.name().unwrap_or_default();
        name.chars().nth(1).is_some_and(char::is_alphabetic)
    }

    pub(super) fn integer(&mut self) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let rest = self.reader.rest();
        let unsigned = rest.trim_start_matches(['_', '-']);
        let end = unsigned.find(|c: char| !c.is_ascii_digit());
        let end = rest.len() - unsigned.len() + end.unwrap_or(unsigned.len());
        let digits = rest[..end].trim_start_matches('_');
        if digits.len() > 18 && digits.parse::<i64>().is_err() {
            let message = format!("the integer {} does not fit 64 bits", cut(digits));
            return Err(self.reader.refusal(begin, message));
        }
        match IntTuple::parse_prefix(rest) {
            Ok((int, len)) => {
                // The spaces behind it may hold the end of a line.
                self.reader.advance(rest[..len].trim_end().len());
                Ok(Value::Tuple(if self.options.is_static {
                    int.to_static()
                } else {
                    int
                }))
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
        self.reader.refusal(place, message)
    }

    /// A variable, or what a name means without one. Behind a namespace, as in `cute::size`, there is no variable.
    fn named(&mut self) -> Result<Value, Refusal> {
        let begin = self.reader.place();
        let name = self.reader.name().unwrap_or_default();
        self.reader.advance(name.len());
        let is_namespace = NAMESPACES.contains(&name) && !self.variables.contains_key(name);
        if is_namespace && (self.reader.eat("::") || self.reader.eat(".")) {
            let begin = self.reader.place();
            return match self.reader.name() {
                Some(name) if is_known(name) || pasted::is_type(name) => {
                    self.reader.advance(name.len());
                    self.meant(name, begin)
                }
                _ => self.nested(Self::primary),
            };
        }
        // A variable hides the function of its name, but C++'s `layout<0>(layout)` can only be the function.
        let is_template = is_known(name) && self.reader.at_text("<");
        match self.variables.get(name) {
            Some(value) if !is_template => Ok(value.clone()),
            _ => self.meant(name, begin),
        }
    }

    /// A type with its arguments, a constant, a symbol, or a call by name.
    fn meant(&mut self, name: &'a str, begin: usize) -> Result<Value, Refusal> {
        let has_arguments = self.reader.at_text("<") || self.reader.at_text("(");
        if let Some(constant) = pasted::constant(name) {
            return Ok(constant);
        }
        if let Some(prints) = pasted::prints(name)
            && self.reader.eat("(")
        {
            let value = self.nested(Self::comparison)?;
            self.reader.expect(")", "`)`")?;
            self.printed = Some((prints, self.reader.place()));
            return Ok(value);
        }
        if name == "int" && self.reader.eat("{") {
            let value = self.integer()?;
            self.reader.expect("}", "`}`")?;
            return Ok(value);
        }
        if name == "L" && self.reader.eat("!") {
            return self.layout_type();
        }
        if atoms::is_atom(name) {
            let arguments = self.template_text()?;
            return atoms::atom(name, arguments)
                .map(Value::from)
                .map_err(|refusal| self.reader.refusal(begin, refusal.message));
        }
        if name == "contract" && self.reader.eat("(") {
            return self.contraction(begin);
        }
        if name == "gather" {
            return table::read(&mut self.reader);
        }
        if pasted::is_type(name) && has_arguments {
            let close = if self.reader.eat("<") { ">" } else { ")" };
            if close == ")" {
                self.reader.eat("(");
            }
            let arguments = self.reading(read_in(name), |own| own.arguments(close))?;
            return pasted::of_type(name, arguments.values)
                .map_err(|refusal| self.reader.refusal(begin, refusal.message));
        }
        let is_symbol = matches!(self.reads, Reads::Strides | Reads::Extents);
        if !is_known(name) || !has_arguments && is_symbol {
            return self.symbol(name, begin, has_arguments);
        }
        let (name, template) = if self.reader.eat("<") {
            (with_template(name), self.arguments(">")?)
        } else {
            (name, Operands::default())
        };
        self.reader.expect("(", "`(` and arguments")?;
        let arguments = self.reading(read_in(name), |own| own.arguments(")"))?;
        // C++ writes `take<1,3>(a)` where the calculator has `take(a, 1, 3)`.
        let operands = arguments.with_behind_first(template);
        self.called(name, &operands, begin)
    }

    /// The layout of Rust's `L!((2, 4):(1, 2))`, whose integers are static. It stands behind the sign.
    fn layout_type(&mut self) -> Result<Value, Refusal> {
        self.reader.expect("(", "`(` and a layout")?;
        let place = self.reader.place();
        let layout = self.nested(Self::comparison)?.layout();
        let layout = layout.map_err(|refusal| self.reader.refusal(place, refusal.message))?;
        self.reader.expect(")", "`)`")?;
        Ok(Value::Layout(layout.to_static()))
    }

    /// The text in angle brackets, empty if none come next.
    fn template_text(&mut self) -> Result<&'a str, Refusal> {
        if !self.reader.eat("<") {
            return Ok("");
        }
        let mut depth = 1;
        for (at, c) in self.reader.rest().char_indices() {
            depth += match c {
                '<' => 1,
                '>' => -1,
                _ => 0,
            };
            if depth == 0 {
                let text = &self.reader.rest()[..at];
                self.reader.advance(at + 1);
                return Ok(text);
            }
        }
        Err(self.reader.expected("`>` behind the template's arguments"))
    }

    /// A symbolic extent or stride, or a refusal of an unknown name.
    fn symbol(&mut self, name: &str, begin: usize, is_called: bool) -> Result<Value, Refusal> {
        if !is_called && name.len() <= LONGEST_SYMBOL {
            let reads = match self.reads {
                Reads::Values | Reads::Shapes if self.reader.is_before_colon() => Reads::Extents,
                reads => reads,
            };
            let symbol = match (self.extents.value(name), reads) {
                (Some(value), _) => Some(Ok(Int::dynamic(value))),
                (None, Reads::Extents) => Some(self.extents.add(name).map(Int::dynamic)),
                (None, Reads::Strides) => Some(self.symbols.stride(name)),
                (None, Reads::Values | Reads::Shapes) => None,
            };
            if let Some(symbol) = symbol {
                let symbol =
                    symbol.map_err(|refusal| self.reader.refusal(begin, refusal.message))?;
                return Ok(Value::Tuple(IntTuple::int(symbol)));
            }
        }
        let kind = if is_called {
            "there is no function"
        } else {
            "there is no variable or function"
        };
        let message = format!("{kind} `{}`; --functions lists the functions", cut(name));
        Err(self.reader.refusal(begin, message))
    }

    /// The result of a call by name.
    pub(super) fn called(
        &mut self,
        name: &str,
        operands: &Operands,
        begin: usize,
    ) -> Result<Value, Refusal> {
        let result = self.operate(canonical(name), operands, |operands| {
            functions::call(name, operands)
        });
        result.map_err(|refusal| match refusal.column {
            // The call has the wrong number of arguments, or none.
            None | Some(0) => self.reader.refusal(begin, refusal.message),
            Some(_) => refusal,
        })
    }
}
