//! Integers as CuTe has them: static (`_4`) or dynamic (`4`), plain or scaling a basis (`1@0`).

use core::fmt;

use crate::text::Text;
use crate::{CAPACITY, MAX_DEPTH};

/// The direction in which a stride steps. A plain integer has none, `@1` is the second coordinate,
/// `@1@0` the second coordinate within the first.
///
/// Every mode that a layout can have is a direction. [`CAPACITY`] bounds the number of modes before
/// it, over all levels, and [`MAX_DEPTH`] the number of levels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Basis {
    /// The mode of each level, from the lowest bit for the outermost: as many zeros as its number,
    /// then a one. It has at most `CAPACITY - 1` zeros and `MAX_DEPTH` ones, which leaves the
    /// highest bits free for [`DYNAMIC`].
    path: u64,
}

impl Basis {
    /// How deep a basis may be nested: as deep as a shape.
    pub const MAX_DEPTH: usize = MAX_DEPTH;
    /// No direction: a plain integer.
    pub const NONE: Basis = Basis { path: 0 };

    /// Direction `b` of a flat coordinate: `@b`.
    ///
    /// # Panics
    /// If no layout has a mode `b`: it is not below [`CAPACITY`].
    #[track_caller]
    pub const fn new(b: usize) -> Basis {
        Basis::NONE.then(b)
    }

    /// Direction `b` within this one, so that `Basis::new(0).then(1)` prints as `@1@0`.
    ///
    /// # Panics
    /// If no layout has such a mode: it would take more than [`CAPACITY`] leaves or
    /// [`MAX_DEPTH`] levels.
    #[track_caller]
    pub const fn then(self, b: usize) -> Basis {
        match self.checked_then(b) {
            Some(basis) => basis,
            None => panic!(
                "Basis: no layout has such a mode: stay within CAPACITY modes and MAX_DEPTH levels"
            ),
        }
    }

    pub(crate) const fn checked_then(self, b: usize) -> Option<Basis> {
        let len = self.len();
        if self.depth() < MAX_DEPTH && b < CAPACITY && len - self.depth() + b < CAPACITY {
            Some(Basis {
                path: self.path | 1 << (len + b),
            })
        } else {
            None
        }
    }

    /// The number of bits that the path takes.
    const fn len(self) -> usize {
        (u64::BITS - self.path.leading_zeros()) as usize
    }

    /// The number of levels: 0 for a plain integer.
    pub const fn depth(self) -> usize {
        self.path.count_ones() as usize
    }

    /// The mode taken at a level, the outermost first.
    ///
    /// # Panics
    /// If there is no such level.
    pub const fn at(self, level: usize) -> usize {
        assert!(
            level < self.depth(),
            "Basis::at: the basis has fewer levels than this: levels are counted from 0, below depth()"
        );
        let mut path = self.path;
        let mut skipped = 0;
        while skipped < level {
            path >>= path.trailing_zeros() + 1;
            skipped += 1;
        }
        path.trailing_zeros() as usize
    }

    /// Whether this is no direction: a plain integer's basis.
    pub const fn is_none(self) -> bool {
        self.path == 0
    }

    /// Whether this direction is `other` or lies within it. Every direction lies within
    /// [`NONE`](Self::NONE).
    pub const fn is_within(self, other: Basis) -> bool {
        self.path & ((1 << other.len()) - 1) == other.path
    }

    /// Equality, in `const`.
    pub const fn eq(self, other: Basis) -> bool {
        self.path == other.path
    }
}

impl fmt::Debug for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Basis(")?;
        for level in (0..self.depth()).rev() {
            write!(f, "@{}", self.at(level))?;
        }
        f.write_str(")")
    }
}

/// An integer that knows whether it is static, and which direction it scales.
///
/// Arithmetic propagates staticness as CuTe does: two static operands give a static result, and
/// a static zero times anything is a static zero. Equality compares values and directions only
/// (`_2` equals `2`); printing shows the difference.
///
/// ```
/// use cutlet_layout_core::{Basis, Int};
///
/// assert_eq!(Int::fixed(4).to_string(), "_4");
/// assert_eq!(Int::dynamic(4).to_string(), "4");
/// assert_eq!(Int::fixed(4), Int::dynamic(4));
/// assert_eq!((Int::fixed(4) * Int::dynamic(2)).to_string(), "8");
/// assert_eq!((Int::fixed(0) * Int::dynamic(2)).to_string(), "_0");
/// assert_eq!(Int::fixed(1).along(Basis::new(0)).to_string(), "_1@0");
/// ```
#[derive(Clone, Copy)]
pub struct Int {
    value: i64,
    /// The basis' path, and [`DYNAMIC`]: all zeros for a plain static integer, so that an array of
    /// `_0` is zeroed memory.
    kind: u64,
}

