//! Operands of a tiled MMA, from shared memory to the registers of the threads that multiply them.

use cutlet_layout_core::{
    Arrangement, Bound, Fragment, FragmentLayout, Inner, M as Mode, Matrices, MatrixRows, Mma,
    OperandA, OperandB, Permutation, Repeats, StaticLayout, ThreadIndex, ThreadMma, ThreadValue,
    TileShape, Tiled, TiledMma, each,
};

use crate::sm80::WarpMma;
use crate::{MmaInstruction, Shared, ldmatrix, ldmatrix_transposed};

/// How often a tile's rows repeat the rows `Unit` of an instruction in each of `Units` warps.
pub(super) type Times<Tile, Unit, Units> =
    <<Tile as TileShape>::Rows as Repeats<Unit, Units>>::Times;

/// [`Times`], as a number.
pub(super) const fn times<Tile: TileShape<Rows: Repeats<Unit, Units>>, Unit, Units>() -> usize {
    Times::<Tile, Unit, Units>::SIZE
}

/// A thread's registers of an M×K tile of A in one step along k, by rows of instructions.
pub type FragmentA<I, W, Tile> =
    Fragment<<I as WarpMma>::FragmentA, Times<Tile, <I as Mma>::M, <W as Arrangement>::Below>>;
/// A thread's registers of an N×K tile of B in one step along k, by rows of instructions.
pub type FragmentB<I, W, Tile> =
    Fragment<<I as WarpMma>::FragmentB, Times<Tile, <I as Mma>::N, <W as Arrangement>::Aside>>;

/// A tile in shared memory that the warps `W` of a tiled MMA of `I` read as operand A: M×K.
pub trait TileOfA<I: WarpMma + Mma, W: Arrangement>:
    Tiled<
        Engine = Shared<<I as MmaInstruction>::A>,
        Tile: TileShape<Rows: Repeats<I::M, W::Below>, Columns: Repeats<I::K, Mode<1, 1>>>,
    >
{
}

/// A tile in shared memory that the warps `W` of a tiled MMA of `I` read as operand B: N×K.
pub trait TileOfB<I: WarpMma + Mma, W: Arrangement>:
    Tiled<
        Engine = Shared<<I as MmaInstruction>::B>,
        Tile: TileShape<Rows: Repeats<I::N, W::Aside>, Columns: Repeats<I::K, Mode<1, 1>>>,
    >
{
}

impl<I: WarpMma + Mma, W: Arrangement, S> TileOfA<I, W> for S where
    S: Tiled<
            Engine = Shared<<I as MmaInstruction>::A>,
            Tile: TileShape<Rows: Repeats<I::M, W::Below>, Columns: Repeats<I::K, Mode<1, 1>>>,
        >
{
}

impl<I: WarpMma + Mma, W: Arrangement, S> TileOfB<I, W> for S where
    S: Tiled<
            Engine = Shared<<I as MmaInstruction>::B>,
            Tile: TileShape<Rows: Repeats<I::N, W::Aside>, Columns: Repeats<I::K, Mode<1, 1>>>,
        >
{
}

/// Instructions that read operands of `I` from shared memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not read operands of `{I}`",
    note = "`LdMatrix` reads elements of up to 32 bits along k, `LdMatrixTransposed` elements of 16 bits along m or n, and \
            `VectorsAlongK`, `VectorsAlongMn` and `ByElement` all"
)]
pub trait LoadOperands<I: WarpMma + Mma>: Copy {
    /// Whether it transposes the matrices that it reads, if it reads matrices.
    #[doc(hidden)]
    const TRANSPOSED: Option<bool> = None;

    /// See [`load_a`].
    fn load_a<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfA<I, W>>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        step: usize,
    ) -> FragmentA<I, W, S::Tile>;

    /// See [`load_b`].
    fn load_b<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfB<I, W>>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        step: usize,
    ) -> FragmentB<I, W, S::Tile>;
}

