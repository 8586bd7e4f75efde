//! What the type of a kernel for CUDA cores says.

use core::marker::PhantomData;

use cutlet_device::tile::{KMajor, MnMajor, SwizzleSpan, swizzle_source};
use cutlet_layout_core::{E, Layout, M as Mode, NoSwizzle, StaticLayout, StaticSwizzle, TileShape};

use super::multiply_add::MultiplyAdd;
use crate::gemm::config::{StageCount, Tile};
use crate::gemm::multistage::product::WarpProduct;
use crate::gemm::multistage::staging::{
    self, Elements, NamedKMajor, StageLayout, Staging, StridedMajor, Vectors,
};
use crate::gemm::multistage::warps::Warps;
use crate::gemm::multistage::{Config, Product};

/// The configuration of a kernel: how A and B are read (`JA`, `JB`: see [`Reads`]), the
/// block's tile, the stages, a thread's tile, and how many threads a warp and warps a block have in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Simt<JA, JB, Tl, St, Tt, Ln, Wp, const THREADS: usize>(
    PhantomData<(JA, JB, Tl, St, Tt, Ln, Wp)>,
);

/// A thread's accumulators: `M × N`. It reads `K` k of their rows and columns at a time.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTile<const M: usize, const N: usize, const K: usize>;
/// A warp's threads: `M` below one another, `N` side by side.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<const M: usize, const N: usize>;

/// Neighbours that a thread has together: a thread's rows are groups of so many, and its columns, too.
pub(super) const GROUP: usize = 4;

/// The neighbours of a thread that has `count` rows, or columns.
pub(super) const fn group(count: usize) -> usize {
    if count < GROUP { count } else { GROUP }
}

/// How a kernel reads an operand of `MN` rows, or columns: along k ([`KMajor`]) or along them ([`MnMajor`]), 16 bytes
/// at a time, or element by element ([`Unaligned`]). `LANES` threads of a warp have `COUNT` of them each.
pub trait Reads<
    const MN: usize,
    const K: usize,
    const LANES: usize,
    const COUNT: usize,
    const THREADS: usize,
>: Copy + 'static
{
    /// How the operand goes through shared memory.
    type Staging: Staging<Element = f32>;
}

/// A K-major operand that is transposed on its way to shared memory. Threads then read vectors of rows, or columns: the
/// elements at one k, which the same multiply-add does not take from one bank of registers.
#[derive(Clone, Copy, Debug)]
pub struct Transposed;

/// An operand of any alignment, whose major direction is `J`.
#[derive(Clone, Copy, Debug)]
pub struct Unaligned<J>(PhantomData<J>);

/// An A whose rows are those of a table that indices name, which are read as `R` says. A thread copies `VALUES`
/// elements of a k-tile.
#[derive(Clone, Copy, Debug)]
pub struct Named<R, const VALUES: usize>(PhantomData<R>);

macro_rules! reads {
    ($([$($values:tt)*] $reads:ty: $staging:ty;)+) => {$(
        impl<const MN: usize, const K: usize, const LANES: usize, const COUNT: usize, const THREADS: usize $($values)*>
            Reads<MN, K, LANES, COUNT, THREADS> for $reads
        {
            type Staging = $staging;
        }
    )+};
}
reads! {
    [] KMajor: Vectors<16, f32, KMajor, LinesAlongK<MN, K, LANES, COUNT>, SwizzleLines<K>, THREADS>;
    [] MnMajor: Vectors<16, f32, MnMajor, LinesAlongMn<MN, K, 0>, NoSwizzle, THREADS>;
    [] Transposed: staging::Transposed<LinesAlongMn<MN, K, GROUP>, THREADS>;
    [] Unaligned<KMajor>: Elements<f32, KMajor, LinesAlongMn<MN, K, GROUP>, NoSwizzle, THREADS>;
    [, const VALUES: usize] Named<KMajor, VALUES>:
        Vectors<16, f32, NamedKMajor<VALUES>, LinesAlongK<MN, K, LANES, COUNT>, SwizzleLines<K>, THREADS>;
    [, const VALUES: usize] Named<Unaligned<KMajor>, VALUES>:
        Elements<f32, NamedKMajor<VALUES>, LinesAlongMn<MN, K, GROUP>, NoSwizzle, THREADS>;
    [] Unaligned<MnMajor>: Elements<f32, MnMajor, LinesAlongMn<MN, K, 0>, NoSwizzle, THREADS>;
}

