//! What the type of a kernel for `mma.sync` says.

use core::marker::PhantomData;

use cutlet_device::tile::{KMajor, Major, MnMajor, SwizzleSpan, swizzle_source, tile_layout};
use cutlet_layout_core::{E, Layout, M as Mode, StaticLayout, StaticSwizzle, TileShape};

use super::arithmetic::{SwizzledLines, TensorCore};
use crate::gemm::config::{StageCount, Tile};
use crate::gemm::multistage::arithmetic::{ElementOf, Lines};
use crate::gemm::multistage::product::WarpProduct;
use crate::gemm::multistage::staging::{
    self, Copies, Direct, NamedKMajor, OfBytes, StagedElement, Staging, StridedMajor,
};
use crate::gemm::multistage::warps::Warps;
use crate::gemm::multistage::{Config, Product};

/// The configuration of a kernel: the [`TensorCore`] arithmetic, how A and B are read (`JA`, `JB`: see [`Reads`]), the
/// block's tile, the stages, and the warps of a block.
#[derive(Clone, Copy, Debug)]
pub struct Sm80<I, JA, JB, Tl, St, Wp, const THREADS: usize>(PhantomData<(I, JA, JB, Tl, St, Wp)>);

/// Bytes of the lines of a stage, along which it has `length` elements: 128, or all of fewer elements.
const fn line_bytes<T>(length: usize) -> usize {
    let bytes = length * size_of::<T>();
    if bytes < 128 { bytes } else { 128 }
}

/// The layout of a stage, from (mn, k) to element index, with lines along `J`.
#[derive(Clone, Copy, Debug)]
pub struct StageLayout<T, J, const MN: usize, const K: usize>(PhantomData<(T, J)>);

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize> StaticLayout
    for StageLayout<T, J, MN, K>
{
    const LAYOUT: Layout = {
        let length = if J::IS_K_MAJOR { K } else { MN };
        tile_layout::<T>(J::IS_K_MAJOR, [MN, K], line_bytes::<T>(length))
    };
}

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize> TileShape
    for StageLayout<T, J, MN, K>
{
    type Rows = Mode<MN, 1>;
    type Columns = Mode<K, 1>;
    type Extents = (E<MN, 1, 0>, E<K, 1, 1>);
}

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize> staging::StageLayout
    for StageLayout<T, J, MN, K>
{
    type Major = J;
}

/// The swizzle of a stage. It spreads the rows of a matrix that `ldmatrix` loads over all banks.
#[derive(Clone, Copy, Debug)]
pub struct StageSwizzle<T, J, const MN: usize, const K: usize>(PhantomData<(T, J)>);

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize> StaticSwizzle
    for StageSwizzle<T, J, MN, K>
{
    const SOURCE: u32 = {
        let length = if J::IS_K_MAJOR { K } else { MN };
        swizzle_source::<T>(line_bytes::<T>(length))
    };
    const SHIFT: u32 = SwizzleSpan::<T, 128>::SHIFT;
}

/// The swizzle of a stage whose lines, of 128 bytes, run along mn, and of which a warp reads eight pairs of neighbours
/// at four k at the same time: 32 bytes of each. It spreads them over all banks.
#[derive(Clone, Copy, Debug)]
pub struct PairSwizzle<T, J, const MN: usize, const K: usize>(PhantomData<(T, J)>);

impl<T: Copy + 'static, J: Major, const MN: usize, const K: usize> StaticSwizzle
    for PairSwizzle<T, J, MN, K>
{
    const SOURCE: u32 = {
        assert!(
            !J::IS_K_MAJOR && line_bytes::<T>(MN) == 128,
            "the tile has at least 128 bytes along mn"
        );
        (3 << 7) / size_of::<T>() as u32
    };
    const SHIFT: u32 = 2;
}

/// How a kernel reads an operand of `MN` rows, or columns: along k ([`KMajor`]) or along them ([`MnMajor`]), 16 bytes
/// at a time, 4 bytes ([`Words`]), or element by element ([`Unaligned`]).
pub trait Reads<I: TensorCore, const MN: usize, const K: usize, const THREADS: usize>:
    Copy + 'static
{
    /// How the operand goes through shared memory.
    type Staging: Staging<Element = ElementOf<I>>;
    /// The direction of a stage's lines.
    type Lines: Lines<I>;
}

/// An operand of any alignment, whose major direction is `J`.
#[derive(Clone, Copy, Debug)]
pub struct Unaligned<J>(PhantomData<J>);