/// Reads the registers that the thread multiplies in one step along k of an M×K tile of A. All threads of the tiled MMA
/// call it. `atom` is the instruction that reads them.
///
/// A tile has as many steps as [`Steps`](cutlet_layout_core::Steps) says.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn load_a<Atom, I, W, P, X, S>(
    _atom: Atom,
    mma: ThreadMma<TiledMma<I, W, P>, X>,
    tile: S,
    step: usize,
) -> FragmentA<I, W, S::Tile>
where
    Atom: LoadOperands<I>,
    I: WarpMma + Mma,
    W: Arrangement,
    P: Permutation,
    X: ThreadIndex,
    S: TileOfA<I, W>,
{
    // Here, so that an error names the line of the caller.
    const {
        assert_rows::<
            S,
            <I as MmaInstruction>::A,
            MatricesOfA<I, W, P, S::Tile, false>,
            MatricesOfA<I, W, P, S::Tile, true>,
        >(Atom::TRANSPOSED, UNREADABLE)
    }
    Atom::load_a(mma, tile, step)
}

/// Reads the registers that the thread multiplies in one step along k of an N×K tile of B: see [`load_a`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn load_b<Atom, I, W, P, X, S>(
    _atom: Atom,
    mma: ThreadMma<TiledMma<I, W, P>, X>,
    tile: S,
    step: usize,
) -> FragmentB<I, W, S::Tile>
where
    Atom: LoadOperands<I>,
    I: WarpMma + Mma,
    W: Arrangement,
    P: Permutation,
    X: ThreadIndex,
    S: TileOfB<I, W>,
{
    const {
        assert_rows::<
            S,
            <I as MmaInstruction>::B,
            MatricesOfB<I, W, P, S::Tile, false>,
            MatricesOfB<I, W, P, S::Tile, true>,
        >(Atom::TRANSPOSED, UNREADABLE)
    }
    Atom::load_b(mma, tile, step)
}

/// `ldmatrix`: elements of 8, 16 or 32 bits, in tiles of which each 16 bytes along k are consecutive in shared memory.
///
/// A tile that is consecutive along m does not compile:
///
/// ```compile_fail,E0080
/// use cutlet_device::sm80::Mma16816;
/// use cutlet_device::tile::MnMajorTile;
/// use cutlet_device::tiled::{LdMatrix, load_a};
/// use cutlet_device::{kernel, thread_idx};
/// use cutlet_layout_core::{L, TiledMma};
/// use half::bf16;
///
/// type Mma = TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>;
///
/// # /// # Safety
/// # /// None.
/// #[kernel(threads = 128)]
/// unsafe fn product(#[shared] a: MnMajorTile<bf16, 64, 32>) {
///     load_a(LdMatrix, Mma::thread_slice(thread_idx()), unsafe { a.tensor() }, 0);
/// }
/// # fn main() { product.body(); }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LdMatrix;

/// `ldmatrix.trans`: elements of 16 bits, in tiles of which each 16 bytes along m, or n, are consecutive in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct LdMatrixTransposed;

/// One load for each element, wherever it is.
#[derive(Clone, Copy, Debug)]
pub struct ByElement;

/// Where the matrices of an M×K tile of A begin.
type MatricesOfA<I, W, P, Tile, const TRANSPOSED: bool> =
    Matrices<TiledMma<I, W, P>, OperandA, Tile, <I as MmaInstruction>::A, TRANSPOSED>;
/// Where the matrices of an N×K tile of B begin.
type MatricesOfB<I, W, P, Tile, const TRANSPOSED: bool> =
    Matrices<TiledMma<I, W, P>, OperandB, Tile, <I as MmaInstruction>::B, TRANSPOSED>;

/// What is wrong with a tile that an atom cannot read.
pub(super) const UNREADABLE: &str = "the rows that `ldmatrix` reads are not 16 bytes side by side in this tile: \
    `LdMatrix` is for tiles that are consecutive along k, `LdMatrixTransposed` for those along m or n, and `ByElement` \
    for all others";

/// How many elements of a row of the matrices `M` are side by side in the tile. It is a function, because the compiler
/// evaluates the constants of both branches of a `match`, and not every element has transposed matrices.
const fn run<S: Tiled, M>() -> usize
where
    MatrixRows<M>: FragmentLayout,
{
    <<S::Inner as Inner>::Bound<MatrixRows<M>> as Bound>::RUN
}

