//! The blocks of a warp: which rows and columns it loads from a stage, and in which order it multiplies them.

use core::marker::PhantomData;

use cutlet_device::{ThreadGroup, ThreadIdx};
use cutlet_layout_core::{
    AccessWidth, Fragment, FragmentLayout, Layout, M as Mode, StaticLayout, StaticSwizzle,
    ThreadValue, WarpAccess, Width, compose_coordinates, each,
};

use super::arithmetic::{Arithmetic, Lines};
use super::config::{Blocks, Warps};
use crate::gemm::config::Tile;
use crate::gemm::epilogue::Accumulator;
use crate::gemm::multistage::Product;
use crate::gemm::multistage::config::Accumulators;
use crate::gemm::multistage::staging::StageTile;
use crate::gemm::multistage::staging::Staging;

/// Products of warps by `mma.sync`. `A` and `B` are a [`Staging`] and the [`Lines`] of its stages.
#[derive(Clone, Copy, Debug)]
pub struct WarpProduct<I, A, B, Tl, Wp, Bl>(PhantomData<(I, A, B, Tl, Wp, Bl)>);

/// The extents of a [`WarpProduct`], and the order of its rows and columns.
pub trait Extents: Copy + 'static {
    /// The arithmetic.
    type Arithmetic: Arithmetic;
    /// The steps of a stage.
    const STEPS: usize;
    /// Warps of a block of threads, below one another and side by side.
    const WARPS: [usize; 2];
    /// Blocks of a warp, below one another and side by side.
    const BLOCKS: [usize; 2];
    /// From rows and columns of the instructions to those of a block, as (m, n).
    const ORDER: Layout;
    /// Neighbours in a row of C among a thread's accumulators.
    type Width: AccessWidth;
}

impl<
    I: Arithmetic,
    A: Copy + 'static,
    B: Copy + 'static,
    LA: Lines<I>,
    LB: Lines<I>,
    const M: usize,
    const N: usize,
    const K: usize,
    const WM: usize,
    const WN: usize,
    const BM: usize,
    const BN: usize,
> Extents for WarpProduct<I, (A, LA), (B, LB), Tile<M, N, K>, Warps<WM, WN>, Blocks<BM, BN>>
{
    type Arithmetic = I;
    const STEPS: usize = K / I::STEP;
    const WARPS: [usize; 2] = [WM, WN];
    const BLOCKS: [usize; 2] = [BM, BN];
    const ORDER: Layout = Layout::concat(&[LA::ORDER[0], LB::ORDER[1]]);
    type Width = LB::Width;
}

impl<I, A, B, T, BL, const WM: usize, const WN: usize> ThreadGroup
    for WarpProduct<I, A, B, T, Warps<WM, WN>, BL>
where
    Self: Copy + 'static,
{
    const THREADS: u32 = (32 * WM * WN) as u32;
}

impl<
    I: Arithmetic,
    A: Staging<Element = I::Element>,
    B: Staging<Element = I::Element>,
    LA: Lines<I>,
    LB: Lines<I>,
    const M: usize,
    const N: usize,
    const K: usize,
    const WM: usize,
    const WN: usize,
    const BM: usize,
    const BN: usize,
