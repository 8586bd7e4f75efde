//! Reading int tuples, layouts, tilers and swizzles from CuTe's text.

use core::str::FromStr;

use crate::error::{ErrorKind, LayoutError, tri};
use crate::int_tuple::TupleBuilder;
use crate::text::Text;
use crate::tiler::TilerBuilder;
use crate::{Basis, CAPACITY, ComposedLayout, Int, IntTuple, Layout, MAX_DEPTH, Swizzle, Tiler};

/// What a number after `@` must be.
const NO_DIRECTION: &str = "a direction within CAPACITY modes and MAX_DEPTH levels";

/// Reads from the left of a text.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    const fn new(text: &'a str) -> Reader<'a> {
        Reader {
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    /// The next byte that is not a space; 0 at the end.
    const fn peek(&mut self) -> u8 {
        while self.at < self.bytes.len() && self.bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        self.byte(0)
    }

    /// The byte `ahead` places on; 0 beyond the end.
    const fn byte(&self, ahead: usize) -> u8 {
        if self.at + ahead < self.bytes.len() {
            self.bytes[self.at + ahead]
        } else {
            0
        }
    }

    const fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == byte;
        if there {
            self.at += 1;
        }
        there
    }

    const fn expect(&mut self, byte: u8, what: &str) -> Result<(), LayoutError> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }

    const fn expected(&mut self, what: &str) -> LayoutError {
        let found = self.peek();
        let mut text = Text::new();
        text.str("column ")
            .number(self.at as i64 + 1)
            .str(": expected ")
            .str(what);
        if self.at >= self.bytes.len() {
            text.str(", but the text ends");
        } else if found.is_ascii_graphic() {
            let byte = [found];
            if let Ok(found) = core::str::from_utf8(&byte) {
                text.str(", found `").str(found).str("`");
            }
        } else {
            text.str(", found a character that the notation does not have");
        }
        LayoutError::at_column(&text, self.at + 1)
    }

    /// The error of building a value, with the column at which the value begins.
    const fn place(&self, error: LayoutError, begin: usize) -> LayoutError {
        let mut text = Text::new();
        text.str("column ")
            .number(begin as i64 + 1)
            .str(": ")
            .str(error.message());
        LayoutError::new(error.kind(), &text).with_column(begin + 1)
    }

    const fn end(&mut self) -> Result<(), LayoutError> {
        self.peek();
        if self.at < self.bytes.len() {
            Err(self.expected("the end"))
        } else {
            Ok(())
        }
    }

    /// `12` or `-12`.
    const fn number(&mut self) -> Result<i64, LayoutError> {
        let begin = self.at;
        let negative = self.eat(b'-');
        if !self.peek().is_ascii_digit() {
            return Err(self.expected("an integer"));
        }
        let mut value: i64 = 0;
        while self.byte(0).is_ascii_digit() {
            let digit = (self.byte(0) - b'0') as i64;
            let next = match value.checked_mul(10) {
                Some(tens) if negative => tens.checked_sub(digit),
                Some(tens) => tens.checked_add(digit),
                None => None,
            };
            value = match next {
                Some(value) => value,
                None => {
                    self.at = begin;
                    return Err(self.expected("an integer that fits 64 bits"));
                }
            };
            self.at += 1;
        }
        Ok(value)
    }

    /// `_` on its own, not the beginning of `_4`.
    const fn at_underscore(&mut self) -> bool {
        let number_follows = self.peek() == b'_'
            && (self.byte(1).is_ascii_digit()
                || (self.byte(1) == b'-' && self.byte(2).is_ascii_digit()));
        self.byte(0) == b'_' && !number_follows
    }

    /// `4`, `_4`, `_1@0`, `1@1@0`.
    const fn int(&mut self) -> Result<Int, LayoutError> {
        let is_static = self.eat(b'_');
        let value = tri!(self.number());
        let mut directions = [0usize; Basis::MAX_DEPTH];
        let mut depth = 0;
        let mut begin = self.at;
        while self.eat(b'@') {
            begin = self.at;
            let direction = tri!(self.number());
            if depth == Basis::MAX_DEPTH || direction < 0 || direction >= CAPACITY as i64 {
                self.at = begin;
                return Err(self.expected(NO_DIRECTION));
            }
            directions[depth] = direction as usize;
            depth += 1;
        }
        // The outermost direction is written last.
        let mut basis = Basis::NONE;
        while depth > 0 {
            depth -= 1;
            basis = match basis.checked_then(directions[depth]) {
                Some(basis) => basis,
                None => {
                    self.at = begin;
                    return Err(self.expected(NO_DIRECTION));
                }
            };
        }
        let int = if is_static {
            Int::fixed(value)
        } else {
            Int::dynamic(value)
        };
        Ok(int.along(basis))
    }

    const fn tuple(&mut self) -> Result<IntTuple, LayoutError> {
        self.peek();
        let begin = self.at;
        let mut builder = TupleBuilder::new();
        tri!(self.tuple_into(&mut builder, 0));
        match builder.finish() {
            Ok(tuple) => Ok(tuple),
            Err(error) => Err(self.place(error, begin)),
        }
    }

    const fn tuple_into(
        &mut self,
        builder: &mut TupleBuilder,
        depth: usize,
    ) -> Result<(), LayoutError> {
        if !self.eat(b'(') {
            if self.at_underscore() {
                self.at += 1;
                builder.underscore();
            } else if self.byte(0) == b'_' || self.byte(0) == b'-' || self.byte(0).is_ascii_digit()
            {
                builder.leaf(tri!(self.int()));
            } else {
                return Err(self.expected("an integer, `_` or `(`"));
            }
            return Ok(());
        }
        if depth == MAX_DEPTH {
            self.at -= 1;
            return Err(self.expected("no more than 15 levels of parentheses"));
        }
        builder.open();
        let mut first = true;
        while !(first && self.eat(b')')) {
            first = false;
            tri!(self.tuple_into(builder, depth + 1));
            if self.eat(b')') {
                break;
            }
            tri!(self.expect(b',', "`,` or `)`"));
        }
        builder.close();
        Ok(())
    }

    const fn layout(&mut self) -> Result<Layout, LayoutError> {
        self.peek();
        let begin = self.at;
        let shape = tri!(self.tuple());
        let layout = if self.eat(b':') {
            let stride = tri!(self.tuple());
            Layout::try_from_shape_stride(&shape, &stride)
        } else {
            Layout::try_col_major(&shape)
        };
        match layout {
            Ok(layout) => Ok(layout),
            Err(error) => Err(self.place(error, begin)),
        }
    }

    const fn tiler(&mut self) -> Result<Tiler, LayoutError> {
        self.peek();
        let begin = self.at;
        let mut builder = TilerBuilder::new();
        tri!(self.tiler_into(&mut builder, 0));
        match builder.finish() {
            Ok(tiler) => Ok(tiler),
            Err(error) => Err(self.place(error, begin)),
        }
    }

    const fn tiler_into(
        &mut self,
        builder: &mut TilerBuilder,
        depth: usize,
    ) -> Result<(), LayoutError> {
        if self.eat(b'<') {
            if depth == MAX_DEPTH {
                self.at -= 1;
                return Err(self.expected("no more than 15 levels of brackets"));
            }
            builder.open();
            loop {
                tri!(self.tiler_into(builder, depth + 1));
                if self.eat(b'>') {
                    break;
                }
                tri!(self.expect(b',', "`,` or `>`"));
            }
            builder.close();
            return Ok(());
        }
        let begin = self.at;
        let shape = tri!(self.tuple());
        if !self.eat(b':') {
            match Tiler::try_shape(&shape) {
                Ok(tiler) => builder.append(&tiler),
                Err(error) => return Err(self.place(error, begin)),
            }
            return Ok(());
        }
        match Layout::try_from_shape_stride(&shape, &tri!(self.tuple())) {
            Ok(layout) => builder.layout(&layout),
            Err(error) => return Err(self.place(error, begin)),
        }
        Ok(())
    }

    const fn swizzle(&mut self) -> Result<Swizzle, LayoutError> {
        self.peek();
        let begin = self.at;
        tri!(self.expect(b'S', "`Sw<`"));
        tri!(self.expect(b'w', "`w<`"));
        tri!(self.expect(b'<', "`<`"));
        let bits = tri!(self.number());
        tri!(self.expect(b',', "`,`"));
        let base = tri!(self.number());
        tri!(self.expect(b',', "`,`"));
        let shift = tri!(self.number());
        tri!(self.expect(b'>', "`>`"));
        match Swizzle::try_new(bits, base, shift) {
            Ok(swizzle) => Ok(swizzle),
            Err(error) => Err(self.place(error, begin)),
        }
    }
}

