//! Swizzles: permuting indices by XOR-ing some of their bits into others.

use core::fmt;

use crate::error::{ErrorKind, LayoutError, or_panic};
use crate::text::Text;

/// CuTe's `Swizzle<B, M, S>`: XORs `B` bits of an index into `B` other bits.
///
/// The lowest `M` bits stay as they are. The bits at `M..M+B` are XORed with those `S` places
/// above them; with a negative `S`, the bits at `M..M+B` are XORed into those `-S` places above.
///
/// ```
/// use cutlet_layout_core::Swizzle;
///
/// const SW: Swizzle = Swizzle::new(3, 0, 3);
/// assert_eq!(SW.to_string(), "Sw<3,0,3>");
/// assert_eq!(SW.apply(8), 9); // row 1 of an 8×8 tile: its first element moves to column 1
/// assert_eq!(SW.apply(9), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    bits: u8,
    base: u8,
    shift: i8,
}

impl Swizzle {
    /// `Sw<bits, base, shift>`.
    ///
    /// # Panics
    /// If [`try_new`](Self::try_new) returns an error.
    #[track_caller]
    pub const fn new(bits: i64, base: i64, shift: i64) -> Swizzle {
        or_panic(Swizzle::try_new(bits, base, shift))
    }

    /// `Sw<bits, base, shift>`, or the reason why there is none.
    ///
    /// # Errors
    /// If `bits` or `base` is negative, `shift` is closer to 0 than `bits` so that the bits
    /// overlap, or a bit lies beyond 62.
    pub const fn try_new(bits: i64, base: i64, shift: i64) -> Result<Swizzle, LayoutError> {
        let in_range = bits >= 0 && bits <= 62 && base >= 0 && base <= 62;
        let distance = shift.unsigned_abs();
        let fits = in_range && distance <= 62 && base + bits + distance as i64 <= 63;
        if fits && distance >= bits as u64 {
            return Ok(Swizzle {
                bits: bits as u8,
                base: base as u8,
                shift: shift as i8,
            });
        }
        let mut text = Text::new();
        text.str("swizzle: Sw<")
            .number(bits)
            .str(",")
            .number(base)
            .str(",")
            .number(shift);
        text.str(if bits < 0 || base < 0 || distance < bits as u64 {
            ">: bits and base must not be negative, and |shift| must be at least bits"
        } else {
            ">: each must be at most 62, and base + bits + |shift| at most 63, because no bit lies beyond 62"
        });
        Err(LayoutError::new(ErrorKind::Invalid, &text))
    }

    /// The number of bits.
    pub const fn bits(self) -> u32 {
        self.bits as u32
    }

    /// The number of lowest bits that stay as they are.
    pub const fn base(self) -> u32 {
        self.base as u32
    }

    /// The distance between source and target bits; negative if the source is below.
    pub const fn shift(self) -> i32 {
        self.shift as i32
    }

    /// The bits that are read.
    pub const fn source_mask(self) -> i64 {
        ((1 << self.bits) - 1)
            << (self.base as i32 + if self.shift > 0 { self.shift as i32 } else { 0 })
    }

    /// The bits that are changed.
    pub const fn target_mask(self) -> i64 {
        ((1 << self.bits) - 1)
            << (self.base as i32 - if self.shift < 0 { self.shift as i32 } else { 0 })
    }

    /// The swizzled index. A swizzle undoes itself.
    pub const fn apply(self, index: i64) -> i64 {
        let source = index & self.source_mask();
        index
            ^ if self.shift >= 0 {
                source >> self.shift
            } else {
                source << -self.shift
            }
    }

    /// The swizzle that undoes this one, which is the swizzle itself.
    pub const fn right_inverse(self) -> Swizzle {
        self
    }

    /// `self ∘ first`: `first` is applied first.
    ///
    /// ```
    /// use cutlet_layout_core::Swizzle;
    ///
    /// let low = Swizzle::new(1, 0, 3);
    /// assert_eq!(low.compose(Swizzle::new(2, 1, 3)), Swizzle::new(3, 0, 3));
    /// assert_eq!(low.compose(low), Swizzle::new(0, 0, 0));
    /// ```
    ///
    /// # Panics
    /// If [`try_compose`](Self::try_compose) returns an error.
    #[track_caller]
    pub const fn compose(self, first: Swizzle) -> Swizzle {
        or_panic(self.try_compose(first))
    }

