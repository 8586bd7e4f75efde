//! Tiles in shared memory, in the layouts that TMA writes and `wgmma` reads.
//!
//! A tile is a matrix of `mn` rows (m of A, n of B) and `k` columns. TMA boxes are at most a
//! *swizzle span* wide (128, 64 or 32 bytes), so a tile lies as one or more blocks, each of them
//! lines of one span; the swizzle exchanges the 16-byte units of each line with the line's number,
//! so that neither reading lines nor reading columns of units meets a bank twice. Both are layouts
//! here: [`Blocks`] is the layout, [`Span`] the swizzle.

use core::fmt;
use core::marker::PhantomData;

use cutlet_layout_core::{Fixed, Layout, StaticLayout, StaticSwizzle, Tensor, TileIndex};

use crate::{DeviceData, Shared, SharedMemory};

use super::StageIdx;

/// Which coordinate of an operand's tile is consecutive in memory.
pub trait Major: Copy + 'static {
    /// Whether that is k.
    const K_IS_CONSECUTIVE: bool;
}

/// k is consecutive: a row-major A, a column-major B.
#[derive(Clone, Copy, Debug)]
pub struct KMajor;

/// m (or n) is consecutive: a column-major A, a row-major B.
#[derive(Clone, Copy, Debug)]
pub struct MnMajor;

impl Major for KMajor {
    const K_IS_CONSECUTIVE: bool = true;
}

impl Major for MnMajor {
    const K_IS_CONSECUTIVE: bool = false;
}

/// The swizzle of lines of `BYTES` bytes (128, 64 or 32; 16 is none): bits 4, 5, 6 of the byte
/// address, as many as the span has, are xored with bits 7, 8, 9. As a swizzle of elements, which
/// is what layouts count in.
#[derive(Clone, Copy, Debug)]
pub struct Span<T, const BYTES: usize>(PhantomData<T>);

impl<T: Copy + 'static, const BYTES: usize> StaticSwizzle for Span<T, BYTES> {
    const SOURCE: u32 = {
        check_span(BYTES);
        ((BYTES as u32 / 16 - 1) << 7) / size_of::<T>() as u32
    };
    const SHIFT: u32 = 3;
}

const fn check_span(bytes: usize) {
    assert!(
        matches!(bytes, 16 | 32 | 64 | 128),
        "a swizzle spans 128, 64 or 32 bytes; 16 means none"
    );
}

/// The layout of an `MN` × `K` tile of `T` as blocks with lines of `SPAN` bytes: from (mn, k) to
/// element index.
///
/// ```
/// use cutlet_device::hopper::{Blocks, KMajor, MnMajor};
/// use cutlet_layout_core::StaticLayout;
///
/// let k_major = Blocks::<u16, KMajor, 64, 128, 128>::LAYOUT;
/// assert_eq!(k_major.to_string(), "(_64,(_64,_2)):(_64,(_1,_4096))");
/// let mn_major = Blocks::<u16, MnMajor, 128, 32, 128>::LAYOUT;
/// assert_eq!(mn_major.to_string(), "((_64,_2),_32):((_1,_2048),_64)");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Blocks<T, J, const MN: usize, const K: usize, const SPAN: usize>(PhantomData<(T, J)>);

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize, const SPAN: usize> StaticLayout
    for Blocks<T, J, MN, K, SPAN>
{
    const LAYOUT: Layout = {
        check_span(SPAN);
        let line = (SPAN / size_of::<T>()) as i64;
        let (mn, k) = (MN as i64, K as i64);
        if J::K_IS_CONSECUTIVE {
            assert!(
                k % line == 0,
                "a K-major tile's k is a multiple of the swizzle span: take a smaller span"
            );
            Layout::concat(&[
                Layout::static_mode(mn, line),
                blocks(line, k / line, mn * line),
            ])
        } else {
            assert!(
                mn % line == 0,
                "an MN-major tile's mn is a multiple of the swizzle span: take a smaller span"
            );
            Layout::concat(&[
                blocks(line, mn / line, k * line),
                Layout::static_mode(k, line),
            ])
        }
    };
    type Storage<V: Copy> = [[V; MN]; K];
}

/// `line` consecutive elements, `count` times, `distance` apart.
const fn blocks(line: i64, count: i64, distance: i64) -> Layout {
    if count == 1 {
        Layout::static_mode(line, 1)
    } else {
        Layout::concat(&[
            Layout::static_mode(line, 1),
            Layout::static_mode(count, distance),
        ])
    }
}