/// The bit of an integer's kind that marks it as dynamic. A basis does not reach this bit.
const DYNAMIC: u64 = 1 << 63;

impl Int {
    /// `_0`.
    pub const ZERO: Int = Int::fixed(0);
    /// `_1`.
    pub const ONE: Int = Int::fixed(1);

    /// A static integer, `_value`: in C++ a part of the type, here known to the compiler of a
    /// kernel.
    pub const fn fixed(value: i64) -> Int {
        Int { value, kind: 0 }
    }

    /// A dynamic integer: known at run time.
    pub const fn dynamic(value: i64) -> Int {
        Int {
            value,
            kind: DYNAMIC,
        }
    }

    /// The static integer of a name such as `_4`, for the notation macros.
    #[doc(hidden)]
    pub const fn named(name: &str) -> Int {
        let bytes = name.as_bytes();
        let mut value: i64 = 0;
        let mut i = 1;
        while i < bytes.len() {
            let digit = bytes[i].wrapping_sub(b'0');
            value = match value.checked_mul(10) {
                Some(tens) if digit < 10 => match tens.checked_add(digit as i64) {
                    Some(value) => value,
                    None => panic!("an integer in the notation does not fit 64 bits"),
                },
                _ => panic!(
                    "a name in the notation is not `_` and digits: write a constant in braces, {{N}}"
                ),
            };
            i += 1;
        }
        assert!(
            bytes.len() > 1 && bytes[0] == b'_',
            "a name in the notation is not `_` and digits: write a constant in braces, {{N}}"
        );
        Int::fixed(value)
    }

    /// The same value, in a direction.
    pub const fn along(self, basis: Basis) -> Int {
        Int {
            kind: self.kind & DYNAMIC | basis.path,
            ..self
        }
    }

    /// The value.
    pub const fn value(self) -> i64 {
        self.value
    }

    /// The direction.
    pub const fn basis(self) -> Basis {
        Basis {
            path: self.kind & !DYNAMIC,
        }
    }

    /// Component `b` of the integer as an arithmetic tuple. A plain integer counts in component 0.
    /// One in a direction within another counts in that of the outermost.
    pub const fn component(self, b: usize) -> i64 {
        if self.direction() == b { self.value } else { 0 }
    }

    /// The component in which the integer counts.
    pub(crate) const fn direction(self) -> usize {
        if self.is_plain() {
            0
        } else {
            // The lowest bit of a path tells the outermost mode.
            self.kind.trailing_zeros() as usize
        }
    }

    /// Whether the integer is static.
    pub const fn is_static(self) -> bool {
        self.kind & DYNAMIC == 0
    }

    /// Whether the integer has no direction.
    const fn is_plain(self) -> bool {
        self.kind & !DYNAMIC == 0
    }

    /// CuTe's `is_integral`: every `Int` is, static or dynamic.
    pub const fn is_integral(self) -> bool {
        true
    }

    /// CuTe's `is_std_integral`: dynamic, and without a direction.
    pub const fn is_std_integral(self) -> bool {
        self.kind == DYNAMIC
    }

    /// CuTe's `is_constant<N, T>`: static and equal to `n`.
    pub const fn is_constant(self, n: i64) -> bool {
        self.kind == 0 && self.value == n
    }

    /// Equality of value and direction, in `const`.
    pub const fn eq(self, other: Int) -> bool {
        self.value == other.value && self.same_direction(other)
    }

    /// Whether two integers have the same direction, or none.
    pub(crate) const fn same_direction(self, other: Int) -> bool {
        (self.kind ^ other.kind) & !DYNAMIC == 0
    }

    pub(crate) const fn with_static(self, is_static: bool) -> Int {
        let dynamic = if is_static { 0 } else { DYNAMIC };
        Int {
            kind: self.kind & !DYNAMIC | dynamic,
            ..self
        }
    }

    /// A value in the direction of two integers. One of them is plain, or both have the same
    /// direction.
    const fn combine(self, other: Int, value: Option<i64>) -> Option<Int> {
        match value {
            Some(value) => Some(Int {
                value,
                kind: self.kind | other.kind,
            }),
            None => None,
        }
    }

