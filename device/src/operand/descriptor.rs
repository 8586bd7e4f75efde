//! Matrix descriptors: they tell an instruction where an operand is in shared memory, and are derived from the
//! operand's layout. Their fields are those of `wgmma`.
//!
//! The instruction reads an operand as *core matrices* of 8 lines of 16 bytes. A descriptor has the address of the
//! first core matrix, the swizzle, and two byte offsets to the other core matrices. A line has one swizzle span, or 16
//! bytes:
//!
//! | operand | line | stride offset | leading offset |
//! |---|---|---|---|
//! | K-major, swizzled | a span of a row | from 8 rows to the next 8 | not used: an instruction's k fits the span |
//! | K-major, not swizzled | 16 bytes of a row | from 8 rows to the next 8 | from 16 bytes of k to the next 16 |
//! | MN-major, swizzled | a span of mn, for one k | from 8 k to the next 8 | from a span of mn to the next |
//! | MN-major, not swizzled | 16 bytes of mn, for one k | from 16 bytes of mn to the next | from 8 k to the next 8 |
//!
//! [`Operand`] computes the offsets at compile time, and proves that the descriptor finds every element where the
//! layout puts it. A layout that no descriptor can express does not compile.

use core::fmt;
use core::marker::PhantomData;

use cutlet_layout_core::{Layout, StaticLayout, StaticSwizzle, TileIndex};

use super::OperandKind;
use crate::tile::{Major, SharedTile};

/// A descriptor of one instruction's operand `Q`. Descriptors of A and B have different types.
pub struct MatrixDescriptor<Q> {
    bits: u64,
    operand: PhantomData<Q>,
}

impl<Q> Clone for MatrixDescriptor<Q> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q> Copy for MatrixDescriptor<Q> {}

impl<Q> fmt::Debug for MatrixDescriptor<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MatrixDescriptor({:#018x})", self.bits)
    }
}

impl<Q> MatrixDescriptor<Q> {
    /// The descriptor with these bits, for layouts that [`Operand`] does not support.
    ///
    /// # Safety
    /// The descriptor must describe shared memory that the kernel has.
    #[inline(always)]
    pub const unsafe fn from_bits(bits: u64) -> Self {
        Self {
            bits,
            operand: PhantomData,
        }
    }

    /// The bits that the instruction takes.
    #[inline(always)]
    pub const fn bits(self) -> u64 {
        self.bits
    }
}

/// A tile in shared memory as operand `Q`. It makes the descriptors of the parts that instructions read.
///
/// ```
/// use cutlet_device::operand::{Operand, OperandA, OperandB};
/// use cutlet_device::sm90::Wgmma;
/// use cutlet_device::tile::{KMajor, OperandLayout, SwizzleSpan};
/// use cutlet_layout_core::{L, NoSwizzle};
/// use half::bf16;
///
/// type Mma = Wgmma<96, bf16>;
/// // A layout of core matrices has a descriptor.
/// type Core = L!(((8, 8), (8, 2)):((8, 128), (1, 64)));
/// const _: () = Operand::<OperandA<Mma>, Core, NoSwizzle>::CHECK;
/// // A tile that TMA loads has a descriptor.
/// type Rows = OperandLayout<bf16, KMajor, 96, 64, 128>;
/// const _: () = Operand::<OperandB<Mma>, Rows, SwizzleSpan<bf16, 128>>::CHECK;
/// ```
///
/// A layout without a descriptor does not compile:
///
/// ```compile_fail,E0080
/// use cutlet_device::operand::{Operand, OperandA};
/// use cutlet_device::sm90::Wgmma;
/// use cutlet_layout_core::{L, NoSwizzle};
/// use half::bf16;
///
/// // Rows of 64 elements, not swizzled: "8 neighbouring lines must be one swizzle span apart".
/// type Rows = L!((64, 64):(64, 1));
/// const _: () = Operand::<OperandA<Wgmma<96, bf16>>, Rows, NoSwizzle>::CHECK;
/// ```
pub struct Operand<Q, L, W> {
    /// The lower half of the descriptor: the start, in units of 16 bytes, and the leading offset. The upper half is a
    /// constant.
    low: u32,
    types: PhantomData<(Q, L, W)>,
}

impl<Q, L, W> Clone for Operand<Q, L, W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q, L, W> Copy for Operand<Q, L, W> {}

impl<Q, L, W> fmt::Debug for Operand<Q, L, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operand({:#x})", (self.low & 0x3FFF) * 16)
    }
}

impl<Q: OperandKind, L: StaticLayout, W: StaticSwizzle> Operand<Q, L, W> {
    /// The number of instructions along the tile's k.
    pub const K_STEPS: usize = L::LAYOUT.mode(1).size() as usize / Q::K;

