//! The product of a stage: each warp multiplies the rows and columns of its rectangle of C, by a tiled MMA.

use core::marker::PhantomData;

use cutlet_device::tile::SharedTile;
use cutlet_device::tiled::{
    FragmentA, FragmentB, LoadAAccess, LoadBAccess, LoadOperands, SharedAccess,
    assert_conflict_free,
};
use cutlet_device::{MmaInstruction, ThreadGroup, ThreadIdx};
use cutlet_layout_core::{
    E, Fragment, FragmentLayout, Layout, M as Mode, Mma, MmaAtom, OperandC, PartitionValues,
    Repeats, StaticLayout, TileShape, TiledMma, each,
};

use super::arithmetic::{Arithmetic, ElementOf, Lines};
use super::config::{Accumulators, Product};
use super::staging::{StageTile, Staging};
use super::subtile::{Subtile, subtile};
use super::warps::{InRectangles, Rectangles, Warps};
use crate::gemm::config::Tile;
use crate::gemm::epilogue::Accumulator;

/// Products of the warps `Wp` by the arithmetic `I`. `A` and `B` are a [`Staging`] and the [`Lines`] of its stages.
#[derive(Clone, Copy, Debug)]
pub struct WarpProduct<I, A, B, Tl, Wp>(PhantomData<(I, A, B, Tl, Wp)>);

/// The tiled MMA of a [`WarpProduct`].
type MmaOf<I, A, B, Tl, Wp> = TiledMma<I, Wp, InRectangles<WarpProduct<I, A, B, Tl, Wp>>>;
/// A tile with so many rows and columns.
type TileOf<const ROWS: usize, const COLUMNS: usize> = (E<ROWS, 1, 0>, E<COLUMNS, 1, 1>);
/// The memory of a stage.
type Stage<S> =
    SharedTile<<S as Staging>::Element, <S as Staging>::Layout, <S as Staging>::Swizzle>;
/// The atoms that each of so many warps has along an extent.
type Times<const EXTENT: usize, Unit, const WARPS: usize> =
    <Mode<EXTENT, 1> as Repeats<Unit, Mode<WARPS, 1>>>::Times;

impl<I, A, B, Tl, const WM: usize, const WN: usize> ThreadGroup
    for WarpProduct<I, A, B, Tl, Warps<WM, WN>>
