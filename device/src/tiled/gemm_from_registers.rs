//! Products by the instructions of warpgroups, of an A in registers and a tile of B in shared memory.

use cutlet_layout_core::{
    Arrangement, Fragment, FragmentLayout, InOrder, Mma, OperandC, PartitionValues, StaticLayout,
    ThreadIndex, ThreadMma, TileShape, TiledMma,
};

use super::FragmentC;
use super::gemm_shared::{aside, rows};
use crate::operand::{OperandB, SharedOperand};
use crate::sm90::{
    Accumulator, RegisterA, RegisterElement, WgmmaGroup, WgmmaInstruction, accumulator_to_a,
};
use crate::warpgroup::WarpgroupsThread;
use crate::{Float16, MmaInstruction};

/// Issues the products of an M×K operand A in registers and an N×K tile of B in shared memory: `c = a·bᵀ`, or
/// `c += a·bᵀ` if `accumulate`. CuTe calls it the RS variant. All threads of the tiled MMA call it, each warpgroup in a
/// group of its own. [`wait_c`](super::wait_c) returns the accumulators.
///
/// `a` has the registers of each instruction's rows, of which a warpgroup has `ATOMS`, in each of the `STEPS` along k.
/// They come from [`accumulators_as_registers_a`], from [`load_registers_a`](super::load_registers_a), or from
/// [`RegisterA::new`] of elements that the thread computes.
///
/// B has the columns of one instruction for each of the warpgroups side by side.
///
/// ```
/// use cutlet_device::sm90::{Accumulator, Wgmma, warpgroup_arrive};
/// use cutlet_device::tile::KMajorTile;
/// use cutlet_device::tiled::{LdMatrix, gemm_from_registers, load_registers_a, wait_c};
/// use cutlet_device::{GlobalMut, kernel, thread_idx};
/// use cutlet_layout_core::{L, RowMajor, Tensor, TiledMma};
/// use half::bf16;
///
/// /// One warpgroup.
/// type Mma = TiledMma<Wgmma<64, bf16>, L!((1, 1):(0, 0))>;
/// type Tile = L!((64, 64):(1@0, 1@1));
///
/// # /// Multiplies tiles that nothing has written: it shows the calls.
/// # ///
/// /// # Safety
/// /// `c` has 64×64 elements.
/// #[kernel(threads = 128, arch = "sm_90a")]
/// unsafe fn product(
///     c: GlobalMut<f32>,
///     #[shared] (a, b): (KMajorTile<bf16, 64, 64>, KMajorTile<bf16, 64, 64>),
/// ) {
///     // … fill the tiles …
///     let mma = Mma::thread_slice(thread_idx());
///     // SAFETY: barriers order the writes of the tile before.
///     let a: [[_; 4]; 1] = load_registers_a(LdMatrix, mma, unsafe { a.tensor() });
///     let mut sums = Accumulator::new_array::<1>();
///     let group = warpgroup_arrive();
///     // SAFETY: B is written and not overwritten. A's registers were made before the group, and live until the wait.
///     unsafe { gemm_from_registers(&group, mma, &a, b, &mut sums, false) };
///     group.commit();
///     let sums = wait_c::<_, _, _, Tile, 1>(mma, sums);
///     // SAFETY: as promised by the caller.
///     let c = unsafe { Tensor::new(c, RowMajor::new([64, 64], 64)) };
///     mma.partition_c(c.local_tile::<Tile>((0, 0))).store(&sums);
/// }
/// assert_eq!(product.bounds().threads(), 128);
/// ```
///
/// # Safety
/// B must be visible to the instruction: loaded by TMA, or written before a
/// [`fence_async_shared`](crate::fence_async_shared). Nothing may overwrite it before the group was waited for. `a`
/// must have been made before the group was opened, and must not be dropped before the group was waited for. The first
/// call for [`new`](Accumulator::new_array) accumulators must not `accumulate`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn gemm_from_registers<I, W, X, B, const STEPS: usize, const ATOMS: usize>(
    group: &WgmmaGroup,
    mma: ThreadMma<TiledMma<I, W>, X>,
    a: &[[RegisterA<<I as MmaInstruction>::A>; STEPS]; ATOMS],
    b: B,
    c: &mut [Accumulator<I>; ATOMS],
    accumulate: bool,
) where
    I: WgmmaInstruction<A: RegisterElement> + Mma,
    W: Arrangement,
    X: WarpgroupsThread,
    B: SharedOperand<OperandB<I>>,
{
    const {
        assert!(
            rows::<B::Layout>() == <I as MmaInstruction>::N * W::Aside::SIZE,
            "gemm_from_registers: B has other rows than the instruction's N for each of the warpgroups side by side"
        );
        assert!(
            STEPS * <I as MmaInstruction>::K == <B::Layout as TileShape>::Columns::SIZE,
            "gemm_from_registers: A has registers of other steps along k than the tile of B has"
        );
    }
    let b = b.operand().rows(aside::<W>(mma.thread().warpgroup()));
    for (a, c) in a.iter().zip(c) {
        // A loop and no closure, so that an error on the CPU names the line of the caller.
        for (step, a) in a.iter().enumerate() {
            // SAFETY: as promised by the caller.
            unsafe { group.mma_from_registers(c, a, b.k_step(step), accumulate || step > 0) };
        }
    }
}

