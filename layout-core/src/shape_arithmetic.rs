//! Products, quotients and remainders of integers and int tuples.

use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::int_tuple::{TupleBuilder, mismatch};
use crate::layout::LayoutBuilder;
use crate::text::Text;
use crate::{CAPACITY, Int, IntTuple, Layout};

/// The greatest common divisor; that of 0 and `n` is `n`.
///
/// ```
/// use cutlet_layout_core::{Int, gcd};
///
/// assert_eq!(gcd(Int::fixed(12), Int::fixed(18)), Int::fixed(6));
/// ```
pub const fn gcd(a: Int, b: Int) -> Int {
    let (mut x, mut y) = (a.value().unsigned_abs(), b.value().unsigned_abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    Int::dynamic(x as i64).with_static(a.is_static() && b.is_static())
}

twin! {
    /// `a / b` rounded up. If `a` is a tuple and `b` an integer, the division runs through the
    /// modes from the left. Two tuples are divided mode by mode; modes past `b` stay.
    ///
    /// ```
    /// use cutlet_layout_core::{ceil_div, shape};
    ///
    /// assert_eq!(ceil_div(&shape!(127), &shape!(128)).to_string(), "_1");
    /// assert_eq!(ceil_div(&shape!((8, 10)), &shape!((3, 4))).to_string(), "(_3,_3)");
    /// ```
    ceil_div = try_ceil_div(a: &IntTuple, b: &IntTuple) -> IntTuple;

    /// `a` rounded up to a multiple of `b`. Two tuples are rounded mode by mode; modes past `b`
    /// stay.
    ///
    /// ```
    /// use cutlet_layout_core::{round_up, shape};
    ///
    /// assert_eq!(round_up(&shape!((127, 5)), &shape!((128, 2))).to_string(), "(_128,_6)");
    /// ```
    round_up = try_round_up(a: &IntTuple, b: &IntTuple) -> IntTuple;

    /// `a / b` for a `b` that divides `a`.
    ///
    /// ```
    /// use cutlet_layout_core::{Int, safe_div};
    ///
    /// assert_eq!(safe_div(Int::fixed(24), Int::fixed(6)), Int::fixed(4));
    /// ```
    safe_div = try_safe_div(a: Int, b: Int) -> Int;

    /// The shape of every `b`-th element of a shape. Two tuples are divided mode by mode.
    ///
    /// ```
    /// use cutlet_layout_core::{shape, shape_div};
    ///
    /// assert_eq!(shape_div(&shape!((3, 6, 2, 8)), &shape!(9)).to_string(), "(_1,_2,_2,_8)");
    /// ```
    shape_div = try_shape_div(a: &IntTuple, b: &IntTuple) -> IntTuple;

    /// The shape of the first `b` elements of a shape. Two tuples are taken mode by mode.
    ///
    /// ```
    /// use cutlet_layout_core::{shape, shape_mod};
    ///
    /// assert_eq!(shape_mod(&shape!((3, 6, 2, 8)), &shape!(9)).to_string(), "(_3,_3,_1,_1)");
    /// ```
    shape_mod = try_shape_mod(a: &IntTuple, b: &IntTuple) -> IntTuple;

    /// Every `n`-th element of a layout, with the same parentheses. Extents are divided as by
    /// [`shape_div`], and each stride is multiplied by the divisor that is left at its mode.
    ///
    /// ```
    /// use cutlet_layout_core::{Int, layout, layout_div};
    ///
    /// let a = layout!((3, 6, 2, 8):(5, 7, 11, 13));
    /// assert_eq!(layout_div(&a, Int::fixed(72)).to_string(), "(_1,_1,_1,_4):(_360,_168,_44,_26)");
    /// ```
    layout_div = try_layout_div(layout: &Layout, n: Int) -> Layout;

    /// The sum of the products of paired integers.
    ///
    /// ```
    /// use cutlet_layout_core::{inner_product, shape};
    ///
    /// assert_eq!(inner_product(&shape!((1, (2, 3))), &shape!((4, (5, 6)))).to_string(), "_32");
    /// ```
    inner_product = try_inner_product(a: &IntTuple, b: &IntTuple) -> Int;

    /// The product of all integers, with its staticness; `_1` for the empty tuple.
    ///
    /// ```
    /// use cutlet_layout_core::{product, shape};
    ///
    /// assert_eq!(product(&shape!((3, (6, 2), 8))).to_string(), "_288");
    /// ```
    product = try_product(tuple: &IntTuple) -> Int;

    /// The product of each mode.
    ///
    /// ```
    /// use cutlet_layout_core::{product_each, shape};
    ///
    /// assert_eq!(product_each(&shape!((3, (6, 2), 8))).to_string(), "(_3,_12,_8)");
    /// ```
    product_each = try_product_each(tuple: &IntTuple) -> IntTuple;

    /// For each integer, the product of those to its left. Unlike in compact strides, extents of 1
    /// get a product too.
    ///
    /// ```
    /// use cutlet_layout_core::{prefix_product, shape};
    ///
    /// assert_eq!(prefix_product(&shape!((3, (6, 2), 8))).to_string(), "(_1,(_3,_18),_36)");
    /// ```
    prefix_product = try_prefix_product(tuple: &IntTuple) -> IntTuple;
}

/// An operation on two integers, or on a tuple and an integer that runs through it.
#[derive(Clone, Copy)]
enum Operation {
    CeilDiv,
    RoundUp,
    ShapeDiv,
    ShapeMod,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Operation::CeilDiv => "ceil_div",
            Operation::RoundUp => "round_up",
            Operation::ShapeDiv => "shape_div",
            Operation::ShapeMod => "shape_mod",
        }
    }

    /// The result for an integer, and the divisor for the next one.
    const fn step(self, a: Int, b: Int) -> Result<(Int, Int), &'static str> {
        if b.value() < 1 || !b.basis().is_none() || !a.basis().is_none() {
            return Err("a divisor is not a plain integer of at least 1: change it");
        }
        let Some(quotient) = a.checked_ceil_div(b) else {
            return Err("the result does not fit 64 bits");
        };
        if let Operation::RoundUp = self {
            return match quotient.checked_mul(b) {
                Some(rounded) => Ok((rounded, b)),
                None => Err("the result does not fit 64 bits"),
            };
        }
        if a.value() < 1 {
            return match self {
                Operation::CeilDiv => Ok((quotient, b)),
                _ => Err("an extent is below 1: give at least 1"),
            };
        }
        let divides = a.value() % b.value() == 0 || b.value() % a.value() == 0;
        if !divides && !matches!(self, Operation::CeilDiv) {
            return Err(
                "an extent and the divisor left for it do not divide each other: choose a divisor that does",
            );
        }
        let Some(rest) = b.checked_ceil_div(a) else {
            return Err("the result does not fit 64 bits");
        };
        let result = if let Operation::ShapeMod = self {
            a.min(b)
        } else {
            quotient
        };
        Ok((result, rest))
    }

    const fn apply(self, a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
        if a.has_underscore() || b.has_underscore() {
            return Err(mismatch(
                self.name(),
                a,
                " by ",
                b,
                "`_` is not an integer: give one",
            ));
        }
        let mut builder = TupleBuilder::new();
        tri!(self.write(a, b, a, b, &mut builder));
        builder.finish()
    }

    /// Writes the result for parts of the operands. Errors name the whole operands.
    const fn write(
        self,
        a: &IntTuple,
        b: &IntTuple,
        whole_a: &IntTuple,
        whole_b: &IntTuple,
        builder: &mut TupleBuilder,
    ) -> Result<(), LayoutError> {
        if !b.is_tuple() || !a.is_tuple() {
            let mut rest = tri!(try_product(b));
            let mut i = 0;
            while i < a.num_leaves() {
                let mut level = 0;
                while level < a.profile().opens(i) {
                    builder.open();
                    level += 1;
                }
                match self.step(a.leaf(i), rest) {
                    Ok((result, next)) => {
                        builder.leaf(result);
                        rest = next;
                    }
                    Err(why) => return Err(mismatch(self.name(), whole_a, " by ", whole_b, why)),
                }
                level = 0;
                while level < a.profile().closes(i) {
                    builder.close();
                    level += 1;
                }
                i += 1;
            }
            return Ok(());
        }
        let may_be_shorter = matches!(self, Operation::CeilDiv | Operation::RoundUp);
        if b.rank() > a.rank() || (b.rank() < a.rank() && !may_be_shorter) {
            let why = "the tuples have different ranks: give the same";
            return Err(mismatch(self.name(), whole_a, " by ", whole_b, why));
        }
        builder.open();
        let mut i = 0;
        while i < a.rank() {
            if i < b.rank() {
                tri!(self.write(&a.mode(i), &b.mode(i), whole_a, whole_b, builder));
            } else {
                builder.append(&a.mode(i));
            }
            i += 1;
        }
        builder.close();
        Ok(())
    }
}

