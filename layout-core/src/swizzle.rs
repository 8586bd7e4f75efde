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

    /// The swizzle of the same memory in elements of another width, in bits.
    ///
    /// # Errors
    /// If one width is not a power of 2 times the other, or a bit ends up out of range. Elements
    /// would be torn in both cases.
    pub const fn try_recast(self, old_bits: i64, new_bits: i64) -> Result<Swizzle, LayoutError> {
        if let Some(places) = binary_places(old_bits, new_bits) {
            // A swizzle of 0 bits permutes nothing, so it has an equal in any width.
            let base = if self.bits == 0 {
                0
            } else {
                self.base as i64 - places
            };
            return Swizzle::try_new(self.bits as i64, base, self.shift as i64);
        }
        let mut text = Text::new();
        text.str("swizzle: element widths of ")
            .number(old_bits)
            .str(" and ")
            .number(new_bits);
        text.str(" bits: one must be a power of 2 times the other");
        Err(LayoutError::new(ErrorKind::Invalid, &text))
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
