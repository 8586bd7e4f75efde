//! `wgmma` with A in registers: a product of a row-major A, which threads load, and of a B that TMA loads.

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
use cutlet_device::sm90::{
    Accumulator, AccumulatorLayout, RegisterA, RegisterElement, WarpgroupThreads, Wgmma,
    WgmmaInstruction, warpgroup_arrive, warpgroup_wait,
};
use cutlet_device::tile::{
    KMajor, KMajorTile, MnMajor, MnMajorTile, OperandLayout, SharedTile, TmaLayout,
};
use cutlet_device::tma::{LoadOptions, TensorMap};
use cutlet_device::warpgroup::warpgroup_thread_idx;
use cutlet_device::{
    Global, GlobalMut, MmaInstruction, block_idx, instantiate, sync_threads, thread_idx,
};
use cutlet_layout_core::{RowMajor, Tensor, ThreadValue};
use half::{bf16, f16};

/// Instructions of a k-tile.
const K_STEPS: u32 = 4;

/// The elements of A of an instruction: 64 rows.
type StepOfA<T> = (
    <<T as RegisterElement>::LayoutA as ThreadValue>::Thr,
    <<T as RegisterElement>::LayoutA as ThreadValue>::Val,
);

/// The accumulators of an instruction.
type TileOfC<I> = (WarpgroupThreads, <I as MmaInstruction>::Values);

/// Computes a tile of `C = A·Bᵀ`. C has m rows of n elements, `ldc` apart, and A has m rows of k elements.
///
/// # Safety
/// The map is of boxes of the tile, and of B. A and C exist.
#[inline(always)]
unsafe fn product<I, L>(
    [m, n, k]: [i32; 3],
    a: Global<I::A>,
    b: &TensorMap,
    c: GlobalMut<f32>,
    ldc: i64,
    tile: SharedTile<I::B, L, L::Swizzle>,
    barrier: Mbarrier,
) where
    I: WgmmaInstruction<A: RegisterElement + Default, Acc = f32>,
    L: TmaLayout,
{
    let leads = thread_idx().get() == 0;
    let thread = warpgroup_thread_idx();
    let (row, column) = (block_idx().x, block_idx().y);
    // SAFETY: the extents are those of A and C.
    let (a, c) = unsafe {
        (
            Tensor::new(a, RowMajor::new([m, k], k.into())),
            Tensor::new(c, RowMajor::new([m, n], ldc)),
        )
    };
    if leads {
        // SAFETY: no thread uses the barrier yet.
        unsafe { barrier.init(1) };
        fence_mbarrier_init();
    }
    sync_threads();
    let mut accumulator = Accumulator::<I>::new();
    let b_row = column.get() as i32 * L::MN as i32;
    for k_tile in 0..(k as u32).div_ceil(L::K as u32) {
        if leads {
            barrier.arrive_expect_tx(SharedTile::<I::B, L, L::Swizzle>::BYTES);
            let at = [b_row, (k_tile * L::K as u32) as i32];
            // SAFETY: the map is of the tile. The instructions that read the tile are done.
            unsafe { tile.load(b, at, barrier, LoadOptions::DEFAULT) };
        }
        let in_registers: [RegisterA<I::A>; K_STEPS as usize] = core::array::from_fn(|k_step| {
            let step = k_tile * K_STEPS + k_step as u32;
            let elements = a.local_tile::<StepOfA<I::A>>((row, step));
            let elements = elements.partition::<<I::A as RegisterElement>::LayoutA>(thread);
            RegisterA::new(&elements.load(Default::default()))
        });
        barrier.wait(k_tile % 2);
        let b = tile.operand_b::<I>();
        let group = warpgroup_arrive();
        for (k_step, a) in in_registers.iter().enumerate() {
            let accumulate = k_tile > 0 || k_step > 0;
            // SAFETY: the tile is full. A's registers were made before the group, and are dropped after the wait.
            unsafe {
                group.mma_from_registers(&mut accumulator, a, b.k_step(k_step), accumulate);
            }
        }
        group.commit();
        warpgroup_wait::<0>();
        drop(in_registers);
        sync_threads();
    }
    c.local_tile::<TileOfC<I>>((row, column))
        .partition::<AccumulatorLayout<I>>(thread)
        .store(&accumulator.wait());
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $a:ty, $b:ty, $major:ty, $tile:ident<$n:literal, $k:literal>;)*) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 128, arch = "sm_90a")]
            pub unsafe fn $name(
                shape: [i32; 3],
                a: Global<$a>,
                #[grid_constant] b: &TensorMap,
                c: GlobalMut<f32>,
                ldc: i64,
                #[shared] tile: $tile<$b, $n, $k>,
                #[shared] barrier: Mbarrier,
            ) = product::<
                Wgmma<$n, $a, $b, KMajor, $major>,
                OperandLayout<$b, $major, $n, $k, 128>
            >;
        )*}
    };
}
kernels! {
    /// A product of bf16, with as many accumulators as an instruction may have.
    product_of_bf16: bf16, bf16, KMajor, KMajorTile<256, 64>;
    /// A product of bf16, with a row-major B.
    product_with_row_major_b: bf16, bf16, MnMajor, MnMajorTile<128, 64>;
    /// A product of f16.
    product_of_f16: f16, f16, KMajor, KMajorTile<40, 64>;
    /// A product of f32, by tf32.
    product_of_tf32: f32, f32, KMajor, KMajorTile<24, 32>;
    /// A product of both 8-bit floats.
    product_of_e4m3_e5m2: F8E4M3, F8E5M2, KMajor, KMajorTile<16, 128>;
}