    /// [`compose`](Self::compose), or the reason why there is none.
    ///
    /// # Errors
    /// If the two together are not one swizzle.
    pub const fn try_compose(self, first: Swizzle) -> Result<Swizzle, LayoutError> {
        // Both are linear in the bits, so the images of single bits tell what they do together.
        let mut sources: i64 = 0;
        let mut shift = 0;
        let mut is_swizzle = true;
        let mut bit = 0;
        while bit < 63 {
            let changed = self.apply(first.apply(1 << bit)) ^ (1 << bit);
            if changed != 0 {
                let distance = bit - changed.trailing_zeros() as i64;
                is_swizzle =
                    is_swizzle && changed.count_ones() == 1 && (sources == 0 || distance == shift);
                shift = distance;
                sources |= 1 << bit;
            }
            bit += 1;
        }
        if sources == 0 {
            return Ok(Swizzle::new(0, 0, 0));
        }
        let low = sources.trailing_zeros() as i64;
        let bits = sources.count_ones() as i64;
        if is_swizzle && sources >> low == (1 << bits) - 1 {
            let base = if shift > 0 { low - shift } else { low };
            if let Ok(swizzle) = Swizzle::try_new(bits, base, shift) {
                return Ok(swizzle);
            }
        }
        let mut text = Text::new();
        self.write(&mut text);
        text.str(" o ");
        first.write(&mut text);
        text.str(" is no single swizzle: apply one after the other");
        Err(LayoutError::new(ErrorKind::NotRepresentable, &text))
    }

    pub(crate) const fn write(self, text: &mut Text) {
        text.str("Sw<")
            .number(self.bits as i64)
            .str(",")
            .number(self.base as i64)
            .str(",")
            .number(self.shift as i64)
            .str(">");
    }

    /// The swizzle of the same memory in elements of another width, in bits.
    ///
    /// # Errors
    /// If one width is not a power of 2 times the other, or a bit ends up out of range. Elements
    /// would be torn in both cases.
    pub const fn try_recast(self, old_bits: i64, new_bits: i64) -> Result<Swizzle, LayoutError> {
        let mut text = Text::new();
        text.str("recast: ");
        self.write(&mut text);
        write_widths(old_bits, new_bits, &mut text);
        let Some(places) = binary_places(old_bits, new_bits) else {
            text.str("one width must be a power of 2 times the other");
            return Err(LayoutError::new(ErrorKind::Invalid, &text));
        };
        // A swizzle of 0 bits permutes nothing, so it has an equal in any width.
        let base = if self.bits == 0 {
            0
        } else {
            self.base as i64 - places
        };
        if base < 0 {
            text.str("the swizzle moves ")
                .number(1 << self.base)
                .str(" of the old elements at a time, so it would tear a new one: choose narrower elements");
            return Err(LayoutError::new(ErrorKind::NotRepresentable, &text));
        }
        match Swizzle::try_new(self.bits as i64, base, self.shift as i64) {
            Ok(swizzle) => Ok(swizzle),
            Err(_) => {
                text.str("a swizzled bit would lie beyond bit 62: choose wider elements");
                Err(LayoutError::new(ErrorKind::Overflow, &text))
            }
        }
    }
}

/// Writes how wide new elements are: ` in elements that are 2 times as wide: `.
pub(crate) const fn write_widths(old_bits: i64, new_bits: i64, text: &mut Text) {
    if old_bits > 0 && new_bits >= old_bits && new_bits % old_bits == 0 {
        text.str(" in elements that are ")
            .number(new_bits / old_bits)
            .str(" times as wide: ");
    } else if new_bits > 0 && old_bits > new_bits && old_bits % new_bits == 0 {
        text.str(" in elements of which ")
            .number(old_bits / new_bits)
            .str(" are as wide as one: ");
    } else {
        text.str(" from ")
            .number(old_bits)
            .str(" to ")
            .number(new_bits)
            .str(" bits: ");
    }
}

/// The number of bits by which indices get shorter if elements change their width, if it is a whole
/// number.
const fn binary_places(old_bits: i64, new_bits: i64) -> Option<i64> {
    if old_bits <= 0 || new_bits <= 0 {
        None
    } else if new_bits % old_bits == 0 && ((new_bits / old_bits) as u64).is_power_of_two() {
        Some((new_bits / old_bits).trailing_zeros() as i64)
    } else if old_bits % new_bits == 0 && ((old_bits / new_bits) as u64).is_power_of_two() {
        Some(-((old_bits / new_bits).trailing_zeros() as i64))
    } else {
        None
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}