/// `parse`, `parse_prefix` and `FromStr` of a type that a [`Reader`] reads.
macro_rules! parse {
    ($type:ty, $read:ident, $what:literal) => {
        impl $type {
            #[doc = concat!("Reads ", $what, ", in `const` too.")]
            ///
            /// # Errors
            /// If the text is not in CuTe's notation, or describes a value that does not exist. The
            /// error has the column.
            pub const fn parse(text: &str) -> Result<Self, LayoutError> {
                let mut reader = Reader::new(text);
                let value = tri!(reader.$read());
                tri!(reader.end());
                Ok(value)
            }

            #[doc = concat!("Reads ", $what, " at the beginning of a text, and returns how many bytes were read.")]
            ///
            /// # Errors
            /// As [`parse`](Self::parse).
            pub const fn parse_prefix(text: &str) -> Result<(Self, usize), LayoutError> {
                let mut reader = Reader::new(text);
                let value = tri!(reader.$read());
                Ok((value, reader.at))
            }
        }

        impl FromStr for $type {
            type Err = LayoutError;

            fn from_str(text: &str) -> Result<Self, LayoutError> {
                <$type>::parse(text)
            }
        }
    };
}
parse!(IntTuple, tuple, "an int tuple such as `(_2,(4,_))`");
parse!(
    Layout,
    layout,
    "a layout such as `(_2,4):(_12,_1)`; without a stride it is column-major"
);
parse!(Tiler, tiler, "a tiler such as `<3:4,(2,4):(1,8),_>`");
parse!(Swizzle, swizzle, "a swizzle such as `Sw<3,4,3>`");

