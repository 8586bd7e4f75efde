//! The fixed inner transform: a tile whose memory layout the compiler knows, as in shared memory.
//!
//! It needs no run-time arithmetic for a value: its layout is composed into the outer layout, and
//! its swizzle is split into a thread's part and a value's part.

use super::{Bound, Inner};
use crate::entry::entry;
use crate::static_layout::evaluate;
use crate::tile::reach;
use crate::{FragmentLayout, Layout, StaticLayout, Swizzle, compose_coordinates};
use core::marker::PhantomData;

/// A swizzle known to the compiler.
pub trait StaticSwizzle: Copy + 'static {
    /// The bits of an index that the swizzle reads.
    const SOURCE: u32;
    /// The distance from the source bits down to the bits they are xored into.
    const SHIFT: u32;
    /// The same swizzle as a value.
    const VALUE: Swizzle = {
        let base = if Self::SOURCE == 0 {
            0
        } else {
            Self::SOURCE.trailing_zeros() as i64 - Self::SHIFT as i64
        };
        Swizzle::new(Self::SOURCE.count_ones() as i64, base, Self::SHIFT as i64)
    };

    /// The swizzled index.
    #[inline(always)]
    fn apply(index: u32) -> u32 {
        index ^ ((index & Self::SOURCE) >> Self::SHIFT)
    }
}

/// No swizzle.
#[derive(Clone, Copy, Debug)]
pub struct NoSwizzle;

impl StaticSwizzle for NoSwizzle {
    const SOURCE: u32 = 0;
    const SHIFT: u32 = 0;
}

/// CuTe's `Swizzle<B, M, S>`: bits `M + S .. M + S + B` are xored into bits `M .. M + B`. The type
/// of the value [`Swizzle`], for a positive `S`.
#[derive(Clone, Copy, Debug)]
pub struct Sw<const B: u32, const M: u32, const S: u32>;

impl<const B: u32, const M: u32, const S: u32> StaticSwizzle for Sw<B, M, S> {
    const SOURCE: u32 = Self::VALUE.source_mask() as u32;
    const SHIFT: u32 = S;
    const VALUE: Swizzle = Swizzle::new(B as i64, M as i64, S as i64);
}

/// A tile stored by the layout `L` from (row, column) to element index, swizzled by `W`.
///
/// It has no extents to compare coordinates with at run time, so thread-value layouts that reach
/// beyond `L` do not compile:
///
/// ```compile_fail,E0080
/// use cutlet_layout_core::{Fixed, L, Tensor, Tv};
///
/// let memory = [0; 4];
/// // SAFETY: the tile has four elements.
/// let tile = unsafe { Tensor::new(memory.as_ptr(), Fixed::<L!((2, 2):(1, 2))>::new()) };
/// tile.partition::<Tv<L!(2:1@0), L!(4:1@1)>>(0).load(0); // two rows, but four columns
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed<L, W = NoSwizzle>(PhantomData<(L, W)>);

impl<L: StaticLayout, W: StaticSwizzle> Fixed<L, W> {
    /// The transform. It has no run-time part.
    #[inline(always)]
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// The transform bound to an offset and the outer layout `O`, of which no fragment is made.
    #[inline(always)]
    pub fn bind<O: StaticLayout>(&self, offset: u32) -> BoundFixed<L, W, O> {
        BoundFixed {
            start: W::apply(offset),
            layouts: PhantomData,
        }
    }
}

impl<L: StaticLayout, W: StaticSwizzle> Inner for Fixed<L, W> {
    /// An element index before the swizzle.
    type Offset = u32;
    type Bound<O: FragmentLayout> = BoundFixed<L, W, O>;

    const ORIGIN: u32 = 0;

    const EXTENTS: Option<[i64; 4]> = {
        let mut extents = [1; 4];
        let mut mode = 0;
        while mode < L::LAYOUT.rank() {
            extents[mode] = L::LAYOUT.mode(mode).size();
            mode += 1;
        }
        Some(extents)
    };

    #[inline(always)]
    fn partition<Thr: StaticLayout, Val: StaticLayout>(&self, offset: u32, thr: u32) -> u32 {
        const { Additive::<L, W, Thr, Val>::CHECK }
        offset + evaluate::<InMemory<L, Thr>>(thr, 0) as u32
    }

    #[inline(always)]
    fn bind<O: FragmentLayout>(&self, offset: u32) -> BoundFixed<L, W, O> {
        self.bind::<O>(offset)
    }
}

/// The layout `O` of coordinates, followed by the layout `L` from coordinates to memory.
#[derive(Clone, Copy)]
struct InMemory<L, O>(PhantomData<(L, O)>);