/// A stage with a line of k for each row, or column. The lines that a warp's threads read at the same time are
/// neighbours, so that the swizzle spreads them over all banks.
#[derive(Clone, Copy, Debug)]
pub struct LinesAlongK<const MN: usize, const K: usize, const LANES: usize, const COUNT: usize>;

impl<const MN: usize, const K: usize, const LANES: usize, const COUNT: usize> StaticLayout
    for LinesAlongK<MN, K, LANES, COUNT>
{
    const LAYOUT: Layout = {
        let group = group(COUNT);
        let at_a_time = group * LANES;
        Layout::concat(&[
            Layout::concat(&[
                Layout::static_mode(group as i64, (LANES * K) as i64),
                Layout::static_mode(LANES as i64, K as i64),
                Layout::static_mode((MN / at_a_time) as i64, (at_a_time * K) as i64),
            ]),
            Layout::static_mode(K as i64, 1),
        ])
    };
}

impl<const MN: usize, const K: usize, const LANES: usize, const COUNT: usize> TileShape
    for LinesAlongK<MN, K, LANES, COUNT>
{
    type Rows = Mode<MN, 1>;
    type Columns = Mode<K, 1>;
    type Extents = (E<MN, 1, 0>, E<K, 1, 1>);
}

impl<const MN: usize, const K: usize, const LANES: usize, const COUNT: usize> StageLayout
    for LinesAlongK<MN, K, LANES, COUNT>
{
    type Major = KMajor;
}

/// The swizzle of lines of `K` elements.
#[derive(Clone, Copy, Debug)]
pub struct SwizzleLines<const K: usize>;

impl<const K: usize> StaticSwizzle for SwizzleLines<K> {
    const SOURCE: u32 = swizzle_source::<f32>(K * size_of::<f32>());
    const SHIFT: u32 = SwizzleSpan::<f32, 128>::SHIFT;
}

/// A stage with a line of rows, or columns, for each k, and `PADDING` elements after it. With padding, threads that
/// write the same row at different k write to different banks.
#[derive(Clone, Copy, Debug)]
pub struct LinesAlongMn<const MN: usize, const K: usize, const PADDING: usize>;

impl<const MN: usize, const K: usize, const PADDING: usize> StaticLayout
    for LinesAlongMn<MN, K, PADDING>
{
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_mode(MN as i64, 1),
        Layout::static_mode(K as i64, (MN + PADDING) as i64),
    ]);
}

impl<const MN: usize, const K: usize, const PADDING: usize> TileShape
    for LinesAlongMn<MN, K, PADDING>
{
    type Rows = Mode<MN, 1>;
    type Columns = Mode<K, 1>;
    type Extents = (E<MN, 1, 0>, E<K, 1, 1>);
}

impl<const MN: usize, const K: usize, const PADDING: usize> StageLayout
    for LinesAlongMn<MN, K, PADDING>
{
    type Major = MnMajor;
}

impl<
    JA,
    JB,
    St,
    const M: usize,
    const N: usize,
    const K: usize,
    const TM: usize,
    const TN: usize,
    const TK: usize,
    const LM: usize,
    const LN: usize,
    const WM: usize,
    const WN: usize,
    const THREADS: usize,
> Config
    for Simt<
        JA,
        JB,
        Tile<M, N, K>,
        St,
        ThreadTile<TM, TN, TK>,
        Lanes<LM, LN>,
        Warps<WM, WN>,
        THREADS,
    >
where
    JA: Reads<M, K, LM, TM, THREADS>,
    JB: Reads<N, K, LN, TN, THREADS, Staging: Staging<Source: StridedMajor>>,
    St: StageCount,
    ProductOf<
        MultiplyAdd<ThreadTile<TM, TN, TK>, Lanes<LM, LN>>,
        JA::Staging,
        JB::Staging,
        Tile<M, N, K>,
        Warps<WM, WN>,
    >: Product<A = JA::Staging, B = JB::Staging>,
{
    type Tile = Tile<M, N, K>;
    type A = JA::Staging;
    type B = JB::Staging;
    type Stages = St;
    type Product = ProductOf<
        MultiplyAdd<ThreadTile<TM, TN, TK>, Lanes<LM, LN>>,
        JA::Staging,
        JB::Staging,
        Tile<M, N, K>,
        Warps<WM, WN>,
    >;
}

/// The product of operands that go through shared memory as `A` and `B`.
type ProductOf<I, A, B, Tl, Wp> =
    WarpProduct<I, (A, <A as Staging>::Major), (B, <B as Staging>::Major), Tl, Wp>;