/// An inner transform that is read from the left of a text.
pub trait ReadInner: Sized {
    /// Reads the transform, and returns how many bytes were read.
    fn read_inner(text: &str) -> Result<(Self, usize), LayoutError>;
}

impl ReadInner for Swizzle {
    fn read_inner(text: &str) -> Result<(Self, usize), LayoutError> {
        Swizzle::parse_prefix(text)
    }
}

impl ReadInner for Layout {
    fn read_inner(text: &str) -> Result<(Self, usize), LayoutError> {
        Layout::parse_prefix(text)
    }
}

impl<I: ReadInner> ReadInner for ComposedLayout<I> {
    fn read_inner(text: &str) -> Result<(Self, usize), LayoutError> {
        let (inner, at) = I::read_inner(text)?;
        let mut reader = Reader::new(text);
        reader.at = at;
        reader.expect(b'o', "`o`")?;
        let offset = reader.tuple()?;
        reader.expect(b'o', "`o`")?;
        let outer = reader.layout()?;
        Ok((ComposedLayout::new(inner, offset, outer), reader.at))
    }
}

impl<I: ReadInner> FromStr for ComposedLayout<I> {
    type Err = LayoutError;

    /// Reads a composed layout such as `Sw<3,4,3> o 0 o (8,8):(8,1)`. Its inner is a swizzle, a
    /// layout, or a composed layout of either.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let (layout, at) = ComposedLayout::read_inner(text)?;
        let mut reader = Reader::new(text);
        reader.at = at;
        reader.end()?;
        Ok(layout)
    }
}

impl LayoutError {
    const fn at_column(text: &Text, column: usize) -> LayoutError {
        LayoutError::new(ErrorKind::Syntax, text).with_column(column)
    }
}
