//! Operand A of `wgmma`, from shared memory to registers.

use core::marker::PhantomData;

use cutlet_layout_core::{
    Arrangement, InOrder, M as Mode, Matrices, Mma, OperandA, PartitionA, Repeats, StaticLayout,
    ThreadIndex, ThreadMma, ThreadValue, TileShape, Tiled, TiledMma,
};

use super::load::{UNREADABLE, assert_rows, times};
use super::{ByElement, LdMatrix, LdMatrixTransposed};
use crate::sm90::{FragmentA, RegisterA, RegisterElement, WgmmaInstruction};
use crate::{MmaInstruction, Shared, ldmatrix, ldmatrix_transposed};

/// The instruction `I` with A in registers, of which each thread has its own elements.
#[derive(Clone, Copy, Debug)]
pub struct AFromRegisters<I>(PhantomData<I>);

impl<I: WgmmaInstruction<A: RegisterElement> + Mma> Mma for AFromRegisters<I> {
    type LayoutA = <<I as MmaInstruction>::A as RegisterElement>::LayoutA;
    type LayoutB = I::LayoutB;
    type LayoutC = I::LayoutC;
    type RowsOfC = I::RowsOfC;
    type M = I::M;
    type N = I::N;
    type K = I::K;
    const NAME: &'static str = I::NAME;
}

/// A tile in shared memory whose rows the warpgroups `W` read as operand A of `I`: M×K.
pub trait TileOfRegistersA<I: WgmmaInstruction + Mma, W: Arrangement>:
    Tiled<
        Engine = Shared<<I as MmaInstruction>::A>,
        Tile: TileShape<
            Rows: Repeats<<I as Mma>::M, W::Below>,
            Columns: Repeats<<I as Mma>::K, Mode<1, 1>>,
        >,
    >
{
}

impl<I: WgmmaInstruction + Mma, W: Arrangement, S> TileOfRegistersA<I, W> for S where
    S: Tiled<
            Engine = Shared<<I as MmaInstruction>::A>,
            Tile: TileShape<
                Rows: Repeats<<I as Mma>::M, W::Below>,
                Columns: Repeats<<I as Mma>::K, Mode<1, 1>>,
            >,
        >
{
}

/// Instructions that read operand A of `I` from shared memory to registers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not read operand A of `{I}` to registers",
    note = "`LdMatrix` reads tiles along k, `LdMatrixTransposed` tiles of 16-bit elements along m, and `ByElement` all"
)]
pub trait LoadRegistersA<I: WgmmaInstruction<A: RegisterElement> + Mma>: Copy {
    /// Whether it transposes the matrices that it reads, if it reads matrices.
    #[doc(hidden)]
    const TRANSPOSED: Option<bool> = None;

    /// The registers of the `nth` instruction's rows in one step along k.
    #[doc(hidden)]
    fn load<W: Arrangement, X: ThreadIndex, S: TileOfRegistersA<I, W>>(
        mma: ThreadMma<TiledMma<I, W>, X>,
        tile: S,
        nth: usize,
        step: usize,
    ) -> RegisterA<<I as MmaInstruction>::A>;
}

/// Reads an M×K tile of A from shared memory to the registers of [`gemm_from_registers`](super::gemm_from_registers):
/// for each of the `ATOMS` instructions' rows of a warpgroup, and each of the `STEPS` along k. All threads of the tiled
/// MMA call it, before [`warpgroup_arrive`](crate::sm90::warpgroup_arrive). `atom` is the instruction that reads them.
///
/// [`gemm_from_registers`](super::gemm_from_registers) has an example.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn load_registers_a<Atom, I, W, X, S, const STEPS: usize, const ATOMS: usize>(
    _atom: Atom,
    mma: ThreadMma<TiledMma<I, W>, X>,
    tile: S,
) -> [[RegisterA<<I as MmaInstruction>::A>; STEPS]; ATOMS]
where
    Atom: LoadRegistersA<I>,
    I: WgmmaInstruction<A: RegisterElement> + Mma,
    W: Arrangement,
    X: ThreadIndex,
    S: TileOfRegistersA<I, W>,
{
    const {
        assert!(
            ATOMS == times::<S::Tile, <I as Mma>::M, W::Below>(),
            "load_registers_a: the tile has other rows than the registers: M is 64, times the warpgroups below one \
             another, times the `ATOMS`"
        );
        assert!(
            STEPS * <I as MmaInstruction>::K == <S::Tile as TileShape>::Columns::SIZE,
            "load_registers_a: the tile has other k than the registers: k is that of the instruction, times the `STEPS`"
        );
        assert_rows::<
            S,
            <I as MmaInstruction>::A,
            MatricesOfA<I, W, S::Tile, false>,
            MatricesOfA<I, W, S::Tile, true>,
        >(Atom::TRANSPOSED, UNREADABLE);
    }
    core::array::from_fn(|nth| core::array::from_fn(|step| Atom::load(mma, tile, nth, step)))
}

/// The threads' elements of A.
type Registers<I, W> = TiledMma<AFromRegisters<I>, W, InOrder>;
/// Where the matrices of an M×K tile of A begin.
type MatricesOfA<I, W, Tile, const TRANSPOSED: bool> =
    Matrices<Registers<I, W>, OperandA, Tile, <I as MmaInstruction>::A, TRANSPOSED>;

macro_rules! by_matrices {
    ($atom:ty: $load:ident, $is_transposed:literal) => {
        impl<I: WgmmaInstruction<A: RegisterElement> + Mma> LoadRegistersA<I> for $atom {
            const TRANSPOSED: Option<bool> = Some($is_transposed);

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn load<W: Arrangement, X: ThreadIndex, S: TileOfRegistersA<I, W>>(
                mma: ThreadMma<TiledMma<I, W>, X>,
                tile: S,
                nth: usize,
                step: usize,
            ) -> RegisterA<<I as MmaInstruction>::A> {
                let rows = tile
                    .partition_tile_broadcast::<MatricesOfA<I, W, S::Tile, $is_transposed>>(
                        mma.thread(),
                    );
                let first = step * const { times::<S::Tile, <I as Mma>::M, W::Below>() };
                // SAFETY: the tensor's creator promised its elements, and that barriers order their writes before.
                RegisterA::of_words(unsafe { $load(rows.engine_at(first + nth)) })
            }
        }
    };
}
by_matrices!(LdMatrix: ldmatrix, false);
by_matrices!(LdMatrixTransposed: ldmatrix_transposed, true);

impl<I: WgmmaInstruction<A: RegisterElement> + Mma> LoadRegistersA<I> for ByElement {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load<W: Arrangement, X: ThreadIndex, S: TileOfRegistersA<I, W>>(
        mma: ThreadMma<TiledMma<I, W>, X>,
        tile: S,
        nth: usize,
        step: usize,
    ) -> RegisterA<<I as MmaInstruction>::A> {
        let part =
            tile.partition_tile_broadcast::<PartitionA<Registers<I, W>, S::Tile>>(mma.thread());
        let of_a_step = const { times::<S::Tile, <I as Mma>::M, W::Below>() };
        let of_an_atom = const {
            <<<I as MmaInstruction>::A as RegisterElement>::LayoutA as ThreadValue>::Val::SIZE
        };
        let first = of_an_atom * (of_a_step * step + nth);
        let elements = FragmentA::<<I as MmaInstruction>::A>::from_fn(|v| {
            // SAFETY: as above.
            unsafe { cutlet_layout_core::Engine::load(part.engine_at(first + v), 0) }
        });
        RegisterA::new(&elements)
    }
}