/// [`ceil_div`], or the reason why there is none.
///
/// # Errors
/// For divisors below 1 and tuples of different ranks.
pub const fn try_ceil_div(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    Operation::CeilDiv.apply(a, b)
}

/// [`round_up`], or the reason why there is none.
///
/// # Errors
/// For divisors below 1, tuples of different ranks, a tuple by an integer, and beyond 64 bits.
pub const fn try_round_up(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    if a.is_tuple() && !b.is_tuple() {
        return Err(mismatch(
            "round_up",
            a,
            " to ",
            b,
            "a tuple is rounded by a tuple: give a multiple for each mode",
        ));
    }
    Operation::RoundUp.apply(a, b)
}

/// [`safe_div`], or the reason why there is none.
///
/// # Errors
/// If `b` does not divide `a`.
pub const fn try_safe_div(a: Int, b: Int) -> Result<Int, LayoutError> {
    let divides = b.value() != 0 && a.value().wrapping_rem(b.value()) == 0;
    match a.checked_div(b) {
        Some(quotient) if divides => Ok(quotient),
        _ => {
            let mut text = Text::new();
            text.str("safe_div: ")
                .int(b)
                .str(" does not divide ")
                .int(a);
            Err(LayoutError::new(ErrorKind::Invalid, &text))
        }
    }
}

