//! Multiply-adds over a stage: a few k at a time, each an outer product of a thread's rows and columns.

use core::marker::PhantomData;

use cutlet_device::tile::{KMajor, Major, MnMajor};
use cutlet_device::{ThreadGroup, ThreadIdx, fma};
use cutlet_layout_core::{
    AccessWidth, Fragment, FragmentLayout, Layout, M as Mode, StaticLayout, ThreadValue, Width,
    each,
};

use super::config::{Lanes, ThreadTile, Warps, group};
use crate::gemm::config::Tile;
use crate::gemm::multistage::Product;
use crate::gemm::multistage::config::Accumulators;
use crate::gemm::multistage::staging::StageTile;
use crate::gemm::multistage::staging::Staging;

/// Multiply-adds of a thread's tile.
#[derive(Clone, Copy, Debug)]
pub struct MultiplyAdd<A, B, Tl, Tt, Ln, Wp>(PhantomData<(A, B, Tl, Tt, Ln, Wp)>);

/// The extents of a [`MultiplyAdd`].
trait Extents: Copy + 'static {
    /// The k of a stage.
    const K: usize;
    /// Rows and columns of a thread.
    const OF_A_THREAD: [usize; 2];
    /// The k of a step.
    const STEP: usize;
    /// Threads of a warp, below one another and side by side.
    const LANES: [usize; 2];
    /// Warps of a block, below one another and side by side.
    const WARPS: [usize; 2];
}

impl<
    A: Copy + 'static,
    B: Copy + 'static,
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
> Extents
    for MultiplyAdd<A, B, Tile<M, N, K>, ThreadTile<TM, TN, TK>, Lanes<LM, LN>, Warps<WM, WN>>
{
    const K: usize = K;
    const OF_A_THREAD: [usize; 2] = [TM, TN];
    const STEP: usize = TK;
    const LANES: [usize; 2] = [LM, LN];
    const WARPS: [usize; 2] = [WM, WN];
}

impl<A, B, T, TT, L, const WM: usize, const WN: usize> ThreadGroup
    for MultiplyAdd<A, B, T, TT, L, Warps<WM, WN>>
where
    Self: Copy + 'static,
{
    const THREADS: u32 = (32 * WM * WN) as u32;
}

impl<
    A: Staging<Element = f32, Major: Along>,
    B: Staging<Element = f32, Major: Along>,
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
> Product for MultiplyAdd<A, B, Tile<M, N, K>, ThreadTile<TM, TN, TK>, Lanes<LM, LN>, Warps<WM, WN>>
where
    Count<TM>: Neighbours,
    Count<TN>: Neighbours,
    Count<TK>: Neighbours,
{
    type A = A;
    type B = B;
    type Acc = f32;
    type Values = (Mode<TN, 1>, Mode<TM, 1>);
    type Subtile = Subtile<Self, TM, TN>;
    const SUBTILE: [usize; 2] = [rows_of_a_subtile::<Self>() * LM, TN * LN];
    const SUBTILES: usize = TM / rows_of_a_subtile::<Self>();
    const WARPS: [usize; 2] = {
        assert!(LM * LN == 32, "a warp has 32 threads");
        assert!(
            M == TM * LM * WM && N == TN * LN * WN,
            "the threads of a block have all of its tile"
        );
        [WM, WN]
    };

    type Fragments = (OfAThread<TM, TK>, OfAThread<TN, TK>);
    type Steps = Steps<Self>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load(
        a: StageTile<A>,
        b: StageTile<B>,
        step: usize,
        thread: ThreadIdx<Self>,
    ) -> Self::Fragments {
        let mut of_a = Fragment::filled(0.0);
        let mut of_b = Fragment::filled(0.0);
        a.partition_broadcast::<Operand<Self, A, Count<TM>, Count<TK>, 0>>(thread)
            .load_into(&mut of_a, step * TM * TK);
        b.partition_broadcast::<Operand<Self, B, Count<TN>, Count<TK>, 1>>(thread)
            .load_into(&mut of_b, step * TN * TK);
        (of_a, of_b)
    }

    #[inline(always)]
    fn multiply((a, b): &Self::Fragments, accumulators: &mut Accumulators<Self>) {
        each::<Mode<TK, 1>>(|k| {
            each::<Self::Values>(|v| {
                let (i, j) = (v / TN, v % TN);
                let x = a.get(nth::<A>(i, k, [TM, TK]));
                let y = b.get(nth::<B>(j, k, [TN, TK]));
                accumulators.set(v, fma(x, y, accumulators.get(v)));
            });
        });
    }
}

/// A thread's elements of an operand in a step: `COUNT` rows, or columns, by `K` k.
type OfAThread<const COUNT: usize, const K: usize> = Fragment<f32, (Mode<K, 1>, Mode<COUNT, 1>)>;

/// The index of row, or column, `i` at `k`, in the order in which they are read.
#[inline(always)]
fn nth<S: Staging>(i: usize, k: usize, [count, of_a_step]: [usize; 2]) -> usize {
    match S::Major::IS_K_MAJOR {
        true => of_a_step * i + k,
        false => count * k + i,
    }
}

/// The steps of a k-tile.
#[derive(Clone, Copy)]
pub struct Steps<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for Steps<P> {
    const LAYOUT: Layout = Layout::static_mode((P::K / P::STEP) as i64, 1);
}

/// A thread's rows in an epilogue subtile: a group of neighbours, or more if a warp would store fewer than 512
/// elements.
const fn rows_of_a_subtile<P: Extents>() -> usize {
    let [m, n] = P::OF_A_THREAD;
    let mut rows = group(m);
    while rows * n * 32 < 512 {
        rows += group(m);
    }
    rows
}