/// Panics unless the rows of the `Plain` matrices, or of the `Transposed` ones, are 16 bytes side by side in the tile,
/// if an atom moves matrices.
pub(super) const fn assert_rows<S: Tiled, Element, Plain, Transposed>(
    transposed: Option<bool>,
    message: &'static str,
) where
    MatrixRows<Plain>: FragmentLayout,
    MatrixRows<Transposed>: FragmentLayout,
{
    let run = match transposed {
        Some(false) => run::<S, Plain>(),
        Some(true) => run::<S, Transposed>(),
        None => return,
    };
    if run * size_of::<Element>() < 16 {
        panic!("{}", message);
    }
}

/// Implements an atom that loads four matrices for an instruction's A, and for two instructions' B, or two for one
/// instruction's if a thread has an odd number of them.
macro_rules! by_matrices {
    ($atom:ty: $load:ident, $is_transposed:literal) => {
        impl<I: WarpMma<FragmentA = [u32; 4], FragmentB: From<[u32; 2]>> + Mma> LoadOperands<I>
            for $atom
        {
            const TRANSPOSED: Option<bool> = Some($is_transposed);

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn load_a<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfA<I, W>>(
                mma: ThreadMma<TiledMma<I, W, P>, X>,
                tile: S,
                step: usize,
            ) -> FragmentA<I, W, S::Tile> {
                let rows = tile
                    .partition_tile_broadcast::<MatricesOfA<I, W, P, S::Tile, $is_transposed>>(
                        mma.thread(),
                    );
                let first = step * const { Times::<S::Tile, I::M, W::Below>::SIZE };
                Fragment::from_fn(|nth| {
                    // SAFETY: the tensor's creator promised its elements, and that barriers order their writes before.
                    unsafe { $load(rows.engine_at(first + nth)) }
                })
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn load_b<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfB<I, W>>(
                mma: ThreadMma<TiledMma<I, W, P>, X>,
                tile: S,
                step: usize,
            ) -> FragmentB<I, W, S::Tile> {
                let rows = tile
                    .partition_tile_broadcast::<MatricesOfB<I, W, P, S::Tile, $is_transposed>>(
                        mma.thread(),
                    );
                let first = step * const { Times::<S::Tile, I::N, W::Aside>::SIZE };
                let mut registers = Fragment::filled(I::FragmentB::from([0; 2]));
                each::<Times<S::Tile, I::N, W::Aside>>(|nth| {
                    if const { MatricesOfB::<I, W, P, S::Tile, $is_transposed>::MATRICES == 2 } {
                        // SAFETY: as for A.
                        let loaded: [u32; 2] = unsafe { $load(rows.engine_at(first + nth)) };
                        registers.set(nth, loaded.into());
                    } else if nth % 2 == 0 {
                        // SAFETY: as for A.
                        let [a, b, c, d] = unsafe { $load(rows.engine_at((first + nth) / 2)) };
                        registers.set(nth, [a, b].into());
                        registers.set(nth + 1, [c, d].into());
                    }
                });
                registers
            }
        }
    };
}
by_matrices!(LdMatrix: ldmatrix, false);
by_matrices!(LdMatrixTransposed: ldmatrix_transposed, true);

/// Reads the registers of each instruction of a step: `$count` elements of the partition `$part` each.
macro_rules! element_by_element {
    ($part:ident, $step:ident, $values:ty, $times:ty, $registers:path) => {{
        let of_a_step = const { <$times>::SIZE } * $step;
        Fragment::from_fn(|nth| {
            let first = const { <$values>::SIZE } * (of_a_step + nth);
            // SAFETY: the tensor's creator promised its elements, and that barriers order their writes before.
            $registers(|v| unsafe { $part.engine_at(first + v).load(0) })
        })
    }};
}

impl<I: WarpMma + Mma> LoadOperands<I> for ByElement {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load_a<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfA<I, W>>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        step: usize,
    ) -> FragmentA<I, W, S::Tile> {
        let part = mma.partition_a(tile);
        element_by_element!(
            part,
            step,
            <<I as Mma>::LayoutA as ThreadValue>::Val,
            Times<S::Tile, I::M, W::Below>,
            I::registers_a
        )
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load_b<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfB<I, W>>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        step: usize,
    ) -> FragmentB<I, W, S::Tile> {
        let part = mma.partition_b(tile);
        element_by_element!(
            part,
            step,
            <<I as Mma>::LayoutB as ThreadValue>::Val,
            Times<S::Tile, I::N, W::Aside>,
            I::registers_b
        )
    }
}
