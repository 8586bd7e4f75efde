//! Products of tiles in shared memory, by the instructions of warpgroups.

use cutlet_layout_core::{
    Arrangement, Fragment, FragmentLayout, InOrder, Mma, OperandC, PartitionValues, StaticLayout,
    StaticSwizzle, Steps, ThreadIndex, ThreadMma, TileShape, TiledMma, each,
};

use super::FragmentC;
use crate::sm90::{Accumulator, WgmmaGroup, WgmmaInstruction};
use crate::tile::SharedTile;
use crate::warpgroup::WARPGROUP_SIZE;
use crate::{MmaInstruction, uniform};

/// Issues the products of an M×K tile of A and an N×K tile of B in shared memory: `c = a·bᵀ`, or `c += a·bᵀ` if
/// `accumulate`. All threads of the tiled MMA call it, each warpgroup in a group of its own. [`wait_c`] returns the
/// accumulators.
///
/// `ATOMS` is how many instructions' rows of A a warpgroup has: M over 64 times the warpgroups below one another. B has
/// the columns of one instruction for each of the warpgroups side by side.
///
/// # Safety
/// The tiles must be visible to the instruction: loaded by TMA, or written before a
/// [`fence_async_shared`](crate::fence_async_shared). Nothing may overwrite them before the group was waited for. The first
/// call for [`new`](Accumulator::new_array) accumulators must not `accumulate`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn gemm_shared<I, W, X, LA, WA, LB, WB, const ATOMS: usize>(
    group: &WgmmaGroup,
    mma: ThreadMma<TiledMma<I, W>, X>,
    a: SharedTile<<I as MmaInstruction>::A, LA, WA>,
    b: SharedTile<<I as MmaInstruction>::B, LB, WB>,
    c: &mut [Accumulator<I>; ATOMS],
    accumulate: bool,
) where
    I: WgmmaInstruction + Mma,
    W: Arrangement,
    X: ThreadIndex,
    LA: TileShape,
    WA: StaticSwizzle,
    LB: TileShape,
    WB: StaticSwizzle,
{
    const {
        assert!(
            LA::Rows::SIZE == <I as MmaInstruction>::M * W::Below::SIZE * ATOMS,
            "gemm_shared: a warpgroup has other rows of A than accumulators: M is 64, times the warpgroups below one \
             another, times the number of accumulators"
        );
        assert!(
            LB::Rows::SIZE == <I as MmaInstruction>::N * W::Aside::SIZE,
            "gemm_shared: B has other rows than the instruction's N for each of the warpgroups side by side"
        );
        assert!(
            LA::Columns::SIZE == LB::Columns::SIZE,
            "gemm_shared: the tiles of A and B have different k"
        );
    }
    // The same for all threads of a warp.
    let warpgroup = uniform(mma.thread().index() / WARPGROUP_SIZE);
    let (below, aside) = (
        warpgroup / const { step::<W>(0) } % const { W::Below::SIZE as u32 },
        warpgroup / const { step::<W>(1) } % const { W::Aside::SIZE as u32 },
    );
    let b = b.operand_b::<I>().rows(aside);
    for (nth, c) in c.iter_mut().enumerate() {
        let row = below + const { W::Below::SIZE as u32 } * nth as u32;
        let a = a.operand_a::<I>().rows(row);
        // SAFETY: as promised by the caller.
        unsafe {
            if const { Steps::<TiledMma<I, W>, LA>::SIZE == 4 } {
                let a = [a.k_step(0), a.k_step(1), a.k_step(2), a.k_step(3)];
                let b = [b.k_step(0), b.k_step(1), b.k_step(2), b.k_step(3)];
                group.mma_x4(c, a, b, accumulate);
            } else {
                each::<Steps<TiledMma<I, W>, LA>>(|step| {
                    group.mma(c, a.k_step(step), b.k_step(step), accumulate || step > 0);
                });
            }
        }
    }
}

/// The distance between the numbers of warpgroups that are neighbours along a direction.
const fn step<W: Arrangement>(along: usize) -> u32 {
    let stride = W::LAYOUT.mode(along).stride().leaf(0).value() as u32;
    if stride == 0 { 1 } else { stride }
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