/// [`shape_div`], or the reason why there is none.
///
/// # Errors
/// If extents and divisor do not divide each other where they meet, and for tuples of different
/// ranks.
pub const fn try_shape_div(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    Operation::ShapeDiv.apply(a, b)
}

/// [`shape_mod`], or the reason why there is none.
///
/// # Errors
/// If extents and divisor do not divide each other where they meet, and for tuples of different
/// ranks.
pub const fn try_shape_mod(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    Operation::ShapeMod.apply(a, b)
}

/// [`layout_div`], or the reason why there is none.
///
/// # Errors
/// If extents and divisor do not divide each other where they meet, or a stride does not fit 64
/// bits.
pub const fn try_layout_div(layout: &Layout, n: Int) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    let mut rest = n;
    let mut i = 0;
    while i < layout.num_leaves() {
        builder.opens(layout.profile().opens(i));
        let (shape, next) = match Operation::ShapeDiv.step(layout.leaf_shape(i), rest) {
            Ok(step) => step,
            Err(why) => return Err(cannot_divide(layout, n, why)),
        };
        match layout.leaf_stride(i).checked_mul(rest) {
            Some(stride) => builder.leaf(shape, stride),
            None => return Err(cannot_divide(layout, n, "a stride does not fit 64 bits")),
        }
        rest = next;
        builder.closes(layout.profile().closes(i));
        i += 1;
    }
    builder.finish()
}

const fn cannot_divide(layout: &Layout, n: Int, why: &str) -> LayoutError {
    let mut text = Text::new();
    text.str("layout_div: ")
        .layout(layout)
        .str(" / ")
        .int(n)
        .str(": ")
        .str(why);
    LayoutError::new(ErrorKind::Mismatch, &text)
}

/// [`inner_product`], or the reason why there is none.
///
/// # Errors
/// If the tuples are not congruent, or the sum does not fit 64 bits or has several directions.
pub const fn try_inner_product(a: &IntTuple, b: &IntTuple) -> Result<Int, LayoutError> {
    let numbers = !a.has_underscore() && !b.has_underscore();
    if !numbers || !a.profile().eq(b.profile()) {
        return Err(mismatch(
            "inner_product",
            a,
            " · ",
            b,
            "the parentheses differ, or one tuple has `_`: give two congruent tuples of integers",
        ));
    }
    let mut sum = Int::ZERO;
    let mut i = 0;
    while i < a.num_leaves() {
        let term = match a.leaf(i).checked_mul(b.leaf(i)) {
            Some(term) => sum.checked_add(term),
            None => None,
        };
        sum = match term {
            Some(sum) => sum,
            None => {
                return Err(mismatch(
                    "inner_product",
                    a,
                    " · ",
                    b,
                    "the sum does not fit 64 bits, or its terms have different directions",
                ));
            }
        };
        i += 1;
    }
    Ok(sum)
}

/// [`product`], or the reason why there is none.
///
/// # Errors
/// If it does not fit 64 bits, or the tuple has an underscore.
pub const fn try_product(tuple: &IntTuple) -> Result<Int, LayoutError> {
    let mut product = Int::ONE;
    let mut i = 0;
    while i < tuple.num_leaves() {
        let next = if tuple.is_underscore(i) {
            None
        } else {
            product.checked_mul(tuple.leaf(i))
        };
        product = match next {
            Some(product) => product,
            None => {
                let mut text = Text::new();
                text.str("product: ")
                    .tuple(tuple)
                    .str(" has no product that fits 64 bits");
                return Err(LayoutError::new(ErrorKind::Overflow, &text));
            }
        };
        i += 1;
    }
    Ok(product)
}

/// [`product_each`], or the reason why there is none.
///
/// # Errors
/// If a product does not fit 64 bits, or the tuple has an underscore.
pub const fn try_product_each(tuple: &IntTuple) -> Result<IntTuple, LayoutError> {
    let mut builder = TupleBuilder::new();
    builder.open();
    let mut i = 0;
    while i < tuple.rank() {
        builder.leaf(tri!(try_product(&tuple.mode(i))));
        i += 1;
    }
    builder.close();
    builder.finish()
}

/// [`prefix_product`], or the reason why there is none.
///
/// # Errors
/// If a product does not fit 64 bits, or the tuple has an underscore.
pub const fn try_prefix_product(tuple: &IntTuple) -> Result<IntTuple, LayoutError> {
    tri!(try_product(tuple));
    let mut products = [Int::ONE; CAPACITY];
    let mut i = 1;
    while i < tuple.num_leaves() {
        products[i] = match products[i - 1].checked_mul(tuple.leaf(i - 1)) {
            Some(product) => product,
            None => unreachable!(),
        };
        i += 1;
    }
    Ok(IntTuple::from_parts(products, *tuple.profile()))
}