/// An A whose rows are those of a table that indices name, which are read as `R` says. A thread copies `VALUES`
/// elements of a k-tile.
#[derive(Clone, Copy, Debug)]
pub struct Named<R, const VALUES: usize>(PhantomData<R>);

/// An operand of elements of less than 4 bytes whose lines start at multiples of 4 bytes, and whose major direction is
/// `J`.
#[derive(Clone, Copy, Debug)]
pub struct Words<J>(PhantomData<J>);

macro_rules! reads {
    ($([$($values:tt)*] $reads:ty: along $major:ty, by $copies:ty, lines along $lines:ty;)+) => {$(
        impl<I: TensorCore, const MN: usize, const K: usize, const THREADS: usize $($values)*> Reads<I, MN, K, THREADS>
            for $reads
        where
            $lines: SwizzledLines<I>,
            $copies: Copies<ElementOf<I>>,
        {
            type Staging = Direct<
                $copies,
                ElementOf<I>,
                $major,
                StageLayout<ElementOf<I>, $lines, MN, K>,
                <$lines as SwizzledLines<I>>::Swizzle<MN, K>,
                THREADS,
            >;
            type Lines = $lines;
        }
    )+};
    ($([$($values:tt)*] $reads:ty: along $major:ty, lines along $lines:ty;)+) => {$(
        impl<I: TensorCore, const MN: usize, const K: usize, const THREADS: usize $($values)*> Reads<I, MN, K, THREADS>
            for $reads
        where
            $lines: SwizzledLines<I>,
        {
            type Staging = <ElementOf<I> as StagedElement>::Elements<
                $major,
                StageLayout<ElementOf<I>, $lines, MN, K>,
                <$lines as SwizzledLines<I>>::Swizzle<MN, K>,
                THREADS,
            >;
            type Lines = $lines;
        }
    )+};
}
reads! {
    [] KMajor: along KMajor, by OfBytes<16>, lines along KMajor;
    [] MnMajor: along MnMajor, by OfBytes<16>, lines along MnMajor;
    [, const VALUES: usize] Named<KMajor, VALUES>: along NamedKMajor<VALUES>, by OfBytes<16>, lines along KMajor;
    [] Words<KMajor>: along KMajor, by OfBytes<4>, lines along KMajor;
    [] Words<MnMajor>: along MnMajor, by OfBytes<4>, lines along I::LinesOfMn;
}
reads! {
    [] Unaligned<KMajor>: along KMajor, lines along KMajor;
    [, const VALUES: usize] Named<Unaligned<KMajor>, VALUES>: along NamedKMajor<VALUES>, lines along KMajor;
    [] Unaligned<MnMajor>: along MnMajor, lines along I::LinesOfMn;
}

impl<
    I,
    JA,
    JB,
    St,
    const M: usize,
    const N: usize,
    const K: usize,
    const WM: usize,
    const WN: usize,
    const THREADS: usize,
> Config for Sm80<I, JA, JB, Tile<M, N, K>, St, Warps<WM, WN>, THREADS>
where
    I: TensorCore,
    JA: Reads<I, M, K, THREADS>,
    JB: Reads<I, N, K, THREADS, Staging: Staging<Source: StridedMajor>>,
    St: StageCount,
    ProductOf<I, JA, JB, M, N, K, WM, WN, THREADS>: Product<A = JA::Staging, B = JB::Staging>,
{
    type Tile = Tile<M, N, K>;
    type A = JA::Staging;
    type B = JB::Staging;
    type Stages = St;
    type Product = ProductOf<I, JA, JB, M, N, K, WM, WN, THREADS>;
}

/// The product of operands that are read as `JA` and `JB` say.
type ProductOf<
    I,
    JA,
    JB,
    const M: usize,
    const N: usize,
    const K: usize,
    const WM: usize,
    const WN: usize,
    const THREADS: usize,
> = WarpProduct<
    I,
    OperandOf<I, JA, M, K, THREADS>,
    OperandOf<I, JB, N, K, THREADS>,
    Tile<M, N, K>,
    Warps<WM, WN>,
>;
/// An operand's staging and the lines of its stages.
type OperandOf<I, J, const MN: usize, const K: usize, const THREADS: usize> = (
    <J as Reads<I, MN, K, THREADS>>::Staging,
    <J as Reads<I, MN, K, THREADS>>::Lines,
);
