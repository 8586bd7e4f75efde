//! Tiles in shared memory, in the layouts that TMA writes and matrix instructions read.
//!
//! A tile is a matrix of `mn` rows (m of A, n of B) and `k` columns. A TMA box is at most a *swizzle span* wide (128,
//! 64 or 32 bytes), so a tile consists of one or more boxes, each with lines of one span. The swizzle XORs the index of
//! a 16-byte unit in its line with the index of the line. So reads of lines and reads of columns of units are both free
//! of bank conflicts. [`OperandLayout`] is the layout, and [`SwizzleSpan`] is the swizzle.

use core::fmt;
use core::marker::PhantomData;

use cutlet_layout_core::{E, Fixed, Layout, M, StaticLayout, StaticSwizzle, Tensor, TileShape};

use crate::{DeviceData, Shared, SharedMemory, SharedStorage};

/// Which coordinate of an operand's tile is consecutive in memory.
pub trait Major: Copy + 'static {
    /// Whether k is consecutive.
    const IS_K_MAJOR: bool;
}

/// k is consecutive: a row-major A, a column-major B.
#[derive(Clone, Copy, Debug)]
pub struct KMajor;

/// m (or n) is consecutive: a column-major A, a row-major B.
#[derive(Clone, Copy, Debug)]
pub struct MnMajor;

impl Major for KMajor {
    const IS_K_MAJOR: bool = true;
}

impl Major for MnMajor {
    const IS_K_MAJOR: bool = false;
}

/// The swizzle of lines of `BYTES` bytes: 128, 64 or 32, or 16 for no swizzle. It XORs bits 4, 5, 6 of the byte
/// address, as many as the span has, with bits 7, 8, 9. It acts on element indices, as layouts do.
#[derive(Clone, Copy, Debug)]
pub struct SwizzleSpan<T, const BYTES: usize>(PhantomData<T>);

impl<T: Copy + 'static, const BYTES: usize> StaticSwizzle for SwizzleSpan<T, BYTES> {
    const SOURCE: u32 = swizzle_source::<T>(BYTES);
    const SHIFT: u32 = 3;
}

const fn check_span(bytes: usize) {
    assert!(
        matches!(bytes, 16 | 32 | 64 | 128),
        "a swizzle spans 128, 64 or 32 bytes, and 16 is no swizzle"
    );
}

/// The layout of an `MN` × `K` tile of `T`, in boxes with lines of `SWIZZLE_BYTES` bytes: from (mn, k) to element
/// index.
///
/// ```
/// use cutlet_device::tile::{KMajor, MnMajor, OperandLayout};
/// use cutlet_layout_core::StaticLayout;
///
/// let k_major = OperandLayout::<u16, KMajor, 64, 128, 128>::LAYOUT;
/// assert_eq!(k_major.to_string(), "(_64,(_64,_2)):(_64,(_1,_4096))");
/// let mn_major = OperandLayout::<u16, MnMajor, 128, 32, 128>::LAYOUT;
/// assert_eq!(mn_major.to_string(), "((_64,_2),_32):((_1,_2048),_64)");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OperandLayout<T, J, const MN: usize, const K: usize, const SWIZZLE_BYTES: usize>(
    PhantomData<(T, J)>,
);

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize, const SWIZZLE_BYTES: usize>
    StaticLayout for OperandLayout<T, J, MN, K, SWIZZLE_BYTES>
{
    const LAYOUT: Layout = tile_layout::<T>(J::IS_K_MAJOR, [MN, K], SWIZZLE_BYTES);
}

/// A layout of tiles that TMA copies: an [`OperandLayout`].
pub trait TmaLayout: StaticLayout {
    /// Rows: m of A, n of B.
    const MN: usize;
    /// Columns.
    const K: usize;
    /// Bytes of a line, which are the swizzle span.
    const SWIZZLE_BYTES: usize;
    /// Whether lines run along k.
    const IS_K_MAJOR: bool;
    /// The swizzle of these lines.
    type Swizzle: StaticSwizzle;
}

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize, const SWIZZLE_BYTES: usize>
    TileShape for OperandLayout<T, J, MN, K, SWIZZLE_BYTES>
{
    type Rows = M<MN, 1>;
    type Columns = M<K, 1>;
    type Extents = (E<MN, 1, 0>, E<K, 1, 1>);
}

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize, const SWIZZLE_BYTES: usize>
    TmaLayout for OperandLayout<T, J, MN, K, SWIZZLE_BYTES>
{
    const MN: usize = MN;
    const K: usize = K;
    const SWIZZLE_BYTES: usize = SWIZZLE_BYTES;
    const IS_K_MAJOR: bool = J::IS_K_MAJOR;
    type Swizzle = SwizzleSpan<T, SWIZZLE_BYTES>;
}

