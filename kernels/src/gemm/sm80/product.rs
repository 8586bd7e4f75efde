//! The blocks of a warp: which rows and columns it loads from a stage, and in which order it multiplies them.

use core::marker::PhantomData;

use cutlet_device::ThreadIdx;
use cutlet_layout_core::{
    Fragment, Layout, M as Mode, StaticLayout, StaticSwizzle, ThreadValue, WarpAccess, Width,
    compose_coordinates, each,
};

use super::arithmetic::{Arithmetic, Lines};
use super::config::{Blocks, Warps};
use crate::gemm::config::Tile;
use crate::gemm::multistage::Product;
use crate::gemm::multistage::config::{Accumulators, StageTile};
use crate::gemm::multistage::staging::Staging;

/// Products of warps by `mma.sync`. `A` and `B` are a [`Staging`] and the [`Lines`] of its stages.
#[derive(Clone, Copy, Debug)]
pub struct WarpProduct<I, A, B, Tl, Wp, Bl>(PhantomData<(I, A, B, Tl, Wp, Bl)>);

/// The extents of a [`WarpProduct`].
pub trait Extents: Copy + 'static {
    /// The arithmetic.
    type Arithmetic: Arithmetic;
    /// The steps of a stage.
    const STEPS: usize;
    /// Warps of a block of threads, below one another and side by side.
    const WARPS: [usize; 2];
    /// Blocks of a warp, below one another and side by side.
    const BLOCKS: [usize; 2];
}

impl<
    I: Arithmetic,
    A: Copy + 'static,
    B: Copy + 'static,
    const M: usize,
    const N: usize,
    const K: usize,
    const WM: usize,
    const WN: usize,
    const BM: usize,
    const BN: usize,
> Extents for WarpProduct<I, A, B, Tile<M, N, K>, Warps<WM, WN>, Blocks<BM, BN>>
{
    type Arithmetic = I;
    const STEPS: usize = K / I::STEP;
    const WARPS: [usize; 2] = [WM, WN];
    const BLOCKS: [usize; 2] = [BM, BN];
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
    fn load(a: StageTile<A>, b: StageTile<B>, step: usize, thread: ThreadIdx) -> Self::Fragments {
        const {
            assert!(
                is_free_of_conflicts::<Self, A, LA, 0>()
                    && is_free_of_conflicts::<Self, B, LB, 1>()
            )
        }
        let a = a.partition::<Loads<Self, LA, 0>>(thread);
        let b = b.partition::<Loads<Self, LB, 1>>(thread);
        // SAFETY: the kernel's barriers order the stage's writes before this.
        unsafe {
            (
                Fragment::from_fn(|nth| LA::load(a.engine_at(BM * step + nth))),
                Fragment::from_fn(|nth| LB::load(b.engine_at(BN * step + nth))),
            )
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn multiply((a, b): &Self::Fragments, accumulators: &mut Accumulators<Self>) {
        let b = b.map(|_, loaded| I::prepare(loaded));
        let (size, parts) = const { (I::Accumulators::SIZE, I::Parts::SIZE) };
        // A part of all blocks of a row comes before the next part, which has to wait for the same accumulators.
        each::<(Mode<BN, 1>, I::Parts, Mode<BM, 1>)>(|nth| {
            let (row, part, column) = (nth / BN / parts, nth / BN % parts, nth % BN);
            let first = size * (BN * row + column);
            let mut block = Fragment::from_fn(|v| accumulators.get(first + v));
            I::add(part, &mut block, I::prepare(a.get(row)), b.get(column));
            each::<I::Accumulators>(|v| accumulators.set(first + v, block.get(v)));
        });
    }
}

/// The steps of a k-tile.
#[derive(Clone, Copy)]
pub struct Steps<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for Steps<P> {
    const LAYOUT: Layout = Layout::static_mode(P::STEPS as i64, 1);
    type Storage<T: Copy> = [T; 256];
}

/// Thread-value layout of the loads of a stage of A (`SIDE` 0) or B (`SIDE` 1) with lines along `J`, as (mn, k): which
/// element's address a thread passes. The loads of a step come before those of the next one.
#[derive(Clone, Copy)]
struct Loads<P, J, const SIDE: usize>(PhantomData<(P, J)>);

impl<P: Extents, J: Lines<P::Arithmetic>, const SIDE: usize> ThreadValue for Loads<P, J, SIDE> {
    type Thr = LoadThreads<P, J, SIDE>;
    type Val = LoadValues<P, SIDE>;
    type Width = Width<1>;
}

/// Whether a warp's loads of 16 bytes a thread are free of bank conflicts.
const fn is_free_of_conflicts<P, S, J, const SIDE: usize>() -> bool
where
    P: Extents,
    S: Staging,
    J: Lines<P::Arithmetic>,
{
    let vector = (16 / size_of::<S::Element>()) as i64;
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
    type Storage<T: Copy> = [T; 256];
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

/// The first element of each of a warp's loads.
#[derive(Clone, Copy)]
struct LoadValues<P, const SIDE: usize>(PhantomData<P>);

impl<P: Extents, const SIDE: usize> StaticLayout for LoadValues<P, SIDE> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(P::BLOCKS[SIDE] as i64, P::Arithmetic::BLOCK as i64, 0),
        Layout::static_basis_mode(P::STEPS as i64, P::Arithmetic::STEP as i64, 1),
    ]);
    type Storage<T: Copy> = [T; 256];
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
    type Thr = <<P::Arithmetic as Arithmetic>::C as ThreadValue>::Thr;
    type Val = SubtileValues<P>;
    type Width = <<P::Arithmetic as Arithmetic>::C as ThreadValue>::Width;
}

/// A thread's accumulators of an epilogue subtile. They are never in a fragment of their own.
#[derive(Clone, Copy)]
pub struct SubtileValues<P>(PhantomData<P>);

impl<P: Extents> StaticLayout for SubtileValues<P> {
    const LAYOUT: Layout = {
        let block = P::Arithmetic::BLOCK;
        Layout::concat(&[
            <<P::Arithmetic as Arithmetic>::C as ThreadValue>::Val::LAYOUT,
            Layout::static_basis_mode(P::BLOCKS[1] as i64, block as i64, 1),
            Layout::static_basis_mode((rows_of_a_subtile::<P>() / block) as i64, block as i64, 0),
        ])
    };
    type Storage<T: Copy> = [T; 256];
}