impl<L: StaticLayout, O: StaticLayout> StaticLayout for InMemory<L, O> {
    const LAYOUT: Layout = compose_coordinates(&L::LAYOUT, &O::LAYOUT);
}

/// The check that thread and value coordinates lie inside `L`, and that a thread's and a value's
/// index may be added after `L` and xored after the swizzle.
struct Additive<L, W, Thr, Val>(PhantomData<(L, W, Thr, Val)>);

impl<L: StaticLayout, W: StaticSwizzle, Thr: StaticLayout, Val: StaticLayout>
    Additive<L, W, Thr, Val>
{
    const CHECK: () = {
        let of_tile = <(Thr, Val)>::LAYOUT;
        // Refuses layouts in which thread and value coordinates carry into each other.
        let _ = compose_coordinates(&L::LAYOUT, &of_tile);
        let mut b = 0;
        while b < L::LAYOUT.rank() {
            assert!(
                reach(&of_tile, b) < L::LAYOUT.mode(b).size(),
                "a thread-value layout reaches beyond the tile that it partitions: use fewer threads \
                 or values, or smaller strides"
            );
            b += 1;
        }
        if W::SOURCE != 0 {
            let thread_bits = bits(&InMemory::<L, Thr>::LAYOUT);
            let value_bits = bits(&InMemory::<L, Val>::LAYOUT);
            assert!(
                thread_bits & value_bits == 0,
                "thread and value offsets in a swizzled tile use the same bits of the index: use \
                 strides that keep them apart"
            );
        }
    };
}

/// Every bit that an index of the layout may have set.
const fn bits(layout: &Layout) -> u32 {
    let mut bits = 0;
    let mut n = 0;
    while n < layout.num_leaves() {
        let mut i = 0;
        while i < layout.leaf_shape(n).value() {
            bits |= (i * layout.leaf_stride(n).value()) as u32;
            i += 1;
        }
        n += 1;
    }
    bits
}

/// [`Fixed`], bound: offsets of values are constants.
#[derive(Clone, Copy)]
pub struct BoundFixed<L, W, O> {
    start: u32,
    layouts: PhantomData<(L, W, O)>,
}

impl<L: StaticLayout, W: StaticSwizzle, O: StaticLayout> BoundFixed<L, W, O> {
    /// The swizzled index of every value of a thread whose offset is 0.
    const TABLE: [u32; 256] = {
        let count = if O::SIZE < 256 { O::SIZE } else { 256 };
        let layout = InMemory::<L, O>::LAYOUT;
        assert!(!layout.has_basis());
        let indices: [i64; 256] = layout.first_indices(count, 0);
        let mut table = [0; 256];
        let mut v = 0;
        while v < count {
            let index = indices[v] as u32;
            table[v] = index ^ ((index & W::SOURCE) >> W::SHIFT);
            v += 1;
        }
        table
    };
}

impl<L: StaticLayout, W: StaticSwizzle, O: StaticLayout> Bound for BoundFixed<L, W, O> {
    const RUN: usize = {
        let table = &Self::TABLE;
        let mut run = 16;
        while run > 1 {
            let mut fits = O::SIZE.is_multiple_of(run)
                // A vector must not straddle bits that the thread's part of the swizzle flips.
                && (W::SOURCE == 0 || (W::SOURCE >> W::SHIFT).trailing_zeros() >= run.trailing_zeros());
            let mut v = 0;
            while fits && v < O::SIZE && v < 256 {
                fits = table[v] == table[v / run * run] + (v % run) as u32;
                v += 1;
            }
            if fits {
                break;
            }
            run /= 2;
        }
        run
    };

    #[inline(always)]
    fn base(&self) -> i64 {
        if W::SOURCE == 0 { self.start as i64 } else { 0 }
    }

    #[inline(always)]
    fn index(&self, v: usize) -> i64 {
        let value = *entry(const { &Self::TABLE }, v);
        if W::SOURCE == 0 {
            value as i64
        } else {
            // swz(thread + value) = swz(thread) ^ swz(value) for disjoint bits. Only the bits that
            // the swizzle writes need the xor. The others are added, and become an immediate.
            let written = W::SOURCE >> W::SHIFT;
            ((self.start ^ (value & written)) + (value & !written)) as i64
        }
    }

    #[inline(always)]
    fn holds(&self, _: usize) -> bool {
        // `Additive` has checked that all values lie inside the tile.
        true
    }

    #[inline(always)]
    fn holds_along(&self, _: usize, _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn count(&self, _: usize, width: usize) -> u32 {
        width as u32
    }
}