    /// The product; `None` where it does not fit 64 bits, or where both have a direction.
    pub const fn checked_mul(self, other: Int) -> Option<Int> {
        if !self.is_plain() && !other.is_plain() {
            return None;
        }
        if self.is_constant(0) || other.is_constant(0) {
            return Some(Int::ZERO);
        }
        self.combine(other, self.value.checked_mul(other.value))
    }

    /// The sum; `None` where it does not fit 64 bits, or where the directions differ.
    pub const fn checked_add(self, other: Int) -> Option<Int> {
        if self.same_direction(other) {
            self.combine(other, self.value.checked_add(other.value))
        } else if self.is_constant(0) {
            Some(other)
        } else if other.is_constant(0) {
            Some(self)
        } else {
            None
        }
    }

    /// The difference; `None` where it does not fit 64 bits, or where the directions differ.
    pub const fn checked_sub(self, other: Int) -> Option<Int> {
        match other.value.checked_neg() {
            Some(value) => self.checked_add(Int { value, ..other }),
            None => None,
        }
    }

    /// The quotient, rounded towards zero; `None` for a divisor of 0 or one with a direction.
    pub const fn checked_div(self, other: Int) -> Option<Int> {
        if !other.is_plain() {
            return None;
        }
        if self.is_constant(0) && other.value != 0 {
            return Some(Int::ZERO);
        }
        self.combine(other, self.value.checked_div(other.value))
    }

    /// The remainder, with the dividend's sign; `None` for a divisor of 0 or a direction.
    pub const fn checked_rem(self, other: Int) -> Option<Int> {
        if !other.is_plain() || !self.is_plain() {
            return None;
        }
        if (self.is_constant(0) && other.value != 0)
            || other.is_constant(1)
            || other.is_constant(-1)
        {
            return Some(Int::ZERO);
        }
        self.combine(other, self.value.checked_rem(other.value))
    }

    /// The quotient, rounded up; `None` for a divisor that is not positive or has a direction.
    pub const fn checked_ceil_div(self, other: Int) -> Option<Int> {
        if other.value <= 0 || !other.is_plain() {
            return None;
        }
        // Division is most of the cost of a walk. Most divisors are 1 or at least the dividend.
        if other.value == 1 {
            return self.combine(other, Some(self.value));
        }
        if self.value > 0 && self.value <= other.value {
            return self.combine(other, Some(1));
        }
        let quotient = self.value.div_euclid(other.value);
        let up = if self.value.rem_euclid(other.value) == 0 {
            0
        } else {
            1
        };
        self.combine(other, Some(quotient + up))
    }

    /// The smaller value; static if both are. The direction is that of `self`.
    pub const fn min(self, other: Int) -> Int {
        let value = if other.value < self.value {
            other.value
        } else {
            self.value
        };
        Int {
            value,
            kind: self.kind | other.kind & DYNAMIC,
        }
    }

    /// The magnitude; `None` if it does not fit 64 bits.
    pub const fn checked_abs(self) -> Option<Int> {
        match self.value.checked_abs() {
            Some(value) => Some(Int { value, ..self }),
            None => None,
        }
    }
}

impl PartialEq for Int {
    fn eq(&self, other: &Int) -> bool {
        Int::eq(*self, *other)
    }
}

impl Eq for Int {}

impl From<i64> for Int {
    /// A number that comes from run time is dynamic.
    fn from(value: i64) -> Int {
        Int::dynamic(value)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $checked:ident, $symbol:literal) => {
        impl core::ops::$trait for Int {
            type Output = Int;

            /// # Panics
            /// If the result does not fit 64 bits, a divisor is 0, or the directions do not fit
            /// each other.
            #[track_caller]
            fn $method(self, other: Int) -> Int {
                match self.$checked(other) {
                    Some(result) => result,
                    None => panic!(
                        "{self} {} {other} has no 64-bit result: it overflows, divides by 0 or mixes directions",
                        $symbol
                    ),
                }
            }
        }
    };
}
operator!(Add, add, checked_add, "+");
operator!(Sub, sub, checked_sub, "-");
operator!(Mul, mul, checked_mul, "*");
operator!(Div, div, checked_div, "/");
operator!(Rem, rem, checked_rem, "%");

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_static() {
            f.write_str("_")?;
        }
        f.write_str(Text::new().int(*self).as_str())
    }
}

impl fmt::Debug for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Text {
    /// An integer's value and direction. Whether it is static is no part of a message.
    pub(crate) const fn int(&mut self, int: Int) -> &mut Text {
        self.number(int.value());
        let mut level = int.basis().depth();
        while level > 0 {
            level -= 1;
            self.str("@").number(int.basis().at(level) as i64);
        }
        self
    }
}