/// Thread-value layout of an epilogue subtile.
#[derive(Clone, Copy, Debug)]
pub struct Subtile<P, const TM: usize, const TN: usize>(PhantomData<P>);

impl<P: Extents, const TM: usize, const TN: usize> ThreadValue for Subtile<P, TM, TN>
where
    Count<TM>: Neighbours,
    Count<TN>: Neighbours,
{
    type Thr = SubtileThreads<P>;
    type Val = SubtileValues<P>;
    type Width = <Count<TN> as Neighbours>::Width;
}

/// The threads of a warp over an epilogue subtile.
#[derive(Clone, Copy)]
pub struct SubtileThreads<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for SubtileThreads<P> {
    const LAYOUT: Layout = {
        let ([m, n], [lanes_m, lanes_n]) = (P::OF_A_THREAD, P::LANES);
        Layout::concat(&[
            Layout::static_basis_mode(lanes_n as i64, group(n) as i64, 1),
            Layout::static_basis_mode(lanes_m as i64, group(m) as i64, 0),
        ])
    };
}

/// A thread's accumulators of an epilogue subtile. They are never in a fragment of their own.
#[derive(Clone, Copy)]
pub struct SubtileValues<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for SubtileValues<P> {
    const LAYOUT: Layout = {
        let [lanes_m, lanes_n] = P::LANES;
        Layout::concat(&[
            groups(P::OF_A_THREAD[1], lanes_n, 1),
            groups(rows_of_a_subtile::<P>(), lanes_m, 0),
        ])
    };
}

impl<P: Extents> FragmentLayout for SubtileValues<P> {
    type Storage = [(); 256];
}

/// The mn of the threads of a block in operand `side`: A (0) or B (1).
const fn threads<P: Extents>(side: usize) -> Layout {
    let [m, n] = P::OF_A_THREAD;
    let [lanes_m, lanes_n] = P::LANES;
    let [warps_m, warps_n] = P::WARPS;
    Layout::concat(&[
        mode(lanes_n, group(n), side == 1),
        mode(lanes_m, group(m), side == 0),
        mode(warps_n, n * lanes_n, side == 1),
        mode(warps_m, m * lanes_m, side == 0),
    ])
}

const fn mode(extent: usize, step: usize, counts: bool) -> Layout {
    Layout::static_basis_mode(extent as i64, if counts { step as i64 } else { 0 }, 0)
}

/// A thread's `count` coordinates along a direction, of which `lanes` threads have groups in turns.
const fn groups(count: usize, lanes: usize, along: usize) -> Layout {
    let group = group(count);
    Layout::concat(&[
        Layout::static_basis_mode(group as i64, 1, along),
        Layout::static_basis_mode((count / group) as i64, (group * lanes) as i64, along),
    ])
}

/// A thread's number of rows, columns, or k of a step.
#[derive(Clone, Copy, Debug)]
pub struct Count<const N: usize>;

/// How many neighbours a thread has that has so many rows, columns, or k.
pub trait Neighbours: Copy + 'static {
    /// Accesses to so many.
    type Width: AccessWidth;
}

macro_rules! neighbours {
    ($($n:literal: $width:literal),+) => {$(
        impl Neighbours for Count<$n> {
            type Width = Width<$width>;
        }
    )+};
}
neighbours!(1: 1, 2: 2, 4: 4, 8: 4, 16: 4);

/// Thread-value layout of a stage of A (`SIDE` 0) or B (`SIDE` 1), as (mn, k). A thread has `N` rows, or columns, and
/// `K` k of a step.
#[derive(Clone, Copy)]
struct Operand<P, S, N, K, const SIDE: usize>(PhantomData<(P, S, N, K)>);

impl<P: Extents, S: Staging<Major: Along>, N: Neighbours, K: Neighbours, const SIDE: usize>
    ThreadValue for Operand<P, S, N, K, SIDE>
{
    type Thr = OperandThreads<P, SIDE>;
    type Val = OperandValues<P, S, SIDE>;
    type Width = <S::Major as Along>::Width<N, K>;
}

/// A major, along which threads read vectors.
pub trait Along: Major {
    /// Accesses of a thread with so many rows or columns, and k.
    type Width<N: Neighbours, K: Neighbours>: AccessWidth;
}

impl Along for KMajor {
    type Width<N: Neighbours, K: Neighbours> = K::Width;
}

impl Along for MnMajor {
    type Width<N: Neighbours, K: Neighbours> = N::Width;
}

/// A thread's elements of a stage, step by step.
#[derive(Clone, Copy)]
struct OperandValues<P, S, const SIDE: usize>(PhantomData<(P, S)>);

impl<P: Extents, S: Staging, const SIDE: usize> StaticLayout for OperandValues<P, S, SIDE> {
    const LAYOUT: Layout = {
        let mn = groups(P::OF_A_THREAD[SIDE], P::LANES[SIDE], 0);
        if S::Major::IS_K_MAJOR {
            Layout::concat(&[
                Layout::static_basis_mode(P::STEP as i64, 1, 1),
                mn,
                Layout::static_basis_mode((P::K / P::STEP) as i64, P::STEP as i64, 1),
            ])
        } else {
            Layout::concat(&[mn, Layout::static_basis_mode(P::K as i64, 1, 1)])
        }
    };
}

impl<P: Extents, S: Staging, const SIDE: usize> FragmentLayout for OperandValues<P, S, SIDE> {
    type Storage = [(); 256];
}

/// The mn of the threads of a block in A or B.
#[derive(Clone, Copy)]
struct OperandThreads<P, const SIDE: usize>(PhantomData<P>);

impl<P: Extents, const SIDE: usize> StaticLayout for OperandThreads<P, SIDE> {
    const LAYOUT: Layout = threads::<P>(SIDE);
}