    /// Proves that the layout has a descriptor. If a kernel evaluates it in a `const`, `cargo check` reports a wrong
    /// tile.
    pub const CHECK: () = {
        let _ = Self::DERIVED.fields;
    };

    const DERIVED: Derived = derive(
        &L::LAYOUT,
        size_of::<Q::Element>() as i64,
        span_bytes::<Q::Element, W>(),
        Q::Major::IS_K_MAJOR,
        Q::MN as i64,
        Q::K as i64,
    );

    /// The operand at an address in shared memory.
    #[inline(always)]
    pub(super) fn at(address: u32) -> Self {
        Self {
            // In a cluster, the upper bits are the block's rank. They must not reach the next field.
            low: (address & 0x3_FFFF) / 16 + const { Self::DERIVED.fields as u32 },
            types: PhantomData,
        }
    }

    /// The operand `tiles` tiles further on. It takes one multiplication from a stage to its descriptors, because
    /// everything else is the same for every stage.
    #[inline(always)]
    pub(crate) fn skip_tiles(self, tiles: u32) -> Self {
        Self {
            low: self.low + tiles * const { SharedTile::<Q::Element, L, W>::BYTES / 16 },
            ..self
        }
    }

    /// The rows from `atom · MN`, where MN is the number of rows that one instruction reads: a warpgroup's M atom of A,
    /// for instance.
    #[inline(always)]
    pub fn rows(self, atom: impl TileIndex) -> Self {
        Self {
            low: self.low + atom.index() * const { Self::DERIVED.rows },
            types: PhantomData,
        }
    }

    /// The descriptor for k step `step`, which is below [`K_STEPS`](Self::K_STEPS).
    ///
    /// # Panics
    /// If the tile has no such step. The check costs nothing for a constant `step`.
    #[inline(always)]
    pub fn k_step(self, step: usize) -> MatrixDescriptor<Q> {
        assert!(step < Self::K_STEPS);
        // SAFETY: `derive` refuses tiles with more steps than the table has.
        let start = unsafe { *const { &Self::DERIVED.steps }.get_unchecked(step) };
        let low = self.low + start;
        MatrixDescriptor {
            bits: const { Self::DERIVED.fields >> 32 << 32 } | low as u64,
            operand: PhantomData,
        }
    }
}

/// The most k steps of a tile.
const MAX_STEPS: usize = 64;

/// The parts of a descriptor, derived from a layout at compile time. Addresses are in units of 16 bytes.
struct Derived {
    /// The descriptor, with address 0.
    fields: u64,
    /// The distance from one instruction's rows to the next one's.
    rows: u32,
    /// The address of each k step.
    steps: [u32; MAX_STEPS],
}

/// The span of a swizzle of `T`, in bytes. 16 is no swizzle.
const fn span_bytes<T, W: StaticSwizzle>() -> i64 {
    if W::SOURCE == 0 {
        return 16;
    }
    let bytes = W::SOURCE * size_of::<T>() as u32;
    let span = ((bytes >> 7) + 1) * 16;
    assert!(
        W::SHIFT == 3 && bytes & 0x7F == 0 && matches!(span, 32 | 64 | 128),
        "operand: swizzles span 128, 64 or 32 bytes (bits 7, 8, 9 of the address are xored into bits 4, 5, 6), and this swizzle does not: use tile::SwizzleSpan"
    );
    span as i64
}

/// The most elements of a tile along a mode.
const MAX_EXTENT: usize = 2048;

/// The offset of each element of a mode.
struct Offsets {
    extent: i64,
    at: [i64; MAX_EXTENT],
}

impl Offsets {
    const fn of(mode: &Layout) -> Offsets {
        assert!(
            !mode.has_basis() && mode.size() <= MAX_EXTENT as i64,
            "operand: the layout maps to indices, and has at most 2048 elements along a mode"
        );
        Offsets {
            extent: mode.size(),
            at: mode.first_indices(mode.size() as usize, 0),
        }
    }

    const fn at(&self, i: i64) -> i64 {
        self.at[i as usize]
    }

    /// The stride of `count` elements whose coordinates are `step` apart. It must be the same for all of them.
    const fn stride(&self, count: i64, step: i64) -> i64 {
        if count < 2 {
            return 0;
        }
        let stride = self.at(step);
        let mut i = 2;
        while i < count {
            assert!(
                self.at(i * step) == i * stride,
                "operand: no descriptor for this layout: core matrices of 8 lines of 16 bytes must have one stride along each mode"
            );
            i += 1;
        }
        stride
    }

    /// Whether the `extent` elements from `start` have the relative offsets of those from 0.
    const fn repeats(&self, start: i64, extent: i64) -> bool {
        let (start, extent) = (start as usize, extent as usize);
        let first = self.at[start];
        let mut i = 1;
        while i < extent {
            if self.at[start + i] - first != self.at[i] {
                return false;
            }
            i += 1;
        }
        true
    }