where
    Self: Copy + 'static,
{
    const THREADS: u32 = (32 * WM * WN) as u32;
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
> Rectangles for WarpProduct<I, (A, LA), (B, LB), Tile<M, N, K>, Warps<WM, WN>>
{
    const ATOM: MmaAtom = <I as Mma>::ATOM;
    const TILE: [usize; 2] = [M, N];
    const WARPS: [usize; 2] = [WM, WN];
    const ORDER: [Layout; 2] = [LA::ORDER[0], LB::ORDER[1]];
    const ORDER_OF_K: Layout = I::ORDER_OF_K;
}

impl<
    I: Arithmetic,
    A: Staging<
            Element = ElementOf<I>,
            Layout: TileShape<Extents = TileOf<M, K>, Rows = Mode<M, 1>, Columns = Mode<K, 1>>,
        >,
    B: Staging<
            Element = ElementOf<I>,
            Layout: TileShape<Extents = TileOf<N, K>, Rows = Mode<N, 1>, Columns = Mode<K, 1>>,
        >,
    LA: Lines<I>,
    LB: Lines<I>,
    const M: usize,
    const N: usize,
    const K: usize,
    const WM: usize,
    const WN: usize,
> Product for WarpProduct<I, (A, LA), (B, LB), Tile<M, N, K>, Warps<WM, WN>>
where
    Mode<M, 1>: Repeats<<I as Mma>::M, Mode<WM, 1>>,
    Mode<N, 1>: Repeats<<I as Mma>::N, Mode<WN, 1>>,
    Mode<K, 1>: Repeats<<I as Mma>::K, Mode<1, 1>>,
    LoadAAccess<LA::LoadA, MmaOf<I, (A, LA), (B, LB), Tile<M, N, K>, Warps<WM, WN>>, Stage<A>>:
        SharedAccess,
    LoadBAccess<LB::LoadB, MmaOf<I, (A, LA), (B, LB), Tile<M, N, K>, Warps<WM, WN>>, Stage<B>>:
        SharedAccess,
{
    type A = A;
    type B = B;
    type Acc = I::Acc;
    type Mma = MmaOf<I, (A, LA), (B, LB), Tile<M, N, K>, Warps<WM, WN>>;
    type Values = PartitionValues<Self::Mma, OperandC, TileOf<M, N>>;
    type Rows = (
        I::Values,
        Times<N, <I as Mma>::N, WN>,
        Times<M, <I as Mma>::M, WM>,
    );
    type Subtile = Subtile<Self, LB::Width>;
    const SUBTILE: [usize; 2] = subtile::<Self>();
    const SUBTILES: usize = M / WM / Self::SUBTILE[0];

    type Fragments = (
        FragmentA<I, Warps<WM, WN>, TileOf<M, K>>,
        FragmentB<I, Warps<WM, WN>, TileOf<N, K>>,
    );
    type Steps = Steps<I, Tile<M, N, K>>;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load(
        a: StageTile<A>,
        b: StageTile<B>,
        step: usize,
        thread: ThreadIdx<Self>,
    ) -> Self::Fragments {
        const {
            assert_conflict_free::<LoadAAccess<LA::LoadA, Self::Mma, Stage<A>>>();
            assert_conflict_free::<LoadBAccess<LB::LoadB, Self::Mma, Stage<B>>>();
        }
        let mma = Self::Mma::thread_slice(thread);
        (
            LA::LoadA::load_a(mma, a, step),
            LB::LoadB::load_b(mma, b, step),
        )
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn multiply((a, b): &Self::Fragments, accumulators: &mut Accumulators<Self>) {
        let b = b.map(|_, registers| I::prepare_b(registers));
        let rows = const { Times::<M, <I as Mma>::M, WM>::SIZE };
        let of_an_atom = const { I::Values::SIZE };
        each::<Times<M, <I as Mma>::M, WM>>(|m| {
            let a = I::prepare_a(a.get(m));
            // The accumulators of the atoms in this row.
            let at = |v: usize| v % of_an_atom + of_an_atom * (m + rows * (v / of_an_atom));
            let mut sums =
                Fragment::<I::Acc, RowOfAtoms<I, N, WN>>::from_fn(|v| match I::ADDS_STEPS {
                    true => I::Acc::ZERO,
                    false => accumulators.get(at(v)),
                });
            multiply_row::<I, _>(a, |n| b.get(n), &mut sums);
            each::<RowOfAtoms<I, N, WN>>(|v| {
                let sum = match I::ADDS_STEPS {
                    true => accumulators.get(at(v)).plus(sums.get(v)),
                    false => sums.get(v),
                };
                accumulators.set(at(v), sum);
            });
        });
    }

    #[inline(always)]
    fn by_rows(accumulators: &Accumulators<Self>) -> Fragment<I::Acc, Self::Rows> {
        let (of_an_atom, rows, columns) = const {
            (
                I::Values::SIZE,
                Times::<M, <I as Mma>::M, WM>::SIZE,
                Times::<N, <I as Mma>::N, WN>::SIZE,
            )
        };
        Fragment::from_fn(|v| {
            let (atom, v) = (v / of_an_atom, v % of_an_atom);
            let (m, n) = (atom / columns, atom % columns);
            accumulators.get(v + of_an_atom * (m + rows * n))
        })
    }
}

/// A thread's accumulators of the atoms side by side.
type RowOfAtoms<I, const N: usize, const WN: usize> =
    (<I as MmaInstruction>::Values, Times<N, <I as Mma>::N, WN>);

/// Multiplies an atom's rows of A by the columns of all atoms side by side. A part of all products comes before the
/// next part, which has to wait for the same accumulators.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn multiply_row<I: Arithmetic, Columns: FragmentLayout>(
    a: I::OperandA,
    b: impl Fn(usize) -> I::OperandB,
    sums: &mut Fragment<I::Acc, (I::Values, Columns)>,
) {
    let of_an_atom = const { I::Values::SIZE };
    each::<(Columns, I::Parts)>(|nth| {
        let (part, n) = (nth / Columns::SIZE, nth % Columns::SIZE);
        let mut of_atom = Fragment::from_fn(|v| sums.get(of_an_atom * n + v));
        I::add(part, &mut of_atom, a, b(n));
        each::<I::Values>(|v| sums.set(of_an_atom * n + v, of_atom.get(v)));
    });
}

/// The steps of a k-tile.
#[derive(Clone, Copy)]
pub struct Steps<I, Tl>(PhantomData<(I, Tl)>);

impl<I: Arithmetic, const M: usize, const N: usize, const K: usize> StaticLayout
    for Steps<I, Tile<M, N, K>>
{
    const LAYOUT: Layout = Layout::static_mode((K / <I as Mma>::K::SIZE) as i64, 1);
}