> Product for WarpProduct<I, (A, LA), (B, LB), Tile<M, N, K>, Warps<WM, WN>, Blocks<BM, BN>>
{
    type A = A;
    type B = B;
    type Acc = I::Acc;
    type Values = (I::Accumulators, Mode<BN, 1>, Mode<BM, 1>);
    type Subtile = Subtile<Self>;
    const SUBTILE: [usize; 2] = [rows_of_a_subtile::<Self>(), BN * I::BLOCK];
    const SUBTILES: usize = {
        let rows = BM * I::BLOCK;
        assert!(
            rows.is_multiple_of(rows_of_a_subtile::<Self>()),
            "a warp's rows are whole epilogue subtiles, of 512 elements or more"
        );
        rows / rows_of_a_subtile::<Self>()
    };
    const WARPS: [usize; 2] = {
        assert!(
            M == BM * I::BLOCK * WM && N == BN * I::BLOCK * WN && K.is_multiple_of(I::STEP),
            "the warps of a block have all of its tile"
        );
        [WM, WN]
    };

    type Fragments = (
        Fragment<I::Loaded, Mode<BM, 1>>,
        Fragment<I::Loaded, Mode<BN, 1>>,
    );
    type Steps = Steps<Self>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load(
        a: StageTile<A>,
        b: StageTile<B>,
        step: usize,
        thread: ThreadIdx<Self>,
    ) -> Self::Fragments {
        const {
            assert!(
                is_free_of_conflicts::<Self, A, LA, 0>()
                    && is_free_of_conflicts::<Self, B, LB, 1>()
            )
        }
        let a = a.partition_broadcast::<Loads<Self, LA, 0>>(thread);
        let b = b.partition_broadcast::<Loads<Self, LB, 1>>(thread);
        let (vectors_a, vectors_b) = const { (LA::Vectors::SIZE, LB::Vectors::SIZE) };
        // SAFETY: the kernel's barriers order the stage's writes before this.
        unsafe {
            (
                Fragment::from_fn(|nth| {
                    LA::load::<0>(|v| a.engine_at(vectors_a * (BM * step + nth) + v))
                }),
                Fragment::from_fn(|nth| {
                    LB::load::<1>(|v| b.engine_at(vectors_b * (BN * step + nth) + v))
                }),
            )
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn multiply((a, b): &Self::Fragments, accumulators: &mut Accumulators<Self>) {
        let b = b.map(|_, loaded| I::prepare(loaded));
        let row_size = const { RowOfBlocks::<I, BN>::SIZE };
        each::<Mode<BM, 1>>(|row| {
            let a = I::prepare(a.get(row));
            let mut sums =
                Fragment::<I::Acc, RowOfBlocks<I, BN>>::from_fn(|v| match I::ADDS_STEPS {
                    true => I::Acc::ZERO,
                    false => accumulators.get(row_size * row + v),
                });
            multiply_row::<I, BN>(a, &b, &mut sums);
            each::<RowOfBlocks<I, BN>>(|v| {
                let sum = match I::ADDS_STEPS {
                    true => accumulators.get(row_size * row + v).plus(sums.get(v)),
                    false => sums.get(v),
                };
                accumulators.set(row_size * row + v, sum);
            });
        });
    }
}

/// A thread's accumulators of `BN` blocks side by side.
type RowOfBlocks<I, const BN: usize> = (<I as Arithmetic>::Accumulators, Mode<BN, 1>);

/// Multiplies a load of A by those of B. A part of all blocks comes before the next part, which has to wait for the
/// same accumulators.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn multiply_row<I: Arithmetic, const BN: usize>(
    a: I::Operand,
    b: &Fragment<I::Operand, Mode<BN, 1>>,
    sums: &mut Fragment<I::Acc, RowOfBlocks<I, BN>>,
) {
    let size = const { I::Accumulators::SIZE };
    each::<(Mode<BN, 1>, I::Parts)>(|nth| {
        let (part, column) = (nth / BN, nth % BN);
        let mut block = Fragment::from_fn(|v| sums.get(size * column + v));
        I::add(part, &mut block, a, b.get(column));
        each::<I::Accumulators>(|v| sums.set(size * column + v, block.get(v)));
    });
}

/// The steps of a k-tile.
#[derive(Clone, Copy)]
pub struct Steps<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for Steps<P> {
    const LAYOUT: Layout = Layout::static_mode(P::STEPS as i64, 1);
}

/// Thread-value layout of the loads of a stage of A (`SIDE` 0) or B (`SIDE` 1) with lines along `J`, as (mn, k): which
/// element's address a thread passes. The loads of a step come before those of the next one.
#[derive(Clone, Copy)]
struct Loads<P, J, const SIDE: usize>(PhantomData<(P, J)>);

impl<P: Extents, J: Lines<P::Arithmetic>, const SIDE: usize> ThreadValue for Loads<P, J, SIDE> {
    type Thr = LoadThreads<P, J, SIDE>;
    type Val = LoadValues<P, J, SIDE>;
    type Width = Width<1>;
}

/// Whether a warp's loads of a vector a thread are free of bank conflicts.
const fn is_free_of_conflicts<P, S, J, const SIDE: usize>() -> bool
where
    P: Extents,
    S: Staging,
    J: Lines<P::Arithmetic>,
{
    let vector = (J::VECTOR_BYTES / size_of::<S::Element>()) as i64;
    let offsets = Layout::concat(&[
        compose_coordinates(&S::Layout::LAYOUT, &LoadThreads::<P, J, SIDE>::LAYOUT),
        Layout::static_mode(vector, 1),
    ]);
    let access = WarpAccess::new(&offsets, size_of::<S::Element>() as i64, vector);
    access.swizzled(S::Swizzle::VALUE).bank_conflicts() == 1
}

/// The threads of a block over the rows, or columns, of its tile.
#[derive(Clone, Copy)]
struct LoadThreads<P, J, const SIDE: usize>(PhantomData<(P, J)>);

impl<P: Extents, J: Lines<P::Arithmetic>, const SIDE: usize> StaticLayout
    for LoadThreads<P, J, SIDE>
{
    const LAYOUT: Layout =
        Layout::concat(&[J::LANES[SIDE], warps::<P>(1, SIDE), warps::<P>(0, SIDE)]);
}

/// The mn of the warps along a direction: below one another (0) or side by side (1), for operand `side`.
const fn warps<P: Extents>(along: usize, side: usize) -> Layout {
    let step = if along == side {
        P::BLOCKS[side] * P::Arithmetic::BLOCK
    } else {
        0
    };
    Layout::static_basis_mode(P::WARPS[along] as i64, step as i64, 0)
}

/// The vectors of each of a warp's loads.
#[derive(Clone, Copy)]
struct LoadValues<P, J, const SIDE: usize>(PhantomData<(P, J)>);

impl<P: Extents, J: Lines<P::Arithmetic>, const SIDE: usize> StaticLayout
    for LoadValues<P, J, SIDE>
{
    const LAYOUT: Layout = Layout::concat(&[
        J::Vectors::LAYOUT,
        Layout::static_basis_mode(P::BLOCKS[SIDE] as i64, P::Arithmetic::BLOCK as i64, 0),
        Layout::static_basis_mode(P::STEPS as i64, P::Arithmetic::STEP as i64, 1),
    ]);
}

impl<P: Extents, J: Lines<P::Arithmetic>, const SIDE: usize> FragmentLayout
    for LoadValues<P, J, SIDE>
{
    type Storage = [(); 256];
}

/// The rows of an epilogue subtile: those of an instruction, or more if a warp would store fewer than 512 elements.
const fn rows_of_a_subtile<P: Extents>() -> usize {
    let columns = P::BLOCKS[1] * P::Arithmetic::BLOCK;
    let rows = 512 / columns;
    if rows < 16 { 16 } else { rows }
}

/// Thread-value layout of an epilogue subtile.
#[derive(Clone, Copy, Debug)]
pub struct Subtile<P>(PhantomData<P>);

impl<P: Extents> ThreadValue for Subtile<P> {
    type Thr = SubtileThreads<P>;
    type Val = SubtileValues<P>;
    type Width = P::Width;
}

/// A thread-value layout of a block of C, over the rows and columns of its instructions.
type BlockOfC<P> = <<P as Extents>::Arithmetic as Arithmetic>::C;

/// The lanes over the rows and columns of a block.
#[derive(Clone, Copy)]
pub struct SubtileThreads<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for SubtileThreads<P> {
    const LAYOUT: Layout =
        compose_coordinates(&P::ORDER, &<BlockOfC<P> as ThreadValue>::Thr::LAYOUT);
}

/// A thread's accumulators of an epilogue subtile. They are never in a fragment of their own.
#[derive(Clone, Copy)]
pub struct SubtileValues<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for SubtileValues<P> {
    const LAYOUT: Layout = {
        let block = P::Arithmetic::BLOCK;
        Layout::concat(&[
            compose_coordinates(&P::ORDER, &<BlockOfC<P> as ThreadValue>::Val::LAYOUT),
            Layout::static_basis_mode(P::BLOCKS[1] as i64, block as i64, 1),
            Layout::static_basis_mode((rows_of_a_subtile::<P>() / block) as i64, block as i64, 0),
        ])
    };
}

impl<P: Extents> FragmentLayout for SubtileValues<P> {
    type Storage = [(); 256];
}