    /// Whether element `i + inner · j` has the offset `near · i + far · j`, for all elements below `extent`.
    const fn is_two_level(&self, extent: i64, inner: i64, near: i64, far: i64) -> bool {
        // Without a division, which const evaluation computes slowly.
        let (mut first, mut offset, mut end) = (0, 0, inner as usize);
        let mut i = 0;
        while i < extent as usize {
            if i == end {
                first += far;
                offset = first;
                end += inner as usize;
            }
            if self.at[i] != offset {
                return false;
            }
            offset += near;
            i += 1;
        }
        true
    }
}

/// A field of a descriptor: 14 bits that count units of 16 bytes.
const fn field(bytes: i64) -> u64 {
    assert!(
        bytes >= 0 && bytes % 16 == 0 && bytes < 1 << 18,
        "operand: no descriptor for this layout: core matrices must be a multiple of 16 bytes apart, and less than 256 KiB"
    );
    (bytes / 16) as u64
}

const fn derive(
    layout: &Layout,
    element: i64,
    span: i64,
    k_major: bool,
    mn: i64,
    k: i64,
) -> Derived {
    assert!(
        layout.rank() == 2,
        "operand: the layout has two modes, (m or n, k)"
    );
    let (rows, columns) = (&Offsets::of(&layout.mode(0)), &Offsets::of(&layout.mode(1)));
    assert!(
        rows.extent % mn == 0,
        "operand: the tile's rows must be a multiple of the rows that an instruction reads (M of A, N of B)"
    );
    assert!(
        columns.extent % k == 0 && columns.extent / k <= MAX_STEPS as i64,
        "operand: the tile's k must be 1 to 64 times the k that an instruction reads (32 bytes)"
    );
    let unit = 16 / element;
    let line = span / element;
    // The mode along which lines run, and the other mode.
    let (along, across) = if k_major {
        (columns, rows)
    } else {
        (rows, columns)
    };
    assert!(
        along.at(1) == 1,
        "operand: the operand's consecutive coordinate is not that of its type: K-major and MN-major are mixed up"
    );
    assert!(
        across.stride(8, 1) == line,
        "operand: no descriptor for this layout: 8 neighbouring lines must be one swizzle span apart"
    );
    let (leading, stride) = if k_major {
        let groups = rows.stride(mn / 8, 8);
        assert!(
            rows.is_two_level(mn, 8, line, groups),
            "operand: no descriptor for this layout: every 8 rows must have the layout of the first 8"
        );
        let units = columns.stride(k / unit, unit);
        assert!(
            columns.is_two_level(k, unit, 1, units) && (span == 16 || units == unit),
            "operand: no descriptor for this layout: an instruction's k (32 bytes) must be consecutive or, without a swizzle, two units of 16 bytes"
        );
        // The hardware does not read the leading offset of a swizzled operand.
        (if span == 16 { units } else { unit }, groups)
    } else {
        let lines = rows.stride((mn + line - 1) / line, line);
        assert!(
            rows.is_two_level(mn, line, 1, lines),
            "operand: no descriptor for this layout: the rows of a swizzle span must be consecutive"
        );
        let groups = columns.stride(k / 8, 8);
        assert!(
            columns.is_two_level(k, 8, line, groups),
            "operand: no descriptor for this layout: every 8 k must have the layout of the first 8"
        );
        if span == 16 {
            (groups, lines)
        } else {
            (lines, groups)
        }
    };
    let mode = match span {
        16 => 0,
        128 => 1,
        64 => 2,
        _ => 3,
    };
    let mut derived = Derived {
        fields: mode << 62 | field(stride * element) << 32 | field(leading * element) << 16,
        rows: 0,
        steps: [0; MAX_STEPS],
    };

    let mut block = 1;
    while block < rows.extent / mn {
        let start = rows.at(block * mn);
        assert!(
            start == block * rows.at(mn) && rows.repeats(block * mn, mn),
            "operand: the tile's rows cannot be split: each instruction's rows must have the layout of the first one's, at one stride"
        );
        derived.rows = part(start, element, span) / block as u32;
        block += 1;
    }
    let mut step = 1;
    while step < columns.extent / k {
        assert!(
            columns.repeats(step * k, k),
            "operand: the tile's k cannot be split: each k step must have the layout of the first one"
        );
        derived.steps[step as usize] = part(columns.at(step * k), element, span);
        step += 1;
    }
    derived
}

/// The address of a part that begins at element `start` of a tile.
const fn part(start: i64, element: i64, span: i64) -> u32 {
    let bytes = start * element;
    assert!(
        span == 16 || bytes % (8 * span) < span,
        "operand: a part of a swizzled tile must begin in the first of 8 lines, where the swizzle pattern begins"
    );
    field(bytes) as u32
}
