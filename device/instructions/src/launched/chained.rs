//! Two products in a row, as in attention: `O = (Q·Kᵀ)·V`. The first product's accumulators, rounded, are operand A of
//! the second.

use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
use cutlet_device::sm90::{
    Accumulator, AccumulatorLayout, RegisterA, RegisterElement, WarpgroupThreads, Wgmma,
    WgmmaInstruction, accumulator_to_a, warpgroup_arrive, warpgroup_wait,
};
use cutlet_device::tile::{KMajor, KMajorTile, MnMajor, MnMajorTile};
use cutlet_device::tma::{LoadOptions, TensorMap};
use cutlet_device::warpgroup::warpgroup_thread_idx;
use cutlet_device::{
    Float16, GlobalMut, MmaInstruction, block_idx, instantiate, sync_threads, thread_idx,
};
use cutlet_layout_core::{RowMajor, Tensor};
use half::{bf16, f16};

/// Rows of K and V that are multiplied at a time.
const KEYS: usize = 96;
/// The same, in steps of the second product.
const STEPS: usize = KEYS / 16;
/// Columns of Q, K and V.
pub const WIDTH: usize = 64;

/// A tile of Q: 64 rows.
pub type TileQ<T> = KMajorTile<T, 64, WIDTH>;
/// A tile of K.
pub type TileK<T> = KMajorTile<T, KEYS, WIDTH>;
/// A tile of V. Its columns are the n of the second product, and they are consecutive.
pub type TileV<T> = MnMajorTile<T, WIDTH, KEYS>;

/// The first product.
type First<T> = Wgmma<KEYS, T>;
/// The second product.
type Second<T> = Wgmma<WIDTH, T, T, KMajor, MnMajor>;

/// The tiles and their barrier.
type Storage<T> = (TileQ<T>, TileK<T>, TileV<T>, Mbarrier);

/// Computes 64 rows of `O = (Q·Kᵀ)·V`. O has `rows` rows of [`WIDTH`] elements, and K and V have `keys` rows.
///
/// # Safety
/// The maps are of boxes of [`TileQ`], [`TileK`] and [`TileV`]. O exists.
#[inline(always)]
unsafe fn chained<T>(
    [rows, keys]: [i32; 2],
    q: &TensorMap,
    k: &TensorMap,
    v: &TensorMap,
    o: GlobalMut<f32>,
    (tile_q, tile_k, tile_v, barrier): Storage<T>,
) where
    T: Float16 + RegisterElement,
    First<T>: WgmmaInstruction<A = T, B = T, Acc = f32, MajorA = KMajor, MajorB = KMajor>,
    Second<T>: WgmmaInstruction<A = T, B = T, Acc = f32, MajorA = KMajor, MajorB = MnMajor>,
{
    let leads = thread_idx().get() == 0;
    let thread = warpgroup_thread_idx();
    let row = block_idx().x;
    if leads {
        // SAFETY: no thread uses the barrier and the tile yet. The map is of the tile.
        unsafe {
            barrier.init(1);
            fence_mbarrier_init();
            barrier.expect_tx(TileQ::<T>::BYTES);
            let at = [row.get() as i32 * 64, 0];
            tile_q.load(q, at, barrier, LoadOptions::DEFAULT);
        }
    }
    sync_threads();
    let mut sums = Accumulator::<Second<T>>::new();
    for nth in 0..(keys as u32).div_ceil(KEYS as u32) {
        if leads {
            barrier.arrive_expect_tx(TileK::<T>::BYTES + TileV::<T>::BYTES);
            let key = (nth * KEYS as u32) as i32;
            // SAFETY: the maps are of the tiles. The instructions that read the tiles are done.
            unsafe {
                tile_k.load(k, [key, 0], barrier, LoadOptions::DEFAULT);
                tile_v.load(v, [0, key], barrier, LoadOptions::DEFAULT);
            }
        }
        barrier.wait(nth % 2);
        let mut scores = Accumulator::<First<T>>::new();
        let (operand_q, operand_k) = (tile_q.operand_a(), tile_k.operand_b());
        let group = warpgroup_arrive();
        for k_step in 0..WIDTH / 16 {
            let (a, b) = (operand_q.k_step(k_step), operand_k.k_step(k_step));
            // SAFETY: the tiles are full until the products are done.
            unsafe { group.mma::<First<T>>(&mut scores, a, b, k_step > 0) };
        }
        group.commit();
        let fragments: [_; STEPS] = accumulator_to_a::<First<T>, T, STEPS>(&scores.wait());
        let in_registers: [_; STEPS] =
            core::array::from_fn(|step| RegisterA::new(&fragments[step]));
        let operand_v = tile_v.operand_b();
        let group = warpgroup_arrive();
        for (step, a) in in_registers.iter().enumerate() {
            let accumulate = nth > 0 || step > 0;
            // SAFETY: the tile is full until the products are done. A's registers were made before the group, and are
            // dropped after the wait.
            unsafe {
                let b = operand_v.k_step(step);
                group.mma_from_registers::<Second<T>>(&mut sums, a, b, accumulate);
            }
        }
        group.commit();
        warpgroup_wait::<0>();
        drop(in_registers);
        sync_threads();
    }
    // SAFETY: the extents are those of O.
    let o = unsafe { Tensor::new(o, RowMajor::new([rows, WIDTH as i32], WIDTH as i64)) };
    o.local_tile::<(WarpgroupThreads, <Second<T> as MmaInstruction>::Values)>((row, 0u32))
        .partition::<AccumulatorLayout<Second<T>>>(thread)
        .store(&sums.wait());
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 128, arch = "sm_90a")]
            pub unsafe fn $name(
                shape: [i32; 2],
                #[grid_constant] q: &TensorMap,
                #[grid_constant] k: &TensorMap,
                #[grid_constant] v: &TensorMap,
                o: GlobalMut<f32>,
                #[shared] storage: Storage<$type>,
            ) = chained::<$type>;
        )*}
    };
}
kernels! {
    /// Two products of bf16 in a row.
    chained_bf16: bf16;
    /// Two products of f16 in a row.
    chained_f16: f16;
}