/// A tile in shared memory: elements `T` in layout `L` from (mn, k) to element index, swizzled by
/// `W`.
///
/// [`KMajorTile`] and [`MnMajorTile`] are the ones that TMA loads.
pub struct SharedTile<T, L, W> {
    start: Shared<T>,
    layout: PhantomData<(L, W)>,
}

/// An `MN` × `K` tile of `T` with lines of `SPAN` bytes along the coordinate that `J` says.
pub type OperandTile<T, J, const MN: usize, const K: usize, const SPAN: usize = 128> =
    SharedTile<T, Blocks<T, J, MN, K, SPAN>, Span<T, SPAN>>;

/// An `MN` × `K` tile of `T` in which k is consecutive.
pub type KMajorTile<T, const MN: usize, const K: usize, const SPAN: usize = 128> =
    OperandTile<T, KMajor, MN, K, SPAN>;

/// An `MN` × `K` tile of `T` in which mn is consecutive.
pub type MnMajorTile<T, const MN: usize, const K: usize, const SPAN: usize = 128> =
    OperandTile<T, MnMajor, MN, K, SPAN>;

impl<T, L, W> Clone for SharedTile<T, L, W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, L, W> Copy for SharedTile<T, L, W> {}

impl<T: DeviceData, L, W> fmt::Debug for SharedTile<T, L, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedTile").field(&self.start).finish()
    }
}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle> SharedTile<T, L, W> {
    /// Bytes of the tile.
    pub const BYTES: u32 = {
        assert!(
            L::LAYOUT.cosize() == L::LAYOUT.size(),
            "a tile in shared memory has no gaps"
        );
        (L::SIZE * size_of::<T>()) as u32
    };

    /// The tile that starts at `start`, which is a multiple of 1024 bytes (less for smaller
    /// swizzles: 8 lines).
    #[inline(always)]
    pub const fn from_shared(start: Shared<T>) -> Self {
        Self {
            start,
            layout: PhantomData,
        }
    }

    /// A tile in the next bytes of shared memory.
    #[inline(always)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        Self::from_shared(shared.take_aligned::<T, 1024>(L::SIZE))
    }

    /// `STAGES` tiles in the next bytes of shared memory.
    #[inline(always)]
    pub fn take_ring<const STAGES: usize>(shared: &mut SharedMemory) -> TileRing<T, L, W, STAGES> {
        const {
            assert!(
                Self::BYTES.is_multiple_of(1024) || STAGES == 1,
                "tiles of a ring are multiples of 1024 bytes, so that each is aligned for its swizzle"
            );
        }
        TileRing {
            first: Self::from_shared(shared.take_aligned::<T, 1024>(STAGES * L::SIZE)),
        }
    }

    /// Where it starts.
    #[inline(always)]
    pub const fn start(self) -> Shared<T> {
        self.start
    }

    /// The tile as a tensor of (mn, k), to be partitioned by layouts.
    ///
    /// # Safety
    /// As [`Tensor::new`]: the tile must stay in shared memory, and barriers must order its reads
    /// and writes.
    #[inline(always)]
    pub unsafe fn tensor(self) -> Tensor<Shared<T>, Fixed<L, W>> {
        // SAFETY: as promised by the caller; the layout's indices are within the tile.
        unsafe { Tensor::new(self.start, Fixed::new()) }
    }
}

/// `STAGES` tiles, one after the other: what a [`Pipeline`](super::Pipeline) fills, or one for each
/// warpgroup. Made by [`SharedTile::take_ring`].
#[derive(Debug)]
pub struct TileRing<T: DeviceData, L, W, const STAGES: usize> {
    first: SharedTile<T, L, W>,
}

impl<T: DeviceData, L, W, const STAGES: usize> Clone for TileRing<T, L, W, STAGES> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: DeviceData, L, W, const STAGES: usize> Copy for TileRing<T, L, W, STAGES> {}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle, const STAGES: usize>
    TileRing<T, L, W, STAGES>
{
    /// The tile of a stage.
    #[inline(always)]
    pub fn stage(self, stage: StageIdx) -> SharedTile<T, L, W> {
        self.tile(stage.get())
    }

    /// Tile `index`.
    #[inline(always)]
    pub fn tile(self, index: impl TileIndex) -> SharedTile<T, L, W> {
        SharedTile::from_shared(
            self.first
                .start
                .offset(index.index() as i64 * L::SIZE as i64),
        )
    }
}