/// The registers of operand A of accumulators of an M×K tile, rounded to `T`, for each instruction's rows and each of
/// the `STEPS` along k: what attention multiplies by V. No data moves between threads.
///
/// `mma` is the product that the accumulators are of, and the product that reads the registers has the same warpgroups.
/// Each warpgroup must have all columns, so that its threads hold what they multiply: `L!((2, 1):(1, 0))` has two
/// warpgroups below one another.
///
/// ```
/// use cutlet_device::sm90::{Accumulator, Wgmma, warpgroup_arrive};
/// use cutlet_device::tile::{KMajorTile, MnMajor, MnMajorTile};
/// use cutlet_device::tiled::{accumulators_as_registers_a, gemm_from_registers, gemm_shared, wait_c};
/// use cutlet_device::warpgroup::warpgroup_thread_idx;
/// use cutlet_device::kernel;
/// use cutlet_layout_core::{L, TiledMma};
/// use half::bf16;
///
/// type OneWarpgroup = L!((1, 1):(0, 0));
/// /// 64 queries by 128 keys, and 64 queries by 64 features.
/// type Scores = TiledMma<Wgmma<128, bf16>, OneWarpgroup>;
/// type Output = TiledMma<Wgmma<64, bf16, bf16, cutlet_device::tile::KMajor, MnMajor>, OneWarpgroup>;
/// type TileOfScores = L!((64, 128):(1@0, 1@1));
///
/// # /// Multiplies tiles that nothing has written: it shows the calls.
/// # ///
/// # /// # Safety
/// # /// None.
/// #[kernel(threads = 128, arch = "sm_90a")]
/// unsafe fn attention(
///     #[shared] (queries, keys): (KMajorTile<bf16, 64, 64>, KMajorTile<bf16, 128, 64>),
///     #[shared] values: MnMajorTile<bf16, 64, 128>,
/// ) {
///     let thread = warpgroup_thread_idx();
///     let (scores, output) = (Scores::thread_slice(thread), Output::thread_slice(thread));
///     let mut sums = Accumulator::new_array::<1>();
///     let group = warpgroup_arrive();
///     // SAFETY: …
///     unsafe { gemm_shared(&group, scores, queries, keys, &mut sums, false) };
///     group.commit();
///     let weights = wait_c::<_, _, _, TileOfScores, 1>(scores, sums).map(|_, score| score * 0.125);
///
///     let weights: [[_; 8]; 1] = accumulators_as_registers_a(scores, &weights);
///     let mut sums = Accumulator::new_array::<1>();
///     let group = warpgroup_arrive();
///     // SAFETY: …
///     unsafe { gemm_from_registers(&group, output, &weights, values, &mut sums, false) };
///     group.commit();
///     let output = wait_c::<_, _, _, L!((64, 64):(1@0, 1@1)), 1>(output, sums);
///     // …
///     # let _ = output;
/// }
/// assert_eq!(attention.bounds().threads(), 128);
/// ```
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn accumulators_as_registers_a<T, I, W, X, Tile, const STEPS: usize, const ATOMS: usize>(
    _mma: ThreadMma<TiledMma<I, W>, X>,
    accumulators: &FragmentC<I, W, InOrder, Tile>,
) -> [[RegisterA<T>; STEPS]; ATOMS]
where
    T: Float16 + RegisterElement,
    I: WgmmaInstruction<Acc = f32> + Mma,
    W: Arrangement,
    X: ThreadIndex,
    PartitionValues<TiledMma<I, W>, OperandC, Tile>: FragmentLayout,
{
    const {
        assert!(
            W::Aside::SIZE == 1,
            "accumulators_as_registers_a: warpgroups side by side share the rows of the accumulators, and a thread \
             lacks some of the operand: put the warpgroups below one another"
        );
        assert!(
            PartitionValues::<TiledMma<I, W>, OperandC, Tile>::SIZE == ATOMS * I::Values::SIZE,
            "accumulators_as_registers_a: the tile has other rows than the registers: a warpgroup has 64 rows for \
             each of the `ATOMS`"
        );
    }
    let of_an_atom = const { I::Values::SIZE };
    core::array::from_fn(|atom| {
        let values = Fragment::from_fn(|v| accumulators.get(v + of_an_atom * atom));
        accumulator_to_a::<I, T, STEPS>(&values).map(|elements| RegisterA::new(&elements))
    })
}