/// The layout of an `mn` × `k` tile of `T`, in boxes with lines of `swizzle_bytes` bytes. Lines run along k if it
/// `is_k_major`, else along mn. It is the layout of [`OperandLayout`], for a [`TmaLayout`] whose extents are computed.
///
/// # Panics
/// If lines do not divide the tile.
pub const fn tile_layout<T>(is_k_major: bool, [mn, k]: [usize; 2], swizzle_bytes: usize) -> Layout {
    check_span(swizzle_bytes);
    let line = (swizzle_bytes / size_of::<T>()) as i64;
    let (mn, k) = (mn as i64, k as i64);
    if is_k_major {
        assert!(
            k % line == 0,
            "a K-major tile's k is a multiple of the swizzle span: take a smaller span"
        );
        Layout::concat(&[
            Layout::static_mode(mn, line),
            lines(line, k / line, mn * line),
        ])
    } else {
        assert!(
            mn % line == 0,
            "an MN-major tile's mn is a multiple of the swizzle span: take a smaller span"
        );
        Layout::concat(&[
            lines(line, mn / line, k * line),
            Layout::static_mode(k, line),
        ])
    }
}

/// The [`StaticSwizzle::SOURCE`] of a [`SwizzleSpan`] of `bytes` bytes of `T`.
pub const fn swizzle_source<T>(bytes: usize) -> u32 {
    check_span(bytes);
    ((bytes as u32 / 16 - 1) << 7) / size_of::<T>() as u32
}

/// `count` lines of `line` consecutive elements, `distance` apart.
const fn lines(line: i64, count: i64, distance: i64) -> Layout {
    if count == 1 {
        Layout::static_mode(line, 1)
    } else {
        Layout::concat(&[
            Layout::static_mode(line, 1),
            Layout::static_mode(count, distance),
        ])
    }
}

/// A tile in shared memory: elements `T` in layout `L`, from (mn, k) to element index, swizzled by `W`.
///
/// TMA loads [`KMajorTile`]s and [`MnMajorTile`]s.
pub struct SharedTile<T, L, W> {
    start: Shared<T>,
    layout: PhantomData<(L, W)>,
}

/// An `MN` × `K` tile of `T` with lines of `SWIZZLE_BYTES` bytes along k or mn, as `J` says.
pub type OperandTile<T, J, const MN: usize, const K: usize, const SWIZZLE_BYTES: usize = 128> =
    SharedTile<T, OperandLayout<T, J, MN, K, SWIZZLE_BYTES>, SwizzleSpan<T, SWIZZLE_BYTES>>;

/// An `MN` × `K` tile of `T` in which k is consecutive.
pub type KMajorTile<T, const MN: usize, const K: usize, const SWIZZLE_BYTES: usize = 128> =
    OperandTile<T, KMajor, MN, K, SWIZZLE_BYTES>;

/// An `MN` × `K` tile of `T` in which mn is consecutive.
pub type MnMajorTile<T, const MN: usize, const K: usize, const SWIZZLE_BYTES: usize = 128> =
    OperandTile<T, MnMajor, MN, K, SWIZZLE_BYTES>;

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

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle> SharedStorage for SharedTile<T, L, W> {
    const BYTES: u32 = SharedTile::<T, L, W>::BYTES;
    const ALIGN: u32 = 1024;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self::from_shared(Shared::from_address(address))
    }
}

impl<T: DeviceData, L: StaticLayout, W: StaticSwizzle> SharedTile<T, L, W> {
    /// Bytes of the tile.
    pub const BYTES: u32 = {
        assert!(
            L::LAYOUT.cosize() == L::LAYOUT.size() && !L::LAYOUT.maps_below_zero(),
            "a tile in shared memory has no gaps"
        );
        (L::SIZE * size_of::<T>()) as u32
    };

    /// The tile that starts at `start`, which is aligned to 8 lines: 1024 bytes, or less for smaller swizzles.
    #[inline(always)]
    pub const fn from_shared(start: Shared<T>) -> Self {
        Self {
            start,
            layout: PhantomData,
        }
    }

    /// Takes the tile from the next bytes of shared memory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn take(shared: &mut SharedMemory) -> Self {
        shared.take_storage()
    }

    /// The start of the tile.
    #[inline(always)]
    pub const fn start(self) -> Shared<T> {
        self.start
    }

    /// The tile as a tensor of (mn, k), which layouts partition.
    ///
    /// # Safety
    /// As [`Tensor::new`]. The tile must stay in shared memory, and barriers must order its reads and writes.
    #[inline(always)]
    pub unsafe fn tensor(self) -> Tensor<Shared<T>, Fixed<L, W>> {
        // SAFETY: as promised by the caller. The layout's indices are within the tile.
        unsafe { Tensor::new(self.start, Fixed::new()) }
    }
}
