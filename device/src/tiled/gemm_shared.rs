//! Products of tiles in shared memory, by the instructions of warpgroups.

use cutlet_layout_core::{
    Arrangement, Fragment, FragmentLayout, InOrder, Mma, OperandC, PartitionValues, StaticLayout,
    Steps, ThreadIndex, ThreadMma, TileShape, TiledMma, each,
};

use super::FragmentC;
use crate::MmaInstruction;
use crate::operand::{OperandA, OperandB, SharedOperand};
use crate::sm90::{Accumulator, WgmmaGroup, WgmmaInstruction};
use crate::warpgroup::WarpgroupsThread;

/// The rows of an operand's tile.
pub(super) const fn rows<L: TileShape>() -> usize {
    L::Rows::SIZE
}

/// Issues the products of an M×K tile of A and an N×K tile of B in shared memory: `c = a·bᵀ`, or `c += a·bᵀ` if
/// `accumulate`. All threads of the tiled MMA call it, each warpgroup in a group of its own. [`wait_c`] returns the
/// accumulators.
///
/// `ATOMS` is how many instructions' rows of A a warpgroup has: M over 64 times the warpgroups below one another. B has
/// the columns of one instruction for each of the warpgroups side by side. The warpgroups of a block that multiply are
/// counted by [`ThreadOfWarpgroups`](crate::warpgroup::ThreadOfWarpgroups) if others load.
///
/// # Safety
/// The tiles must be visible to the instruction: loaded by TMA, or written before a
/// [`fence_async_shared`](crate::fence_async_shared). Nothing may overwrite them before the group was waited for. The first
/// call for [`new`](Accumulator::new_array) accumulators must not `accumulate`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn gemm_shared<I, W, X, A, B, const ATOMS: usize>(
    group: &WgmmaGroup,
    mma: ThreadMma<TiledMma<I, W>, X>,
    a: A,
    b: B,
    c: &mut [Accumulator<I>; ATOMS],
    accumulate: bool,
) where
    I: WgmmaInstruction + Mma,
    W: Arrangement,
    X: WarpgroupsThread,
    A: SharedOperand<OperandA<I>>,
    B: SharedOperand<OperandB<I>>,
{
    const {
        assert!(
            rows::<A::Layout>() == <I as MmaInstruction>::M * W::Below::SIZE * ATOMS,
            "gemm_shared: a warpgroup has other rows of A than accumulators: M is 64, times the warpgroups below one \
             another, times the number of accumulators"
        );
        assert!(
            rows::<B::Layout>() == <I as MmaInstruction>::N * W::Aside::SIZE,
            "gemm_shared: B has other rows than the instruction's N for each of the warpgroups side by side"
        );
        assert!(
            <A::Layout as TileShape>::Columns::SIZE == <B::Layout as TileShape>::Columns::SIZE,
            "gemm_shared: the tiles of A and B have different k"
        );
    }
    let warpgroup = mma.thread().warpgroup();
    let b = b.operand().rows(aside::<W>(warpgroup));
    for (nth, c) in c.iter_mut().enumerate() {
        let row = below::<W>(warpgroup) + const { W::Below::SIZE as u32 } * nth as u32;
        let a = a.operand().rows(row);
        // SAFETY: as promised by the caller.
        unsafe {
            if const { Steps::<TiledMma<I, W>, A::Layout>::SIZE == 4 } {
                let a = [a.k_step(0), a.k_step(1), a.k_step(2), a.k_step(3)];
                let b = [b.k_step(0), b.k_step(1), b.k_step(2), b.k_step(3)];
                group.mma_x4(c, a, b, accumulate);
            } else {
                each::<Steps<TiledMma<I, W>, A::Layout>>(|step| {
                    group.mma(c, a.k_step(step), b.k_step(step), accumulate || step > 0);
                });
            }
        }
    }
}

/// How many warpgroups are above a warpgroup.
#[inline(always)]
fn below<W: Arrangement>(warpgroup: u32) -> u32 {
    place::<W, 0>(warpgroup)
}

/// How many warpgroups are to the left of a warpgroup.
#[inline(always)]
pub(super) fn aside<W: Arrangement>(warpgroup: u32) -> u32 {
    place::<W, 1>(warpgroup)
}

/// The place of a warpgroup along a direction, 0 for those below one another and 1 for those side by side.
#[inline(always)]
fn place<W: Arrangement, const ALONG: usize>(warpgroup: u32) -> u32 {
    let count = const { W::LAYOUT.mode(ALONG).size() as u32 };
    // The distance between the numbers of neighbours.
    let step = const { W::LAYOUT.mode(ALONG).stride().leaf(0).value() as u32 };
    if count == 1 {
        0
    } else if step * count == const { W::SIZE as u32 } {
        // There are no more warpgroups, which the compiler does not know.
        warpgroup / step
    } else {
        warpgroup / step % count
    }
}

/// Waits for all groups, and returns the thread's accumulators of an M×N tile of C. All threads of the warpgroup call it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn wait_c<I, W, X, Tile, const ATOMS: usize>(
    _mma: ThreadMma<TiledMma<I, W>, X>,
    accumulators: [Accumulator<I>; ATOMS],
) -> FragmentC<I, W, InOrder, Tile>
where
    I: WgmmaInstruction + Mma,
    W: Arrangement,
    X: ThreadIndex,
    PartitionValues<TiledMma<I, W>, OperandC, Tile>: FragmentLayout,
{
    const {
        assert!(
            PartitionValues::<TiledMma<I, W>, OperandC, Tile>::SIZE == ATOMS * I::Values::SIZE,
            "wait_c: the tile of C has other rows or columns than the accumulators"
        )
    }
    let of_atoms = Accumulator::wait_array(accumulators);
    Fragment::from_fn(|v| {
        let of_an_atom = const { I::Values::SIZE };
        of_atoms[v / of_an_atom].get(v % of_an_atom)
    })
}
