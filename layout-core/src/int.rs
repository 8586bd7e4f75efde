//! Integers as CuTe has them: static (`_4`) or dynamic (`4`), plain or scaling a basis (`1@0`).

use core::fmt;

use crate::text::Text;

/// The direction a stride steps in: a plain integer's is empty, `@1` is the second coordinate,
/// `@1@0` the second coordinate within the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Basis {
    depth: u8,
    path: [u8; Basis::MAX_DEPTH],
}

impl Basis {
    /// How deep a basis may be nested.
    pub const MAX_DEPTH: usize = 3;
    /// No direction: a plain integer.
    pub const NONE: Basis = Basis {
        depth: 0,
        path: [0; Basis::MAX_DEPTH],
    };

    /// Direction `b` of a flat coordinate: `@b`.
    ///
    /// # Panics
    /// If `b` is beyond 255.
    pub const fn new(b: usize) -> Basis {
        Basis::NONE.then(b)
    }

    /// Direction `b` within this one, so that `Basis::new(0).then(1)` prints as `@1@0`.
    ///
    /// # Panics
    /// If that is deeper than [`Basis::MAX_DEPTH`], or `b` is beyond 255.
    pub const fn then(self, b: usize) -> Basis {
        assert!(
            self.depth() < Basis::MAX_DEPTH,
            "a basis is at most three levels deep"
        );
        assert!(b <= u8::MAX as usize, "a basis names one of 256 directions");
        let mut path = self.path;
        path[self.depth()] = b as u8;
        Basis {
            depth: self.depth + 1,
            path,
        }
    }

    /// The number of levels: 0 for a plain integer.
    pub const fn depth(self) -> usize {
        self.depth as usize
    }

    /// The mode taken at a level, the outermost first.
    pub const fn at(self, level: usize) -> usize {
        assert!(level < self.depth(), "Basis::at: no such level");
        self.path[level] as usize
    }

    /// Whether this is no direction at all.
    pub const fn is_none(self) -> bool {
        self.depth == 0
    }

    /// Whether this direction is `other`, or lies within it; everything lies within none.
    pub const fn is_within(self, other: Basis) -> bool {
        let mut level = 0;
        while level < other.depth() {
            if level >= self.depth() || self.path[level] != other.path[level] {
                return false;
            }
            level += 1;
        }
        true
    }

    /// Equality, in `const`.
    pub const fn eq(self, other: Basis) -> bool {
        self.depth == other.depth
            && self.path[0] == other.path[0]
            && self.path[1] == other.path[1]
            && self.path[2] == other.path[2]
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
    basis: Basis,
    is_static: bool,
}

impl Int {
    /// `_0`.
    pub const ZERO: Int = Int::fixed(0);
    /// `_1`.
    pub const ONE: Int = Int::fixed(1);

    /// A static integer, `_value`: known to the type in C++, to the kernel's compiler here.
    pub const fn fixed(value: i64) -> Int {
        Int {
            value,
            basis: Basis::NONE,
            is_static: true,
        }
    }

    /// A dynamic integer: known at run time.
    pub const fn dynamic(value: i64) -> Int {
        Int {
            value,
            basis: Basis::NONE,
            is_static: false,
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
                    None => panic!("an integer of the notation does not fit 64 bits"),
                },
                _ => panic!("a constant in the notation stands in braces: {{N}}"),
            };
            i += 1;
        }
        assert!(
            bytes.len() > 1 && bytes[0] == b'_',
            "a constant in the notation stands in braces: {{N}}"
        );
        Int::fixed(value)
    }

    /// The same value, in a direction.
    pub const fn along(self, basis: Basis) -> Int {
        Int { basis, ..self }
    }

    /// The value.
    pub const fn value(self) -> i64 {
        self.value
    }

    /// The direction.
    pub const fn basis(self) -> Basis {
        self.basis
    }

    /// Component `b` of the integer as an arithmetic tuple: a plain integer counts in
    /// component 0.
    pub const fn component(self, b: usize) -> i64 {
        let direction = if self.basis.is_none() {
            0
        } else {
            self.basis.at(0)
        };
        if direction == b { self.value } else { 0 }
    }

    /// Whether the integer is static.
    pub const fn is_static(self) -> bool {
        self.is_static
    }

    /// CuTe's `is_integral`: every `Int` is, static or dynamic.
    pub const fn is_integral(self) -> bool {
        true
    }

    /// CuTe's `is_std_integral`: dynamic, and without a direction.
    pub const fn is_std_integral(self) -> bool {
        !self.is_static && self.basis.is_none()
    }

    /// CuTe's `is_constant<N, T>`: static and equal to `n`.
    pub const fn is_constant(self, n: i64) -> bool {
        self.is_static && self.basis.is_none() && self.value == n
    }

    /// Equality of value and direction, in `const`.
    pub const fn eq(self, other: Int) -> bool {
        self.value == other.value && self.basis.eq(other.basis)
    }

    pub(crate) const fn with_static(self, is_static: bool) -> Int {
        Int { is_static, ..self }
    }

    const fn combine(self, other: Int, value: Option<i64>) -> Option<Int> {
        match value {
            Some(value) => {
                let basis = if self.basis.is_none() {
                    other.basis
                } else {
                    self.basis
                };
                Some(Int {
                    value,
                    basis,
                    is_static: self.is_static && other.is_static,
                })
            }
            None => None,
        }
    }

    /// The product; `None` where it does not fit 64 bits, or where both have a direction.
    pub const fn checked_mul(self, other: Int) -> Option<Int> {
        if !self.basis.is_none() && !other.basis.is_none() {
            return None;
        }
        if self.is_constant(0) || other.is_constant(0) {
            return Some(Int::ZERO);
        }
        self.combine(other, self.value.checked_mul(other.value))
    }

    /// The sum; `None` where it does not fit 64 bits, or where the directions differ.
    pub const fn checked_add(self, other: Int) -> Option<Int> {
        if self.basis.eq(other.basis) {
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
        if !other.basis.is_none() {
            return None;
        }
        if self.is_constant(0) && other.value != 0 {
            return Some(Int::ZERO);
        }
        self.combine(other, self.value.checked_div(other.value))
    }

    /// The remainder, with the dividend's sign; `None` for a divisor of 0 or a direction.
    pub const fn checked_rem(self, other: Int) -> Option<Int> {
        if !other.basis.is_none() || !self.basis.is_none() {
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

    /// The quotient of magnitudes, rounded up; `None` for a divisor that is not positive.
    pub const fn checked_ceil_div(self, other: Int) -> Option<Int> {
        if other.value <= 0 || !other.basis.is_none() {
            return None;
        }
        // Dividing is the most of what a walk costs, and most of it is by 1 or of a small number.
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

    /// The smaller one; static when both are. Directions must agree, or the result is `self`'s.
    pub const fn min(self, other: Int) -> Int {
        let value = if other.value < self.value {
            other.value
        } else {
            self.value
        };
        Int {
            value,
            basis: self.basis,
            is_static: self.is_static && other.is_static,
        }
    }

    /// The magnitude; `None` for the one that does not fit 64 bits.
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
            /// If the result does not fit 64 bits, a divisor is 0, or directions do not fit.
            #[track_caller]
            fn $method(self, other: Int) -> Int {
                match self.$checked(other) {
                    Some(result) => result,
                    None => panic!("{self} {} {other} has no value in 64 bits", $symbol),
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
        if self.is_static {
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
